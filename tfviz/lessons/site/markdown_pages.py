"""Write Markdown files of the clone as pages of the site, with linked files and the site's navigation."""

from __future__ import annotations

import html
import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

import mistune
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from tfviz.files import atomic
from tfviz.lessons.gallery import navigation
from tfviz.lessons.html_parts import (
    STYLE,
    Heading,
    code_colours,
    contents,
    description,
    render,
    script,
    scrolling_table,
    without_tags,
)
from tfviz.lessons.notebooks import WEBSITE

SOURCES = (
    "README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md",
    "benchmarks/README.md", "benchmarks/results/*.md",
)  # fmt: skip
PAGES_WITH_CONTENTS = (  # pages with a contents list beside the text
    "docs",
    "benchmarks",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
SECTION_NAMES = {"docs": "Guide", "benchmarks": "Measured", "README.md": "tfviz"}  # the current link of the navigation
BADGES = re.compile(r"<!-- badges -->.*?<!-- /badges -->\n*", re.S)  # images from other hosts
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
    """Write the Markdown files of the clone as pages into `out`, copy linked files, and return the pages' paths.

    Raises:
        FileNotFoundError: a text links to a file that does not exist; the message names both.
    """
    pages, style = [], STYLE + code_colours(".code")
    linked: set[Path] = set()
    for source in sorted(path for pattern in SOURCES for path in clone.glob(pattern)):
        relative_path = source.relative_to(clone)
        body, headings, files = _body(source, clone)
        linked |= files
        title = next((without_tags(heading.html) for heading in headings), "tfviz")
        first = next(filter(None, map(without_tags, re.findall("<p>(.*?)</p>", body, re.S))), title)
        page = render(
            "text.html.j2",
            title=html.unescape(title if title == "tfviz" else f"{title} · tfviz"),
            description=description(html.unescape(first)),
            style=style,
            contents=contents(headings) if relative_path.parts[0] in PAGES_WITH_CONTENTS else "",
            script=script("lesson"),
            navigation=site_navigation(
                "../" * (len(relative_path.parts) - 1), SECTION_NAMES.get(relative_path.parts[0], "")
            ),
            body=body,
        )
        pages.append(out / _page(relative_path))
        with atomic(pages[-1]) as draft:
            draft.write_text(page, encoding="utf-8", newline="\n")
    copy_linked(linked, clone, out)
    return pages


def copy_linked(linked: set[Path], clone: Path, out: Path) -> None:
    """Copy linked files of the clone into the site; paths in `linked` are relative to the clone."""
    for path in linked:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(clone / path, out / _page(path))


def _page(relative_path: Path) -> Path:
    """Return the path on the site of a file of the clone; both are relative."""
    if relative_path.suffix in (".md", ".ipynb"):
        return (
            relative_path.with_name("index.html")
            if relative_path.name == "README.md"
            else relative_path.with_suffix(".html")
        )
    return relative_path if relative_path.suffix else relative_path.with_suffix(".txt")  # LICENSE


def _body(source: Path, clone: Path) -> tuple[str, list[Heading], set[Path]]:
    """Return a file's HTML with links within the site, its headings, and linked files that are not pages."""
    text = BADGES.sub("", source.read_text(encoding="utf-8"))
    renderer = _Renderer(escape=False)
    markdown = mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough"])
    renderer.register(
        "table", lambda _, text: scrolling_table(f"<table>{text}</table>")
    )  # instead of the plugin's own renderer
    linked: set[Path] = set()

    def relink(match: re.Match) -> str:
        return f'{match[1]}="{site_address(html.unescape(match[2]), source, clone, linked)}"'

    return ADDRESS.sub(relink, str(markdown(text))), renderer.headings, linked


def site_address(url: str, source: Path, clone: Path, linked: set[Path]) -> str:
    """Return a link's address on the site, relative to the page; a file to be copied is added to `linked`.

    Args:
        url: the address in the source.
        source: the file with the link.
        clone: the folder of the clone.
        linked: paths of linked files that are not pages, relative to the clone.

    Raises:
        FileNotFoundError: the address is a file that does not exist.
    """
    folder = source.parent.relative_to(clone)
    if url.startswith(WEBSITE):
        return posixpath.relpath(url.removeprefix(WEBSITE) or "index.html", folder.as_posix())
    if re.match(r"[a-z]+:|#", url):
        return url
    path, hash_sign, fragment = url.partition("#")
    target = clone / os.path.normpath(folder / path)
    if target.is_dir():
        target = target / "README.md"
    if not target.is_file():
        raise FileNotFoundError(f"{source.relative_to(clone)} links to {url}, which does not exist")
    relative_path = target.relative_to(clone)
    if relative_path.suffix not in (".md", ".ipynb"):
        linked.add(relative_path)
    return posixpath.relpath(_page(relative_path).as_posix(), folder.as_posix()) + hash_sign + fragment


class _Renderer(mistune.HTMLRenderer):
    """A Markdown renderer with links to headings and highlighted code."""

    def __init__(self, escape: bool) -> None:
        super().__init__(escape)
        self.headings: list[Heading] = []

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        words = re.sub("<.*?>", "", text)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")  # as code hosts do
        self.headings.append(Heading(level, name, re.sub("</?a\\b[^>]*>", "", text)))
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        lexer = get_lexer_by_name({"sh": "bash"}.get(info or "", info or "text"))
        highlighted = highlight(code, lexer, HtmlFormatter(nowrap=True))
        return f'<pre class="code" tabindex="0"><code>{highlighted}</code></pre>\n'


def site_navigation(root: str, current: str = "") -> str:
    """Return the HTML of the navigation at the top of a page.

    Args:
        root: the path from the page's folder to the folder of the site, such as "../".
        current: the name of the page in the navigation.
    """
    return navigation({name: root + path for name, path in PAGES.items()}, current, search=root or "./")
