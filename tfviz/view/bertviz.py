"""The head view and the model view of the bertviz package, without network access.

The JavaScript of bertviz is embedded in a separate page together with D3 and jQuery, which it would otherwise load from
a CDN. In a notebook this page is the `srcdoc` of an iframe, which isolates scripts and styles.
"""

import html
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from itertools import accumulate
from math import prod
from typing import Any
from unicodedata import east_asian_width

from tfviz.look import AttentionMaps
from tfviz.look.quantization import range_problem
from tfviz.text.token_labels import visible_sign
from tfviz.view.figures.attention import heads
from tfviz.view.figures.formatting import maps_size
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.bundle import script_json

ATTENTION_KINDS = ("encoder", "decoder", "cross")
MAX_BYTES = 32_000_000  # of the page
MAX_LINES = 1_000_000  # drawn at once, each a DOM node: 590,000 take Chromium 9 s
MAX_WORD_COLUMNS = 13  # the width of a token in bertviz, in character cells
JOINERS = "\u200c\u200d"  # invisible, but needed to write Persian and emoji

PAGE_TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="background: #fff; color: #000; font: 15px sans-serif; margin: 0">
<noscript><img src="data:image/png;base64,{png}" alt="{alt}" style="max-width: 100%"></noscript>
<div id="bertviz" dir="ltr" hidden>{controls}<div id="vis"></div></div>
<!-- the scripts of D3 (BSD 3-clause licence), jQuery (MIT licence) and bertviz (Apache License 2.0) -->
<script>{d3}</script>
<script>{jquery}</script>
<script>
const require = Object.assign((names, run) => run(jQuery, d3), {{config() {{}}}}), requirejs = require;
const PYTHON_PARAMS = {params};
document.getElementById("bertviz").hidden = false;
const frame = window.frameElement; // of a notebook: as tall as what it shows, in place of the picture
if (frame) {{
frame.previousElementSibling.remove();
frame.style.display = "block";
new ResizeObserver(() => {{ frame.style.height = document.body.offsetHeight + 24 + "px"; }}).observe(document.body);
}}
{view}
</script>
</html>
"""
# The image is shown where scripts cannot run, as in an untrusted notebook.
OUTPUT_TEMPLATE = """<div><img src="data:image/png;base64,{png}" alt="{alt}" style="max-width: 100%">
<iframe title="{alt}" style="display: none; width: 100%; border: 0" srcdoc='{document}'></iframe></div>
"""


def bertviz(maps: AttentionMaps | Mapping[str, AttentionMaps], kind: str = "head") -> StaticFigure:
    """Show the interactive head view or model view of bertviz; its static picture shows all heads of the first maps.

    Weights are rounded to four decimals. Spaces and control characters are shown as symbols, and long tokens are
    truncated. The background is always white.

    Args:
        maps: one `AttentionMaps`, or several to choose from in the page, by any of the names "encoder", "decoder" and
            "cross".
        kind: "head" (the heads of one layer, overlaid) or "model" (all layers and heads as thumbnails).

    Raises:
        ValueError: `kind` or the name of a part is unknown; the parts differ in their numbers of layers or heads; there
            is nothing to draw, or too much; weights are not finite or lie outside 0 to 1.
        ImportError: the package bertviz, mpld3 or XStatic-jQuery is not installed.
    """
    if kind not in ("head", "model"):
        raise ValueError(f"kind is {kind!r}; it can be 'head' or 'model'")
    parts = _parts(maps)
    first = next(iter(parts.values()))
    weights = [prod(part.shape) for part in parts.values()]
    _check_size(max(weights) // (first.shape[0] or 1 if kind == "head" else 1), MAX_LINES, "lines")
    _check_size(4 * sum(weights), MAX_BYTES, "bytes")  # "0.0," is the least that a weight takes
    sheet = heads(first)
    scripts = {
        "view": _package_file("bertviz", f"{kind}_view.js"),
        "d3": _package_file(
            "mpld3", "d3.v5.min.js"
        ),  # its listeners take (datum, index), as bertviz's do; d3 6's do not
        "jquery": _package_file("XStatic-jQuery", "jquery.min.js"),
        "params": script_json(_params(parts)),
        "controls": _controls(parts, kind),
    }
    _check_size(sum(map(len, scripts.values())), MAX_BYTES, "bytes")
    sizes = "; ".join(f"{part} {maps_size(some)}".strip() for part, some in parts.items())
    return _BertViz(sheet, f"bertviz's {kind} view\n{sizes}", scripts)


class _BertViz(StaticFigure):
    """A static picture that is replaced by an interactive page where scripts can run."""

    def __init__(self, static_figure: StaticFigure, summary: str, scripts: Mapping[str, str]):
        super().__init__(static_figure._draw, summary)
        self._scripts = scripts

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(include, exclude)
        document = self.page().replace("&", "&amp;").replace("'", "&#39;")
        output = OUTPUT_TEMPLATE.format(png=data["image/png"], alt=html.escape(self.summary), document=document)
        return {"text/html": output, **data}, metadata

    def page(self) -> str:
        png = super()._repr_mimebundle_()[0]["image/png"]
        title, alt = html.escape(self.summary.partition("\n")[0]), html.escape(self.summary)
        return PAGE_TEMPLATE.format(title=title, alt=alt, png=png, **self._scripts)


def _parts(maps: AttentionMaps | Mapping[str, AttentionMaps]) -> dict[str, AttentionMaps]:
    if isinstance(maps, AttentionMaps):
        return {"": maps}
    if not maps or not set(maps) <= set(ATTENTION_KINDS):
        raise ValueError(f"maps has the parts {list(maps)}; it can have any of {', '.join(ATTENTION_KINDS)}")
    parts = {part: maps[part] for part in ATTENTION_KINDS if part in maps}
    if len({some.shape[:2] for some in parts.values()}) > 1:
        unlike = ", ".join(f"{part} {some.shape[0]} x {some.shape[1]}" for part, some in parts.items())
        raise ValueError(f"layers x heads are {unlike}; bertviz draws as many as the first has: show them one by one")
    return parts


def _params(parts: Mapping[str, AttentionMaps]) -> dict[str, Any]:
    """Return the parameters that the Python code of bertviz passes to its JavaScript."""
    layers, heads, *_ = next(iter(parts.values())).shape
    attention = [
        {
            "name": part,
            "attn": _weights(some),
            "left_text": _words(some.query_tokens),
            "right_text": _words(some.key_tokens),
        }
        for part, some in parts.items()
    ]
    return {
        "attention": attention,
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": None,
        "heads": None,
        "display_mode": "light",
        "include_layers": list(range(layers)),
        "include_heads": list(range(heads)),
        "total_heads": heads,
    }


def _weights(maps: AttentionMaps) -> list:
    weights = maps.weights.double()
    if not weights.isfinite().all():
        raise ValueError(f"some weights are not finite numbers, which bertviz cannot draw: {maps!r}")
    if problem := range_problem(weights):
        raise ValueError(f"the tensor of weights {problem}")
    return ((weights * 1e4).round() / 1e4).tolist()


def _controls(parts: Mapping[str, AttentionMaps], kind: str) -> str:
    options = "".join(f'<option value="{i}">{part.capitalize()}</option>' for i, part in enumerate(parts))
    layer = '<label>Layer: <select id="layer"></select></label> ' if kind == "head" else ""
    return layer + (f'<label>Attention: <select id="filter">{options}</select></label>' if len(parts) > 1 else "")


def _words(tokens: Sequence[str]) -> list[str]:
    """Return tokens as displayed: invisible characters as symbols, long tokens truncated with an ellipsis."""
    return [_truncate("".join(map(_visible_symbol, str(word))) or "∅") for word in tokens]


def _visible_symbol(character: str) -> str:
    shown = visible_sign(character)
    return shown if shown.isprintable() or shown in JOINERS else f"⟨{ord(character):X}⟩"


def _truncate(word: str) -> str:
    columns = accumulate(2 if east_asian_width(character) in "FW" else 1 for character in word)
    fits = sum(column <= MAX_WORD_COLUMNS for column in columns)
    return word if fits == len(word) else word[: fits - 1] + "…"


def _check_size(amount: int, max_amount: int, unit: str) -> None:
    if amount > max_amount:
        raise ValueError(
            f"the page would have {amount:,} {unit} or more, and {max_amount:,} are allowed: "
            "use view.heads, or fewer tokens, layers or heads"
        )


def _package_file(package: str, name: str) -> str:
    """Read the text file with this name from an installed package, in whatever directory it is.

    Raises:
        ImportError: the package is not installed, or has no such file.
    """
    try:
        return next(file for file in distribution(package).files or () if file.name == name).read_text("utf-8")
    except (PackageNotFoundError, StopIteration, FileNotFoundError) as error:
        raise ImportError(f"view.bertviz needs {name} of {package}: pip install {package}") from error
