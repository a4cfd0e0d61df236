"""What all pages of the site have in common: where they lead."""

from __future__ import annotations

from pygments.formatters import HtmlFormatter

from tfviz.suite import gallery

PLACES = {
    "tfviz": "index.html",
    "Try it": "demo.html",
    "Lessons": "notebooks/index.html",
    "Guide": "docs/index.html",
    "Reference": "api/tfviz.html",
    "Measured": "benchmarks/index.html",
}


def way(root: str, here: str = "") -> str:
    """The line of links at the top of a page, as HTML.

    Args:
        root: the way from the page's folder to the site's, such as "../".
        here: the link that the page stands under.
    """
    return gallery.links({name: root + path for name, path in PLACES.items()}, here)


def colours(where: str) -> str:
    """A style sheet for code below `where`, a selector, on light and on dark pages."""
    schemes = {"light": "default", "dark": "github-dark"}
    sheets = {scheme: HtmlFormatter(style=style, nobackground=True) for scheme, style in schemes.items()}
    return "".join(
        f"@media (prefers-color-scheme: {scheme}) {{ {sheet.get_style_defs(where)} }}\n"
        for scheme, sheet in sheets.items()
    )
