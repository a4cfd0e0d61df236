"""What the recipe is worth in the lessons: each model that `learn.fit` trains as it comes, beside AdamW with a cosine.

The lessons run as they are, at the preset `cpu`. Before each of their trainings that names no optimizer, a copy of the
model is trained by AdamW on the same batches for `LONGER` times as many steps, which takes about as long as the recipe
over 0.7; at the same rate, but for `RAISED`, which had 3e-3 when AdamW trained them. The loss is the mean of the last
tenth of the steps. Models without blocks, which `fit` gives to AdamW anyway, are left out, and so is lesson 03, which
trains its models while they are edited: a copy is not.

    python benchmarks/lessons.py [--quick] [LESSON ...]
"""

import json
import math
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from statistics import fmean, median
from typing import Any

import nbformat
import papermill
import torch
from common import parser, report
from torch import nn

from tfviz import learn
from tfviz.learn.optimizers import hidden_matrices
from tfviz.lessons import notebooks

LESSONS = ("04", "07", "09", "10", "11", "12", "13")  # whose models have blocks, and are trained by `fit`
LONGER = 1.8  # a step of Muon takes a small model about a quarter more time than one of AdamW
USUAL = 3e-3  # `fit`'s rate
RAISED = ("12", "13")  # lessons that have had a higher one since Muon trains them
SAME = 0.01  # by which losses differ that count as the same
fit = learn.fit


def watch(path: str, raised: bool) -> None:
    """Let `learn.fit` add a line to `path` for each training: what the recipe and AdamW did with it."""

    def both(model: nn.Module, batches: Any, steps: int, **how: Any) -> Iterator[learn.Step]:
        if "optimizer" in how or not any(True for _ in hidden_matrices(model)):
            return fit(model, batches, steps, **how)
        old = how | {"lr": USUAL} if raised else how
        with torch.random.fork_rng():  # what the lesson draws later stays as it was
            past = list(_timed(_adamw(*deepcopy((model, batches)), steps, **old)))
        return _told(fit(model, batches, steps, **how), past, {"model": type(model).__name__, "steps": steps}, path)

    learn.fit = both


def _adamw(model: nn.Module, batches: Any, steps: int, **how: Any) -> Iterator[learn.Step]:
    optimizer = learn.optimizers.adamw(model, how.get("lr", USUAL))
    old = {"optimizer": optimizer, "schedule": learn.schedule.cosine(100), "progress": False, "checkpoint_dir": None}
    return fit(model, batches, math.ceil(LONGER * steps), **deepcopy(how) | old)


Past = list[tuple[learn.Step, float]]  # each step and its seconds


def _timed(steps: Iterator[learn.Step]) -> Iterator[tuple[learn.Step, float]]:
    """Each step and its seconds, without those of whoever looks at it."""
    started = time.perf_counter()
    for step in steps:
        yield step, time.perf_counter() - started
        started = time.perf_counter()


def _told(steps: Iterator[learn.Step], old: Past, row: dict[str, Any], path: str) -> Iterator[learn.Step]:
    new: Past = []
    for step, seconds in _timed(steps):
        new.append((step, seconds))
        yield step
    ways = {"recipe": new, "AdamW": old}
    row |= {way: fmean(step.loss for step, _ in past[-max(1, len(past) // 10) :]) for way, past in ways.items()}
    row |= {"time": sum(seconds for _, seconds in new) / sum(seconds for _, seconds in old)}
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def trainings(lesson: Path, preset: str) -> list[dict[str, Any]]:
    """A row for each training of the lesson."""
    notebook = notebooks.read(lesson)
    with tempfile.TemporaryDirectory() as folder:
        rows, out = (str(Path(folder) / name) for name in ("rows.jsonl", lesson.name))
        here, raised = str(Path(__file__).parent), lesson.stem[:2] in RAISED
        first = f"import sys\nsys.path.insert(0, {here!r})\nimport lessons\nlessons.watch({rows!r}, {raised})"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
        parameters = notebooks.values(lesson, preset, {})
        papermill.execute_notebook(notebook, out, parameters, cwd=str(lesson.parent), progress_bar=False)
        return [json.loads(line) for line in Path(rows).read_text(encoding="utf-8").splitlines()]


def rows(lesson: Path, preset: str) -> Iterator[list[str]]:
    """A row for all trainings of one kind of model for one number of steps."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in trainings(lesson, preset):
        groups.setdefault((row["model"], row["steps"]), []).append(row)
    for (model, steps), group in groups.items():
        losses = [f"{fmean(row[way] for row in group):.3f}" for way in ("recipe", "AdamW")]
        better = sum(row["recipe"] <= row["AdamW"] + SAME for row in group)
        ratio = median(row["time"] for row in group)
        yield [lesson.stem, model, f"{steps:,}", *losses, f"{better} of {len(group)}", f"{ratio:.2f}"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("lessons", nargs="*", metavar="LESSON", default=LESSONS, help=", ".join(LESSONS))
    given = options.parse_args()
    found = []
    for lesson in notebooks.find(given.lessons):
        for row in rows(lesson, "smoke" if given.quick else "cpu"):
            print(*row, flush=True)
            found.append(row)
    losses = "loss", f"AdamW, {LONGER} times the steps", f"not worse by {SAME}"
    header = ["lesson", "model", "steps", *losses, "its time"]
    title = "The lessons' models, trained by `learn.fit` as it comes"
    note = (
        "Losses are means over the trainings of a row, in the lesson's own unit; time is a share of AdamW's. "
        f"In {' and '.join(RAISED)} AdamW has a rate of {USUAL}, which the lessons had when AdamW trained them."
    )
    report("lessons", title, header, found, seeds=["as in the lessons"], quick=given.quick, notes=[note])


if __name__ == "__main__":
    main()
