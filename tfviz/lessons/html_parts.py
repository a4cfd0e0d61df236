"""Parts shared by pages of notebooks and pages of Markdown: templates, styles, contents lists, tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader
from pygments.formatters import HtmlFormatter

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = Path(__file__).parent / "bundles"
STYLE = (TEMPLATES / "site.css").read_text(encoding="utf-8")
DESCRIPTION_LENGTH = 160  # characters of a page's description that search engines show
NUMBER = re.compile(r"[<>~≈±+−–-]?\s?\d[\d.,]*(?:\s?[^\W\d_/]{1,3}(?:/[^\W\d_]{1,3})?|\s?[%×])?(?:\s?±\s?\d[\d.,]*)?")
MAX_NARROW_WIDTH = 440  # CSS pixels of a picture whose words are legible on a telephone
TABLE_CELL = re.compile(r"<td((?:\s[^>]*)?)>(.*?)</td>", re.DOTALL)
environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)


class Heading(NamedTuple):
    """A heading of a page: its level, the id that links refer to, and its content as HTML."""

    level: int
    id: str
    html: str


def render(template: str, **values: Any) -> str:
    """Return a rendered template; texts in `values` are escaped."""
    return environment.get_template(template).render(**values)


def script(name: str) -> str:
    """Return a built script for embedding in a page."""
    return (SCRIPTS / f"{name}.js").read_text(encoding="utf-8").strip()


def contents(headings: Sequence[Heading]) -> str:
    """Return the HTML contents list of a page's headings of levels 2 and 3; empty if there is only one."""
    listed = [heading for heading in headings if heading.level in (2, 3)]
    return render("contents.html.j2", headings=listed) if len(listed) > 1 else ""


def without_tags(html: str) -> str:
    """Return HTML without its tags, on one line."""
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", html)).strip()


def description(text: str) -> str:
    """Return a text truncated between words to `DESCRIPTION_LENGTH`, for a page's description."""
    if len(text) <= DESCRIPTION_LENGTH:
        return text
    return text[:DESCRIPTION_LENGTH].rpartition(" ")[0].rstrip(".,:;") + " …"


def scrolling_table(table: str) -> str:
    """Return the HTML of a table that scrolls horizontally, also by keyboard, and whose numbers do not wrap."""

    def mark(match: re.Match) -> str:
        number = NUMBER.fullmatch(without_tags(match[2]))
        return f'<td class="number"{match[1]}>{match[2]}</td>' if number and "class" not in match[1] else match[0]

    return f'<div class="scrolls" tabindex="0" role="group" aria-label="table">{TABLE_CELL.sub(mark, table)}</div>\n'


def picture(source: str, alt: str, width: int | None = None, css_class: str = "") -> str:
    """Return the HTML of a picture that is shown no wider than the page; a tap shows a wide one at its natural width.

    Args:
        source: its address.
        alt: its alternative text.
        width: its natural width in CSS pixels.
        css_class: a class of the element.
    """
    return render("picture.html.j2", source=source, alt=alt, width=width, css_class=css_class, wide=MAX_NARROW_WIDTH)


def code_colours(selector: str) -> str:
    """Return a style sheet for highlighted code below `selector`, for light and for dark pages."""
    schemes = {"light": "default", "dark": "github-dark"}
    sheets = {scheme: HtmlFormatter(style=style, nobackground=True) for scheme, style in schemes.items()}
    return "".join(
        f"@media (prefers-color-scheme: {scheme}) {{ {sheet.get_style_defs(selector)} }}\n"
        for scheme, sheet in sheets.items()
    )
