"""Write the search index of the site, a script with the heading and prose of each section of its pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from tfviz.files import atomic
from tfviz.lessons.html_parts import script

PAGES = ("index.html", "notebooks/[0-9]*.html", "docs/*.html", "benchmarks/index.html")
VOID_ELEMENTS = frozenset(
    ("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
SKIPPED_ELEMENTS = frozenset(("pre", "script", "style", "svg", "math", "nav", "button", "summary"))
SKIPPED_CLASSES = frozenset(("jp-CodeCell", "lesson-top"))
HEADING_ELEMENTS = ("h1", "h2", "h3")
BLOCK_ELEMENTS = frozenset(("p", "li", "td", "th", "div", "tr", "br", *HEADING_ELEMENTS))


class Section(NamedTuple):
    """An entry of the search index: address, page title, heading and prose of a section."""

    address: str
    page: str
    heading: str
    text: str


def write(out: Path) -> None:
    """Write `search-index.js` and `site-search.js` into the folder of the site, from the pages in it."""
    pages = sorted({path for pattern in PAGES for path in out.glob(pattern)})
    found = [
        section for path in pages for section in sections(path.read_text("utf-8"), path.relative_to(out).as_posix())
    ]
    index = json.dumps([section._asdict() for section in found], ensure_ascii=False, separators=(",", ":"))
    for name, content in {"search-index": f"tfvizSearchIndex={index}", "site-search": script("site-search")}.items():
        with atomic(out / f"{name}.js") as draft:
            draft.write_text(content + "\n", encoding="utf-8", newline="\n")


def sections(html: str, address: str) -> Sequence[Section]:
    """Return the sections in the `<main>` of an HTML page, with prose but without code, formulas and outputs."""
    parser = _Sections()
    parser.feed(html)
    title = _clean(parser.sections[1][1]) if len(parser.sections) > 1 else address
    found = [(name, _clean(heading) or title, _clean(text)) for name, heading, text in parser.sections]
    return [
        Section(f"{address}#{name}" if name and heading != title else address, title, heading, text)
        for name, heading, text in found
        if text or (name and heading != title)
    ]


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


class _Sections(HTMLParser):
    """A parser that collects sections as [id, heading, prose]; the first section is the text above all headings."""

    def __init__(self) -> None:
        super().__init__()
        self.sections = [["", "", ""]]
        self._inside = self._heading = False
        self._skipping = 0  # depth of open elements inside a skipped one

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag in VOID_ELEMENTS:
            self._add(" ")
        elif self._skipping:
            self._skipping += 1
        elif tag == "main":
            self._inside = True
        elif tag in SKIPPED_ELEMENTS or SKIPPED_CLASSES & set((values.get("class") or "").split()):
            self._skipping = 1
        elif tag in HEADING_ELEMENTS and self._inside:
            self._heading = True
            self.sections.append([values.get("id") or "", "", ""])
        if tag in BLOCK_ELEMENTS:
            self._add(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self._inside = False
        elif self._skipping and tag not in VOID_ELEMENTS:
            self._skipping -= 1
        elif tag in HEADING_ELEMENTS:
            self._heading = False
        if tag in BLOCK_ELEMENTS:
            self._add(" ")

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, data: str) -> None:
        if self._inside and not self._skipping:
            self.sections[-1][1 if self._heading else 2] += data
