"""Runs of a notebook with every combination of some parameters, and one table of their results."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tfviz.files import atomic
from tfviz.suite.runs import Run

LONGEST = 100  # characters of a folder's name


def combinations(grid: Mapping[str, Sequence[Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """Return every choice of one value for each parameter of `grid` that is among `names`.

    >>> combinations({"seed": [1, 2], "heads": [4]}, ["seed", "heads", "dim"])
    [{'seed': 1, 'heads': 4}, {'seed': 2, 'heads': 4}]
    >>> combinations({"seed": [1, 2]}, ["dim"])
    [{}]
    """
    varied = {name: values for name, values in grid.items() if name in names}
    return [dict(zip(varied, chosen)) for chosen in product(*varied.values())]


def folder_name(combination: Mapping[str, Any]) -> str:
    """Return a folder's name for a combination, such as `seed=1,heads=2`; empty for none.

    A name that had to be changed, since it is too long or has other signs, ends in a hash, so that no two are alike.
    """
    text = ",".join(f"{name}={value}" for name, value in combination.items())
    name = re.sub(r"[^\w.=+,-]", "_", text, flags=re.ASCII)[:LONGEST]
    return name if name == text else f"{name}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_table(runs: Sequence[Run], names: Sequence[str], out: Path) -> None:
    """Write `out/results.csv`: a row for each run, ended or not, with a column for each of the varied `names`."""
    with atomic(out / "results.csv") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["notebook", *names, "status", "seconds", "result", "error"])
        for run in runs:
            varied = [run.parameters.get(name, "") for name in names]
            ended = run.outcome
            writer.writerow([run.name, *varied, ended.status, ended.seconds, ended.summary, ended.error])
