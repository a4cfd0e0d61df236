"""Drawings of tables: of positions, how alike they are, shares of heads."""

from collections.abc import Mapping
from textwrap import fill

import matplotlib
import numpy
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional

from tfviz.shapes import Float
from tfviz.view.still.formatting import counted, formatted, in_cell
from tfviz.view.still.numbers import few, real
from tfviz.view.still.palette import diverging, plain, ramp
from tfviz.view.still.picture import Picture, bare, cut, headline

HEADS, COLUMNS = 400, 24  # what a table of shares has room for
WRAPPED = 16  # characters of a column's name in a line


def positions(table: Float[Tensor, "position dim"], title: str = "Positions") -> Picture:
    """A position table, and how alike its rows are (cosine)."""
    table = real(title, table).float()
    unit = functional.normalize(table, dim=-1)

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        top = float(table.abs().max()) or 1.0
        for axes, values, limit, x in (
            (left, table.numpy(), top, "dimension"),
            (right, (unit @ unit.T).numpy(), 1.0, "position"),
        ):
            image = axes.imshow(
                values, cmap=diverging(), vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
            )
            axes.grid(False)
            axes.set(xlabel=x, ylabel="position")
            figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
        left.set_title("the table")
        right.set_title("cosine of two positions")
        headline(figure, title)
        return figure

    return Picture(draw, f"{title}\n{counted(table.shape[0], 'position')} x {counted(table.shape[1], 'dimension')}")


def likenesses(tables: Mapping[str, Float[Tensor, "position position"]], title: str) -> Picture:
    """How alike two positions are, a panel for each kind: from blue through 0 to orange, each up to its own largest."""
    across = min(3, len(tables))
    down = -(-len(tables) // across)
    tops = {name: float(table.abs().max()) or 1.0 for name, table in tables.items()}

    def draw() -> Figure:
        figure = Figure(figsize=(2.6 * across + 0.4, 2.35 * down + 0.5), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for place, (axes, (name, table)) in enumerate(zip(panels.flat, tables.items())):
            limit = tops[name]
            shown = {"cmap": diverging(), "vmin": -limit, "vmax": limit, "interpolation": "nearest"}
            image = axes.imshow(table.numpy(), **shown)
            axes.set_title(cut(plain(name), 24), loc="left")
            axes.set_ylabel("query" if place % across == 0 else "")
            axes.set_xlabel("key" if place + across >= len(tables) else "")
            axes.locator_params(nbins=4, integer=True)
            bare(axes)
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, aspect=18)
            bar.set_ticks([-limit, 0, limit], labels=[formatted(-limit), "0", formatted(limit)])
            bar.outline.set_visible(False)
        for axes in panels.flat[len(tables) :]:
            axes.remove()
        headline(figure, title)
        return figure

    said = ", ".join(
        f"{name} {formatted(float(table.min()))} to {formatted(float(table.max()))}" for name, table in tables.items()
    )
    return Picture(draw, f"{title}\nhow alike two positions are: {said}")


def shares(columns: Mapping[str, Float[Tensor, "layer head"]], title: str = "What each head looks at") -> Picture:
    """A table of numbers from 0 to 1, a row for each head: for `look.measures.head_scores`, or any share of your own.

    Raises:
        ValueError: tables of different shapes, or none; a number that is no share; more heads than there is room for.
    """
    shapes = {name: list(column.shape) for name, column in columns.items()}
    if any(len(shape) != 2 or 0 in shape for shape in shapes.values()) or len(set(map(tuple, shapes.values()))) != 1:
        raise ValueError(f"columns must be tables layer head, all of one size; got {shapes or 'none'}")
    few(len(columns), COLUMNS, "columns", "give fewer of them")
    few(next(iter(columns.values())).numel(), HEADS, "heads", "give fewer layers, such as table[:8]")
    values = numpy.stack([real(name, column).flatten().numpy() for name, column in columns.items()], axis=1)
    if not ((values >= -1e-6) & (values <= 1 + 1e-3)).all():
        raise ValueError(f"shares lie between 0 and 1; these go from {values.min():.3g} to {values.max():.3g}")
    layers, heads = next(iter(columns.values())).shape
    names = [f"{layer}.{head}" for layer in range(layers) for head in range(heads)]

    def draw() -> Figure:
        figure = Figure(figsize=(0.95 * len(columns) + 1.2, 0.235 * len(names) + 0.9), layout="constrained")
        axes = figure.subplots()
        axes.imshow(values, cmap=ramp(), vmin=0, vmax=1, aspect="auto")
        ink, paper = matplotlib.rcParams["text.color"], matplotlib.rcParams["figure.facecolor"]
        for (row, column), value in numpy.ndenumerate(values):
            colour = paper if value > 0.45 else ink
            axes.text(column, row, in_cell(float(value), 1.0), ha="center", va="center", color=colour, fontsize=8)
        bare(axes)
        axes.set_xticks(range(len(columns)), [fill(cut(plain(name), 3 * WRAPPED), WRAPPED) for name in columns])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylabel("layer.head")
        axes.xaxis.tick_top()
        for edge in range(heads, len(names), heads):
            axes.axhline(edge - 0.5, color=matplotlib.rcParams["axes.edgecolor"], linewidth=0.8)
        headline(figure, title)
        return figure

    best = (
        f"{name}: {names[int(values[:, i].argmax())]} ({formatted(float(values[:, i].max()))})"
        for i, name in enumerate(columns)
    )
    return Picture(draw, f"{title}\nstrongest head by kind, as layer.head: " + ", ".join(best))
