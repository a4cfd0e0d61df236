"""Tables of numbers as heatmaps: positions, how alike positions are, shares of heads."""

from collections.abc import Mapping
from textwrap import fill

import matplotlib
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional

from tfviz.shapes import Float
from tfviz.view.spec import Heatmap, Scale
from tfviz.view.still.formatting import counted, formatted
from tfviz.view.still.heatmap import draw as draw_heatmap
from tfviz.view.still.numbers import check_at_most, check_finite
from tfviz.view.still.palette import diverging_colormap, drawable
from tfviz.view.still.picture import Picture, frame, set_title, shorten

MAX_HEADS, MAX_COLUMNS = 400, 24
WRAPPED = 16  # characters of a column's name in a line


def positions(table: Float[Tensor, "position dim"], title: str = "Positions") -> Picture:
    """Draw a position table, and how alike its rows are (cosine)."""
    table = check_finite(title, table).float()
    unit = functional.normalize(table, dim=-1)
    panels = {
        "the table": (table, float(table.abs().max()) or 1.0, "dimension"),
        "cosine of two positions": (unit @ unit.T, 1.0, "position"),
    }

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        for axes, (name, (values, limit, x)) in zip(figure.subplots(1, 2, width_ratios=[1.25, 1]), panels.items()):
            scale = {"cmap": diverging_colormap(), "vmin": -limit, "vmax": limit}
            image = axes.imshow(values.numpy(), aspect="auto", interpolation="nearest", **scale)
            axes.grid(False)
            axes.set(xlabel=x, ylabel="position")
            axes.set_title(name)
            figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
        set_title(figure, title)
        return figure

    return Picture(draw, f"{title}\n{counted(table.shape[0], 'position')} x {counted(table.shape[1], 'dimension')}")


def similarities(tables: Mapping[str, Float[Tensor, "position position"]], title: str) -> Picture:
    """Draw how alike two positions are, a panel for each kind: blue through 0 to orange, each up to its own largest."""
    across = min(3, len(tables))
    down = -(-len(tables) // across)

    def draw() -> Figure:
        figure = Figure(figsize=(2.6 * across + 0.4, 2.35 * down + 0.5), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for place, (axes, (name, table)) in enumerate(zip(panels.flat, tables.items())):
            limit = float(table.abs().max()) or 1.0
            image = axes.imshow(table.numpy(), diverging_colormap(), vmin=-limit, vmax=limit, interpolation="nearest")
            axes.set_title(shorten(drawable(name), 24), loc="left")
            axes.set_ylabel("query" if place % across == 0 else "")
            axes.set_xlabel("key" if place + across >= len(tables) else "")
            axes.locator_params(nbins=4, integer=True)
            frame(axes)
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, aspect=18)
            bar.set_ticks([-limit, 0, limit], labels=[formatted(-limit), "0", formatted(limit)])
            bar.outline.set_visible(False)
        for axes in panels.flat[len(tables) :]:
            axes.remove()
        set_title(figure, title)
        return figure

    ends = [(name, formatted(float(table.min())), formatted(float(table.max()))) for name, table in tables.items()]
    ranges = ", ".join(f"{name} {low} to {high}" for name, low, high in ends)
    return Picture(draw, f"{title}\nhow alike two positions are: {ranges}")


def shares(columns: Mapping[str, Float[Tensor, "layer head"]], title: str = "What each head looks at") -> Picture:
    """Draw a table of numbers from 0 to 1, a row for each head: `look.measures.head_scores`, or any share of your own.

    Raises:
        ValueError: tables of different shapes, or none; a number that is no share; more heads than there is room for.
    """
    shapes = {name: list(column.shape) for name, column in columns.items()}
    if any(len(shape) != 2 or 0 in shape for shape in shapes.values()) or len(set(map(tuple, shapes.values()))) != 1:
        raise ValueError(f"columns must be tables layer head, all of one size; got {shapes or 'none'}")
    check_at_most(len(columns), MAX_COLUMNS, "columns", "give fewer of them")
    check_at_most(next(iter(columns.values())).numel(), MAX_HEADS, "heads", "give fewer layers, such as table[:8]")
    values = torch.stack([check_finite(name, column).float().flatten() for name, column in columns.items()], dim=1)
    if not ((values >= -1e-6) & (values <= 1 + 1e-3)).all():
        raise ValueError(f"shares lie between 0 and 1; these go from {values.min():.3g} to {values.max():.3g}")
    layers, heads = next(iter(shapes.values()))
    names = [f"{layer}.{head}" for layer in range(layers) for head in range(heads)]

    def draw() -> Figure:
        figure = Figure(figsize=(0.95 * len(columns) + 1.2, 0.235 * len(names) + 0.9), layout="constrained")
        axes = figure.subplots()
        draw_heatmap(axes, Heatmap(values, scale=Scale("linear"), numbered=True))
        axes.set_xticks(range(len(columns)), [fill(shorten(drawable(name), 3 * WRAPPED), WRAPPED) for name in columns])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylabel("layer.head")
        for edge in range(heads, len(names), heads):
            axes.axhline(edge - 0.5, color=matplotlib.rcParams["axes.edgecolor"], linewidth=0.8)
        set_title(figure, title)
        return figure

    best = [(name, int(column.argmax()), float(column.max())) for name, column in zip(columns, values.T)]
    strongest = ", ".join(f"{name}: {names[at]} ({formatted(value)})" for name, at, value in best)
    return Picture(draw, f"{title}\nstrongest head by kind, as layer.head: {strongest}")
