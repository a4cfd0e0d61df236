"""Drawings of attention: all heads on a sheet, one head with its words.

Queries are rows, from the top; keys are columns, their words along the top edge. All heads share one scale from 0
(the page) to 1 (the strongest ink), with the square root between, since most weights are small. What a mask forbids
is hatched, which is not the same as zero.
"""

from collections.abc import Sequence

import matplotlib
import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor
from torch.nn import functional

from tfviz.look.maps import AttentionMaps
from tfviz.shapes import Bool, Float
from tfviz.view.still import large
from tfviz.view.still.formatting import counted, formatted, maps_size, sheet_size, size
from tfviz.view.still.numbers import few
from tfviz.view.still.palette import DPI, plain, printable, ramp
from tfviz.view.still.picture import Picture, bare, cut, headline

LABELS = 96  # words an axis can name one by one
FEW, WIDE = 12, 10.0  # words that a sheet of heads can name, and inches that it may be wide then
MANY = 64  # heads that a layout engine can place in less than a second or two
HEADS = 20_000  # of maps
SIDE = 24  # layers, and heads, that a sheet can hold
LOW = 1.8  # inches
TICKS = (0, 0.01, 0.1, 0.25, 0.5, 1)


def heads(maps: AttentionMaps, title: str | None = None, names: Sequence[str] = ()) -> Picture:
    """The sheet of all layers (rows) and heads (columns), on one scale; with their words where there are few.

    Args:
        names: what to call the heads, where a number says too little.
    """
    layers, heads, queries, keys = some(maps)
    if len(names) not in (0, heads):
        raise ValueError(f"names has {len(names)} names, the maps have {heads} heads")
    title = title or f"Every head: {sheet_size(layers, heads)}, {_size(maps)}"
    named = list(names) or [f"head {head}" if heads <= 8 else str(head) for head in range(heads)]
    down, across = _some(layers), _some(heads)
    if len(down) * len(across) < layers * heads:
        title = f"{cut(title, 80)} ({sheet_size(len(down), len(across))} of them are drawn)"
    roomy = max(0.2 * max(queries, keys), 1.6)
    few = max(queries, keys) <= FEW and heads * roomy <= WIDE and layers <= 12
    side = roomy if few else min(1.5, max(0.55, 8.4 / max(len(across), len(down) / 2)))
    pixels = int(side * DPI)
    if (step := large.step(maps, pixels)) > 1:
        title = f"{cut(title, 80)} (one row of {step} is drawn)"

    def draw() -> Figure:
        tall = side * min(2.0, max(0.5, queries / keys))
        figure = Figure(
            figsize=(side * len(across) * 1.06 + 1.1 + few * 0.5, tall * len(down) * 1.06 + 0.75 + few * 0.5)
        )
        many = len(down) * len(across) > MANY
        if not many:
            figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)
        axes = figure.subplots(len(down), len(across), squeeze=False)
        for (row, column), cells in numpy.ndenumerate(axes):
            layer, head = down[row], across[column]
            image = heatmap(cells, *large.drawn(maps, layer, head, pixels, whole=False), pixels=pixels)
            label(cells, maps.rows if few and head == 0 else (), maps.cols if few and layer == 0 else ())
            cells.set(xlabel="", ylabel="")
            if layer == 0:
                cells.set_title(plain(named[head]), loc="center", color=soft())
            if head == 0 and layers > 1:
                cells.set_ylabel(f"layer {layer}" if layers <= 8 else str(layer), color=soft())
        if many:  # laid out by hand: a layout engine takes seconds for so many
            wide, high = figure.get_size_inches()
            figure.subplots_adjust(0.6 / wide, 0.1 / high, 1 - 0.75 / wide, 1 - 0.6 / high, 0.06, 0.06)
        scale(figure, image, axes)
        headline(figure, title)
        return figure

    return Picture(draw, f"{title}\n{maps_size(maps)}; weights from 0 to 1, square-root scale")


def some(maps: AttentionMaps) -> tuple[int, int, int, int]:
    """The shape of maps that can be drawn.

    Raises:
        TypeError: these are no maps.
        ValueError: there is no word, head or layer, or more heads than any model has.
    """
    if not isinstance(maps, AttentionMaps):
        kind = type(maps).__name__
        raise TypeError(
            f"this is a {kind}: give AttentionMaps.of(seen, rows=words), or AttentionMaps(weights, rows=words)"
        )
    if 0 in maps.shape:
        raise ValueError(f"there is nothing to draw: {maps!r}")
    few(
        maps.shape[0] * maps.shape[1], HEADS, "heads", "give some of the layers, such as AttentionMaps(maps.layers[:8])"
    )
    return maps.shape


def one(
    maps: AttentionMaps, layer: int, head: int
) -> tuple[Float[Tensor, "query key"], Bool[Tensor, "query key"] | None]:
    """One head's weights, and where it might look; errors as `at`."""
    at(maps, layer, head)
    return maps[layer, head], maps.allowed(layer, head)


def at(maps: AttentionMaps, layer: int, head: int) -> tuple[int, int, int, int]:
    """The shape of maps that have this head.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: there is no word.
    """
    layers, heads, *_ = some(maps)
    within("layer", layer, layers, "layers")
    within("head", head, heads, "heads")
    return maps.shape


def within(name: str, number: int, count: int, many: str) -> None:
    if not 0 <= number < count:
        raise IndexError(f"{name} is {number}; the maps have {count} {many}, from 0 to {count - 1}")


def heatmap(
    axes: Axes,
    values: Float[Tensor, "query key"],
    allowed: Bool[Tensor, "query key"] | None,
    block: int = 1,
    *,
    pixels: int,
    cmap: Colormap | None = None,
    norm: Normalize | None = None,
) -> AxesImage:
    """The heatmap itself. Where there are more cells than pixels, each pixel shows the strongest value of its block.

    Args:
        block: cells that each value stands for already, down and across.
    """
    more = max(1, -(-max(values.shape) // pixels))
    shown = strongest(values, more)
    open_cells = numpy.ones(shown.shape, bool) if allowed is None else strongest(allowed.float(), more) > 0
    down, across = (block * count for count in values.shape)
    axes.patch.set(hatch="//////", edgecolor=matplotlib.rcParams["hatch.color"], linewidth=0)
    image = axes.imshow(
        numpy.ma.masked_array(shown, ~open_cells), cmap=cmap or ramp(), norm=norm or PowerNorm(0.5, 0, 1),
        interpolation="nearest", extent=(-0.5, across - 0.5, down - 0.5, -0.5), aspect="auto",
    )  # fmt: skip
    bare(axes)
    return image


def strongest(values: Tensor, block: int) -> numpy.ndarray:
    """The value of each block of cells that is furthest from zero."""
    if block == 1:
        return values.numpy()
    high, low = (functional.max_pool2d(signed[None].float(), block, ceil_mode=True)[0] for signed in (values, -values))
    return torch.where(low > high, -low, high).numpy()


def label(axes: Axes, rows: Sequence[str], cols: Sequence[str], most: tuple[int, int] = (LABELS, LABELS)) -> None:
    """The words of both axes, at most so many of each: every second or third word where there are more."""
    for axis, words, most_words, rotation in ((axes.yaxis, rows, most[0], 0), (axes.xaxis, cols, most[1], 90)):
        step = max(1, -(-len(words) // most_words))
        shown = printable(words[::step])
        turned = 0 if rotation == 0 or max(map(len, shown), default=0) <= 1 else rotation
        axis.set_ticks(range(0, len(words), step), shown, rotation=turned)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="key", ylabel="query")
    axes.xaxis.label.set_color(soft())
    axes.yaxis.label.set_color(soft())


def divided(divide: int | None, keys: int) -> None:
    """Whether there is a key before which a line may stand."""
    if divide is not None and not 0 < divide < keys:
        raise ValueError(f"divide is {divide}; a line stands before one of the keys 1 to {keys - 1}")


def border(axes: Axes, divide: int | None) -> None:
    """A line between the key `divide` and the one before it."""
    if divide is not None:
        axes.axvline(divide - 0.5, color=matplotlib.rcParams["text.color"], linewidth=1.2)


def scale(figure: Figure, image: ScalarMappable, axes: Sequence[Axes] | numpy.ndarray, limit: float = 1.0) -> None:
    """The colours' meaning up to a limit, beside the panels that share it."""
    ticks = [tick * limit for tick in TICKS]
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02, ticks=ticks, aspect=28, shrink=0.9)
    written = (
        ticks if figure.get_size_inches()[1] > LOW else (ticks[0], ticks[3], ticks[5])
    )  # in a low bar they would lie on each other
    bar.ax.set_yticklabels([formatted(tick) if tick in written else "" for tick in ticks])
    bar.outline.set_visible(False)


def soft() -> str:
    """The colour of what is read second."""
    return matplotlib.rcParams["xtick.labelcolor"]


def _some(count: int) -> list[int]:
    """All numbers below `count`, or as many as a sheet can hold, evenly from the first to the last."""
    return [round(float(place)) for place in numpy.linspace(0, count - 1, min(count, SIDE))]


def _size(maps: AttentionMaps) -> str:
    _, _, queries, keys = maps.shape
    return counted(queries, "token") if queries == keys else size(queries, keys).replace(" x ", " × ")
