"""A training step of the lessons' GPT beside other processes, with threads that spin while they wait and that sleep.

A loop in plain lines and `learn.fit`, each with `OMP_WAIT_POLICY=PASSIVE` and without, train in processes of their own
that take turns: on an idle machine, and with as many processes that compute without end as there are cores.

    python benchmarks/busy.py [--quick]
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from common import parser, report

SEED, ROUNDS, WARMUP, SECONDS = 0, 5, 1.0, 3.0
POLICIES = {"": {}, ", OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"}}
WORKER = """
import json, sys, time
import torch
from tfviz import learn, models, text

torch.manual_seed(int(sys.argv[2]))
model = models.GPT(65, context=64, layers=4, heads=4, dim=128)
batches = text.Windows(torch.randint(65, (20_000,)), 64, 24, seed=0)

def loop():
    optimizer = learn.muon(model, 3e-3)
    for step in range(100_000):
        total, count = learn.losses.next_token(model, batches[step])
        optimizer.zero_grad()
        (total / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield step

steps = loop() if sys.argv[1] == "loop" else learn.fit(model, batches, 100_000, device="cpu", progress=False)
for line in sys.stdin:  # for how many seconds to train
    started, taken = time.perf_counter(), 0
    while time.perf_counter() < started + float(line) or taken < 3:
        next(steps)
        taken += 1
    print((time.perf_counter() - started) / taken, flush=True)
"""


class Worker:
    """A process that trains on request."""

    def __init__(self, kind: str, variables: dict[str, str]) -> None:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "MKL_"))
        }
        command = [sys.executable, "-c", WORKER, kind, str(SEED)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, encoding="utf-8", env=inherited | variables, **pipes)

    def train(self, seconds: float) -> float:
        """Return the seconds a step takes, on average."""
        print(seconds, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Start so many processes that compute without end."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(workers: dict[str, Worker], loads: list[int], rounds: int, seconds: float) -> dict[tuple[str, int], float]:
    """Return the median seconds a step of each worker beside so many others."""
    found: dict[tuple[str, int], list[float]] = {(name, load): [] for name in workers for load in loads}
    for turn in range(rounds):
        names = list(workers)[turn % len(workers) :] + list(workers)[: turn % len(workers)]
        for load in loads:
            with spinning(load):
                for name in names:
                    workers[name].train(WARMUP * (rounds > 1))
                    found[name, load].append(workers[name].train(seconds))
    return {key: median(times) for key, times in found.items()}


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    loads = [0, len(os.sched_getaffinity(0))]
    kinds = {"a loop": "loop", "learn.fit": "fit"}
    workers = {
        f"{name}{policy}": Worker(kind, variables)
        for name, kind in kinds.items()
        for policy, variables in POLICIES.items()
    }
    try:
        found = measure(workers, loads, *((1, 0.1) if quick else (ROUNDS, SECONDS)))
    finally:
        for worker in workers.values():
            worker.end()
    base = found["a loop", 0], found["a loop", loads[1]]
    rows = []
    for name in workers:
        ratios = [f"{1000 * found[name, load]:.0f} ({found[name, load] / best:.2f})" for load, best in zip(loads, base)]
        rows.append([name, *ratios])
    report(
        "busy",
        "Training beside other processes",
        ["ms a training step (times that of the loop)", "by itself", f"beside {loads[1]} that compute without end"],
        rows,
        seeds=[SEED],
        quick=quick,
        notes=[
            "GPT, 4 blocks, 4 heads, 128 wide; 24 windows of 64 letters a step, moved by Muon. Each number: the "
            f"mean over {SECONDS:.0f} s of training after {WARMUP:.0f} unmeasured ones, the median of {ROUNDS} rounds.",
        ],
    )


if __name__ == "__main__":
    main()
