"""Views of attention maps: all heads, one head, its lines, its words, an alignment; two captures, or many.

Each view responds to mouse and keyboard without a kernel, and is a static picture where scripts cannot run. All are the
same view in a different initial state, so that a reader can switch between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from tfviz.look import AttentionMaps
from tfviz.view.figures import attention as figures
from tfviz.view.figures import links as figure_links
from tfviz.view.figures import words as figure_words
from tfviz.view.figures.formatting import sheet_size
from tfviz.view.page.heads import MAX_PAGE_BYTES, MAX_WIDGET_BYTES, heads_view
from tfviz.view.page.html import View
from tfviz.view.spec import KEY, QUERY, WEIGHT

if TYPE_CHECKING:
    from tfviz.view.page.live_widget import LiveView


def heads(
    maps: AttentionMaps,
    title: str | None = None,
    names: Sequence[str] = (),
    *,
    top: int | None = None,
    outlined: Iterable[int | tuple[int, int]] = (),
    axes: tuple[str, str] = (QUERY, KEY),
    unit: str = WEIGHT,
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show all layers (rows) and heads (columns) on one scale; Enter or a click opens a head.

    Args:
        maps: the attention maps.
        title: the title; None: the size of the maps.
        names: names of the heads; by default their numbers.
        top: for long texts, send only this many keys of each query, the strongest, and the sum of the others.
        outlined: queries, and cells (query, key), from 0, to outline in every head.
        axes: names of rows and columns, where these are not words that look and words that are looked at.
        unit: what the numbers are, where they are not weights; "" draws no colour bar, where the title says it.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.

    Raises:
        IndexError: an outlined cell lies outside the maps.
        ValueError: the strongest weights alone exceed the budget.
    """
    marked = _outlined(outlined, *maps.shape[2:])
    picture = figures.heads(maps, title, names, marked, axes, unit)
    model = maps.provenance.get("model")
    title = title or (f"Attention in {model}" if model else None)
    return heads_view(
        picture,
        {"": maps},
        {"mode": "sheet"},
        title,
        budget=budget,
        names=list(names),
        top=top,
        outlined=marked[1],
        rows=marked[0],
        axes=axes,
    )


def head(
    maps: AttentionMaps,
    layer: int,
    head: int,
    title: str | None = None,
    *,
    divide: int | None = None,
    top: int | None = None,
    outlined: Iterable[int | tuple[int, int]] = (),
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show one head with its words, to read weights, lock rows and columns, and zoom; `top` as for `heads`.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        head: the index of the head.
        title: the title; None: layer and head.
        divide: draw a line before this key, such as the first one after a memory.
        top: for long texts, send only this many keys of each query, the strongest, and the sum of the others.
        outlined: queries, and cells (query, key), from 0, to outline.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.
    """
    marked = _outlined(outlined, *maps.shape[2:])
    picture = figures.head(maps, layer, head, title, divide, marked)
    state = {"mode": "head", "layer": layer, "head": head}
    return heads_view(
        picture,
        {"": maps},
        state,
        title,
        budget=budget,
        top=top,
        divide=divide,
        outlined=marked[1],
        rows=marked[0],
    )


def _outlined(outlined: Iterable[int | tuple[int, int]], queries: int, keys: int) -> figures.Outlined:
    """Return the rows and the cells to outline after checking that maps of this size have them."""
    every = list(outlined)
    pairs = [(index(each[0]), index(each[1])) for each in every if isinstance(each, tuple)]
    rows = [index(each) for each in every if not isinstance(each, tuple)]
    for row, column in [*pairs, *((row, 0) for row in rows)]:
        if not (0 <= row < queries and 0 <= column < keys):
            raise IndexError(f"outlined ({row}, {column}) lies outside a map of {queries} queries x {keys} keys")
    return rows, pairs


def links(
    maps: AttentionMaps,
    layer: int = 0,
    heads: int | Iterable[int] = (0,),
    title: str | None = None,
    *,
    min_weight: float = 0.02,
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show two columns of words, queries left and keys right, with a line for each weight and a colour for each head.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        heads: the heads to draw.
        title: the title; None: layer and heads.
        min_weight: minimum weight of a line; a slider changes it.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.

    Raises:
        TypeError: `heads` is neither an integer nor an iterable of integers.
        ValueError: `min_weight` is not between 0 and 1.
    """
    several: Any = [heads] if isinstance(heads, int) or getattr(heads, "ndim", 1) == 0 else heads
    try:
        shown = [index(head) for head in several]
    except TypeError as error:
        raise TypeError("heads is one integer, or a list of them, such as [0, 2]") from error
    if not 0 <= min_weight <= 1:
        raise ValueError(f"min_weight is {min_weight}; weights lie between 0 and 1")
    picture = figure_links.links(maps, layer, shown, title, min_weight)
    marked = [[layer, head] for head in shown] if len(shown) > 1 else []
    state = {"mode": "lines", "layer": layer, "head": shown[0], "marked": marked, "min_weight": min_weight}
    return heads_view(picture, {"": maps}, state, title, budget=budget)


def words(
    maps: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    row: int | None = None,
    title: str | None = None,
    *,
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show the sentence, shaded by the attention of one of its words, by default the last."""
    picture = figure_words.words(maps, layer, head, row, title)
    locked = [] if row is None else [index(row)]
    state = {"mode": "words", "layer": layer, "head": head, "rows": locked}
    return heads_view(picture, {"": maps}, state, title, budget=budget)


def alignment(
    maps: AttentionMaps,
    gold: Iterable[tuple[int, int]] = (),
    title: str | None = None,
    *,
    axes: tuple[str, str] = ("target", "source"),
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show the attention between two sentences, from each target word to the source words.

    Args:
        maps: the attention maps, from the target to the source.
        gold: pairs (row, column), from 0, of a reference alignment, which are outlined.
        title: the title.
        axes: names of rows and columns.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.

    Raises:
        TypeError: `gold` holds anything but pairs.
    """
    try:
        pairs = [(index(row), index(col)) for row, col in gold]
    except (TypeError, ValueError) as error:
        raise TypeError("gold holds pairs of numbers (row, column), counted from 0, such as (0, 2)") from error
    picture = figures.alignment(maps, pairs, title, axes)
    note = f"Outlined: {picture.summary.rpartition('; ')[2]}." if pairs else ""
    return heads_view(
        picture,
        {"": maps},
        {"mode": "head"},
        title or "Alignment",
        axes=axes,
        outlined=pairs,
        note=note,
        budget=budget,
    )


def compare(
    first: AttentionMaps,
    second: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    names: tuple[str, str] = ("first", "second"),
    title: str | None = None,
    *,
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show two captures side by side with a shared cursor, and their difference: second minus first.

    Raises:
        ValueError: both captures have the same name.
    """
    picture = figures.compare(first, second, layer, head, names, title)
    parts = dict(zip(names, (first, second), strict=True))
    if len(parts) < 2:
        raise ValueError(f"both captures are called {names[0]!r}; give them two names")
    state = {"mode": "head", "layer": layer, "head": head}
    return heads_view(picture, parts, state, title, budget=budget, arrange="compare")


def steps(
    parts: Mapping[str, AttentionMaps],
    layer: int = 0,
    head: int = 0,
    title: str | None = None,
    *,
    divide: int | None = None,
    axes: tuple[str, str] = (QUERY, KEY),
    outlined: Iterable[int | tuple[int, int]] = (),
    drawn: Sequence[str] = (),
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Show a slider over steps of training or generation, by name, from the last back to the first.

    Rows and columns that a step does not have yet are blank, not zero.

    Args:
        parts: the maps of each step, by the step's name.
        layer: the index of the layer.
        head: the index of the head.
        title: the title; None: layer and head.
        divide: draw a line before this key.
        axes: names of rows and columns, if not query and key.
        outlined: queries, and cells (query, key), from 0, to outline in each step that has them.
        drawn: names of the steps in the static picture; by default six, from the first to the last.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.

    Raises:
        TypeError: `parts` is not a mapping.
        IndexError: an outlined cell lies outside all maps.
        LookupError: `drawn` names a step that does not exist.
    """
    if not isinstance(parts, Mapping):
        raise TypeError(f"parts is a {type(parts).__name__}; name each step: {{'step 1': maps, 'step 2': maps}}")
    sizes = [maps.shape[2:] for maps in parts.values()]
    marked = _outlined(outlined, *map(max, zip(*sizes))) if sizes else figures.NO_OUTLINE
    picture = figures.steps(parts, layer, head, title, divide, axes, marked, drawn)
    state = {"mode": "head", "part": len(parts) - 1, "layer": layer, "head": head}
    return heads_view(
        picture,
        parts,
        state,
        title,
        budget=budget,
        arrange="steps",
        divide=divide,
        axes=axes,
        outlined=marked[1],
        rows=marked[0],
    )


def groups(title: str | None = None, *, budget: float = MAX_PAGE_BYTES, **parts: AttentionMaps) -> View:
    """Show several captures of one model in one view, one at a time; their depths may differ.

    An encoder-decoder, captured once:

        maps = {
            "encoder": AttentionMaps.from_capture(captured, source, sites="encoder.*"),
            "decoder": AttentionMaps.from_capture(captured, target, sites="decoder.*self_attn*"),
            "cross": AttentionMaps.from_capture(captured, target, source, sites="decoder.*multihead_attn*"),
        }
        view.groups(**maps)

    Raises:
        ValueError: there are no captures.
    """
    if not parts:
        raise ValueError("no captures: name each, as in view.groups(encoder=maps, cross=other)")
    (name, first), *others = parts.items()
    layers, heads, *_ = first.shape
    beside = f" (also here: {', '.join(other for other, _ in others)})" if others else ""
    picture = figures.heads(first, title or f"{name.capitalize()}: {sheet_size(layers, heads)}{beside}")
    return heads_view(picture, parts, {"mode": "sheet"}, title, budget=budget)


def live(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    *,
    title: str | None = None,
    arrange: str = "choose",
    budget: float = MAX_WIDGET_BYTES,
    **chosen: Any,
) -> LiveView:
    """Show maps with a kernel behind them: `view.live(maps, layer=2)`; see `LiveView`. Needs anywidget."""
    from tfviz.view.page.live_widget import LiveView

    return LiveView(maps, title=title, arrange=arrange, budget=budget, **chosen)
