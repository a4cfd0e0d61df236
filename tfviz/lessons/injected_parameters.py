"""Merge the parameters that papermill injected into a notebook into its cell of defaults, keeping the comments."""

from __future__ import annotations

import ast

from nbformat import NotebookNode

from tfviz.lessons.notebooks import tagged_cells


def merge(notebook: NotebookNode) -> None:
    """Put the injected values into the cell tagged `parameters`, and remove the cell tagged `injected-parameters`.

    The notebook stays unchanged if it lacks one of these cells, or if one of them is not valid Python.
    """
    defaults, injected = (tagged_cells(notebook, tag) for tag in ("parameters", "injected-parameters"))
    if defaults and injected:
        try:
            defaults[0].source = replace_values(defaults[0].source, injected[0].source)
        except SyntaxError:
            return
        notebook.cells = [cell for cell in notebook.cells if cell is not injected[0]]


def replace_values(source: str, injected: str) -> str:
    """Return source with assigned values replaced by injected ones; new names are assigned at the end.

    >>> print(replace_values("steps = 400  # of each training\\nseed = 1", "# Parameters\\nsteps = 20\\nnew = [1]"))
    steps = 20  # of each training
    seed = 1
    new = [1]

    Raises:
        SyntaxError: one of the texts is not valid Python.
    """
    values = {name: ast.get_source_segment(injected, value) or "" for name, value in _assignments(injected)}
    lines = [line.encode() for line in source.splitlines(keepends=True)]  # the offsets are those of UTF-8
    for name, value in reversed(_assignments(source)):
        if name in values and value.end_lineno and value.end_col_offset:
            first, last = value.lineno - 1, value.end_lineno - 1
            rest = lines[last][value.end_col_offset :]
            lines[first : last + 1] = [lines[first][: value.col_offset] + values.pop(name).encode() + rest]
    text = b"".join(lines).decode()
    return "\n".join([text, *(f"{name} = {value}" for name, value in values.items())]).strip("\n")


def _assignments(source: str) -> list[tuple[str, ast.expr]]:
    """Return the name and value expression of each assignment to a single name, in order."""
    found = []
    for statement in ast.parse(source).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        value = getattr(statement, "value", None)
        if isinstance(target, ast.Name) and value is not None:
            found.append((target.id, value))
    return found
