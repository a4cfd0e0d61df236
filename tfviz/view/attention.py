"""Views of attention maps: all heads, one head, lines, shaded text, alignments, and comparisons of captures.

Each view responds to mouse and keyboard without a kernel. Where scripts cannot run, it is a static picture. All
functions return the same view in different initial states, so the reader can switch between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from tfviz.look import AttentionMaps
from tfviz.view.figures import attention as figures
from tfviz.view.figures import links as figure_links
from tfviz.view.figures import text as running_text
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
    top_k: int | None = None,
    outlined: Iterable[int | tuple[int, int]] = (),
    axes: tuple[str, str] = (QUERY, KEY),
    unit: str = WEIGHT,
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show all heads as a grid of heatmaps on one scale, a column for each layer; Enter or a click opens a head.

    Args:
        maps: the attention maps.
        title: the title; None: the size of the maps.
        names: names of the heads; by default their numbers.
        top_k: for long texts: include only the `top_k` largest weights of each query, and the sum of the others.
        outlined: indices of queries, and of cells as (query, key), to outline in every head.
        axes: names of rows and columns, if they are not queries and keys.
        unit: name of the numbers, if they are not attention weights; "" omits the scale.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.

    Raises:
        IndexError: an outlined cell lies outside the maps.
        ValueError: there are not as many names as heads, or the `top_k` weights alone exceed `max_bytes`.
    """
    marked = _outlined(outlined, *maps.shape[2:])
    static_figure = figures.heads(maps, title, names, marked, axes, unit)
    model = maps.provenance.get("model")
    title = title or (f"Attention in {model}" if model else None)
    return heads_view(
        static_figure,
        {"": maps},
        {"mode": "sheet"},
        title,
        max_bytes=max_bytes,
        names=list(names),
        top_k=top_k,
        outlined=marked[1],
        rows=marked[0],
        axes=axes,
        unit=unit,
    )


def head(
    maps: AttentionMaps,
    layer: int,
    head: int,
    title: str | None = None,
    *,
    divider: int | None = None,
    top_k: int | None = None,
    outlined: Iterable[int | tuple[int, int]] = (),
    max_bytes: float = MAX_PAGE_BYTES,
    axes: tuple[str, str] = (QUERY, KEY),
) -> View:
    """Show one head as a heatmap with labelled tokens, in which to read weights, lock rows and columns, and zoom.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        head: the index of the head.
        title: the title; None: layer and head.
        divider: index of a key to draw a line before, such as the first key after a memory.
        top_k: for long texts: include only the `top_k` largest weights of each query, and the sum of the others.
        outlined: indices of queries, and of cells as (query, key), to outline.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.
        axes: names of rows and columns, if they are not queries and keys.

    Raises:
        IndexError: there is no such layer or head, or an outlined cell lies outside the map.
        ValueError: `divider` is not between two keys, or the `top_k` weights alone exceed `max_bytes`.
    """
    marked = _outlined(outlined, *maps.shape[2:])
    static_figure = figures.head(maps, layer, head, title, divider, marked, axes)
    state = {"mode": "head", "layer": layer, "head": head}
    return heads_view(
        static_figure,
        {"": maps},
        state,
        title,
        max_bytes=max_bytes,
        top_k=top_k,
        divider=divider,
        outlined=marked[1],
        rows=marked[0],
        axes=axes,
    )


def _outlined(outlined: Iterable[int | tuple[int, int]], queries: int, keys: int) -> figures.Outlined:
    """Return the rows and the cells to outline.

    Raises:
        IndexError: a row or a cell lies outside maps of this size.
    """
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
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show queries on the left and keys on the right, joined by a line for each weight, in a colour for each head.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        heads: the index of a head, or of several.
        title: the title; None: layer and heads.
        min_weight: smallest weight that has a line, from 0 to 1; a slider in the page changes it.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.

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
    static_figure = figure_links.links(maps, layer, shown, title, min_weight)
    selected = [[layer, head] for head in shown] if len(shown) > 1 else []
    state = {"mode": "links", "layer": layer, "head": shown[0], "selected_heads": selected, "min_weight": min_weight}
    return heads_view(static_figure, {"": maps}, state, title, max_bytes=max_bytes)


def words(
    maps: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    query: int | None = None,
    title: str | None = None,
    *,
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show the keys as running text, each token shaded by its attention weight from one query.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        head: the index of the head.
        query: the index of the query; None: the last one in the static picture, and in the page the one under the
            pointer.
        title: the title.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.
    """
    static_figure = running_text.attended_text(maps, layer, head, query, title)
    locked = [] if query is None else [index(query)]
    state = {"mode": "words", "layer": layer, "head": head, "locked_rows": locked}
    return heads_view(static_figure, {"": maps}, state, title, max_bytes=max_bytes)


def alignment(
    maps: AttentionMaps,
    gold: Iterable[tuple[int, int]] = (),
    title: str | None = None,
    *,
    axes: tuple[str, str] = ("target", "source"),
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show the attention from the tokens of a target sentence to those of its source, beside a reference alignment.

    The static picture shows layer 0, head 0.

    Args:
        maps: the attention maps: queries from the target, keys from the source.
        gold: index pairs (row, column) of a reference alignment, to outline.
        title: the title.
        axes: names of rows and columns.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.

    Raises:
        TypeError: `gold` has an element that is not a pair of integers.
        IndexError: a pair of `gold` lies outside the map.
    """
    try:
        pairs = [(index(row), index(col)) for row, col in gold]
    except (TypeError, ValueError) as error:
        raise TypeError("gold holds pairs of numbers (row, column), counted from 0, such as (0, 2)") from error
    static_figure = figures.alignment(maps, pairs, title, axes)
    note = f"Outlined: {static_figure.summary.rpartition('; ')[2]}." if pairs else ""
    return heads_view(
        static_figure,
        {"": maps},
        {"mode": "head"},
        title or "Alignment",
        axes=axes,
        outlined=pairs,
        note=note,
        max_bytes=max_bytes,
    )


def compare(
    first: AttentionMaps,
    second: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    names: tuple[str, str] = ("first", "second"),
    title: str | None = None,
    *,
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show two captures side by side with a shared cursor, and their difference (second minus first).

    Raises:
        IndexError: a capture has no such layer or head.
        ValueError: both captures have the same name.
    """
    static_figure = figures.compare(first, second, layer, head, names, title)
    maps_by_name = dict(zip(names, (first, second), strict=True))
    if len(maps_by_name) < 2:
        raise ValueError(f"both captures are called {names[0]!r}; give them two names")
    state = {"mode": "head", "layer": layer, "head": head}
    return heads_view(static_figure, maps_by_name, state, title, max_bytes=max_bytes, arrange="compare")


def steps(
    maps_by_name: Mapping[str, AttentionMaps],
    layer: int = 0,
    head: int = 0,
    title: str | None = None,
    *,
    divider: int | None = None,
    axes: tuple[str, str] = (QUERY, KEY),
    outlined: Iterable[int | tuple[int, int]] = (),
    static_steps: Sequence[str] = (),
    max_bytes: float = MAX_PAGE_BYTES,
    unit: str = WEIGHT,
) -> View:
    """Show one head at successive steps of training or generation, with a slider and a button that plays them.

    Rows and columns that a step does not have yet are blank, not zero.

    Args:
        maps_by_name: the maps of each step, by the step's name, in order.
        layer: the index of the layer.
        head: the index of the head.
        title: the title; None: layer and head.
        divider: index of a key to draw a line before.
        axes: names of rows and columns, if they are not queries and keys.
        outlined: indices of queries, and of cells as (query, key), to outline in each step that has them.
        static_steps: names of the steps in the static picture; by default at most six, evenly spaced from first to
            last.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.
        unit: name of the numbers, if they are not attention weights.

    Raises:
        TypeError: `maps_by_name` is not a mapping.
        IndexError: a step has no such layer or head, or an outlined cell lies outside the largest map.
        ValueError: there is no step, or `divider` is not between two keys.
        LookupError: `static_steps` names a step that does not exist.
    """
    if not isinstance(maps_by_name, Mapping):
        raise TypeError(
            f"maps_by_name is a {type(maps_by_name).__name__}; name each step: {{'step 1': maps, 'step 2': maps}}"
        )
    sizes = [maps.shape[2:] for maps in maps_by_name.values()]
    marked = _outlined(outlined, *map(max, zip(*sizes))) if sizes else figures.NO_OUTLINE
    static_figure = figures.steps(maps_by_name, layer, head, title, divider, axes, marked, static_steps, unit)
    state = {"mode": "head", "layer": layer, "head": head}
    return heads_view(
        static_figure,
        maps_by_name,
        state,
        title,
        max_bytes=max_bytes,
        arrange="steps",
        divider=divider,
        axes=axes,
        unit=unit,
        outlined=marked[1],
        rows=marked[0],
    )


def groups(
    title: str | None = None,
    *,
    axes: tuple[str, str] = (QUERY, KEY),
    max_bytes: float = MAX_PAGE_BYTES,
    **maps_by_name: AttentionMaps,
) -> View:
    """Show several groups of maps of one model, one at a time; they may differ in their numbers of layers.

    For example, for one capture of an encoder-decoder:

        maps = {
            "encoder": AttentionMaps.from_capture(captured, source, sites="encoder.*"),
            "decoder": AttentionMaps.from_capture(captured, target, sites="decoder.*self_attn*"),
            "cross": AttentionMaps.from_capture(captured, target, source, sites="decoder.*multihead_attn*"),
        }
        view.groups(**maps)

    Args:
        title: the title; None: the name and the size of the first group.
        axes: names of rows and columns, if they are not queries and keys.
        max_bytes: maximum size of the data in the page, in bytes.
        **maps_by_name: the groups of maps, by name.

    Raises:
        ValueError: there are no captures.
    """
    if not maps_by_name:
        raise ValueError("no captures: name each, as in view.groups(encoder=maps, cross=other)")
    (name, first), *others = maps_by_name.items()
    layers, heads, *_ = first.shape
    beside = f" (also here: {', '.join(other for other, _ in others)})" if others else ""
    shown = title or f"{name.capitalize()}: {sheet_size(layers, heads)}{beside}"
    static_figure = figures.heads(first, shown, axes=axes)
    return heads_view(static_figure, maps_by_name, {"mode": "sheet"}, title, max_bytes=max_bytes, axes=axes)


def live(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    *,
    title: str | None = None,
    arrange: str = "choose",
    max_bytes: float = MAX_WIDGET_BYTES,
    **state: Any,
) -> LiveView:
    """Show maps in a widget whose state Python reads and sets, such as `view.live(maps, layer=2)`.

    Needs anywidget and a running kernel.

    Args:
        maps: the attention maps, or several by name.
        title: the title.
        arrange: how several captures are arranged: "choose" one from a menu, "compare" two, or "steps" of a slider.
        max_bytes: maximum size of the data in the widget, in bytes.
        state: the initial state, such as `layer`, `head`, `mode`, `locked_rows`: the traits of `LiveView`.
    """
    from tfviz.view.page.live_widget import LiveView

    return LiveView(maps, title=title, arrange=arrange, max_bytes=max_bytes, **state)
