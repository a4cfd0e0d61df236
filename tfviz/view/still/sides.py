"""One head of several maps side by side: two and their difference, or the steps of a generation.

The panels of one picture share one scale, except a difference, which has its own, with a sign.
"""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn import functional

from tfviz.look.maps import AttentionMaps
from tfviz.view.still.figures import border, divided, heatmap, label, one, scale
from tfviz.view.still.formatting import counted, formatted, size
from tfviz.view.still.palette import DPI, LONGEST, diverging, plain
from tfviz.view.still.picture import Picture, headline

PANELS = 6  # steps that a picture can hold
WORD = 0.135  # inches a word takes on an axis
SIGNED_TICKS = (-1, -0.5, -0.25, -0.05, 0, 0.05, 0.25, 0.5, 1)


def compare(
    first: AttentionMaps,
    second: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    names: tuple[str, str] = ("first", "second"),
    title: str | None = None,
) -> Picture:
    """One head of two maps side by side, and the second minus the first, where they are of one size.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: there is no word.
    """
    (a, where_a), (b, where_b) = pair = [one(maps, layer, head) for maps in (first, second)]
    same = a.shape == b.shape
    title = title or f"Layer {layer}, head {head}: {names[0]} and {names[1]}"

    def draw() -> Figure:
        wide, tall = (inches(max(a.shape[axis], b.shape[axis]), 2.8) for axis in (1, 0))
        figure = Figure(figsize=((wide + 0.9) * (2 + same) + 0.6 + 0.6 * same, tall + 1.3), layout="constrained")
        axes = figure.subplots(1, 2 + same)
        for cells, maps, (weights, allowed), name in zip(axes, (first, second), pair, names):
            image = heatmap(cells, weights, allowed, pixels=int(wide * DPI))
            caption(cells, maps.rows, maps.cols, wide, tall, name)
        scale(figure, image, axes[:2])
        if same:
            open_cells = None if where_a is None or where_b is None else where_a | where_b
            image = heatmap(axes[2], b - a, open_cells, pixels=int(wide * DPI), cmap=diverging(), norm=signed_root())
            caption(
                axes[2],
                _both(first.rows, second.rows),
                _both(first.cols, second.cols),
                wide,
                tall,
                f"{names[1]} − {names[0]}",
            )
            colourbar(figure, image, axes[2], SIGNED_TICKS)
        figure.align_xlabels(axes)
        headline(figure, title)
        return figure

    if not same:
        return Picture(draw, f"{title}\n{_size(a)} and {_size(b)}: of two sizes, so without a difference")
    row, col = divmod(int((b - a).abs().argmax()), a.shape[1])
    was, now = (formatted(float(weights[row, col])) for weights in (a, b))
    says = f"{first.rows[row]!r} looks at {first.cols[col]!r}: {was}, then {now}"
    return Picture(draw, f"{title}\n{_size(a)}; the greatest difference: {says}")


def steps(
    parts: Mapping[str, AttentionMaps],
    layer: int = 0,
    head: int = 0,
    title: str | None = None,
    divide: int | None = None,
) -> Picture:
    """One head as it grows, step by step: at most six panels, all as large as the largest map.

    What is not there yet is blank page: neither zero nor forbidden.

    Args:
        parts: the maps of each step, by the step's name.
        divide: a line stands before this key.

    Raises:
        IndexError: a step has no such layer or head.
        ValueError: there is no step, or one without words.
    """
    if not parts:
        raise ValueError("there is no step to draw")
    every = [(str(name), maps, *one(maps, layer, head)) for name, maps in parts.items()]
    shown = [every[int(i)] for i in numpy.linspace(0, len(every) - 1, min(PANELS, len(every))).round()]
    queries, keys = (max(weights.shape[axis] for _, _, weights, _ in every) for axis in (0, 1))
    divided(divide, keys)
    title = title or f"Layer {layer}, head {head}, step by step"
    if len(shown) < len(parts):
        title += f" ({len(shown)} of {len(parts)} steps)"

    def draw() -> Figure:
        across = min(3, len(shown)) if keys < 3 * queries else 1  # flat maps stand one below another
        down = -(-len(shown) // across)
        wide, tall = inches(keys, 2.4 if across > 1 else 5.6), inches(queries, 2.4, least=1.2 if across > 1 else 0.25)
        once = across == 1 and len({tuple(maps.cols) for _, maps, *_ in shown}) == 1  # the words of all, at the top
        high = (tall + 0.35) * down + 1 if once else (tall + 0.95) * down + 0.4
        figure = Figure(figsize=((wide + 0.75) * across + 0.7, high), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes, (name, maps, weights, allowed) in zip(grid.flat, shown):
            image = _grown(axes, weights, allowed, queries, keys)
            caption(axes, maps.rows, maps.cols, wide, tall, name)
            if once and axes is not grid.flat[0]:
                axes.set_xticks([])
            border(axes, divide)
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        figure.align_xlabels(grid.flat[: len(shown)])
        scale(figure, image, grid.flat[: len(shown)])
        headline(figure, title)
        return figure

    sizes = (f"{_size(weights)} ({name})" for name, _, weights, _ in (every[0], every[-1]))
    return Picture(draw, f"{title}\n{counted(len(parts), 'step')}, from {' to '.join(sizes)}")


def signed_root() -> FuncNorm:
    """From -1 to 1 with the square root to either side of 0, so that small differences show."""
    return FuncNorm((lambda v: numpy.sign(v) * numpy.abs(v) ** 0.5, lambda v: numpy.sign(v) * v**2), -1, 1)


def _grown(axes: Axes, weights: Tensor, allowed: Tensor | None, queries: int, keys: int) -> AxesImage:
    """A heatmap in the upper left of axes as large as the largest map: hatched where forbidden, blank where not yet."""
    inside = torch.ones_like(weights, dtype=torch.bool) if allowed is None else allowed
    room = (0, keys - weights.shape[1], 0, queries - weights.shape[0])
    image = heatmap(axes, functional.pad(weights, room), functional.pad(inside, room), pixels=1600)
    hatch = axes.patch.get_hatch()
    axes.patch.set(hatch=None)
    if allowed is not None:
        size, colour = weights.shape[::-1], matplotlib.rcParams["hatch.color"]
        axes.add_patch(
            Rectangle((-0.5, -0.5), *size, facecolor="none", hatch=hatch, edgecolor=colour, linewidth=0, zorder=-1)
        )
    return image


def _both(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The words of two maps cell by cell: both, where they differ."""
    return [one if one == other else f"{one}/{other}" for one, other in zip(first, second)]


def _size(weights: Tensor) -> str:
    return size(*weights.shape)


def caption(
    axes: Axes, rows: Sequence[str], cols: Sequence[str], wide: float, tall: float, name: str, colour: str | None = None
) -> None:
    """As many words as there is room for, and above them the panel's name.

    The name takes the place of the axis label, since matplotlib can align labels of a row of panels, but not titles.
    """
    label(axes, rows, cols, (max(1, int(tall / WORD)), max(1, int(wide / WORD))))
    axes.set_xlabel(
        short(name, max(LONGEST, int(wide / 0.08))), loc="left", color=colour or matplotlib.rcParams["axes.titlecolor"]
    )
    axes.set_ylabel("")


def short(name: str, most: int = LONGEST) -> str:
    """A name as it can be drawn, cut where it is too long."""
    shown = plain(name)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def inches(count: int, most: float, each: float = 0.2, least: float = 1.2) -> float:
    """The length of an axis of so many cells, as long as it is neither too great nor too small."""
    return min(most, max(least, each * count))


def colourbar(figure: Figure, image: AxesImage, axes: Axes, ticks: Sequence[float]) -> None:
    """The colours' meaning, beside the one panel that it belongs to."""
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02, aspect=28, shrink=0.9)
    bar.set_ticks(ticks, labels=[formatted(tick) for tick in ticks])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
