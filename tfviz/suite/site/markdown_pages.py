"""Markdown files of the clone as pages of the site, with the files that they link to; what all its pages share."""

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
from tfviz.suite.gallery import STYLE, navigation, render
from tfviz.suite.notebooks import SITE

SOURCES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "benchmarks/README.md",
    "benchmarks/results/*.md",
)  # fmt: skip
SECTIONS = {"docs": "Guide", "benchmarks": "Measured", "README.md": "tfviz"}  # link at the top of a page
BADGES = re.compile(r"<!-- badges -->.*?<!-- /badges -->\n*", re.S)  # pictures that a code host draws
ADDRESS = re.compile(r'(?<=\s)(src|href|srcset)="([^"]+)"')

PAGES = {
    "tfviz": "index.html",
    "Try it": "demo.html",
    "Lessons": "notebooks/index.html",
    "Guide": "docs/index.html",
    "Reference": "api/tfviz.html",
    "Measured": "benchmarks/index.html",
}


def write(clone: Path, out: Path) -> list[Path]:
    """Write all texts of the clone as pages into `out`, in the same tree, and copy what they show; return the pages.

    Raises:
        FileNotFoundError: a text links to a file that does not exist; names both.
    """
    pages, style = [], STYLE + code_colours(".code")
    linked: set[Path] = set()
    for source in sorted(path for pattern in SOURCES for path in clone.glob(pattern)):
        place = source.relative_to(clone)
        body, files = _body(source, clone)
        linked |= files
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body)
        page = render(
            "text.html.j2",
            title=html.unescape(re.sub("<.*?>", "", title[1])) if title else "tfviz",
            style=style,
            navigation=site_navigation("../" * (len(place.parts) - 1), SECTIONS.get(place.parts[0], "")),
            body=body,
        )
        pages.append(out / _page(place))
        with atomic(pages[-1]) as draft:
            draft.write_text(page, encoding="utf-8")
    for path in linked:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(clone / path, out / _page(path))
    return pages


def _page(place: Path) -> Path:
    """Return where a file of the clone stands on the site."""
    if place.suffix in (".md", ".ipynb"):
        return place.with_name("index.html") if place.name == "README.md" else place.with_suffix(".html")
    return place if place.suffix else place.with_suffix(".txt")  # LICENSE


def _body(source: Path, clone: Path) -> tuple[str, set[Path]]:
    """Return a text as HTML whose links stay within the site, and the files it links to that are no pages."""
    text = BADGES.sub("", source.read_text(encoding="utf-8"))
    renderer = _Renderer(escape=False)
    markdown = mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough"])
    renderer.register("table", _table)  # in place of the plugin's own
    linked: set[Path] = set()

    def relink(match: re.Match) -> str:
        return f'{match[1]}="{_site_address(html.unescape(match[2]), source, clone, linked)}"'

    return ADDRESS.sub(relink, str(markdown(text))), linked


def _site_address(url: str, source: Path, clone: Path, linked: set[Path]) -> str:
    """Return a link's address on the site; a file that has to be copied is added to `linked`."""
    folder = source.parent.relative_to(clone)
    if url.startswith(SITE):
        return os.path.relpath(url.removeprefix(SITE) or "index.html", folder)
    if re.match(r"[a-z]+:|#", url):
        return url
    path, hash_sign, fragment = url.partition("#")
    target = clone / os.path.normpath(folder / path)
    if target.is_dir():
        target = target / "README.md"
    if not target.is_file():
        raise FileNotFoundError(f"{source.relative_to(clone)} links to {url}, which does not exist")
    place = target.relative_to(clone)
    if place.suffix not in (".md", ".ipynb"):
        linked.add(place)
    return os.path.relpath(_page(place), folder) + hash_sign + fragment


class _Renderer(mistune.HTMLRenderer):
    """Markdown with headings that can be linked to, code in colours, and tables that scroll by themselves."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        words = re.sub("<.*?>", "", text)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")  # as code hosts do
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        lexer = get_lexer_by_name({"sh": "bash"}.get(info or "", info or "text"))
        highlighted = highlight(code, lexer, HtmlFormatter(nowrap=True))
        return f'<pre class="code" tabindex="0"><code>{highlighted}</code></pre>\n'


def _table(renderer: _Renderer, text: str) -> str:
    return f'<div class="scrolls" tabindex="0" role="region" aria-label="table"><table>{text}</table></div>\n'


def site_navigation(root: str, current: str = "") -> str:
    """Return the line of links at the top of a page as HTML.

    Args:
        root: the path from the page's folder to the site's, such as "../".
        current: the name that the page stands under.
    """
    return navigation({name: root + path for name, path in PAGES.items()}, current)


def code_colours(selector: str) -> str:
    """Return a style sheet for highlighted code below `selector`, for light and for dark pages."""
    schemes = {"light": "default", "dark": "github-dark"}
    sheets = {scheme: HtmlFormatter(style=style, nobackground=True) for scheme, style in schemes.items()}
    return "".join(
        f"@media (prefers-color-scheme: {scheme}) {{ {sheet.get_style_defs(selector)} }}\n"
        for scheme, sheet in sheets.items()
    )
