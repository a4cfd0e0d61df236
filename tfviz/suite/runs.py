"""What is known of a run of a notebook, before and after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode

from tfviz.suite import notebooks

ERROR_LENGTH = 2000  # characters of an error message that are shown


class Outcome(NamedTuple):
    """How a run ended.

    Attributes:
        status: waiting, ok, unchanged (since it ran before), failed or stopped.
        summary: the text output of the notebook's cell tagged `result`.
        thumbnail: a picture of the notebook, PNG in base64.
        error: what went wrong, and in which cell.
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
        subfolder: where it lies in the folder of results, if there are several runs of one notebook.
    """

    name: str
    parameters: dict[str, Any]
    notebook: NotebookNode
    fingerprint: str
    subfolder: str = ""
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def title(self) -> str:
        """The notebook, and what sets this run of it apart."""
        return f"{self.name} ({self.subfolder})" if self.subfolder else self.name

    def path(self, out: Path, suffix: str) -> Path:
        """Return where the executed notebook (".ipynb") or its page (".html") lies below `out`."""
        return out / self.subfolder / f"{self.name}{suffix}"


def outcome(notebook: NotebookNode, status: str, seconds: float, error: str = "") -> Outcome:
    """Return the outcome of a run from its executed notebook."""
    outputs = [output for cell in notebooks.tagged_cells(notebook, "result") for output in cell.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    summary = "\n".join(text.strip().strip("'\"") for text in texts)
    return Outcome(status, round(seconds, 1), summary, thumbnail(notebook), error[:ERROR_LENGTH])


def thumbnail(notebook: NotebookNode) -> str:
    """Return the picture of the cell tagged `thumbnail`, or else the last one, as PNG in base64; empty if none."""
    pictures = [
        output.data["image/png"].replace("\n", "")
        for cell in notebooks.tagged_cells(notebook, "thumbnail") or notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    return pictures[-1] if pictures else ""
