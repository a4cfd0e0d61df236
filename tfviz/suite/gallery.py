"""One page that shows what ran: a picture, the parameters, the time and the result of each notebook."""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat

from tfviz.files import atomic
from tfviz.suite import committed, notebooks
from tfviz.suite.result import Result, cut

STYLE = (Path(__file__).parent / "page" / "house.css").read_text(encoding="utf-8")
LONGEST = 1000  # characters of a title, a text or a value
QUESTIONS = "**Questions:**"  # begins the paragraph of a notebook's first cell that says what it answers
FOUND = "<details class=questions><summary>Find a lesson by a question it answers</summary><ul>{}</ul></details>"


def write(results: Sequence[Result], out: Path, way: str = "") -> Path:
    """`out/index.html`, whole; while notebooks are still to come it renews itself every few seconds.

    `way` is HTML that leads to other pages, above all else.
    """
    coming = sum(result.status in ("waiting", "running") for result in results)
    renew = '<meta http-equiv="refresh" content="5">' if coming else ""
    failed = sum(result.status == "failed" for result in results)
    ended = sum(result.status in ("ok", "unchanged", "failed") for result in results)
    state = f"{ended} of {len(results)} notebooks have run" + (f", {failed} failed" if failed else "")
    table = ' · <a href="results.html">all runs in one table</a>' if any(result.folder for result in results) else ""
    first = {result.name: result for result in reversed(results)}  # of several runs of a notebook
    sources = {name: notebooks.parse(result.source) for name, result in first.items()}
    cards = "".join(_card(result, sources[result.name], out) for result in results)
    asked = "".join(_asked(first[name], sources[name], out) for name in sorted(first))
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{renew}<title>tfviz gallery</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body class="house wide">'
        f"{way}<header><h1>{'Lessons' if way else 'tfviz'}</h1><p>{state}{table}</p></header>"
        f"{asked and FOUND.format(asked)}<main class=cards>{cards}</main>"
        "</body></html>\n"
    )
    with atomic(out / "index.html") as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")
    return out / "index.html"


def links(places: Mapping[str, str], here: str = "") -> str:
    """The line of links at the top of a page, as HTML: what each says, and where it leads; `here` is where one is."""
    drawn = "".join(
        f'<a href="{to}"{" aria-current=page" if name == here else ""}>{name}</a>' for name, to in places.items()
    )
    return f'<div class="house-way" role="navigation" aria-label="tfviz"><div>{drawn}</div></div>'


def questions(notebook: nbformat.NotebookNode) -> list[str]:
    """What it answers, in its own words, without their emphasis."""
    said = next((part for part in _first(notebook).split("\n\n") if part.startswith(QUESTIONS)), "")
    plain = _plain(said.removeprefix(QUESTIONS)).replace("\n", " ")
    return [asked.strip() for asked in re.findall(r"[^?]+\?", plain)]


def _asked(result: Result, source: nbformat.NotebookNode, out: Path) -> str:
    """A line for each question, which leads to the notebook once it has run."""
    there = result.there(out)
    return "".join(
        f'<li><a href="{_page(result, out)}">{line}</a></li>' if there else f"<li>{line}</li>"
        for line in map(html.escape, questions(source))
    )


def _page(result: Result, out: Path) -> str:
    return html.escape(result.link(out, ".html" if result.file(out, ".html").is_file() else ".ipynb"))


def _card(result: Result, source: nbformat.NotebookNode, out: Path) -> str:
    there = result.there(out)
    title, promise = (html.escape(cut(part, LONGEST)) for part in _heading(source, result.name))
    picture = _picture(result.file(out, ".ipynb")) if there else None
    shown = f'<img alt="a picture from {title}" src="data:image/png;base64,{html.escape(picture)}">' if picture else ""
    heading = f'<a href="{_page(result, out)}">{title}</a>' if there else title
    values = ", ".join(f"{name}={cut(repr(value), LONGEST)}" for name, value in result.parameters.items())
    time = f", {result.seconds:.0f} s" if there else ""
    link = f' · <a href="{html.escape(result.link(out, ".ipynb"))}">notebook</a>' if there else ""
    said = html.escape(cut(result.result, LONGEST)).replace("\n", "<br>")
    return (
        f'<article><div class="thumb">{shown or f"<span>{result.status}</span>"}</div><div class="text">'
        f"<h2>{heading}</h2><p>{promise}</p>{f'<p class=result>{said}</p>' if said else ''}"
        + (f'<p class="failed">{html.escape(result.error)}</p>' if result.error else "")
        + f'<p class="soft">{result.status}{time} {link}</p>'
        f'<p class="soft"><code>{html.escape(values)}</code></p></div></article>'
    )


def _first(notebook: nbformat.NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def _heading(notebook: nbformat.NotebookNode, name: str) -> tuple[str, str]:
    """Title and promise: the first line and the first paragraph of the first cell, without its emphasis."""
    parts = _plain(committed.unlinked(_first(notebook))).strip().split("\n\n")
    return parts[0].lstrip("# ") or name, parts[1].replace("\n", " ") if len(parts) > 1 else ""


def _plain(markdown: str) -> str:
    return re.sub(r"\*+|`", "", markdown)


def _picture(path: Path) -> str | None:
    """The thumbnail of a notebook that ran; None if there is none, or no notebook any more."""
    try:
        return _thumbnail(notebooks.load(path))
    except (OSError, ValueError):
        return None


def _thumbnail(notebook: nbformat.NotebookNode) -> str | None:
    """The picture of the cell tagged `thumbnail`, or else the last one."""
    pictures = [
        output.data["image/png"].replace("\n", "")
        for cell in notebooks.tagged(notebook, "thumbnail") or notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    return pictures[-1] if pictures else None


def page(notebook: nbformat.NotebookNode, path: Path, way: str = "") -> None:
    """The notebook as a page that asks nothing of the network: formulas become MathML, which browsers draw.

    `way` is HTML that leads to other pages, above the notebook; it brings no link to a living page, since it is one.
    """
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor  # of a progress bar only what it said last

    from tfviz.suite.formulas import Exporter

    nothing = dict.fromkeys(("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url"), "")
    here = [str(Path(__file__).parent)]
    said = [CoalesceStreamsPreprocessor]
    exporter = Exporter(
        template_name="page", extra_template_basedirs=here, embed_images=True, preprocessors=said, **nothing
    )
    body = exporter.from_notebook_node(_here(notebook, path.stem), {"way": way, "house": STYLE})[0]
    with atomic(path) as draft:
        draft.write_text(body, encoding="utf-8", errors="replace")


def _here(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """A widget has no kernel in a page, and would ask the network for its script: what stands beside it is shown."""
    from tfviz.view.page.bundle import deduplicate  # which loads matplotlib

    made = committed.linked(copy.deepcopy(notebook))
    made.metadata.pop("widgets", None)
    made.metadata["title"] = _heading(made, name)[0]
    bundles: set[str] = set()  # that the page has by then
    for cell in made.cells:
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            data.pop(committed.WIDGET, None)
            if "text/html" in data:
                data["text/html"] = deduplicate(data["text/html"], bundles)
    return made
