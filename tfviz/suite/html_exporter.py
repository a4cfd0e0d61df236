"""nbconvert's HTML exporter for pages without a network: formulas become MathML, which browsers draw themselves."""

from __future__ import annotations

import html
from typing import Any

from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath


def mathml(formula: str, display: str = "inline") -> str:
    """Return a LaTeX formula as MathML; one that cannot be converted, as code."""
    from latex2mathml.converter import convert

    try:
        element = convert(formula.strip(), display=display).replace("\n", " ")
        return element.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")  # HTML needs none
    except Exception:  # latex2mathml fails in many ways; a page with one formula as code is better than none
        sign = "$$" if display == "block" else "$"
        return f"<code>{html.escape(f'{sign}{formula}{sign}')}</code>"


class MathMLExporter(HTMLExporter):
    """Export notebooks to HTML with formulas in MathML, where nbconvert loads MathJax from the network."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = _MathMLRenderer(escape=False, attachments=attachments, embed_images=self.embed_images)
        return MarkdownWithMath(renderer=renderer).render(source)


class _MathMLRenderer(IPythonRenderer):
    def block_html(self, html: str) -> str:
        """Leave a block without pictures as it is: nbconvert would close a `<details>` that ends in a later block."""
        return super().block_html(html) if "<img" in html.lower() else f"{html}\n"

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")
