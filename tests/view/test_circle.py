"""Imports within `tfviz.view`, late ones included, are acyclic and respect its folders."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tfviz import view

ROOT = Path(view.__file__).parent
FILES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
FILES = {name: path for name, path in FILES.items() if not name.endswith("__init__")}


def view_imports(tree):
    """The files of view that a file names, at its top or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfviz.view"):
            inner = node.module.removeprefix("tfviz.view").lstrip(".")
            yield from [inner] if inner in FILES else [f"{inner}.{alias.name}".lstrip(".") for alias in node.names]


EDGES = {name: {*view_imports(ast.parse(path.read_text(encoding="utf-8")))} for name, path in FILES.items()}


def test_imports_are_acyclic():
    assert all(found <= FILES.keys() for found in EDGES.values())
    assert {"figures.static_figure", "page.heads"} <= EDGES["page.live_widget"]
    assert len(list(TopologicalSorter(EDGES).static_order())) == len(FILES)  # a CycleError names the circle


@pytest.mark.parametrize("folder", ["figures", "page"])
def test_figure_and_page_folders_import_only_allowed_folders(folder):
    allowed = {"check_numbers", "documents", "patch_grid", "result_spec", "spec", "figures"} | {folder}
    for name, found in EDGES.items():
        if name.partition(".")[0] == folder:
            assert {other.partition(".")[0] for other in found} <= allowed, name
