"""Drawings of one head: its heatmap with its words; few weights on a linear scale, with their numbers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.view.still import large
from tfviz.view.still.cells import CELL, NUMBERED, number
from tfviz.view.still.figures import at, border, divided, heatmap, label, scale
from tfviz.view.still.formatting import formatted, size
from tfviz.view.still.picture import Picture, headline


def head(maps: AttentionMaps, layer: int, head: int, title: str | None = None, divide: int | None = None) -> Picture:
    """One head with its words; a line before the key `divide`."""
    *_, queries, keys = at(maps, layer, head)
    divided(divide, keys)
    title = title or f"Layer {layer}, head {head}"

    def draw() -> Figure:
        figure, axes = alone(queries, keys)
        weighed(figure, axes, *large.drawn(maps, layer, head, 1600))
        label(axes, maps.rows, maps.cols)
        border(axes, divide)
        headline(figure, title)
        return figure

    row, col, most = large.peak(maps, layer, head)
    says = f"{maps.rows[row]!r} looks most sharply, at {maps.cols[col]!r}: {formatted(most)}"
    more = f"; {maps.doubt}" if maps.doubt else ""
    return Picture(draw, f"{title}\n{size(queries, keys)}; {says}{more}")


def alone(queries: int, keys: int, more: float = 0.0) -> tuple[Figure, Axes]:
    """A figure for one heatmap, with room for `more` inches below it."""
    cell = CELL if queries * keys <= NUMBERED else min(0.3, max(0.125, 6.0 / max(queries, keys)))
    wide, tall = (min(12.0, max(1.6, cell * n)) for n in (keys, queries))
    figure = Figure(figsize=(wide + 1.6, tall + 1.1 + more), layout="constrained")
    return figure, figure.subplots()


def weighed(figure: Figure, axes: Axes, values: Tensor, allowed: Tensor | None, block: int = 1) -> None:
    """Weights with what their colours mean beside them; few of them on a linear scale, with their numbers."""
    if values.numel() <= NUMBERED:
        image = heatmap(axes, values, allowed, pixels=1600, norm=Normalize(0, 1))
        number(axes, image, values.numpy())
    else:
        image = heatmap(axes, values, allowed, block, pixels=1600)
        scale(figure, image, [axes])
