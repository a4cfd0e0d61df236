"""The reference, made of the docstrings by pdoc, in the look of the house."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import tfviz
from tfviz.suite.gallery import STYLE
from tfviz.suite.site.frame import colours, way


def needed() -> None:
    """Say at once, not after minutes of training, what is missing."""
    if importlib.util.find_spec("pdoc") is None:
        raise ImportError("the reference is made by pdoc, which is not installed: pip install -e '.[site]'")


def modules() -> Iterator[ModuleType]:
    """The package, its rooms, and the modules that these name as public."""
    yield tfviz
    for room in (getattr(tfviz, name) for name in tfviz.__all__ if name != "suite"):
        yield room
        yield from (part for name in room.__all__ if isinstance(part := getattr(room, name), ModuleType))


def write(out: Path) -> None:
    """`out/tfviz.html`, and below it a page for each public module."""
    import pdoc

    folder = Path(__file__).parent / "reference"
    pdoc.render.configure(docformat="google", show_source=False, template_directory=folder)
    pdoc.render.env.globals.update(way=way, house=STYLE, colours=colours(".pdoc"))
    names = [module.__name__ for module in modules()]
    others = f"!(?!(?:{'|'.join(names)})$)"  # files that only serve these
    pdoc.pdoc("tfviz", *(name for name in names if "still" in name), others, output_directory=out)
