"""The files of view import one another in one direction, also where they do so late."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from tfviz import view

ROOM = Path(view.__file__).parent


def imported(tree):
    """The files of view that a file names, at its top or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfviz.view"):
            inner = node.module.removeprefix("tfviz.view").lstrip(".")
            yield from [inner] if inner else [alias.name for alias in node.names]


def test_no_file_needs_one_that_needs_it():
    files = {path.stem: path for path in ROOM.glob("*.py") if path.stem != "__init__"}
    edges = {name: {*imported(ast.parse(path.read_text()))} & set(files) for name, path in files.items()}
    assert {"alive", "figures"} <= edges["widgets"]
    assert "widgets" in edges["explore"]
    assert len(list(TopologicalSorter(edges).static_order())) == len(files)  # a CycleError names the circle
