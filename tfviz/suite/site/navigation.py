"""What all pages of the site share: the line of links at the top, and the colours of code."""

from __future__ import annotations

from pygments.formatters import HtmlFormatter

from tfviz.suite import gallery

PAGES = {
    "tfviz": "index.html",
    "Try it": "demo.html",
    "Lessons": "notebooks/index.html",
    "Guide": "docs/index.html",
    "Reference": "api/tfviz.html",
    "Measured": "benchmarks/index.html",
}


def site_navigation(root: str, current: str = "") -> str:
    """Return the line of links at the top of a page as HTML.

    Args:
        root: the path from the page's folder to the site's, such as "../".
        current: the name that the page stands under.
    """
    return gallery.navigation({name: root + path for name, path in PAGES.items()}, current)


def code_colours(selector: str) -> str:
    """Return a style sheet for highlighted code below `selector`, for light and for dark pages."""
    schemes = {"light": "default", "dark": "github-dark"}
    sheets = {scheme: HtmlFormatter(style=style, nobackground=True) for scheme, style in schemes.items()}
    return "".join(
        f"@media (prefers-color-scheme: {scheme}) {{ {sheet.get_style_defs(selector)} }}\n"
        for scheme, sheet in sheets.items()
    )
