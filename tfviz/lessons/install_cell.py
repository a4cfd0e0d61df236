"""The first code cell of each lesson, which installs tfviz where it is missing: in Colab, Kaggle, a new environment."""

from __future__ import annotations

from nbformat import NotebookNode, v4

from tfviz.extras import requirement
from tfviz.lessons.notebooks import tagged_cells

TAG = "install"
# Installed packages are not upgraded, so that Colab needs no restart. anywidget itself enables Colab's custom widgets.
SOURCE = f"""\
# Install tfviz if it is missing, as in Colab or Kaggle. (A folder that only has this name does not count.)
import importlib.util

if getattr(importlib.util.find_spec("tfviz"), "origin", None) is None:
    import subprocess, sys

    print("installing tfviz, which takes a minute or two")
    requirement = "{requirement("lessons")}"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", requirement], check=True)
    importlib.invalidate_caches()"""


def insert(notebook: NotebookNode) -> None:
    """Insert the cell before the first code cell of a lesson, and remove an existing one."""
    remove(notebook)
    number = next((n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"), len(notebook.cells))
    # The other cells were executed with tfviz installed, where this cell would have done nothing.
    executed = number < len(notebook.cells) and notebook.cells[number].execution_count is not None
    cell = v4.new_code_cell(
        SOURCE,
        id=TAG,
        execution_count=1 if executed else None,
        metadata={"tags": [TAG], "jupyter": {"source_hidden": True}},
    )
    notebook.cells.insert(number, cell)


def remove(notebook: NotebookNode) -> None:
    """Remove the cell from a notebook, such as for a page, which needs no kernel."""
    cells = tagged_cells(notebook, TAG)
    notebook.cells = [cell for cell in notebook.cells if cell not in cells]
