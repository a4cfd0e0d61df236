"""Views of heads: all of them, one, its lines, its words, one sentence against another.

Each answers to mouse and keyboard without a kernel, and is a still picture where no script may run. All are one view
that opens at another place: a reader goes from any to any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from tfviz.look.maps import AttentionMaps
from tfviz.view.page.alive import BUDGET, SENT, view
from tfviz.view.page.html import View
from tfviz.view.still import figures, prose, sentences, single

if TYPE_CHECKING:
    from tfviz.view.page.widgets import Live


def heads(
    maps: AttentionMaps,
    title: str | None = None,
    names: Sequence[str] = (),
    *,
    top: int | None = None,
    budget: float = BUDGET,
) -> View:
    """The sheet of all layers (rows) and heads (columns), on one scale; Enter or a click opens a head.

    Args:
        names: what to call the heads, where a number says too little.
        top: of each query only so many keys travel, the strongest, with what all others hold: for long texts.
        budget: bytes that the data may take in the page; past it, heads come in blocks, and the page says so.

    Raises:
        ValueError: the strongest alone are more than the budget.
    """
    picture = figures.heads(maps, title, names)
    return view(picture, {"": maps}, {"mode": "sheet"}, title, budget=budget, names=list(names), top=top)


def head(
    maps: AttentionMaps,
    layer: int,
    head: int,
    title: str | None = None,
    *,
    divide: int | None = None,
    top: int | None = None,
    budget: float = BUDGET,
) -> View:
    """One head with its words: the weight under the cursor, rows and columns to lock, zoom; `top` as for `heads`.

    Args:
        divide: a line stands before this key, such as the first that is no longer of a memory.
    """
    picture = single.head(maps, layer, head, title, divide)
    state = {"mode": "head", "layer": layer, "head": head}
    return view(picture, {"": maps}, state, title, budget=budget, top=top, divide=divide)


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
    given: Any = heads
    try:
        one = isinstance(given, int) or getattr(given, "ndim", 1) == 0
        shown = [index(head) for head in ([given] if one else given)]
    except TypeError as error:
        raise TypeError("heads is one whole number, or a list of them, such as [0, 2]") from error
    if not 0 <= least <= 1:
        raise ValueError(f"least is {least}; weights lie between 0 and 1")
    picture = sentences.links(maps, layer, shown, title, least)
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
        pairs = [(index(row), index(col)) for row, col in gold]
    except (TypeError, ValueError) as error:
        raise TypeError("gold holds pairs of numbers (row, column), counted from 0, such as (0, 2)") from error
    picture = sentences.alignment(maps, pairs, title, axes)
    more = {"axes": list(axes), "gold": [list(pair) for pair in pairs]}
    made = view(picture, {"": maps}, {"mode": "head"}, title or "Alignment", budget=budget, **more)
    if pairs:
        made.described["note"] = f"Outlined: {picture.summary.rpartition('; ')[2]}. {made.described['note']}".strip()
    return made


def live(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    *,
    title: str | None = None,
    arrange: str = "choose",
    budget: float = SENT,
    **chosen: Any,
) -> Live:
    """A view with the kernel behind it: `view.live(maps, layer=2)`; see `widgets.Live`. Needs anywidget."""
    from tfviz.view.page.widgets import Live

    return Live(maps, title=title, arrange=arrange, budget=budget, **chosen)
