"""Seconds that importing tfviz costs beyond importing PyTorch.

Each import runs in a new Python, all in turns. PyTorch is imported first, and the clock stands around what follows; its
own row has the clock around itself. Medians.

    python benchmarks/imports.py [--quick] [--rounds N]
"""

import subprocess
import sys
from statistics import median

from common import parser, report

TORCH = "import torch"
IMPORTS = (
    TORCH,
    "import tfviz",
    "from tfviz import look",
    "from tfviz import generate, layers, learn, look, models, text",
    "from tfviz import view",
    "import transformers.models.gpt2.modeling_gpt2",
)
CHILD = "import time{}; started = time.perf_counter(); {}; print(time.perf_counter() - started)"


def seconds(statement: str) -> float | None:
    """How long an import takes after that of torch; None where something it needs is not installed."""
    child = CHILD.format("" if statement == TORCH else f"; {TORCH}", statement)
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, encoding="utf-8")
    if "ModuleNotFoundError" in done.stderr:
        return None
    done.check_returncode()
    return float(done.stdout.split()[-1])


def row(statement: str, rounds: list[dict[str, float | None]]) -> list[str]:
    if rounds[0][statement] is None:
        return [f"`{statement}`", "not installed"]
    return [f"`{statement}`", f"{1000 * median(times[statement] for times in rounds):,.1f}"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    found = [{what: seconds(what) for what in IMPORTS} for _ in range(1 + (1 if given.quick else given.rounds))]
    rows = [row(statement, found[1:]) for statement in IMPORTS]  # the first round warms the disk's cache
    header = ["", "milliseconds"]
    report("imports", "Imports", header, rows, seeds=["none"], quick=given.quick)


if __name__ == "__main__":
    main()
