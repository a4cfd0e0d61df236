"""Records of notebook runs, one for each combination of varied parameters, and their outcomes."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode

from tfviz.files import atomic
from tfviz.lessons import notebooks

MAX_ERROR_LENGTH = 2000  # characters of an error message
MAX_NAME_LENGTH = 100  # characters of a folder's name
PAPERMILL_ERROR_TAG = "papermill-error-cell-tag"  # of cells that papermill adds to a notebook that failed


class Outcome(NamedTuple):
    """The outcome of a run.

    Attributes:
        status: "waiting", "ok", "unchanged" (since an earlier run), "failed" or "stopped".
        seconds: the time of the run, in seconds.
        summary: the text output of the notebook's cells tagged `result`.
        thumbnail: a picture of the notebook, PNG in base64; empty if there is none.
        error: the error and its cell; empty if there is none.
    """

    status: str = "waiting"
    seconds: float = 0.0
    summary: str = ""
    thumbnail: str = ""
    error: str = ""


@dataclass
class Run:
    """One run of one notebook.

    Attributes:
        fingerprint: a hash of the notebook's cells, the parameters and the package.
        subfolder: the run's folder in the folder of the results; empty unless parameters are varied.
    """

    name: str
    parameters: dict[str, Any]
    notebook: NotebookNode
    fingerprint: str
    subfolder: str = ""
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def title(self) -> str:
        """The name of the notebook, with the parameters that distinguish this run."""
        return f"{self.name} ({self.subfolder})" if self.subfolder else self.name

    def path(self, out: Path, suffix: str) -> Path:
        """Return the path below `out` of the executed notebook (".ipynb") or its page (".html")."""
        return out / self.subfolder / f"{self.name}{suffix}"


def outcome(notebook: NotebookNode, status: str, seconds: float, error: str = "") -> Outcome:
    """Return the outcome of a run from its executed notebook."""
    outputs = [output for cell in notebooks.tagged_cells(notebook, "result") for output in cell.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    summary = "\n".join(text.strip().strip("'\"") for text in texts)
    return Outcome(status, round(seconds, 1), summary, thumbnail(notebook), error[:MAX_ERROR_LENGTH])


def earlier(out: Path, runs: Collection[Run]) -> list[Run]:
    """Return the runs of earlier calls whose notebooks are in `out` or its subfolders, except those of `runs`."""
    planned, found = {each.path(out, ".ipynb") for each in runs}, []
    for path in sorted([*out.glob("*.ipynb"), *out.glob("*/*.ipynb")]):
        if path in planned or any(part.startswith(".") for part in path.relative_to(out).parts):  # such as a draft
            continue
        with suppress(OSError, ValueError):  # a file of another program
            found.append(_earlier_run(path, out))
    return [each for each in found if each]


def _earlier_run(path: Path, out: Path) -> Run | None:
    """Return the run that wrote a notebook; None if another program did."""
    notebook = notebooks.read(path)
    record, parameters = notebook.metadata.get("tfviz"), notebook.metadata.get("papermill", {})
    if not isinstance(record, Mapping) or not isinstance(record.get("seconds"), int | float):
        return None
    error, folder = str(record.get("error", "")), path.parent.relative_to(out).as_posix()
    notebook.cells = [cell for cell in notebook.cells if PAPERMILL_ERROR_TAG not in cell.metadata.get("tags", [])]
    end = outcome(notebook, "failed" if error else "ok", record["seconds"], error)
    values = dict(parameters.get("parameters", {}))
    return Run(path.stem, values, notebook, "", "" if folder == "." else folder, end)


def thumbnail(notebook: NotebookNode) -> str:
    """Return the picture of the cell tagged `thumbnail`, or else the last picture, as PNG in base64; empty if none."""
    pictures = [
        output.data["image/png"].replace("\n", "")
        for cell in notebooks.tagged_cells(notebook, "thumbnail") or notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    return pictures[-1] if pictures else ""


def combinations(grid: Mapping[str, Sequence[Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """Return every combination of the values in `grid` for those of its parameters that are among `names`.

    >>> combinations({"seed": [1, 2], "heads": [4]}, ["seed", "heads", "dim"])
    [{'seed': 1, 'heads': 4}, {'seed': 2, 'heads': 4}]
    >>> combinations({"seed": [1, 2]}, ["dim"])
    [{}]
    """
    varied = {name: values for name, values in grid.items() if name in names}
    return [dict(zip(varied, chosen)) for chosen in product(*varied.values())]


def folder_name(combination: Mapping[str, Any]) -> str:
    """Return a folder name for a combination of parameters, such as `seed=1,heads=2`; empty for none.

    A name is changed if it is too long, has unsafe characters, or ends in a dot, which Windows removes. A changed name
    ends in a hash, so that names are unique.
    """
    text = ",".join(f"{name}={value}" for name, value in combination.items())
    name = re.sub(r"[^\w.=+,-]|\.$", "_", text, flags=re.ASCII)[:MAX_NAME_LENGTH]
    return name if name == text else f"{name}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_table(runs: Sequence[Run], names: Sequence[str], out: Path) -> None:
    """Write `out/results.csv` with a row for each run, finished or not, and a column for each varied parameter."""
    with atomic(out / "results.csv") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["notebook", *names, "status", "seconds", "result", "error"])
        for run in runs:
            varied, end = [run.parameters.get(name, "") for name in names], run.outcome
            writer.writerow([run.name, *varied, end.status, end.seconds, end.summary, end.error])
