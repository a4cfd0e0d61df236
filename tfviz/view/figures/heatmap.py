"""Heatmaps (`spec.Heatmap`) in matplotlib: cells, masks, labels of both axes, outlines, and the colour bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, FuncNorm, Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.nn import functional

from tfviz.view.figures.formatting import format_cell, format_number, shorten
from tfviz.view.figures.palette import (
    MAX_LABEL_LENGTH,
    diverging_colormap,
    drawable,
    linear_rgb,
    muted,
    sequential_colormap,
    tick_labels,
)
from tfviz.view.figures.static_figure import draw_frame, set_title
from tfviz.view.spec import MAX_MUTED_NUMBER, Heatmap, Scale

MAX_AXIS_LABELS = 96  # on a longer axis, only every n-th position is labelled
MAX_SIDE_PIXELS = 1600  # of a heatmap that is the only one of its figure
NUMBER_CELL_INCHES = 0.42  # side of a cell with its number
MAX_CELL_LENGTH = 9  # characters of a text in a cell
SMALL_CELL_LENGTH = 4  # characters of a number that a small cell has room for; a longer one is smaller
TEXT_CELL_INCHES = 0.72  # width of a cell with its text
WORD_INCHES = 0.135  # width of a label along an axis
MAX_PATH_LENGTH = 32  # characters of a row's label beside a single column
MAX_UPRIGHT_LENGTH = 3  # characters of a column's label that is written horizontally above cells with numbers
LOW_FIGURE_INCHES = 1.8  # height up to which the colour bar of a figure has few numbers
EVEN_TICK_CLEARANCE = 0.06  # share of a colour bar; numbers nearer to the mark of the uniform weight are omitted
MIN_THIN_OUTLINES = 20  # outlines in maps with so many rows or columns are thin
HATCH = "//////"
MARK_COLOUR = "C6"  # vermillion, which is readable on both themes and on any shade


def draw_heatmap(
    axes: Axes,
    heatmap: Heatmap,
    pixels: int = MAX_SIDE_PIXELS,
    labels: tuple[int, int] = (MAX_AXIS_LABELS, MAX_AXIS_LABELS),
) -> AxesImage:
    """Draw a heatmap with labels, numbers or texts, outlines and dividers, and return its image.

    If there are more cells than pixels, each pixel shows the value of its cells that is furthest from zero.

    Args:
        axes: the axes to draw on.
        heatmap: the specification.
        pixels: the number of pixels along the longer side.
        labels: maximum number of labels of rows and of columns; on a longer axis, every n-th position is labelled.
    """
    image = draw_cells(axes, heatmap, pixels)
    has_wide_cells = heatmap.numbered or heatmap.texts
    upright = MAX_UPRIGHT_LENGTH if has_wide_cells and len(heatmap.columns.labels) <= labels[1] else 1
    if len(heatmap.columns.labels) == 1:
        upright = MAX_LABEL_LENGTH
    label_axes(axes, heatmap.rows.labels, heatmap.columns.labels, labels, upright)
    axes.set(ylabel=drawable(heatmap.rows.name), xlabel=drawable(heatmap.columns.name))
    if heatmap.numbered or heatmap.texts:
        annotate_cells(axes, image, heatmap)
    draw_outlines(axes, heatmap)
    draw_dividers(axes, heatmap)
    return image


def draw_outlines(axes: Axes, heatmap: Heatmap) -> None:
    """Draw a frame around each outlined cell and each outlined row of the heatmap."""
    longest = max(heatmap.values.shape)
    inset = 0.06 if longest < 30 else 0.0
    width = 1.5 if longest < MIN_THIN_OUTLINES else 0.9  # a thicker one would hide the cells inside
    frame: dict[str, Any] = {"fill": False, "edgecolor": MARK_COLOUR, "linewidth": width}
    for row, column in heatmap.outlined:
        corner, side = (column - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset
        axes.add_patch(Rectangle(corner, side, side, **frame))
    for row in heatmap.outlined_rows:  # no inset at the left and right: it would be wide where cells are wide
        across = heatmap.pool_size * heatmap.values.shape[1]
        axes.add_patch(Rectangle((-0.5, row - 0.5 + inset), across, 1 - 2 * inset, clip_on=False, **frame))


def draw_dividers(axes: Axes, heatmap: Heatmap) -> None:
    for side, at in heatmap.dividers:
        line = axes.axhline if side == "rows" else axes.axvline
        line(at - 0.5, color=matplotlib.rcParams["text.color"], linewidth=1.2)


def draw_cells(axes: Axes, heatmap: Heatmap, pixels: int = MAX_SIDE_PIXELS) -> AxesImage:
    """Draw only the cells and return their image; masked cells are hatched, space beyond the values stays blank."""
    step = max(1, -(-max(heatmap.values.shape) // pixels))
    shown = max_abs_pool(heatmap.values, step)
    allowed = heatmap.allowed
    allowed_cells = numpy.ones(shown.shape, bool) if allowed is None else max_abs_pool(allowed.float(), step) > 0
    down, across = (heatmap.pool_size * count for count in heatmap.values.shape)
    ink = matplotlib.rcParams["hatch.color"]
    if heatmap.space is None:
        axes.patch.set(hatch=HATCH, edgecolor=ink, linewidth=0)
    image = axes.imshow(
        numpy.ma.masked_array(shown, ~allowed_cells), cmap=colormap(heatmap.scale), norm=norm(heatmap.scale),
        interpolation="nearest", extent=(-0.5, across - 0.5, down - 0.5, -0.5), aspect="auto",
    )  # fmt: skip
    draw_frame(axes)
    if heatmap.space is not None:
        if allowed is not None:
            hatched: dict[str, Any] = {"facecolor": "none", "hatch": HATCH, "edgecolor": ink, "linewidth": 0}
            axes.add_patch(Rectangle((-0.5, -0.5), across, down, zorder=-1, **hatched))
        axes.set(xlim=(-0.5, heatmap.space[1] - 0.5), ylim=(heatmap.space[0] - 0.5, -0.5))
    return image


def max_abs_pool(values: Tensor, pool_size: int) -> numpy.ndarray:
    """Return, for each block of `pool_size` x `pool_size` cells, the value furthest from zero."""
    if pool_size == 1:
        return values.numpy()
    high, low = (
        functional.max_pool2d(signed[None].float(), pool_size, ceil_mode=True)[0] for signed in (values, -values)
    )
    return torch.where(low > high, -low, high).numpy()


def norm(scale: Scale) -> Normalize:
    """Return the matplotlib `Normalize` that maps values on this scale to [0, 1]."""
    limit = scale.limit
    if not scale.rule.diverging:
        return PowerNorm(0.5, 0, limit) if scale.rule.root else Normalize(0, limit)
    if not scale.rule.root:
        return Normalize(-limit, limit)
    return FuncNorm((lambda v: numpy.sign(v) * numpy.abs(v) ** 0.5, lambda v: numpy.sign(v) * v**2), -limit, limit)


def colormap(scale: Scale) -> Colormap:
    return diverging_colormap() if scale.rule.diverging else sequential_colormap()


def label_axes(
    axes: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    limits: tuple[int, int] = (MAX_AXIS_LABELS, MAX_AXIS_LABELS),
    max_upright: int = 1,
) -> None:
    """Label the rows along the left edge and the columns along the top edge.

    Args:
        axes: the axes to draw on.
        rows: the labels of the rows.
        columns: the labels of the columns.
        limits: maximum number of labels of rows and of columns; on a longer axis, every n-th position is labelled.
        max_upright: maximum number of characters of column labels that are written horizontally.
    """
    of_rows = MAX_PATH_LENGTH if len(columns) == 1 else MAX_LABEL_LENGTH
    sides = ((axes.yaxis, rows, limits[0], 0, of_rows), (axes.xaxis, columns, limits[1], 90, MAX_LABEL_LENGTH))
    for axis, tokens, limit, rotation, max_length in sides:
        step = max(1, -(-len(tokens) // limit))
        shown = tick_labels(tokens[::step], max_length)
        upright = rotation == 0 or max(map(len, shown), default=0) <= max_upright
        axis.set_ticks(range(0, len(tokens), step), shown, rotation=0 if upright else rotation)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.xaxis.label.set_color(muted())
    axes.yaxis.label.set_color(muted())


def caption_panel(axes: Axes, heatmap: Heatmap, width: float, height: float, colour: str | None = None) -> None:
    """Write the labels that fit on a panel of `width` x `height` inches, and its title above them.

    The title is drawn as the x-axis label, since matplotlib can align the axis labels of a row of panels, but not their
    titles.
    """
    max_labels = (max(1, int(height / WORD_INCHES)), max(1, int(width / WORD_INCHES)))
    label_axes(axes, heatmap.rows.labels, heatmap.columns.labels, max_labels)
    shown = shorten(drawable(heatmap.title), max(MAX_LABEL_LENGTH, int(width / 0.08)))
    axes.set_xlabel(shown, loc="left", color=colour or matplotlib.rcParams["axes.titlecolor"])
    axes.set_ylabel("")


def draw_colourbar(
    figure: Figure | SubFigure,
    image: ScalarMappable,
    axes: Sequence[Axes] | numpy.ndarray | Axes,
    scale: Scale,
    even: float | None = None,
) -> None:
    """Draw a colour bar beside the panels that share it, with fewer numbers in a low figure.

    Args:
        figure: the figure.
        image: the image whose colours the bar shows.
        axes: the axes that share the colour bar.
        scale: the scale of the colours.
        even: the uniform weight, 1 / keys, to mark on the bar; None: no mark.
    """
    ticks = scale.ticks
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02, aspect=28, shrink=0.9)
    low = figure.bbox.height <= LOW_FIGURE_INCHES * figure.dpi  # where all numbers would overlap
    written = {ticks[0], ticks[len(ticks) // 2], ticks[-1]} if low else set(ticks)
    bar.set_ticks(ticks, labels=[format_number(tick) if tick in written else "" for tick in ticks])
    if even is not None:
        bar.ax.axhline(even, color=matplotlib.rcParams["xtick.labelcolor"], linewidth=1)
        apart = [tick for tick in ticks if abs(tick**0.5 - even**0.5) > EVEN_TICK_CLEARANCE * scale.limit**0.5]
        labels = {tick: format_number(tick) if tick in written else "" for tick in apart} | {
            even: f"{format_number(even)} even"
        }
        bar.set_ticks(sorted(labels), labels=[labels[tick] for tick in sorted(labels)])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    if scale.caption and not low:
        bar.set_label(scale.caption, color=muted(), fontsize="small")


def use_integer_ticks(axis: MatplotlibAxis, max_ticks: int) -> None:
    """Label an axis with integers only, at about `max_ticks` places."""
    axis.set_major_locator(MaxNLocator(max_ticks, integer=True))
    axis.set_major_formatter(lambda value, _: format_number(round(value)))


def draw_single_heatmap(heatmap: Heatmap, title: str, below: float = 0.0) -> tuple[Figure, Axes]:
    """Draw a figure of one heatmap with its title, and a colour bar unless its cells have numbers.

    Args:
        heatmap: the specification.
        title: the title.
        below: additional height of the figure, in inches, for text below the heatmap.
    """
    rows, columns = (heatmap.pool_size * count for count in heatmap.values.shape)
    cell = NUMBER_CELL_INCHES if heatmap.numbered else min(0.3, max(0.125, 6.0 / max(rows, columns)))
    width, height = (min(12.0, max(1.6, cell * count)) for count in (columns, rows))
    if heatmap.texts:
        width, height = max(1.6, TEXT_CELL_INCHES * columns), max(1.6, 0.3 * rows)
    figure = Figure(figsize=(width + 1.6, height + 1.1 + below), layout="constrained")
    axes = figure.subplots()
    image = draw_heatmap(axes, heatmap)
    if heatmap.texts or not heatmap.numbered:
        draw_colourbar(figure, image, [axes], heatmap.scale)
    set_title(figure, title)
    return figure, axes


def axis_inches(count: int, max_inches: float, each: float = 0.2, min_inches: float = 1.2) -> float:
    """Return the length, in inches, of an axis with `count` cells of `each` inches, within limits."""
    return min(max_inches, max(min_inches, each * count))


def contrasting_colour(shade: Sequence[float]) -> Any:
    """Return the text colour or the background colour, whichever has more contrast with a shade (WCAG 2)."""
    inks = [matplotlib.rcParams[name] for name in ("text.color", "figure.facecolor")]
    return max(inks, key=lambda ink: _contrast(to_rgb(ink), shade[:3]))


def annotate_cells(axes: Axes, image: AxesImage, heatmap: Heatmap, points: float = 8) -> None:
    """Write the number or the text of each cell in the colour with more contrast; masked cells stay empty.

    Small numbers have the colour of secondary text.
    """
    shades: Any = image
    values = heatmap.values.numpy().astype(float)
    for row, column in numpy.ndindex(values.shape):
        value = shades.get_array()[row, column]
        if value is not numpy.ma.masked:
            ink = contrasting_colour(shades.cmap(shades.norm(float(value))))
            if heatmap.texts:
                text = shorten(drawable(heatmap.texts[row][column]), MAX_CELL_LENGTH)
            else:
                number, limit = float(values[row, column]), heatmap.scale.limit
                text = format_cell(number, limit)
                ink = muted() if abs(number) < MAX_MUTED_NUMBER * limit else ink
            size = points * min(1.0, SMALL_CELL_LENGTH / len(text)) if points < 8 else points  # within its outline
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=size)


def _contrast(first: Sequence[float], second: Sequence[float]) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Sequence[float]) -> float:
    return float(linear_rgb(numpy.array(colour[:3])) @ (0.2126, 0.7152, 0.0722))
