"""What the benchmarks share: timing in turns, memory in fresh processes, the machine, Markdown tables."""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"
MB = 1e6
EXACT = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # glibc gives freed tensors back at once
CHILD = """
import importlib, json, sys
folder, script, function, args = sys.argv[1:]
sys.path.insert(0, folder)
print(json.dumps(getattr(importlib.import_module(script), function)(*json.loads(args))))
"""

Run = Callable[[], Any]
Times = dict[str, list[float]]


def parser(doc: str) -> argparse.ArgumentParser:
    """A command line with `--quick`."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; nothing is written")
    return made


def race(runs: dict[str, Run], rounds: int, now: Callable[[], float] = time.perf_counter) -> Times:
    """Seconds of each run in each round, after one round to warm up.

    All take turns in one process and each round begins with another, so that a slow moment of the machine hits all
    alike. What a run returns is kept until its clock has stopped.
    """
    times: Times = {name: [] for name in runs}
    for turn in range(-1, rounds):
        names = list(runs)
        first = max(turn, 0) % len(names)
        for name in names[first:] + names[:first]:
            seconds = clock(runs[name], now)
            if turn >= 0:
                times[name].append(seconds)
    return times


def clock(run: Run, now: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one call takes, the GPU's work included."""
    gc.collect()
    settle()
    started = now()
    kept = run()
    settle()
    seconds = now() - started
    del kept
    return seconds


def settle() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def ratio(times: Times, name: str, base: str) -> float:
    """How many times as long as `base` it took: the ratio in each round, then their median."""
    return median(a / b for a, b in zip(times[name], times[base], strict=True))


def fresh(function: Callable, *args: Any, env: dict[str, str] | None = None) -> Any:
    """What a function of the running script returns in a new process, which nothing before it can have touched.

    Arguments and result are what JSON can hold. It is no child of `multiprocessing`: TorchLens refuses those.
    """
    script = Path(sys.argv[0]).resolve()
    command = [sys.executable, "-c", CHILD, str(script.parent), script.stem, function.__name__, json.dumps(args)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True, env=os.environ | (env or {}))
    return json.loads(done.stdout.splitlines()[-1])


def extra_memory(plain: Run, run: Run) -> float:
    """How many more bytes of resident memory `run` needs at its peak than `plain` does.

    Call it in a process that is `fresh` and `EXACT`. `run` runs for the first time, since a peer may keep its maps in
    the model, where a second run would find them.
    """
    plain()
    usual = peak(plain)
    return peak(run) - usual


def peak(run: Run) -> int:
    """The highest resident memory during a call, in bytes, by Linux's own high-water mark."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # sets the mark back to what is resident now
    kept = run()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    del kept
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def _busy() -> tuple[float, float]:
    """Seconds that all the machine's processes, and this one with its children, have kept a core busy."""
    user, nice, system = map(int, Path("/proc/stat").read_text(encoding="utf-8").split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


STARTED, BUSY = time.monotonic(), _busy()


def others() -> str:
    """How busy other processes have kept the machine since this one started: much, and the times mean little."""
    everything, own = (now - then for now, then in zip(_busy(), BUSY))
    share = (everything - own) / (time.monotonic() - STARTED) / (os.cpu_count() or 1)
    return f"{max(0.0, share):.0%} of the processor's time"


def machine() -> str:
    """Processor, cores, memory and GPU in a line."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    memory = int(Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]) * 1024 / 1e9
    cores = len(os.sched_getaffinity(0))
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{model}, {cores} cores ({torch.get_num_threads()} threads), {memory:.0f} GB{gpu}"


def installed(package: str) -> str | None:
    """The version of a package; None if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def report(
    name: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    seeds: Sequence[int | str],
    quick: bool,
    notes: Sequence[str] = (),
    folder: Path | None = None,
) -> None:
    """Print the table; unless it was quick, write it to NAME.md in `folder` too, by default `results`."""
    table = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    facts = {
        "machine": machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": f"Python {sys.version.split()[0]}, torch {torch.__version__}",
        "command": "`" + " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]]) + "`",
        "other processes meanwhile": others(),
        "seeds": ", ".join(map(str, seeds)),
    }
    parts = [
        f"# {title}",
        "\n".join(f"| {' | '.join(row)} |" for row in table),
        *notes,
        "\n".join(f"* {what}: {value}" for what, value in facts.items()),
    ]
    page = "\n\n".join(parts) + "\n"
    print(page)
    if not quick:
        folder = folder or RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
