"""A view as one self-contained piece of HTML: data, script and a picture for where no script may run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import lru_cache
from typing import Any

from tfviz.view.palette import STATIC, inks
from tfviz.view.picture import Picture

# In the order of their imports: each module needs only those before it.
MODULES = (
    "grid", "theme", "pen", "paint", "data", "store", "elements", "heatmap", "pointing", "sheet", "lines", "words",
    "table", "takeaway", "frame", "choice", "controls", "headstage", "stages", "explorer", "masklab", "tables",
    "points", "page", "widget",
)  # fmt: skip
KINDS = {"heads": "Explorer", "masks": "MaskLab", "tables": "Tables", "points": "Points"}  # class, of module in small
IMPORT = re.compile(r'^import .* from "\./(\w+)\.js";\n', re.MULTILINE)
SPACE = re.compile(r"^ +|^ *//.*\n| +// .*$", re.MULTILINE)
BREAK = re.compile(r"(?<=[{(\[,;])\n|,?\n(?=[})\]])")  # where nothing depends on the end of the line
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
PAGE_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1400px; padding: 0 1rem;
background: Canvas; color: CanvasText } img { max-width: 100% }"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title><style>{style}</style></head>
<body><main>{view}</main></body></html>
"""


@lru_cache
def script(*entries: str) -> str:
    """These modules and all they import as one: a page has no second file, and a widget takes a single module.

    Names at the top of a module are unique over all of them, so that what is imported is what is there. Imports,
    comments, indentation and line breaks that mean nothing go.
    """
    texts = {name: (STATIC / f"{name}.js").read_text(encoding="utf-8") for name in MODULES}
    needed, waiting = set(), list(entries)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += set(IMPORT.findall(texts[name])) - needed
    sources = [texts[name] for name in MODULES if name in needed]
    css = (STATIC / "view.css").read_text(encoding="utf-8")
    given = {"PALETTE": inks(), "CSS": css, "PAGE_STYLE": PAGE_STYLE}
    constants = "".join(f"const {name} = {script_json(value)};\n" for name, value in given.items())
    return constants + "".join(BREAK.sub("", SPACE.sub("", EXPORT.sub("", IMPORT.sub("", text)))) for text in sources)


def script_json(value: Any) -> str:
    """JSON that can stand in a script: pure ASCII, and no `<` that could end it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class View(Picture):
    """A picture that is also alive: in a notebook, in a page made of it, or in a file of its own, with no kernel.

    Args:
        picture: the same, still.
        described: what is shown, in plain values (`view/static/data.js` reads it).
        data: the bytes it speaks of.
    """

    def __init__(self, picture: Picture, described: dict[str, Any], data: bytes = b""):
        if described.get("kind") not in KINDS:
            raise ValueError(f"described says the kind {described.get('kind')!r}; it can be {', '.join(KINDS)}")
        super().__init__(picture._draw, picture.summary)
        self.described, self.data = described, data

    def html(self, still: bool = True) -> str:
        """The view as a piece of HTML. The same view has the same name, and the same bytes.

        Args:
            still: put the picture in as well, for where scripts may not run: a notebook that is not trusted.
        """
        described, data = script_json(self.described), base64.b64encode(self.data).decode()
        kind = KINDS[self.described["kind"]]
        modules = script(kind.lower(), "page")
        name = hashlib.sha256(f"{described}{data}".encode()).hexdigest()[:16]
        said = html.escape(_said(self.summary))
        light = base64.b64encode(self._png("light")).decode() if still else ""
        shown = f'<img src="data:image/png;base64,{light}" alt="{said}">' if still else f"<p>{said}</p>"
        # a plain script: those of type module stay in a browser's memory after their view is gone
        return (
            f'<div class="tfviz" data-view="{name}">{shown}'
            f'<script type="application/json" class="tfviz-document">{described}</script>'
            f'<script type="text/plain" class="tfviz-data">{data}</script></div>'
            f'<script data-view="{name}">(() => {{"use strict";\n{modules}wake("{name}", {kind});}})();</script>'
        )

    def still(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The picture and its summary only, as a notebook takes them."""
        return super()._repr_mimebundle_()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        data, metadata = self.still()
        return {**data, "text/html": self.html()}, metadata

    def page(self) -> str:
        """The view as a page of its own, with no link to anything."""
        title = html.escape(_said(self.summary).partition("\n")[0])
        return PAGE.format(title=title, style=PAGE_STYLE, view=self.html(still=False))


def _said(text: str) -> str:
    """Text that UTF-8 can hold: half of a character, as bytes may give, as its code."""
    return "".join(f"⟨{ord(c):X}⟩" if 0xD800 <= ord(c) <= 0xDFFF or c == "\0" else c for c in text)
