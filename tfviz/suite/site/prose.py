"""Markdown files of the clone as pages of the site; what they lead to comes along."""

from __future__ import annotations

import html
import os
import re
import shutil
from pathlib import Path
from typing import Any

import mistune
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from tfviz.files import atomic
from tfviz.suite.gallery import STYLE
from tfviz.suite.notebooks import SITE
from tfviz.suite.site.frame import colours, way

TEXTS = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "benchmarks/README.md",
    "benchmarks/results/*.md",
)  # fmt: skip
UNDER = {"docs": "Guide", "benchmarks": "Measured", "README.md": "tfviz"}
BADGES = re.compile(r"<!-- badges -->.*?<!-- /badges -->\n*", re.S)  # pictures that a code host draws
ADDRESS = re.compile(r'(?<=\s)(src|href|srcset)="([^"]+)"')
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
<body class="house">{way}<main>
{body}</main></body></html>
"""


def write(clone: Path, out: Path) -> list[Path]:
    """All texts of the clone as pages in `out`, in the same tree, with the pictures they show; returns the pages.

    Raises:
        FileNotFoundError: a text leads to something that is not there; says which.
    """
    pages, wanted, style = [], set(), STYLE + colours(".code")
    for file in sorted(path for pattern in TEXTS for path in clone.glob(pattern)):
        place = file.relative_to(clone)
        body, led = _body(file, clone)
        wanted |= led
        root = "../" * (len(place.parts) - 1)
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body)
        pages.append(out / _page(place))
        pages[-1].parent.mkdir(parents=True, exist_ok=True)
        filled = PAGE.format(
            title=re.sub("<.*?>", "", title[1]) if title else "tfviz",
            style=style,
            way=way(root, UNDER.get(place.parts[0], "")),
            body=body,
        )
        with atomic(pages[-1]) as draft:
            draft.write_text(filled, encoding="utf-8")
    for path in wanted:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(clone / path, out / _page(path))
    return pages


def _page(place: Path) -> Path:
    """Where a file of the clone stands on the site."""
    if place.suffix in (".md", ".ipynb"):
        return place.with_name("index.html") if place.name == "README.md" else place.with_suffix(".html")
    return place if place.suffix else place.with_suffix(".txt")  # LICENSE


def _body(file: Path, clone: Path) -> tuple[str, set[Path]]:
    """The text as HTML whose links lead within the site, and the files they lead to that are no pages."""
    text = BADGES.sub("", file.read_text(encoding="utf-8"))
    renderer = _House(escape=False)
    markdown = mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough"])
    renderer.register("table", _table)  # after the plugin's own
    drawn = str(markdown(text))
    led: set[Path] = set()

    def turned(match: re.Match) -> str:
        return f'{match[1]}="{_turned(html.unescape(match[2]), file, clone, led)}"'

    return ADDRESS.sub(turned, drawn), led


def _turned(url: str, file: Path, clone: Path, led: set[Path]) -> str:
    """An address as it is on the site; a file that has to come along is put into `led`."""
    here = file.parent.relative_to(clone)
    if url.startswith(SITE):  # a page of the site, from wherever it is named
        return os.path.relpath(url.removeprefix(SITE) or "index.html", here)
    if re.match(r"[a-z]+:|#", url):
        return url
    path, hash_, fragment = url.partition("#")
    to = clone / os.path.normpath(here / path)
    if to.is_dir():
        to = to / "README.md"
    if not to.is_file():
        raise FileNotFoundError(f"{file.relative_to(clone)} leads to {url}, which is not there")
    place = to.relative_to(clone)
    if place.suffix not in (".md", ".ipynb"):
        led.add(place)
    return os.path.relpath(_page(place), here) + hash_ + fragment


class _House(mistune.HTMLRenderer):
    """Headings that can be led to, code in colours, tables that scroll by themselves."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        plain = re.sub("<.*?>", "", text)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")  # as code hosts do
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        lexer = get_lexer_by_name({"sh": "bash"}.get(info or "", info or "text"))
        drawn = highlight(code, lexer, HtmlFormatter(nowrap=True))
        return f'<pre class="code" tabindex="0"><code>{drawn}</code></pre>\n'


def _table(renderer: _House, text: str) -> str:
    return f'<div class="scrolls" tabindex="0" role="region" aria-label="table"><table>{text}</table></div>\n'
