"""The reference of the site, which pdoc makes from the docstrings."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import tfviz
from tfviz.suite.html_parts import STYLE, code_colours
from tfviz.suite.site.markdown_pages import site_navigation


def check_installed() -> None:
    """Raise ImportError at once, rather than after minutes of training, if pdoc is missing."""
    if importlib.util.find_spec("pdoc") is None:
        raise ImportError("the reference is made by pdoc, which is not installed: pip install -e '.[site]'")


def modules() -> Iterator[ModuleType]:
    """Yield the package, its subpackages, and the modules that these name as public."""
    yield tfviz
    for subpackage in (getattr(tfviz, name) for name in tfviz.__all__ if name != "suite"):
        yield subpackage
        members = (getattr(subpackage, name) for name in subpackage.__all__)
        yield from (member for member in members if isinstance(member, ModuleType))


def write(out: Path) -> None:
    """Write `out/tfviz.html`, and below it a page for each public module."""
    import pdoc

    templates = Path(__file__).parent / "reference"
    pdoc.render.configure(docformat="google", show_source=False, template_directory=templates)
    shared = {"site_navigation": site_navigation, "site_style": STYLE, "code_colours": code_colours(".pdoc")}
    pdoc.render.env.globals.update(shared)
    names = [module.__name__ for module in modules()]
    others = f"!(?!(?:{'|'.join(names)})$)"  # pdoc leaves out what matches: all other modules
    pdoc.pdoc("tfviz", *(name for name in names if "still" in name), others, output_directory=out)
