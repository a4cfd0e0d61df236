"""An nbconvert exporter to HTML pages that need no network, with formulas as MathML."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from tfviz.lessons.html_parts import Heading, picture, scrolling_table, without_tags

MAX_OPEN_LINES = 12  # of code; longer code is folded at first
MAX_OPEN_DRAWING_LINES = 4  # of code that draws a picture and defines nothing
MAX_NAMES, MAX_COMMENT_LENGTH = 3, 90  # in the summary of folded code
CLAIMS = {"claims.state": "fill in the numbers of this run", "claims.check": "check what is said against this run"}
ANCHOR = re.compile(r'<a class="anchor-link".*?</a>', re.DOTALL)  # inserted into headings by nbconvert


def mathml(formula: str, display: str = "inline") -> str:
    """Return a LaTeX formula as MathML, or as code if it cannot be converted."""
    from latex2mathml.converter import convert

    try:
        element = convert(formula.strip(), display=display).replace("\n", " ")
        return element.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")  # HTML needs none
    except Exception:  # latex2mathml raises many types of errors
        sign = "$$" if display == "block" else "$"
        return f"<code>{html.escape(f'{sign}{formula}{sign}')}</code>"


def folds(cell: Mapping[str, Any]) -> bool:
    """Return whether the code of a cell is folded at first: hidden in the notebook, settings and imports, or long.

    Code that draws a picture and defines nothing counts as long earlier: the reader came for the picture.
    """
    hidden, source = cell["metadata"].get("jupyter", {}).get("source_hidden", False), cell["source"].strip()
    prepares = "parameters" in cell["metadata"].get("tags", []) or source.startswith(("import ", "from "))
    draws = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    is_drawing = draws and not re.search(r"^(class|def) ", source, re.MULTILINE)
    return hidden or prepares or len(source.splitlines()) > (MAX_OPEN_DRAWING_LINES if is_drawing else MAX_OPEN_LINES)


def code_summary(source: str) -> str:
    """Return what a cell does: its first comment; what it defines or sets, and calls at its end; or its first line.

    >>> code_summary("def half(x):\\n    return x / 2\\nhalf(3)"), code_summary("# Read the text.\\ntext = read()")
    ('Define half, then call half (3 lines)', 'Read the text (2 lines)')
    """
    lines = source.strip().splitlines()
    size = f"{len(lines)} line{'s' * (len(lines) > 1)}"
    comment = lines[0][2:].partition(". ")[0].rstrip(".:") if lines[0].startswith("# ") else ""
    if 0 < len(comment) <= MAX_COMMENT_LENGTH:
        return f"{comment[:1].upper()}{comment[1:]} ({size})"
    try:
        text = ", then ".join(_steps(ast.parse(source).body))
    except SyntaxError:  # a command of IPython
        text = ""
    return f"{text[:1].upper()}{text[1:]} ({size})" if text else f"{lines[0].rstrip(':')} … ({size})"


def _steps(body: Sequence[ast.stmt]) -> list[str]:
    """Return what the statements of a cell do, in at most two steps, such as "define half", "call view.heads"."""
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    imported = [name.name for node in body if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    firsts = {"define": defined, "import": imported, "set": list(dict.fromkeys(names))}
    verb = next((verb for verb, found in firsts.items() if found), None)
    steps = [f"{verb} {_listed(firsts[verb])}"] if verb else []
    if verb != "import" and body and isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Call):
        called = ast.unparse(body[-1].value.func)
        return [CLAIMS[called]] if called in CLAIMS else [*steps, f"call {called}"]
    return steps


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + ", …" * (len(names) > MAX_NAMES)


class MathMLExporter(HTMLExporter):
    """An exporter of notebooks to HTML with formulas as MathML; nbconvert's own loads MathJax from the network.

    Attributes:
        relink: function from an address in the notebook to the address on the page.
        addresses: name of a notebook -> address of its page; a name written as code in the text becomes a link.
        headings: the headings of the last exported notebook.
    """

    relink: Callable[[str], str] = staticmethod(str)
    addresses: Mapping[str, str] = {}
    headings: list[Heading]

    def default_filters(self) -> Any:
        yield from super().default_filters()
        yield from (("folds", folds), ("code_summary", code_summary), ("picture", picture))

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> Any:
        self.headings = []
        return super().from_notebook_node(nb, resources, **kw)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = _MathMLRenderer(escape=False, attachments=attachments, embed_images=self.embed_images)
        renderer.exporter = self
        markdown = MarkdownWithMath(renderer=renderer)
        renderer.register("table", lambda _, text: scrolling_table(f"<table>{text}</table>"))  # not the plugin's own
        return markdown.render(source)


class _MathMLRenderer(IPythonRenderer):
    exporter: MathMLExporter

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Render a heading without nbconvert's link sign, since the contents list links to each heading."""
        element = ANCHOR.sub("", super().heading(text, level, **attrs))
        name = re.search(r' id="([^"]*)"', element)
        words = re.sub("</?a\\b[^>]*>", "", text)
        self.exporter.headings.append(Heading(level, html.unescape(name[1]) if name else "", words))
        return element

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, self.exporter.relink(url), title)

    def codespan(self, text: str) -> str:
        """Link the name of another lesson to its page."""
        code, address = super().codespan(text), self.exporter.addresses.get(text)
        return f'<a href="{html.escape(address)}">{code}</a>' if address else code

    def list_item(self, text: str, **attrs: Any) -> str:
        """Mark a statement with a sign of whether it holds, which needs no bullet."""
        element = super().list_item(text, **attrs)
        return element.replace("<li>", '<li class="claim">', 1) if without_tags(text)[:1] in ("✓", "✗") else element

    def block_html(self, html: str) -> str:
        """Render a block without pictures unchanged; nbconvert would close a `<details>` that ends in a later block."""
        return super().block_html(html) if "<img" in html.lower() else f"{html}\n"

    def block_math(self, body: str) -> str:
        return _scrolling(mathml(body, "block"))

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return _scrolling(mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block"))


def _scrolling(formula: str) -> str:
    """Return the HTML of a formula that scrolls separately if it is wider than the page."""
    return f'<span class="formula">{formula}</span>'
