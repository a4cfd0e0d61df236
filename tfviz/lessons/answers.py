"""Remove the answers of exercises and questions from a lesson, for a class."""

from __future__ import annotations

import copy
import re

from nbformat import NotebookNode

from tfviz.lessons.clean import without_live_link
from tfviz.lessons.notebooks import tagged_cells

TAG = "answer"  # of a cell that solves an exercise
SUMMARY = "<summary>Answer</summary>"
ANSWER_LOCATION = re.compile(
    r"\s*[^.\n]*\bfolded cells\b[^.\n]*\.", re.IGNORECASE
)  # a sentence on where the answers are
FOLDED = re.compile(rf"\s*<details>\s*{SUMMARY}.*?</details>", re.DOTALL)  # below a question


def without_answers(notebook: NotebookNode) -> NotebookNode:
    """Return a copy of a notebook without cells that solve exercises, and without answers folded below questions.

    Sentences on where the answers are, and the link to the lesson's page, which shows the answers, are removed, too. So
    are code cells that display an answer with values of the run; no other cell depends on them.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = ANSWER_LOCATION.sub("", FOLDED.sub("", without_live_link(cell.source)))
    gone = tagged_cells(notebook, TAG)
    kept = [cell for cell in notebook.cells if cell not in gone and SUMMARY not in cell.source and cell.source.strip()]
    notebook.cells = kept
    return notebook
