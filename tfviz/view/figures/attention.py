"""Static pictures of attention maps: all heads, one head, alignments, comparisons, and steps of a generation.

Each function specifies a picture and its summary in words; `figures.heads` and `figures.heatmap` draw it. All heads
share one colour scale from 0 (background) to 1 (strongest colour). Colours follow the square root of the weight, since
most weights are small. A single head with few cells shows its numbers, on a linear scale. Masked cells are hatched, so
that they differ from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.view.figures import downsampling
from tfviz.view.figures import heads as head_figures
from tfviz.view.figures.formatting import format_count, format_map_size, format_number, maps_size, sheet_size, shorten
from tfviz.view.figures.heatmap import MAX_SIDE_PIXELS, draw_single_heatmap
from tfviz.view.figures.palette import DPI
from tfviz.view.figures.selection import check_divider, check_drawable, check_head, head_and_mask, spread
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.spec import (
    DIFFERENCE_SCALE,
    KEY,
    QUERY,
    WEIGHT,
    WEIGHT_SCALE,
    Axis,
    HeadGrid,
    Heatmap,
    Scale,
    attention_heatmap,
    is_numbered,
)

MAX_SHEET_WORDS = 12  # tokens of an axis that a sheet of heads can label
MAX_WORD_SHEET_INCHES = 10.0
MAX_STEP_PANELS = 6  # panels in a picture of steps
Outlined = tuple[Sequence[int], Sequence[tuple[int, int]]]  # rows, and cells (row, column)
NO_OUTLINE: Outlined = ((), ())


def heads(
    maps: AttentionMaps,
    title: str | None = None,
    names: Sequence[str] = (),
    outlined: Outlined = NO_OUTLINE,
    axes: tuple[str, str] = (QUERY, KEY),
    unit: str = WEIGHT,
) -> StaticFigure:
    """Draw the picture of `view.heads`; of more than 24 layers or heads, evenly spaced ones are drawn."""
    layers, heads, queries, keys = check_drawable(maps)
    if len(names) not in (0, heads):
        raise ValueError(f"names has {len(names)} names, the maps have {heads} heads")
    extent = format_count(queries, "token") if queries == keys else format_map_size(queries, keys).replace(" x ", " × ")
    title = title or f"Every head: {sheet_size(layers, heads)}, {extent}"
    named = list(names) or [f"head {head}" if heads <= 8 else str(head) for head in range(heads)]
    shown_layers, shown_heads = spread(layers), spread(heads)
    if len(shown_layers) * len(shown_heads) < layers * heads:
        title = f"{shorten(title, 80)} ({sheet_size(len(shown_layers), len(shown_heads))} of them are drawn)"
    labelled_side = max(0.2 * max(queries, keys), 1.6)
    columns, rows = (layers, heads) if layers > 1 else (heads, 1)
    labelled = max(queries, keys) <= MAX_SHEET_WORDS and max(columns, rows) * labelled_side <= MAX_WORD_SHEET_INCHES
    side = labelled_side if labelled else min(1.5, max(0.55, 8.4 / max(len(shown_layers), len(shown_heads))))
    if (step := downsampling.find_pool_size(maps, int(side * DPI))) > 1:
        title = f"{shorten(title, 80)} (one row of {step} is drawn)"
    marked = NO_OUTLINE if step > 1 else outlined

    def draw() -> Figure:
        pixels, named_axes = int(side * DPI), (Axis(axes[0], maps.query_tokens), Axis(axes[1], maps.key_tokens))
        scale = replace(WEIGHT_SCALE, name=unit)
        grid = [
            [
                _sheet_heatmap(
                    *downsampling.read_head(maps, layer, head, pixels, all_rows=False), named_axes, scale, marked
                )
                for head in shown_heads
            ]
            for layer in shown_layers
        ]
        layer_names = [f"layer {layer}" if layers <= 8 else str(layer) for layer in shown_layers]
        extent = (side, side * min(2.0, max(0.5, queries / keys)))
        return head_figures.head_grid(
            HeadGrid(grid, layer_names, [named[head] for head in shown_heads], extent, labelled, title)
        )

    numbers = "weights from 0 to 1, square-root scale" if unit == WEIGHT else unit
    return StaticFigure(draw, f"{title}\n" + "; ".join(filter(None, (maps_size(maps), numbers))))


def _sheet_heatmap(
    values: Tensor, allowed: Tensor | None, pool_size: int, axes: tuple[Axis, Axis], scale: Scale, outlined: Outlined
) -> Heatmap:
    rows, outlined_cells = outlined
    return Heatmap(
        values, *axes, scale, allowed=allowed, pool_size=pool_size, outlined=outlined_cells, outlined_rows=rows
    )


def head(
    maps: AttentionMaps,
    layer: int,
    head: int,
    title: str | None = None,
    divider: int | None = None,
    outlined: Outlined = NO_OUTLINE,
    axes: tuple[str, str] = (QUERY, KEY),
) -> StaticFigure:
    """Draw the picture of `view.head`."""
    *_, queries, keys = check_head(maps, layer, head)
    dividers = check_divider(divider, keys)
    title = title or f"Layer {layer}, head {head}"

    def draw() -> Figure:
        heatmap = attention_heatmap(
            maps,
            *downsampling.read_head(maps, layer, head, MAX_SIDE_PIXELS),
            axes=axes,
            dividers=dividers,
            outlined=outlined[1],
            outlined_rows=outlined[0],
        )
        return draw_single_heatmap(heatmap, title)[0]

    row, column, most = downsampling.largest_weight(maps, layer, head)
    finding = f"{maps.query_tokens[row]!r} looks most sharply, at {maps.key_tokens[column]!r}: {format_number(most)}"
    more = f"; {maps.caveat}" if maps.caveat else ""
    return StaticFigure(draw, f"{title}\n{format_map_size(queries, keys)}; {finding}{more}")


def alignment(
    maps: AttentionMaps,
    gold: Sequence[tuple[int, int]] = (),
    title: str | None = None,
    axes: tuple[str, str] = ("target", "source"),
) -> StaticFigure:
    """Draw the picture of `view.alignment`: layer 0, head 0."""
    weights, allowed = head_and_mask(maps, 0, 0)
    queries, keys = weights.shape
    cells = sorted({(int(row), int(column)) for row, column in gold})
    for row, column in cells:
        if not (0 <= row < queries and 0 <= column < keys):
            raise IndexError(f"gold cell ({row}, {column}) lies outside a map of {queries} queries x {keys} keys")
    right = sum(bool(weights[row, column] == weights[row].max() > 0) for row, column in cells)
    title = title or "Alignment"

    def draw() -> Figure:
        figure, _ = draw_single_heatmap(
            attention_heatmap(maps, weights, allowed, axes=axes, outlined=cells), title, 0.25 * bool(cells)
        )
        if cells:
            head_figures.outline_legend(figure, "gold: the reference alignment")
        return figure

    found = f"{right} of {len(cells)} gold cells are the strongest of their row" if cells else "no gold cells given"
    return StaticFigure(draw, f"{title}\n{format_map_size(queries, keys)}; {found}")


def compare(
    first: AttentionMaps,
    second: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    names: tuple[str, str] = ("first", "second"),
    title: str | None = None,
) -> StaticFigure:
    """Draw one head of two captures side by side, and second minus first if the maps have the same size.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: there are no tokens.
    """
    maps = (first, second)
    (a, _), (b, _) = pair = [head_and_mask(one, layer, head) for one in maps]
    title = title or f"Layer {layer}, head {head}: {names[0]} and {names[1]}"
    panels = [
        Heatmap(weights, Axis(QUERY, one.query_tokens), Axis(KEY, one.key_tokens), allowed=allowed, title=name)
        for one, (weights, allowed), name in zip(maps, pair, names)
    ]
    if a.shape != b.shape:
        sizes = " and ".join(format_map_size(*weights.shape) for weights, _ in pair)
        return StaticFigure(
            lambda: head_figures.side_by_side(panels, title),
            f"{title}\n{sizes}: no difference, since their sizes differ",
        )
    panels.append(_difference(*panels))
    row, column = divmod(int((b - a).abs().argmax()), a.shape[1])
    was, now = (format_number(float(weights[row, column])) for weights in (a, b))
    finding = f"{first.query_tokens[row]!r} looks at {first.key_tokens[column]!r}: {was}, then {now}"
    summary = f"{title}\n{format_map_size(*a.shape)}; the greatest difference: {finding}"
    return StaticFigure(lambda: head_figures.side_by_side(panels, title), summary)


def _difference(first: Heatmap, second: Heatmap) -> Heatmap:
    """Return the heatmap of second minus first; where the labels of a position differ, both are shown."""

    def both(one: Axis, other: Axis) -> Axis:
        return Axis(one.name, [a if a == b else f"{a}/{b}" for a, b in zip(one.labels, other.labels)])

    either = None if first.allowed is None or second.allowed is None else first.allowed | second.allowed
    return Heatmap(
        second.values - first.values,
        both(first.rows, second.rows),
        both(first.columns, second.columns),
        DIFFERENCE_SCALE,
        either,
        title=f"{second.title} − {first.title}",
    )


def steps(
    maps_by_name: Mapping[str, AttentionMaps],
    layer: int = 0,
    head: int = 0,
    title: str | None = None,
    divider: int | None = None,
    axes: tuple[str, str] = (QUERY, KEY),
    outlined: Outlined = NO_OUTLINE,
    static_steps: Collection[str] = (),
    unit: str = WEIGHT,
) -> StaticFigure:
    """Draw the picture of `view.steps`, in panels that all have the size of the largest map.

    The title of a panel says how many of the outlined cells are the strongest of their row.
    """
    if not maps_by_name:
        raise ValueError("there is no step to draw")
    read = [(str(name), maps, *head_and_mask(maps, layer, head)) for name, maps in maps_by_name.items()]
    space = max(len(weights) for *_, weights, _ in read), max(weights.shape[1] for *_, weights, _ in read)
    few = is_numbered(*space)  # as in the page
    scale = Scale("linear" if few else "sqrt", name=unit)
    every = [
        Heatmap(
            weights, Axis(axes[0], maps.query_tokens), Axis(axes[1], maps.key_tokens), scale, allowed, title=name,
            numbered=few,
        )
        for name, maps, weights, allowed in read
    ]  # fmt: skip
    dividers = check_divider(divider, space[1])
    if missing := [name for name in static_steps if name not in maps_by_name]:
        raise LookupError(f"there is no step {missing[0]!r} to draw; there are {', '.join(map(str, maps_by_name))}")
    chosen = [at for at, name in enumerate(maps_by_name) if name in static_steps] or spread(len(every), MAX_STEP_PANELS)
    shown = [_outlined(replace(every[at], space=space, dividers=dividers), outlined) for at in chosen]
    title = title or f"Layer {layer}, head {head}, step by step"
    if len(shown) < len(every):
        title += f" ({len(shown)} of {len(every)} frames)"
    sizes = " to ".join(f"{format_map_size(*one.values.shape)} ({one.title})" for one in (every[0], every[-1]))
    summary = f"{title}\n{format_count(len(every), 'step')}, from {sizes}"
    return StaticFigure(lambda: head_figures.small_multiples(shown, title), summary)


def _outlined(heatmap: Heatmap, outlined: Outlined) -> Heatmap:
    """Return the heatmap with outlines of the rows and cells that it has, and their finding in its title."""
    rows, columns = heatmap.values.shape
    cells = [(row, column) for row, column in outlined[1] if row < rows and column < columns]
    strongest = sum(bool(heatmap.values[cell] == heatmap.values[cell[0]].max() > 0) for cell in cells)
    title = f"{heatmap.title}: {strongest} of {len(cells)}" if cells else heatmap.title
    return replace(heatmap, outlined=cells, outlined_rows=[row for row in outlined[0] if row < rows], title=title)
