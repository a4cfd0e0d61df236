"""Markdown for a page without a network: formulas become MathML, which browsers draw by themselves."""

from __future__ import annotations

import html
from typing import Any

from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath


def mathml(formula: str, display: str = "inline") -> str:
    """A formula's MathML; one that cannot be read stands there as it was written."""
    from latex2mathml.converter import convert

    try:
        drawn = convert(formula.strip(), display=display).replace("\n", " ")
        return drawn.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")  # HTML knows it, XML would rename it
    except Exception:  # whatever it stumbles over: a page with one formula as text is better than none
        sign = "$$" if display == "block" else "$"
        return f"<code>{html.escape(f'{sign}{formula}{sign}')}</code>"


class Exporter(HTMLExporter):
    """nbconvert's, which leaves formulas to a script of the network."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = _Renderer(escape=False, attachments=attachments, embed_images=self.embed_images)
        return MarkdownWithMath(renderer=renderer).render(source)


class _Renderer(IPythonRenderer):
    def block_html(self, html: str) -> str:
        """Of a block without pictures not a letter changes: `<details>` ends in a later block."""
        return super().block_html(html) if "<img" in html.lower() else f"{html}\n"

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")
