"""Draw attention heads: all on one sheet, one alone, two and their difference, one over the steps of a generation.

Queries are rows, from the top; keys are columns, their words along the top edge. Heads of one picture share one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfviz.view.spec import HeadGrid, Heatmap
from tfviz.view.still.heatmap import (
    caption,
    cells,
    colourbar,
    draw_dividers,
    draw_outlines,
    inches,
    label,
)
from tfviz.view.still.palette import DPI, axis_labels, drawable, soft
from tfviz.view.still.picture import set_title

MAX_HEADS_IN_A_ROW = 5  # of a single layer, without words
MAX_LETTERS = 40  # along an axis whose words are labelled
SPACES = "␣⏎"  # as lessons write them
MAX_LAYOUT_ENGINE_HEADS = 64  # a layout engine takes seconds for more


def head_grid(grid: HeadGrid) -> Figure:
    """Draw all heads, with their words if there are few; many heads of a single layer in two rows."""
    panel_width, panel_height = grid.size
    down, across = len(grid.layers), len(grid.heads)
    if halved := down == 1 and across > MAX_HEADS_IN_A_ROW and not grid.labelled:
        down, across = 2, -(-across // 2)
    room = 0.5 * grid.labelled  # inches
    figure = Figure(figsize=(panel_width * across * 1.06 + 1.1 + room, panel_height * down * 1.06 + 0.75 + room))
    many = down * across > MAX_LAYOUT_ENGINE_HEADS
    if not many:
        figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)
    panels = figure.subplots(down, across, squeeze=False)
    for (layer, head), axes in numpy.ndenumerate(panels):
        if halved:
            layer, head = 0, layer * across + head
        if head >= len(grid.heads):
            axes.remove()
            continue
        heatmap = grid.heatmaps[layer][head]
        image = cells(axes, heatmap, int(panel_width * DPI))
        draw_outlines(axes, heatmap)
        if grid.labelled:
            words = heatmap.rows.labels, heatmap.columns.labels
            label(axes, words[0] if head == 0 else (), words[1] if layer == 0 else ())
        else:
            _label_words_of_letters(axes, heatmap, left=head == 0, top=layer == 0)
        if layer == 0:
            axes.set_title(drawable(grid.heads[head]), loc="center", color=soft())
        if head == 0 and len(grid.layers) > 1:
            axes.set_ylabel(grid.layers[layer], color=soft())
    name_axes(figure, heatmap)
    if many:  # laid out by hand: a layout engine takes seconds for so many
        width, height = figure.get_size_inches()
        figure.subplots_adjust(0.75 / width, 0.35 / height, 1 - 0.75 / width, 1 - 0.6 / height, 0.06, 0.06)
    if heatmap.scale.name:
        colourbar(figure, image, [axes for axes in panels.flat if axes.figure is not None], heatmap.scale)
    set_title(figure, grid.title)
    return figure


def _label_words_of_letters(axes: Axes, heatmap: Heatmap, left: bool, top: bool) -> None:
    """Write the words that letters make, each at its first letter, along the left and the top edge of a small panel."""
    label(axes, (), ())
    for axis, names, wanted in ((axes.yaxis, heatmap.rows.labels, left), (axes.xaxis, heatmap.columns.labels, top)):
        if wanted and len(names) <= MAX_LETTERS and all(len(name) == 1 for name in names):
            before = [" ", *names]
            starts = [at for at in range(len(names)) if _is_letter(names[at]) and not _is_letter(before[at])]
            words = ["".join(takewhile(_is_letter, names[at:])) for at in starts]
            axis.set_ticks(starts, axis_labels(words), rotation=90 if axis is axes.xaxis else 0)


def _is_letter(name: str) -> bool:
    return not name.isspace() and name not in SPACES


def side_by_side(heatmaps: Sequence[Heatmap], title: str) -> Figure:
    """Draw heatmaps in a row: those on the first's scale share its colour bar, another scale has its own."""
    width, height = (inches(max(one.values.shape[axis] for one in heatmaps), 2.8) for axis in (1, 0))
    extra = len({one.scale for one in heatmaps}) - 1
    figure = Figure(figsize=((width + 0.9) * len(heatmaps) + 0.6 + 0.6 * extra, height + 1.3), layout="constrained")
    panels = figure.subplots(1, len(heatmaps), squeeze=False)[0]
    for scale in dict.fromkeys(one.scale for one in heatmaps):
        shared = [(axes, one) for axes, one in zip(panels, heatmaps) if one.scale == scale]
        for axes, one in shared:
            image = cells(axes, one, int(width * DPI))
            caption(axes, one, width, height)
        colourbar(figure, image, [axes for axes, _ in shared], scale)
    figure.align_xlabels(panels)
    name_axes(figure, heatmaps[0])
    set_title(figure, title)
    return figure


def film(heatmaps: Sequence[Heatmap], title: str) -> Figure:
    """Draw one head as it grows, all panels at the size of the largest map."""
    queries, keys = (max(one.values.shape[axis] for one in heatmaps) for axis in (0, 1))
    across = min(3, len(heatmaps)) if keys < 3 * queries else 1  # flat maps stand one below another
    down = -(-len(heatmaps) // across)
    panel_width, panel_height = (
        inches(keys, 2.4 if across > 1 else 5.6),
        inches(queries, 2.4, min_inches=1.2 if across > 1 else 0.25),
    )
    once = across == 1 and len({tuple(one.columns.labels) for one in heatmaps}) == 1  # the words of all, at the top
    height = (panel_height + 0.35) * down + 1 if once else (panel_height + 0.95) * down + 0.4
    figure = Figure(figsize=((panel_width + 0.75) * across + 0.7, height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes, one in zip(grid.flat, heatmaps):
        image = cells(axes, one)
        caption(axes, one, panel_width, panel_height)
        if once and axes is not grid.flat[0]:
            axes.set_xticks([])
        draw_dividers(axes, one)
        draw_outlines(axes, one)
    for axes in grid.flat[len(heatmaps) :]:
        axes.remove()
    figure.align_xlabels(grid.flat[: len(heatmaps)])
    colourbar(figure, image, grid.flat[: len(heatmaps)], heatmaps[0].scale)
    name_axes(figure, heatmaps[0])
    set_title(figure, title)
    return figure


def name_axes(figure: Figure, heatmap: Heatmap) -> None:
    """Write once for all panels what a row and a column stand for."""
    figure.supylabel(drawable(heatmap.rows.name), fontsize="small", color=soft())
    figure.supxlabel(drawable(heatmap.columns.name), fontsize="small", color=soft())
