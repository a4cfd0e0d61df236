"""Figures of several attention heads: a grid of all heads, heatmaps side by side, and steps of a generation.

Queries are rows, from the top; keys are columns, with their tokens along the top edge. Heads of one picture share one
scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tfviz.view.figures.heatmap import (
    MARK_COLOUR,
    annotate_cells,
    axis_inches,
    caption_panel,
    draw_cells,
    draw_colourbar,
    draw_dividers,
    draw_outlines,
    label_axes,
)
from tfviz.view.figures.palette import DPI, drawable, muted, tick_labels
from tfviz.view.figures.static_figure import panel_grid, set_title
from tfviz.view.spec import HeadGrid, Heatmap

MAX_HEADS_IN_A_ROW = 5  # of a single layer, without labels
MIN_PANELS_WORDS_BELOW = 4  # so many panels in one column have labels above the first and below the last panel
MAX_PANEL_INCHES = 2.4  # width and height of a small multiple
MAX_NUMBERED_INCHES = (2.7, 3.8)  # the same if its cells have numbers, for three in a row and for two
SMALL_NUMBER_INCHES, SMALL_NUMBER_POINTS = 0.33, 7  # width of a small multiple's cell with a number; its font size
MAX_LETTERS = 40  # maximum length of an axis of letters on which words are labelled
MAX_LABELLED_NUMBERS = 6  # of an axis of numbers
ROUND_STEPS = [step * 10**power for power in range(9) for step in (1, 2, 5)]
SPACES = "␣⏎"  # symbols that lessons show for spaces and newlines
MAX_LAYOUT_ENGINE_HEADS = 64  # a layout engine takes seconds for more


def head_grid(grid: HeadGrid) -> Figure:
    """Draw a grid of heads, layers as columns; many heads of a single layer are drawn in two rows.

    Outer panels are labelled with their tokens if `grid.labelled`; otherwise only words made of single letters are.
    """
    panel_width, panel_height = grid.size
    single = len(grid.layers) == 1
    nrows, ncols = (1, len(grid.heads)) if single else (len(grid.heads), len(grid.layers))
    if single and ncols > MAX_HEADS_IN_A_ROW and not grid.labelled:
        nrows, ncols = 2, -(-ncols // 2)
    label_room = 0.5 * grid.labelled  # inches that the words take
    width, height = panel_width * ncols * 1.06 + 1.1 + label_room, panel_height * nrows * 1.06 + 0.75 + label_room
    figure = Figure(figsize=(width, height))
    is_large = nrows * ncols > MAX_LAYOUT_ENGINE_HEADS
    if not is_large:
        figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)
    panels = figure.subplots(nrows, ncols, squeeze=False)
    for (row, column), axes in numpy.ndenumerate(panels):
        layer, head = (0, row * ncols + column) if single else (column, row)
        if head >= len(grid.heads):
            axes.remove()
            continue
        heatmap = grid.heatmaps[layer][head]
        image = draw_cells(axes, heatmap, int(panel_width * DPI))
        draw_outlines(axes, heatmap)
        if grid.labelled:
            tokens = heatmap.rows.labels, heatmap.columns.labels
            label_axes(axes, tokens[0] if column == 0 else (), tokens[1] if row == 0 else ())
        else:
            _label_sparsely(axes, heatmap, left=column == 0, top=single or row == 0)
        if single or row == 0:
            axes.set_title(drawable(grid.heads[head] if single else grid.layers[layer]), loc="center", color=muted())
        if column == 0 and not single:
            axes.set_ylabel(drawable(grid.heads[head]), color=muted())
    label_figure(figure, heatmap)
    if is_large:  # laid out by hand: a layout engine takes seconds for so many
        figure.subplots_adjust(0.75 / width, 0.35 / height, 1 - 0.75 / width, 1 - 0.6 / height, 0.06, 0.06)
    if heatmap.scale.name:
        draw_colourbar(figure, image, [axes for axes in panels.flat if axes.figure is not None], heatmap.scale)
    set_title(figure, grid.title)
    return figure


def _label_sparsely(axes: Axes, heatmap: Heatmap, left: bool, top: bool) -> None:
    """Label round numbers of an axis of numbers, and the words on an axis of letters, each at its first letter."""
    label_axes(axes, (), ())
    for axis, names, wanted in ((axes.yaxis, heatmap.rows.labels, left), (axes.xaxis, heatmap.columns.labels, top)):
        if not wanted or not names:
            continue
        if _count_up(names):
            step = next(step for step in ROUND_STEPS if len(names) <= MAX_LABELLED_NUMBERS * step)
            round_numbers = [at for at, name in enumerate(names) if int(name) % step == 0]
            axis.set_ticks(round_numbers, [names[at] for at in round_numbers])
        elif len(names) <= MAX_LETTERS and all(len(name) == 1 for name in names):
            before = [" ", *names]
            starts = [at for at in range(len(names)) if _is_letter(names[at]) and not _is_letter(before[at])]
            tokens = ["".join(takewhile(_is_letter, names[at:])) for at in starts]
            axis.set_ticks(starts, tick_labels(tokens), rotation=90 if axis is axes.xaxis else 0)


def _count_up(names: Sequence[str]) -> bool:
    """Return whether names are consecutive integers, such as positions, rather than digits of a text."""
    if not all(name.isdecimal() for name in names):
        return False
    numbers = [int(name) for name in names]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_letter(name: str) -> bool:
    return not name.isspace() and name not in SPACES


def side_by_side(heatmaps: Sequence[Heatmap], title: str) -> Figure:
    """Draw heatmaps in a row, with one colour bar for each scale."""
    width, height = (axis_inches(max(one.values.shape[axis] for one in heatmaps), 2.8) for axis in (1, 0))
    extra = len({one.scale for one in heatmaps}) - 1
    figure = Figure(figsize=((width + 0.9) * len(heatmaps) + 0.6 + 0.6 * extra, height + 1.3), layout="constrained")
    panels = figure.subplots(1, len(heatmaps), squeeze=False)[0]
    for scale in dict.fromkeys(one.scale for one in heatmaps):
        shared = [(axes, one) for axes, one in zip(panels, heatmaps) if one.scale == scale]
        for axes, one in shared:
            image = draw_cells(axes, one, int(width * DPI))
            caption_panel(axes, one, width, height)
        draw_colourbar(figure, image, [axes for axes, _ in shared], scale)
    figure.align_xlabels(panels)
    label_figure(figure, heatmaps[0])
    set_title(figure, title)
    return figure


def small_multiples(heatmaps: Sequence[Heatmap], title: str) -> Figure:
    """Draw heatmaps of one head at successive steps, in panels of equal size; labels common to all appear once."""
    queries, keys = (max(one.values.shape[axis] for one in heatmaps) for axis in (0, 1))
    needed = keys * SMALL_NUMBER_INCHES
    numbered = heatmaps[0].numbered and needed <= MAX_NUMBERED_INCHES[1]
    wide = numbered and needed > MAX_NUMBERED_INCHES[0]
    most = 1 if keys >= 3 * queries else 2 if wide else 3  # maps much wider than high are stacked
    nrows = -(-len(heatmaps) // most)
    ncols = -(-len(heatmaps) // nrows)
    panel_width, panel_height = (
        needed if numbered else axis_inches(keys, MAX_PANEL_INCHES if ncols > 1 else 5.6),
        axis_inches(queries, MAX_PANEL_INCHES, min_inches=1.2 if ncols > 1 else 0.25),
    )
    same_rows, same_columns = (
        len({tuple(getattr(one, axis).labels) for one in heatmaps}) == 1 for axis in ("rows", "columns")
    )
    words_below = same_columns and ncols == 1 and len(heatmaps) >= MIN_PANELS_WORDS_BELOW
    height = (panel_height + 0.35) * nrows + 1 if same_columns else (panel_height + 0.95) * nrows + 0.4
    width = (panel_width + 0.15) * ncols + 1.3 if same_rows else (panel_width + 0.75) * ncols + 0.7
    height += 0.25 * any(one.outlined for one in heatmaps)  # a legend
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = panel_grid(figure, nrows, ncols, len(heatmaps))
    for at, (axes, one) in enumerate(zip(grid, heatmaps)):
        image = draw_cells(axes, one)
        if numbered:
            annotate_cells(axes, image, one, SMALL_NUMBER_POINTS)
        caption_panel(axes, one, panel_width, panel_height)
        if words_below and at == len(heatmaps) - 1:
            axes.tick_params(top=False, labeltop=False, bottom=True, labelbottom=True)
        elif same_columns and at >= ncols:
            axes.set_xticks([])
        if same_rows and at % ncols:
            axes.set_yticks([])
        draw_dividers(axes, one)
        draw_outlines(axes, one)
    figure.align_xlabels(grid)
    draw_colourbar(figure, image, grid, heatmaps[0].scale)
    label_figure(figure, heatmaps[0])
    if any(one.outlined for one in heatmaps):
        outline_legend(figure, "outlined; after each step: how many of them are the strongest of their row")
        figure.supxlabel(f"{figure.get_supxlabel()}\n", fontsize="small", color=muted())  # above the legend
    set_title(figure, title)
    return figure


def outline_legend(figure: Figure, name: str) -> None:
    """Write below a figure what its outlined cells are."""
    handle = Rectangle((0, 0), 1, 1, fill=False, edgecolor=MARK_COLOUR, linewidth=1.5)
    figure.legend([handle], [name], loc="outside lower left", handlelength=1, handleheight=1)


def label_figure(figure: Figure, heatmap: Heatmap) -> None:
    """Write the names of the row axis and of the column axis once for all panels of a figure."""
    figure.supylabel(drawable(heatmap.rows.name), fontsize="small", color=muted())
    figure.supxlabel(drawable(heatmap.columns.name), fontsize="small", color=muted())
