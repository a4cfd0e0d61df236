"""Pages of notebooks that ran: one for each, and a gallery of all with a picture, the parameters and the result."""

from __future__ import annotations

import copy
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
from jinja2 import Environment, FileSystemLoader

from tfviz.files import atomic
from tfviz.suite import clean
from tfviz.suite.runs import Run

TEMPLATES = Path(__file__).parent / "templates"
STYLE = (TEMPLATES / "site.css").read_text(encoding="utf-8")
QUESTIONS = "**Questions:**"  # begins the paragraph of a notebook's first cell that tells what it answers
environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)


def render(template: str, **values: Any) -> str:
    """Return one of the templates with these values; texts are escaped."""
    return environment.get_template(template).render(**values)


def navigation(links: Mapping[str, str], current: str = "") -> str:
    """Return the line of links at the top of a page as HTML.

    Args:
        links: the address of each name.
        current: the name that this page stands under.
    """
    return render("navigation.html.j2", links=links, current=current)


def write(runs: Sequence[Run], out: Path, navigation: str = "") -> Path:
    """Write the gallery of these runs as `out/index.html`; return its path.

    Args:
        navigation: HTML with links to other pages, for the top.
    """
    first = {run.name: run for run in reversed(runs)}  # of several runs of a notebook
    page = render(
        "gallery.html.j2",
        style=STYLE,
        navigation=navigation,
        runs=runs,
        count=Counter(run.outcome.status for run in runs),
        table=any(run.subfolder for run in runs),
        questions=[
            (question, _address(first[name], out, ".html"))
            for name in sorted(first)
            for question in questions(first[name].notebook)
        ],
        cards=[_card(run, out) for run in runs],
    )
    with atomic(out / "index.html") as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")
    return out / "index.html"


def _card(run: Run, out: Path) -> dict[str, Any]:
    title, promise = _heading(run.notebook, run.name)
    addresses = {"page": _address(run, out, ".html"), "notebook": _address(run, out, ".ipynb")}
    return {"run": run, "title": title, "promise": promise, **addresses}


def _address(run: Run, out: Path, suffix: str) -> str:
    """Return the address of a run's file, seen from the gallery; empty if it has not been written."""
    path = run.path(out, suffix)
    if run.outcome.status in ("waiting", "stopped") or not path.is_file():
        return ""
    return quote(path.relative_to(out).as_posix(), safe="/=,+~")


def questions(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the questions that a notebook says it answers, without emphasis."""
    paragraphs = _first_cell(notebook).split("\n\n")
    paragraph = next((each for each in paragraphs if each.startswith(QUESTIONS)), "")
    line = _without_emphasis(paragraph.removeprefix(QUESTIONS)).replace("\n", " ")
    return [question.strip() for question in re.findall(r"[^?]+\?", line)]


def _heading(notebook: nbformat.NotebookNode, name: str) -> tuple[str, str]:
    """Return title and promise: the first line and the first paragraph of the first cell."""
    parts = _without_emphasis(clean.without_live_link(_first_cell(notebook))).strip().split("\n\n")
    return parts[0].lstrip("# ") or name, parts[1].replace("\n", " ") if len(parts) > 1 else ""


def _first_cell(notebook: nbformat.NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def _without_emphasis(markdown: str) -> str:
    return re.sub(r"\*+|`", "", markdown)


def page(notebook: nbformat.NotebookNode, path: Path, navigation: str = "") -> None:
    """Write a notebook as a page that needs no network: formulas become MathML, which browsers draw.

    Args:
        navigation: HTML with links to other pages, for the top.
    """
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor  # of a progress bar, keeps what it printed last

    from tfviz.suite.html_exporter import MathMLExporter

    exporter = MathMLExporter(
        template_name="lesson",
        extra_template_basedirs=[str(TEMPLATES)],
        embed_images=True,
        preprocessors=[CoalesceStreamsPreprocessor],
        **dict.fromkeys(("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url"), ""),
    )
    resources = {"navigation": navigation, "style": STYLE}
    body = exporter.from_notebook_node(_without_widgets(notebook, path.stem), resources)[0]
    draft = path.with_name(f".{path.name}.draft")  # workers write beside each other, where `atomic` would clear up
    draft.write_text(body, encoding="utf-8", errors="replace")
    os.replace(draft, path)


def _without_widgets(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """Return a copy for a page, where a widget has no kernel: the view beside it is shown, which needs none.

    The link to the living page is left out, since it leads to this page, and each script stands there once.
    """
    from tfviz.view.page.bundle import deduplicate  # which loads matplotlib

    page = copy.deepcopy(notebook)
    page.metadata.pop("widgets", None)
    page.metadata["title"] = _heading(page, name)[0]
    if page.cells:
        page.cells[0].source = clean.without_live_link(page.cells[0].source)
    bundles: set[str] = set()  # scripts that the page has by then
    for cell in page.cells:
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            data.pop(clean.WIDGET, None)
            if "text/html" in data:
                data["text/html"] = deduplicate(data["text/html"], bundles)
    return page
