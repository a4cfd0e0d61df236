"""Views of heads: all of them, one, its lines, its words; two captures compared; many steps; several sources.

Each answers to mouse and keyboard without a kernel, and is a still picture where no script may run. All are one view
that opens at another place: a reader goes from any to any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from tfviz.look.maps import AttentionMaps
from tfviz.view import figures, prose, sentences, sides
from tfviz.view.packed import pack
from tfviz.view.page import View
from tfviz.view.picture import Picture

if TYPE_CHECKING:
    from tfviz.view.widgets import Live

BUDGET = 32e6  # bytes of one view's data in a page, as base64
ARRANGE = ("choose", "compare", "steps")
STATE: dict[str, Any] = {
    "mode": "sheet", "part": 0, "layer": 0, "head": 0, "marked": [], "how": "mean", "hide": "nothing", "hidden": [],
    "merged": False, "rows": [], "cols": [], "least": 0.02, "most": 5, "direction": "at",
}  # fmt: skip


def heads(maps: AttentionMaps, title: str | None = None, names: Sequence[str] = (), *, budget: float = BUDGET) -> View:
    """The sheet of all layers (rows) and heads (columns), on one scale; Enter or a click opens a head.

    Args:
        names: what to call the heads, where a number says too little.
        budget: bytes that the data may take in the page; past it, heads come in blocks, and the page says so.
    """
    picture = figures.heads(maps, title, names)
    return view(picture, {"": maps}, {"mode": "sheet"}, title, budget=budget, names=list(names))


def head(maps: AttentionMaps, layer: int, head: int, title: str | None = None, *, budget: float = BUDGET) -> View:
    """One head with its words: the weight under the cursor, rows and columns that can be locked, zoom."""
    picture = figures.head(maps, layer, head, title)
    return view(picture, {"": maps}, {"mode": "head", "layer": layer, "head": head}, title, budget=budget)


def links(
    maps: AttentionMaps,
    layer: int = 0,
    heads: int | Iterable[int] = (0,),
    title: str | None = None,
    *,
    least: float = 0.02,
    budget: float = BUDGET,
) -> View:
    """Two columns of words, queries left and keys right, and a line for each weight; a colour for each head.

    Args:
        least: weights under this have no line; a slider changes it.
    """
    shown = [index(head) for head in ([heads] if isinstance(heads, int) else heads)]
    if not 0 <= least <= 1:
        raise ValueError(f"least is {least}; weights lie between 0 and 1")
    picture = sentences.links(maps, layer, shown, title)
    marked = [[layer, head] for head in shown] if len(shown) > 1 else []
    state = {"mode": "lines", "layer": layer, "head": shown[0], "marked": marked, "least": least}
    return view(picture, {"": maps}, state, title, budget=budget)


def words(
    maps: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    row: int | None = None,
    title: str | None = None,
    *,
    budget: float = BUDGET,
) -> View:
    """The sentence itself, shaded by what one of its words looks at; by default its last."""
    picture = prose.words(maps, layer, head, row, title)
    locked = [] if row is None else [index(row)]
    state = {"mode": "words", "layer": layer, "head": head, "rows": locked}
    return view(picture, {"": maps}, state, title, budget=budget)


def compare(
    first: AttentionMaps,
    second: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    names: tuple[str, str] = ("first", "second"),
    title: str | None = None,
    *,
    budget: float = BUDGET,
) -> View:
    """Two captures side by side, with one cursor, and their difference: second minus first."""
    picture = sides.compare(first, second, layer, head, names, title)
    parts = dict(zip(names, (first, second), strict=True))
    if len(parts) < 2:
        raise ValueError(f"both captures are called {names[0]!r}; give them two names")
    state = {"mode": "head", "layer": layer, "head": head}
    return view(picture, parts, state, title, budget=budget, arrange="compare")


def steps(
    parts: Mapping[str, AttentionMaps],
    layer: int = 0,
    head: int = 0,
    title: str | None = None,
    *,
    budget: float = BUDGET,
) -> View:
    """A slider over steps of training or generation, by name, from the last back to the first.

    What a step does not have yet is blank, not zero.
    """
    if not isinstance(parts, Mapping):
        raise TypeError(f"parts is a {type(parts).__name__}; name each step: {{'step 1': maps, 'step 2': maps}}")
    picture = sides.steps(parts, layer, head, title)
    state = {"mode": "head", "part": len(parts) - 1, "layer": layer, "head": head}
    return view(picture, parts, state, title, budget=budget, arrange="steps")


def sources(title: str | None = None, *, budget: float = BUDGET, **parts: AttentionMaps) -> View:
    """Several captures of one model in one view, one shown at a time, of any depth each.

    An encoder-decoder, captured once:

        maps = {
            "encoder": AttentionMaps.of(seen, source, sites="encoder.*"),
            "decoder": AttentionMaps.of(seen, target, sites="decoder.*self_attn*"),
            "cross": AttentionMaps.of(seen, target, source, sites="decoder.*multihead_attn*"),
        }
        view.sources(**maps)
    """
    if not parts:
        raise ValueError("no captures: name each, as in view.sources(encoder=maps, cross=other)")
    (name, first), *others = parts.items()
    layers, heads, *_ = first.shape
    beside = f" (also here: {', '.join(other for other, _ in others)})" if others else ""
    picture = figures.heads(first, title or f"{name.capitalize()}: {layers} layers × {heads} heads{beside}")
    return view(picture, parts, {"mode": "sheet"}, title, budget=budget)


def alignment(
    maps: AttentionMaps,
    gold: Iterable[tuple[int, int]] = (),
    title: str | None = None,
    *,
    axes: tuple[str, str] = ("target", "source"),
    budget: float = BUDGET,
) -> View:
    """One sentence against another: which words of the source each word of the target looks at.

    Args:
        gold: pairs (row, column), counted from 0, that a person or a rule aligned; outlined.

    Raises:
        TypeError: `gold` holds something else.
    """
    try:
        pairs = [(int(row), int(col)) for row, col in gold]
    except (TypeError, ValueError) as error:
        raise TypeError("gold holds pairs of numbers (row, column), counted from 0, such as (0, 2)") from error
    picture = sentences.alignment(maps, pairs, title, axes)
    more = {"axes": list(axes), "gold": [list(pair) for pair in pairs]}
    made = view(picture, {"": maps}, {"mode": "head"}, title or "Alignment", budget=budget, **more)
    if pairs:
        made.described["note"] = f"Outlined: {picture.summary.rpartition('; ')[2]}. {made.described['note']}".strip()
    return made


def live(maps: AttentionMaps | Mapping[str, AttentionMaps], **chosen: Any) -> Live:
    """A view with the kernel behind it: `view.live(maps, layer=2)`; see `widgets.Live`. Needs anywidget."""
    from tfviz.view.widgets import Live

    return Live(maps, **chosen)


def view(
    picture: Picture,
    parts: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None = None,
    *,
    budget: float = BUDGET,
    **more: Any,
) -> View:
    """A still picture brought to life by the maps it shows; `more` as in `describe`."""
    at = {"layer": index(state.get("layer", 0)), "head": index(state.get("head", 0))}  # also a tensor's argmax
    return View(picture, *describe(parts, {**STATE, **state, **at}, title, budget, **more))


def describe(
    parts: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None,
    budget: float,
    *,
    arrange: str = "choose",
    axes: Sequence[str] = ("query", "key"),
    gold: Sequence[Sequence[int]] = (),
    names: Sequence[str] = (),
) -> tuple[dict[str, Any], bytes]:
    """What the page is told of the maps, and their bytes.

    Args:
        arrange: how several parts stand to each other: `choose` one, `compare` two, `steps` of a slider.
        axes: what rows and columns are.
        gold: cells to outline.
        names: of the heads.

    Raises:
        ValueError: nothing to show, another arrangement, or not two parts to compare.
    """
    if not parts or arrange not in ARRANGE or (arrange == "compare" and len(parts) != 2):
        raise ValueError(
            f"{len(parts)} captures to {arrange}: one or more to `choose` or for `steps`, two to `compare`"
        )
    shown, packed, note = pack(parts, budget, (state["layer"], state["head"]))
    described = {"kind": "heads", "parts": shown, "masks": packed.masks, "note": note, "state": dict(state)}
    described |= {
        "title": title or "",
        "arrange": arrange,
        "axes": list(axes),
        "gold": list(gold),
        "names": list(names),
    }
    return described, packed.data
