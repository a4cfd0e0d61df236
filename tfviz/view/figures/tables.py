"""Pictures of tables of numbers: gates over time, position encodings and their similarities, and scores of heads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.check_numbers import check_at_most, check_finite
from tfviz.view.figures.formatting import format_count, format_number, shorten
from tfviz.view.figures.heatmap import (
    NUMBER_CELL_INCHES,
    axis_inches,
    caption_panel,
    colormap,
    draw_cells,
    draw_colourbar,
    draw_heatmap,
    norm,
    use_integer_ticks,
)
from tfviz.view.figures.palette import MAX_LABEL_LENGTH, drawable, muted
from tfviz.view.figures.static_figure import StaticFigure, draw_frame, panel_grid, set_title
from tfviz.view.spec import KEY, QUERY, Heatmap, Scale

MAX_HEADS, MAX_COLUMNS = 400, 24
MAX_WIDTH_INCHES = 10.0  # of tables side by side
MAX_COLUMN_LENGTH = 16  # characters in a line of a column's name


def stacked_tables(heatmaps: Sequence[Heatmap], title: str) -> StaticFigure:
    """Draw heatmaps with the same columns stacked vertically, such as the gates of an LSTM over a text.

    Args:
        heatmaps: the heatmaps, with equal numbers of columns; the numbers of rows may differ.
        title: the title.
    """
    first, count = heatmaps[0], heatmaps[0].values.shape[1]

    def draw() -> Figure:
        width = axis_inches(count, 7.0, 0.2)
        heights = [axis_inches(len(one.values), 2.4, 0.02, 0.7) for one in heatmaps]
        figure = Figure(figsize=(width + 2.0, sum(heights) + 0.12 * len(heights) + 1.0), layout="constrained")
        panels = figure.subplots(len(heatmaps), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, one, height in zip(panels, heatmaps, heights):
            image, top = draw_cells(axes, one), axes is panels[0]
            draw_colourbar(figure, image, axes, one.scale)
            caption_panel(axes, one, width, height, colour=muted())
            axes.set_xlabel(drawable(first.columns.name) if top else "", loc="left")
            if not top:
                axes.set_xticks([])
            use_integer_ticks(axes.yaxis, 3)
            name = "" if one.title == title else shorten(drawable(one.title), MAX_LABEL_LENGTH)
            ink = matplotlib.rcParams["axes.titlecolor"]
            axes.set_ylabel(name, rotation=0, ha="right", va="center", color=ink)
        figure.supylabel(drawable(first.rows.name), fontsize=9, color=muted())
        set_title(figure, title)
        return figure

    ends = [(one.title, float(one.values.min()), float(one.values.max())) for one in heatmaps]
    ranges = ", ".join(f"{name} {format_number(low)} to {format_number(high)}" for name, low, high in ends)
    return StaticFigure(draw, f"{title}\n{format_count(count, 'column')}; {ranges}")


def numbered_tables(heatmaps: Sequence[Heatmap], title: str, note: str = "") -> Figure:
    """Draw small heatmaps with the same rows and columns side by side, with the number of each cell.

    Args:
        heatmaps: the heatmaps, with their titles.
        title: the title of the figure.
        note: the text below the heatmaps.
    """
    rows, columns = heatmaps[0].values.shape
    width, height = (NUMBER_CELL_INCHES * count + 0.6 for count in (columns, rows))
    across = max(1, min(len(heatmaps), int(MAX_WIDTH_INCHES // width)))
    down = -(-len(heatmaps) // across)
    figure = Figure(figsize=(width * across + 0.3, height * down + 0.8), layout="constrained")
    panels = panel_grid(figure, down, across, len(heatmaps))
    for index, (axes, heatmap) in enumerate(zip(panels, heatmaps)):
        draw_heatmap(axes, heatmap)
        axes.set_title(shorten(drawable(heatmap.title), 24), loc="left")
        if index % across:
            axes.set_ylabel("")
        if index >= across:
            axes.set_xlabel("")
    if note:
        figure.supxlabel(note, fontsize="small", color=muted())
    set_title(figure, title)
    return figure


def table_scale(table: Tensor) -> Scale:
    """Return the scale of a table, up to 1 or the largest absolute value; diverging if a value is negative."""
    finite = table[table.isfinite()]
    limit = max(1.0, float(finite.abs().max()) if finite.numel() else 1.0)
    return Scale("diverging" if bool((table < 0).any()) else "linear", limit)


def positions(heatmaps: Sequence[Heatmap], title: str) -> StaticFigure:
    """Draw the two heatmaps of a position encoding, its table and its cosines, side by side with their colour bars."""

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        for axes, heatmap in zip(figure.subplots(1, 2, width_ratios=[1.25, 1]), heatmaps):
            image = _draw_table(axes, heatmap, aspect="auto")
            axes.grid(False)
            axes.set(xlabel=heatmap.columns.name, ylabel=heatmap.rows.name)
            axes.set_title(heatmap.title)
            figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
        set_title(figure, title)
        return figure

    first = heatmaps[0]
    sizes = (format_count(count, axis.name) for count, axis in zip(first.values.shape, (first.rows, first.columns)))
    return StaticFigure(draw, f"{title}\n{' x '.join(sizes)}")


def similarities(heatmaps: Mapping[str, Heatmap], title: str) -> StaticFigure:
    """Draw the similarities of positions, with a panel for each encoding, on its own scale from blue to orange."""
    ncols = min(3, len(heatmaps))
    nrows = -(-len(heatmaps) // ncols)

    def draw() -> Figure:
        figure = Figure(figsize=(2.6 * ncols + 0.4, 2.35 * nrows + 0.5), layout="constrained")
        panels = panel_grid(figure, nrows, ncols, len(heatmaps))
        for index, (axes, (name, heatmap)) in enumerate(zip(panels, heatmaps.items())):
            limit = float(heatmap.values.abs().max()) or 1.0
            image = _draw_table(axes, replace(heatmap, scale=Scale("diverging", limit)))
            axes.set_title(shorten(drawable(name), 24), loc="left")
            axes.set_ylabel(QUERY if index % ncols == 0 else "")
            axes.set_xlabel(KEY if index + ncols >= len(heatmaps) else "")
            axes.locator_params(nbins=4, integer=True)
            draw_frame(axes)
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, aspect=18)
            bar.set_ticks([-limit, 0, limit], labels=[format_number(-limit), "0", format_number(limit)])
            bar.outline.set_visible(False)
        set_title(figure, title)
        return figure

    tables = {name: heatmap.values for name, heatmap in heatmaps.items()}
    ends = [
        (name, format_number(float(table.min())), format_number(float(table.max()))) for name, table in tables.items()
    ]
    ranges = ", ".join(f"{name} {low} to {high}" for name, low, high in ends)
    return StaticFigure(draw, f"{title}\nhow alike two positions are: {ranges}")


def _draw_table(axes: Axes, heatmap: Heatmap, **style: Any) -> AxesImage:
    """Draw the cells of a heatmap without its labels, so that axes are numbered; return the image."""
    colours: Any = {"cmap": colormap(heatmap.scale), "norm": norm(heatmap.scale)}
    return axes.imshow(heatmap.values.numpy(), interpolation="nearest", **colours, **style)


def head_table(
    columns: Mapping[str, Float[Tensor, "layer head"]],
    title: str = "What each head looks at",
    *,
    outlined: Collection[tuple[int, int]] | Mapping[tuple[int, int], str] = (),
) -> StaticFigure:
    """Draw a table of scores from 0 to 1 with a row for each head, such as those of `look.measures.head_scores`.

    Args:
        columns: name of a score -> its values, [layer, head].
        title: the title.
        outlined: the heads (layer, head) whose rows to outline; a mapping adds a word to the label of each row.

    Raises:
        ValueError: there are no columns, or too many; their shapes differ; a value is not from 0 to 1; there are too
            many heads.
        IndexError: a head to outline does not exist.
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
    for layer, head in outlined:
        if not (0 <= layer < layers and 0 <= head < heads):
            raise IndexError(f"there is no head {layer}.{head} to outline; there are {layers} layers of {heads} heads")
    rows = [layer * heads + head for layer, head in outlined]
    names = [f"{layer}.{head}" for layer in range(layers) for head in range(heads)]
    words = outlined if isinstance(outlined, Mapping) else {}
    labels = list(names)
    for row, word in zip(rows, words.values()):
        labels[row] = f"{shorten(drawable(word), MAX_COLUMN_LENGTH)} {names[row]}"

    def draw() -> Figure:
        figure = Figure(figsize=(0.95 * len(columns) + 1.2, 0.235 * len(names) + 0.9), layout="constrained")
        axes = figure.subplots()
        draw_heatmap(axes, Heatmap(values, scale=Scale("linear"), numbered=True, outlined_rows=rows))
        axes.set_xticks(
            range(len(columns)),
            [fill(shorten(drawable(name), 3 * MAX_COLUMN_LENGTH), MAX_COLUMN_LENGTH) for name in columns],
        )
        axes.set_yticks(range(len(names)), labels)
        axes.set_ylabel("layer.head")
        for edge in range(heads, len(names), heads):
            axes.axhline(edge - 0.5, color=matplotlib.rcParams["axes.edgecolor"], linewidth=0.8)
        set_title(figure, title)
        return figure

    best = [(name, int(column.argmax()), float(column.max())) for name, column in zip(columns, values.T)]
    strongest = ", ".join(f"{name}: {names[at]} ({format_number(value)})" for name, at, value in best)
    return StaticFigure(draw, f"{title}\nstrongest head by kind, as layer.head: {strongest}")
