"""Names in backticks, in docstrings and in the guide, exist."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("text", "layers", "models", "learn", "generate", "look", "study", "view", "portable")
NAME = re.compile(rf"`(?:tfviz\.)?((?:{'|'.join(PACKAGES)})(?:\.\w+)+)[(`]")


def docstrings(path):
    tree = ast.parse(path.read_text("utf-8"))
    holders = ast.Module, ast.ClassDef, ast.FunctionDef
    return "\n".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, holders))


def resolves(name):
    """Tell whether a dotted name leads from a package of tfviz through modules and attributes to something."""
    found = import_module("tfviz")
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(f"{found.__name__}.{part}")
            except (AttributeError, ImportError):
                return False
    return True


def missing(text):
    return sorted({name for name in NAME.findall(text) if not resolves(name)})


@pytest.mark.parametrize("package", PACKAGES)
def test_names_in_docstrings_exist(package):
    assert not missing("\n".join(map(docstrings, sorted((ROOT / "tfviz" / package).rglob("*.py")))))


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")], ids=lambda p: p.name
)
def test_names_in_guide_exist(path):
    assert not missing(path.read_text("utf-8"))


@pytest.mark.parametrize("package", ["look", "study"])
def test_package_docstring_lists_each_module(package):
    """These two describe their modules one by one."""
    modules = {path.stem for path in (ROOT / "tfviz" / package).glob("*.py")} - {"__init__"}
    described = import_module(f"tfviz.{package}").__doc__
    assert not sorted(name for name in modules if not re.search(rf"\b{name}\b", described))


def test_scripts_named_in_contributing_exist():
    """Those on the way from a prompt to a page, in indented lines."""
    lines = [line for line in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines() if line.startswith("    ")]
    scripts = re.findall(r"[\w/-]+\.js\b", "\n".join(lines))
    assert len(scripts) > 8
    assert not [script for script in scripts if not (ROOT / "tfviz" / "view" / "js" / script).exists()]


def test_name_that_does_not_exist_is_found():
    assert missing("as `text.letters` and `view.heads(maps)` do, or `tfviz.look.nothing`") == [
        "look.nothing",
        "text.letters",
    ]
