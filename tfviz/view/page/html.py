"""Interactive views as self-contained HTML: an embeddable fragment, a standalone page, or several views in a page."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from typing import Any

from tfviz.view.documents.view_document import ViewDocument
from tfviz.view.figures.palette import current_theme
from tfviz.view.figures.static_figure import StaticFigure, encodable
from tfviz.view.page.bundle import PAGE_STYLE, bundle, deduplicate, script_json

BUNDLES_BY_KIND = {  # kind of view -> its bundle, and the bundle of its worker, if any
    "heads": ("maps",),
    "heads-computed": ("maps", "attention"),
    "masks": ("charts",),
    "tables": ("charts",),
    "tokens": ("charts",),
    "points": ("charts",),
    "neurons": ("neurons",),
    "interact": ("interact", "engine"),
    "interact-snapshot": ("interact",),
    **dict.fromkeys(("write", "translate", "classify", "classify-image", "fill"), ("studios", "engine")),
    "patch": ("patching", "engine"),
}
NOTICE = "<!-- with scripts of tfviz, copyright 2026 the tfviz authors, MIT licence: github.com/tfviz/tfviz -->"
PAGE_TEMPLATE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">{NOTICE}<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{{title}}</title><style>{{style}}</style></head>
<body{{wide}}><main>{{view}}</main></body></html>
"""
TABLE_PAGE_STYLE = """
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
caption, th, td { text-align: left; padding: 2px 1.2rem 2px 0; font-variant-numeric: tabular-nums }"""


class View(StaticFigure):
    """An interactive view that needs no kernel, for a notebook, a section of a page, or a separate file.

    Args:
        static_figure: the static picture, shown where scripts cannot run.
        document: the `ViewDocument` to show.
        data: the binary data that `document` refers to by byte ranges.

    Raises:
        ValueError: the document has an unknown kind.
    """

    def __init__(self, static_figure: StaticFigure, document: Any, data: bytes = b""):
        if document.get("kind") not in BUNDLES_BY_KIND:
            raise ValueError(
                f"the document has the kind {document.get('kind')!r}; it can be {', '.join(BUNDLES_BY_KIND)}"
            )
        super().__init__(static_figure._draw, static_figure.summary)
        self.document: ViewDocument = document
        self.data = data

    def html(self, static: bool = True) -> str:
        """Return the view as an HTML fragment, which is byte-identical for equal views.

        Args:
            static: whether to include the static picture, for places where scripts cannot run, such as an untrusted
                notebook; otherwise the summary stands there as text.
        """
        document, data = script_json(self.document), base64.b64encode(self.data).decode()
        kind = self.document["kind"]
        keys, scripts = zip(*map(bundle, BUNDLES_BY_KIND[kind]))
        name = hashlib.sha256(f"{document}{data}".encode()).hexdigest()[:16]
        summary = html.escape(encodable(self.summary))
        png = base64.b64encode(self._png(current_theme())).decode() if static else ""
        shown = f'<img src="data:image/png;base64,{png}" alt="{summary}">' if static else f"<p>{summary}</p>"
        return (
            f'<div class="tfviz" data-view="{name}">{shown}'
            f'<script type="application/json" class="tfviz-document">{document}</script>'
            f'<script type="text/plain" class="tfviz-data">{data}</script></div>{"".join(scripts)}'
            f'<script>tfvizBundles["{keys[0]}"]().mount("{name}","{kind}",{script_json(keys)})</script>'
        )

    def static_output(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the MIME bundle of a notebook output, (data, metadata), with the static picture and summary only."""
        return super()._repr_mimebundle_()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        data, metadata = self.static_output()
        return {**data, "text/html": self.html()}, metadata

    def page(self) -> str:
        """Return the view as a standalone page without external links."""
        title = html.escape(encodable(self.summary).partition("\n")[0])
        wide = (
            ' class="screen"' if len(BUNDLES_BY_KIND[self.document["kind"]]) > 1 else ""
        )  # views that compute in a worker fill the screen
        return PAGE_TEMPLATE.format(title=title, style=PAGE_STYLE, wide=wide, view=self.html(static=False))


def joined_page(title: str, parts: Mapping[str, View | str]) -> str:
    """Return one page with several views under headings.

    Args:
        title: the title of the page.
        parts: heading -> a view, or a string of HTML; an empty heading is omitted.
    """
    sections = [
        (f"<h2>{html.escape(encodable(name))}</h2>" if name else "")
        + (part.html(static=False) if isinstance(part, View) else part)
        for name, part in parts.items()
    ]
    named = html.escape(encodable(title))
    body = deduplicate(f"<h1>{named}</h1>" + "\n".join(sections), set())
    return PAGE_TEMPLATE.format(title=named, style=PAGE_STYLE + TABLE_PAGE_STYLE, wide="", view=body)
