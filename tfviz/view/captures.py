"""Views of several captures: two compared, the steps of a training or of a text, the parts of one model."""

from __future__ import annotations

from collections.abc import Mapping

from tfviz.look.maps import AttentionMaps
from tfviz.view.page.alive import BUDGET, view
from tfviz.view.page.html import View
from tfviz.view.still import figures, sides
from tfviz.view.still.formatting import sheet_size


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
    divide: int | None = None,
    budget: float = BUDGET,
) -> View:
    """A slider over steps of training or generation, by name, from the last back to the first.

    What a step does not have yet is blank, not zero. A line stands before the key `divide`.
    """
    if not isinstance(parts, Mapping):
        raise TypeError(f"parts is a {type(parts).__name__}; name each step: {{'step 1': maps, 'step 2': maps}}")
    picture = sides.steps(parts, layer, head, title, divide)
    state = {"mode": "head", "part": len(parts) - 1, "layer": layer, "head": head}
    return view(picture, parts, state, title, budget=budget, arrange="steps", divide=divide)


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
    picture = figures.heads(first, title or f"{name.capitalize()}: {sheet_size(layers, heads)}{beside}")
    return view(picture, parts, {"mode": "sheet"}, title, budget=budget)
