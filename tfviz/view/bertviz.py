"""bertviz's own head view and model view, in one page that needs no network.

bertviz's JavaScript stands in the page as its package carries it, not a character changed. What it takes from outside
(`PYTHON_PARAMS`, `require`, `requirejs`) are arguments of a function around it; so are the `module` and `exports` that
d3 and jQuery look for. None of them becomes global or is asked for by name, whatever else the page has loaded.
"""

import hashlib
import html
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from itertools import accumulate
from math import prod
from typing import Any
from unicodedata import east_asian_width

from tfviz.look.maps import AttentionMaps
from tfviz.text.token_labels import VISIBLE
from tfviz.view.page.bundle import script_json
from tfviz.view.still.attention import heads
from tfviz.view.still.formatting import maps_size
from tfviz.view.still.picture import Picture

PARTS = ("encoder", "decoder", "cross")
BUDGET = 32_000_000  # bytes of page
LINES = 1_000_000  # drawn at once, each a node of the page: 590,000 take Chromium 9 s
LONGEST = 13  # columns of a word: what bertviz has room for
JOINERS = "\u200c\u200d"  # invisible, but Persian and emoji are written with them

PAGE = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n{body}</html>\n'
# The picture stands where no script may run: in an untrusted notebook, or a page without JavaScript.
BODY = """<div id="{id}" dir="ltr" style="background: #fff; color: #000; overflow-x: auto; font: 15px sans-serif">
<img src="data:image/png;base64,{png}" alt="{alt}" style="max-width: 100%"></div>
<script>
{script}
</script>
"""
# bertviz finds its place by id; numbered by the page, since the same view can stand in it twice.
SCRIPT = """(() => {{
const root = document.getElementById("{id}");
root.id += "-" + (window.tfvizBertviz = (window.tfvizBertviz || 0) + 1);
root.innerHTML = {controls};
const load = (define, module = {{exports: {{}}}}) => (define(module, module.exports), module.exports);
const libraries = {{d3: load(function (module, exports, define) {{
{d3}
}}), jquery: load(function (module, exports, define) {{
{jquery}
}})}};
const require = Object.assign((names, run) => run(...names.map((name) => libraries[name])), {{config() {{}}}});
(function (PYTHON_PARAMS, require, requirejs) {{
{view}
}})(Object.assign({params}, {{root_div_id: root.id}}), require, require);
}})();"""


def bertviz(maps: AttentionMaps | Mapping[str, AttentionMaps], kind: str = "head") -> Picture:
    """bertviz's interactive view; as PNG the sheet of all heads (of the first maps, where there are several).

    Weights have four decimals; spaces and control characters are shown by a sign, long words are cut with one. The
    drawing is always on white.

    Args:
        maps: one `AttentionMaps`, or several to choose from in the page: any of "encoder", "decoder" and "cross".
        kind: "head" (one layer, its heads laid over one another) or "model" (all layers and heads, small).

    Raises:
        ValueError: another kind or part; unequal layers or heads; nothing to draw, or too much; weights of NaN
            or outside 0 to 1.
        ImportError: a package whose JavaScript is needed is missing.
    """
    if kind not in ("head", "model"):
        raise ValueError(f"kind is {kind!r}; it can be 'head' or 'model'")
    parts = _parts(maps)
    first = next(iter(parts.values()))
    weights = [prod(part.shape) for part in parts.values()]
    _afford(max(weights) // (first.shape[0] or 1 if kind == "head" else 1), LINES, "lines")
    _afford(4 * sum(weights), BUDGET, "bytes")  # "0.0," is the least that a weight takes
    sheet = heads(first)
    params = script_json(_params(parts))
    name = f"bertviz-{hashlib.sha256((kind + params).encode()).hexdigest()[:16]}"
    script = SCRIPT.format(
        id=name, controls=script_json(_controls(parts, kind)), params=params,
        view=_carried("bertviz", f"{kind}_view.js"),
        d3=_carried("mpld3", "d3.v5.min.js"),  # its listeners take (datum, index), as bertviz's do; d3 6's do not
        jquery=_carried("XStatic-jQuery", "jquery.min.js"),
    )  # fmt: skip
    _afford(len(script), BUDGET, "bytes")
    summary = f"bertviz's {kind} view\n" + "; ".join(
        f"{part} {maps_size(some)}".strip() for part, some in parts.items()
    )
    return _Page(sheet, summary, name, script)


class _Page(Picture):
    """A picture that gives way to a script, where scripts may run."""

    def __init__(self, picture: Picture, summary: str, name: str, script: str):
        super().__init__(picture._draw, summary)
        self._name, self._script = name, script

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(include, exclude)
        body = BODY.format(id=self._name, png=data["image/png"], alt=html.escape(self.summary), script=self._script)
        return {"text/html": body, **data}, metadata

    def page(self) -> str:
        title = html.escape(self.summary.partition("\n")[0])
        return PAGE.format(title=title, body=self._repr_mimebundle_()[0]["text/html"])


def _parts(maps: AttentionMaps | Mapping[str, AttentionMaps]) -> dict[str, AttentionMaps]:
    if isinstance(maps, AttentionMaps):
        return {"": maps}
    if not maps or not set(maps) <= set(PARTS):
        raise ValueError(f"maps has the parts {list(maps)}; it can have any of {', '.join(PARTS)}")
    parts = {part: maps[part] for part in PARTS if part in maps}
    if len({some.shape[:2] for some in parts.values()}) > 1:
        unlike = ", ".join(f"{part} {some.shape[0]} x {some.shape[1]}" for part, some in parts.items())
        raise ValueError(f"layers x heads are {unlike}; bertviz draws as many as the first has: show them one by one")
    return parts


def _params(parts: Mapping[str, AttentionMaps]) -> dict[str, Any]:
    """What bertviz's Python hands to its JavaScript, less the id."""
    layers, heads, *_ = next(iter(parts.values())).shape
    attention = [
        {"name": part, "attn": _weights(some), "left_text": _shown(some.rows), "right_text": _shown(some.cols)}
        for part, some in parts.items()
    ]
    chosen = {"default_filter": "0", "layer": None, "heads": None, "display_mode": "light"}
    numbers = {"include_layers": list(range(layers)), "include_heads": list(range(heads)), "total_heads": heads}
    return {"attention": attention, **chosen, **numbers}


def _weights(maps: AttentionMaps) -> list:
    weights = maps.weights.double()
    if not weights.isfinite().all():
        raise ValueError(f"some weights are no finite numbers, which bertviz cannot draw: {maps!r}")
    low, high = float(weights.min()), float(weights.max())
    if low < -1e-6 or high > 1 + 1e-3:
        raise ValueError(
            f"attention weights lie between 0 and 1; these go from {low:.3g} to {high:.3g}: "
            "are these scores, before their softmax?"
        )
    return ((weights * 1e4).round() / 1e4).tolist()


def _controls(parts: Mapping[str, AttentionMaps], kind: str) -> str:
    options = "".join(f'<option value="{i}">{part.capitalize()}</option>' for i, part in enumerate(parts))
    layer = '<label>Layer: <select id="layer"></select></label> ' if kind == "head" else ""
    choice = f'<label>Attention: <select id="filter">{options}</select></label>' if len(parts) > 1 else ""
    whole = "<style>[id^=bertviz-] #vis svg { max-width: none }</style>"  # Jupyter's own style would cut it off
    return f'{whole}{layer}{choice}<div id="vis"></div>'


def _shown(words: Sequence[str]) -> list[str]:
    """Each word so that it shows itself, cut with a sign where it is wider than its place."""
    return [_cut("".join(map(_sign, str(word))) or "∅") for word in words]


def _sign(character: str) -> str:
    point = ord(character)
    if point <= 32:
        return VISIBLE.get(character) or chr(0x2400 + point)
    return character if character.isprintable() or character in JOINERS else f"⟨{point:X}⟩"


def _cut(word: str) -> str:
    columns = accumulate(2 if east_asian_width(character) in "FW" else 1 for character in word)
    fits = sum(column <= LONGEST for column in columns)
    return word if fits == len(word) else word[: fits - 1] + "…"


def _afford(amount: int, most: int, unit: str) -> None:
    if amount > most:
        raise ValueError(
            f"the page would have {amount:,} {unit} or more, and {most:,} are allowed: "
            "use view.heads, or fewer tokens, layers or heads"
        )


def _carried(package: str, name: str) -> str:
    """The text of a file that an installed package carries, wherever in it."""
    try:
        return next(file for file in distribution(package).files or () if file.name == name).read_text("utf-8")
    except (PackageNotFoundError, StopIteration, FileNotFoundError) as error:
        raise ImportError(f"view.bertviz needs {name} of {package}: pip install {package}") from error
