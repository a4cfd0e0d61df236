"""Pictures of attention weights as lines from the queries on the left to the keys on the right."""

from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.shapes import Float
from tfviz.view.figures.formatting import format_count, format_map_size, format_number
from tfviz.view.figures.heatmap import MAX_AXIS_LABELS
from tfviz.view.figures.palette import muted, tick_labels
from tfviz.view.figures.selection import head_and_mask
from tfviz.view.figures.static_figure import StaticFigure, set_title

MIN_WEIGHT = 0.02  # smallest weight that has a line, by default
# for heads 0-7, 8-15, ..., since there are only eight colours
STROKES: tuple[Any, ...] = ("solid", "dashed", "dashdot", "dotted")


def links(
    maps: AttentionMaps,
    layer: int = 0,
    heads: Sequence[int] = (0,),
    title: str | None = None,
    min_weight: float = MIN_WEIGHT,
) -> StaticFigure:
    """Draw the picture of `view.links`; lines of larger weights are thicker and more opaque."""
    several = sorted(set(heads))
    if not several:
        raise ValueError("heads is empty: name at least one")
    weights = {head: _weights(maps, layer, head)[:MAX_AXIS_LABELS, :MAX_AXIS_LABELS] for head in several}
    count = sum(int(_is_drawn(values.numpy(), min_weight).sum()) for values in weights.values())
    title = title or f"Layer {layer}, head{'s' * (len(several) > 1)} {', '.join(map(str, several))}"

    def draw() -> Figure:
        height = min(MAX_AXIS_LABELS + 1, max(len(maps.query_tokens), len(maps.key_tokens)))
        figure = Figure(figsize=(4.6, 0.2 * height + 0.85 + 0.25 * (len(several) > 1)), layout="constrained")
        axes, apart = figure.subplots(), min(0.08, 0.6 / len(several))
        for index, (head, values) in enumerate(weights.items()):
            # shifted, so that lines of several heads between the same two tokens lie side by side
            axes.add_collection(_lines(values, head, (index - (len(several) - 1) / 2) * apart, min_weight))
        _columns(axes, maps.query_tokens, maps.key_tokens, height)
        if len(several) > 1:
            handles = [
                Line2D([], [], color=f"C{head % 8}", linestyle=STROKES[head // 8 % len(STROKES)]) for head in several
            ]
            names = [f"head {head}" for head in several]
            figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(several)), handlelength=2.4)
        set_title(figure, title)
        return figure

    summary = f"{format_count(count, 'weight')} of at least {format_number(min_weight, 3)}, a line each"
    if max(len(maps.query_tokens), len(maps.key_tokens)) > MAX_AXIS_LABELS:
        summary += f", among the first {MAX_AXIS_LABELS} words"
    return StaticFigure(draw, f"{title}\n{format_map_size(len(maps.query_tokens), len(maps.key_tokens))}; {summary}")


def _weights(maps: AttentionMaps, layer: int, head: int) -> Float[Tensor, "query key"]:
    """Return the weights of a head, 0 where masked."""
    weights, allowed = head_and_mask(maps, layer, head)
    return weights if allowed is None else weights * allowed


def _lines(weights: Float[Tensor, "query key"], head: int, shift: float, min_weight: float) -> LineCollection:
    """Return a line for each weight of at least `min_weight`, the largest on top, moved down by `shift` of a row."""
    values = weights.numpy()
    rows, columns = numpy.nonzero(_is_drawn(values, min_weight))
    order = numpy.argsort(values[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    shown = values[rows, columns]
    colours = numpy.tile(to_rgba(f"C{head % 8}"), (len(shown), 1))
    colours[:, 3] = numpy.sqrt(shown).clip(0, 1)
    ends = [[(0, row + shift), (1, col + shift)] for row, col in zip(rows, columns)]
    stroke = STROKES[head // 8 % len(STROKES)]
    return LineCollection(ends, colors=colours, linewidths=0.5 + 3.5 * shown, linestyles=stroke, clip_on=False)


def _is_drawn(values: numpy.ndarray, min_weight: float) -> numpy.ndarray:
    """Return a mask of the weights that are drawn."""
    return (values >= min_weight) & (values > 0)


def _columns(axes: Axes, rows: Sequence[str], columns: Sequence[str], height: int) -> None:
    """Write the tokens of the queries on the left and of the keys on the right, and how many are omitted."""
    for side, tokens, name, where, align in (
        (axes, rows, "query", (0, 1), "right"),
        (axes.twinx(), columns, "key", (1, 1), "left"),
    ):
        more = [f"… {len(tokens) - MAX_AXIS_LABELS} more"] if len(tokens) > MAX_AXIS_LABELS else []
        shown = [*tick_labels(tokens[:MAX_AXIS_LABELS]), *more]
        side.set_yticks(range(len(shown)), shown)
        side.set(xticks=[], xlim=(0, 1), ylim=(height - 0.5, -0.5))
        side.grid(False)
        side.spines[:].set_visible(False)
        offset = (-4 if align == "right" else 4, 2)
        side.annotate(name, where, offset, "axes fraction", "offset points", color=muted(), ha=align)
