"""A training step of the lessons' GPT on a busy machine: beside processes that compute without end.

Every way to train runs in a process of its own, and all of them stay: they take turns, a few seconds each, alone, with
one core busy and with all cores busy; each round begins with another.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from common import parser, report

SEED, ROUNDS, WARM, SECONDS = 0, 3, 1.5, 4.0
WAYS = {  # how it trains: what is imported first, the environment, whether `learn.fit` looks at the machine
    "before: torch's own threads": ("torch", {}, "blind"),
    "before, OMP_WAIT_POLICY=PASSIVE": ("torch", {"OMP_WAIT_POLICY": "PASSIVE"}, "blind"),
    "before, one thread": ("torch", {"OMP_NUM_THREADS": "1"}, "blind"),
    "now: tfviz imported first": ("tfviz", {}, "looks"),
    "now: torch imported first": ("torch", {}, "looks"),
}
BEFORE = next(iter(WAYS))
WORKER = """
import importlib, json, sys, time
from contextlib import nullcontext
first, looks, seed = sys.argv[1:]
importlib.import_module(first)
import torch
from tfviz import learn, models, text
from tfviz.learn import threads

if looks == "blind":
    threads.share = lambda fixed: nullcontext()  # as it was before there was a `threads.share`
torch.manual_seed(int(seed))
model = models.GPT(65, context=64, layers=4, heads=4, dim=128)
batches = text.Windows(torch.randint(65, (20_000,)), 64, 24, seed=int(seed))
steps = learn.fit(model, batches, 100_000, device="cpu", progress=False, seed=int(seed))
for line in sys.stdin:  # for how many seconds to train unmeasured, then measured
    warm, seconds = json.loads(line)
    ends = [time.perf_counter()]
    while ends[-1] < ends[0] + warm:
        next(steps)
        ends.append(time.perf_counter())
    ends = ends[-1:]
    while ends[-1] < ends[0] + seconds or len(ends) < 4:
        next(steps)
        ends.append(time.perf_counter())
    print(json.dumps((ends[-1] - ends[0]) / (len(ends) - 1)), flush=True)
"""


class Worker:
    """A process that trains when it is asked to."""

    def __init__(self, way: str) -> None:
        first, given, looks = WAYS[way]
        free = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "MKL_"))}
        command = [sys.executable, "-c", WORKER, first, looks, str(SEED)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=free | given
        )

    def train(self, warm: float, seconds: float) -> float:
        """Seconds a step, on average."""
        print(json.dumps([warm, seconds]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(loads: list[int], rounds: int, warm: float, seconds: float) -> dict[tuple[str, int], float]:
    """Seconds a step of each way beside so many others: the median over the rounds."""
    workers = {way: Worker(way) for way in WAYS}
    found: dict[tuple[str, int], list[float]] = {(way, load): [] for way in WAYS for load in loads}
    try:
        for worker in workers.values():
            worker.train(0.0, 0.0)
        for turn in range(rounds):
            order = list(WAYS)[turn % len(WAYS) :] + list(WAYS)[: turn % len(WAYS)]
            for load in loads:
                with spinning(load):
                    for way in order:
                        found[way, load].append(workers[way].train(warm, seconds))
    finally:
        for worker in workers.values():
            worker.end()
    return {place: median(times) for place, times in found.items()}


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    cores = len(os.sched_getaffinity(0))
    loads = sorted({0, 1, cores})
    found = measure(loads, *((1, 0.1, 0.2) if quick else (ROUNDS, WARM, SECONDS)))
    allowed = {load: found[BEFORE, 0] * (cores + load) / cores for load in loads}
    rows = [["what its share of the processor allows", *(f"{1000 * allowed[load]:.0f}" for load in loads)]]
    for way in WAYS:
        rows.append([way, *(f"{1000 * found[way, n]:.0f} ({allowed[n] / found[way, n]:.2f})" for n in loads)])
    names = {0: "alone", 1: "one core busy", cores: "all cores busy" if cores != 2 else "both cores busy"}
    report(
        "busy",
        "A busy machine",
        ["ms a training step (speed, as a part of what the share allows)", *(names[load] for load in loads)],
        rows,
        seeds=[SEED],
        quick=quick,
        notes=[
            "GPT, 4 blocks, 4 heads, 128 wide; 24 windows of 64 letters a step. A busy core is a process that computes "
            "without end. Beside `k` of them, a program with a thread for each of `n` cores has `n / (n + k)` of the "
            "processor: a step may take `(n + k) / n` times as long as alone, before. Each number: the mean over "
            f"{SECONDS:.0f} seconds of training after {WARM} unmeasured ones, the median of {ROUNDS} rounds.",
        ],
    )


if __name__ == "__main__":
    main()
