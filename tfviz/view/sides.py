"""Drawings side by side: two heads and their difference, the steps of a generation, tables over time, masks.

The panels of one picture share one scale, except tables, which have one each.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import matplotlib
import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import FuncNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.nn import functional

from tfviz.look.maps import AttentionMaps
from tfviz.view.figures import heatmap, label, one, scale, soft
from tfviz.view.palette import LONGEST, diverging, plain, ramp
from tfviz.view.picture import Picture, headline

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
        wide, tall = (_inches(max(a.shape[axis], b.shape[axis]), 2.8) for axis in (1, 0))
        figure = Figure(figsize=((wide + 0.9) * (2 + same) + 0.6 + 0.6 * same, tall + 1.3), layout="constrained")
        axes = figure.subplots(1, 2 + same)
        for cells, maps, (weights, allowed), name in zip(axes, (first, second), pair, names):
            image = heatmap(cells, weights, allowed, pixels=int(wide * 200))
            _label(cells, maps.rows, maps.cols, wide, tall, name)
        scale(figure, image, axes[:2])
        if same:
            open_cells = None if where_a is None or where_b is None else where_a | where_b
            image = heatmap(axes[2], b - a, open_cells, int(wide * 200), diverging(), signed_root())
            _label(axes[2], _both(first.rows, second.rows), _both(first.cols, second.cols), wide, tall, "difference")
            _bar(figure, image, axes[2], SIGNED_TICKS)
        figure.align_xlabels(axes)
        headline(figure, title)
        return figure

    if not same:
        return Picture(draw, f"{title}\n{_size(a)} and {_size(b)}: of two sizes, so without a difference")
    row, col = divmod(int((b - a).abs().argmax()), a.shape[1])
    says = f"{first.rows[row]!r} looks at {first.cols[col]!r}: {a[row, col]:.2g}, then {b[row, col]:.2g}"
    return Picture(draw, f"{title}\n{_size(a)}; the greatest difference: {says}")


def steps(parts: Mapping[str, AttentionMaps], layer: int = 0, head: int = 0, title: str | None = None) -> Picture:
    """One head as it grows, step by step: at most six panels, all as large as the largest map.

    What is not there yet is blank page: neither zero nor forbidden.

    Args:
        parts: the maps of each step, by the step's name.

    Raises:
        IndexError: a step has no such layer or head.
        ValueError: there is no step, or one without words.
    """
    if not parts:
        raise ValueError("there is no step to draw")
    every = [(str(name), maps, *one(maps, layer, head)) for name, maps in parts.items()]
    shown = [every[int(i)] for i in numpy.linspace(0, len(every) - 1, min(PANELS, len(every))).round()]
    queries, keys = (max(weights.shape[axis] for _, _, weights, _ in every) for axis in (0, 1))
    title = title or f"Layer {layer}, head {head}, step by step"
    if len(shown) < len(parts):
        title += f": {', '.join(_short(name) for name, *_ in shown)} of {len(parts)} steps"

    def draw() -> Figure:
        across = min(3, len(shown)) if keys < 3 * queries else 1  # flat maps stand one below another
        down = -(-len(shown) // across)
        wide, tall = _inches(keys, 2.4 if across > 1 else 5.6), _inches(queries, 2.4, least=1.2 if across > 1 else 0.25)
        figure = Figure(figsize=((wide + 0.75) * across + 0.7, (tall + 0.95) * down + 0.4), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes, (name, maps, weights, allowed) in zip(grid.flat, shown):
            image = _grown(axes, weights, allowed, queries, keys)
            _label(axes, maps.rows, maps.cols, wide, tall, name)
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        figure.align_xlabels(grid.flat[: len(shown)])
        scale(figure, image, grid.flat[: len(shown)])
        headline(figure, title)
        return figure

    sizes = (f"{_size(weights)} ({name})" for name, _, weights, _ in (every[0], every[-1]))
    return Picture(draw, f"{title}\n{len(parts)} steps, from {' to '.join(sizes)}")


def tables(
    tables: Mapping[str, Tensor],
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    title: str = "",
    x: str = "",
    y: str = "",
    signed: bool = False,
) -> Picture:
    """Tables over time one above the other, such as the gates of an LSTM: a column for each word.

    Args:
        tables: name -> (unit step); units may differ in number.
        rows, cols: words for the units and the steps.
        signed: draw every table from blue through 0 to orange, as one with a negative value is drawn anyway.

    Raises:
        ValueError: there is no table, or their sizes, or the words, do not fit.
    """
    values = {str(name): table.detach().cpu().float() for name, table in tables.items()}
    _fit(values, rows, cols)
    title, count = title or ", ".join(values), next(iter(values.values())).shape[1]

    def draw() -> Figure:
        wide, ink = _inches(count, 7.0, 0.2), matplotlib.rcParams["axes.titlecolor"]
        talls = [_inches(len(table), 2.4, 0.02 if rows is None else WORD, 0.7) for table in values.values()]
        figure = Figure(figsize=(wide + 2.0, sum(talls) + 0.12 * len(talls) + 1.0), layout="constrained")
        panels = figure.subplots(len(values), 1, squeeze=False, height_ratios=talls)[:, 0]
        for axes, (name, table), tall in zip(panels, values.items(), talls):
            _table(figure, axes, table, signed or bool((table < 0).any()))
            _label(
                axes, rows or (), (cols or ()) if axes is panels[0] else (), wide, tall, x if axes is panels[0] else ""
            )
            axes.xaxis.label.set_color(soft())
            if rows is None:
                _numbers(axes.yaxis, 3)
            axes.set_ylabel("" if name == title else _short(name), rotation=0, ha="right", va="center", color=ink)
        figure.supylabel(plain(y), fontsize=9, color=soft())
        headline(figure, title)
        return figure

    says = ", ".join(f"{name} {table.min():.2g} to {table.max():.2g}" for name, table in values.items())
    return Picture(draw, f"{title}\n{count} columns; {says}")


def mask_lab(tables: Mapping[str, Tensor | Mapping[Any, Tensor]], title: str = "Masks") -> Picture:
    """Which key each query may look at, under each rule alone and under all of them together; forbidden is hatched.

    Args:
        tables: name -> allowed (query key), or name -> {setting: allowed}, of which the first setting is drawn.

    Raises:
        ValueError: there is no mask, or their sizes differ.
    """
    masks = _masks(tables)
    together = reduce(torch.logical_and, (allowed for _, allowed in masks))
    dead = int((~together.any(1)).sum())
    panels = [*masks, ("all together", together)]

    def draw() -> Figure:
        down = -(-len(panels) // 4)
        across = -(-len(panels) // down)
        tall, wide = (_inches(n, 2.2, 0.13) for n in together.shape)
        figure = Figure(figsize=((wide + 0.3) * across + 0.3, (tall + 0.6) * down + 0.4), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes, (name, allowed) in zip(grid.flat, panels):
            heatmap(axes, allowed * 0.25, allowed, pixels=1600)
            _label(axes, (), (), wide, tall, name)
            _numbers(axes.xaxis, 5)
            _numbers(axes.yaxis, 5)
        figure.align_xlabels(grid.flat[: len(panels)])
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        headline(figure, title)
        return figure

    says = f"{int(together.sum())} of {together.numel()} cells allowed by all together"
    return Picture(draw, f"{title}\n{says}; {dead} of {len(together)} rows have no key left")


def signed_root() -> FuncNorm:
    """From -1 to 1 with the square root to either side of 0, so that small differences show."""
    return FuncNorm((lambda v: numpy.sign(v) * numpy.abs(v) ** 0.5, lambda v: numpy.sign(v) * v**2), -1, 1)


def _masks(tables: Mapping[str, Tensor | Mapping[Any, Tensor]]) -> list[tuple[str, Tensor]]:
    masks = []
    for name, table in tables.items():
        if isinstance(table, Mapping):
            if not table:
                raise ValueError(f"{name!r} has no settings")
            setting, table = next(iter(table.items()))
            name = f"{name} = {setting}"
        masks.append((str(name), table.detach().cpu().bool()))
    shapes = [list(mask.shape) for _, mask in masks]
    if not masks or any(len(shape) != 2 or 0 in shape or shape != shapes[0] for shape in shapes):
        raise ValueError(f"masks must be query key, all of one size; got {shapes or 'none'}")
    return masks


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


def _table(figure: Figure, axes: Axes, table: Tensor, signed: bool) -> None:
    """A table with its own scale: 1, or more where a value is larger."""
    finite = table[table.isfinite()].abs()
    limit = max(1.0, float(finite.max()) if finite.numel() else 1.0)
    norm, colours = (Normalize(-limit, limit), diverging()) if signed else (Normalize(0, limit), ramp())
    image = heatmap(axes, table, None, 1600, colours, norm)
    _bar(figure, image, axes, (-limit, 0, limit) if signed else (0, limit / 2, limit))


def _bar(figure: Figure, image: AxesImage, axes: Axes, ticks: Sequence[float]) -> None:
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02, aspect=28, shrink=0.9)
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def _label(axes: Axes, rows: Sequence[str], cols: Sequence[str], wide: float, tall: float, name: str) -> None:
    """As many words as there is room for, and above them the panel's name.

    The name takes the place of the axis label, since matplotlib can align labels of a row of panels, but not titles.
    """
    label(axes, rows, cols, (max(1, int(tall / WORD)), max(1, int(wide / WORD))))
    axes.set_xlabel(
        _short(name, max(LONGEST, int(wide / 0.08))), loc="left", color=matplotlib.rcParams["axes.titlecolor"]
    )
    axes.set_ylabel("")


def _short(name: str, most: int = LONGEST) -> str:
    shown = plain(name)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _numbers(axis: Axis, most: int) -> None:
    axis.set_major_locator(MaxNLocator(most, integer=True))
    axis.set_major_formatter("{x:.0f}")


def _inches(count: int, most: float, each: float = 0.2, least: float = 1.2) -> float:
    return min(most, max(least, each * count))


def _both(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The words of two maps cell by cell: both, where they differ."""
    return [one if one == other else f"{one}/{other}" for one, other in zip(first, second)]


def _fit(values: Mapping[str, Tensor], rows: Sequence[str] | None, cols: Sequence[str] | None) -> None:
    shapes = {name: list(table.shape) for name, table in values.items()}
    if not values or any(len(shape) != 2 or 0 in shape for shape in shapes.values()):
        raise ValueError(f"tables must be unit step, with something in them; got {shapes or 'none'}")
    if len({columns for _, columns in shapes.values()}) > 1:
        raise ValueError(f"tables must have as many steps as one another; got {shapes}")
    for name, words, axis in (("rows", rows, 0), ("cols", cols, 1)):
        if words is not None and {len(words)} != {shape[axis] for shape in shapes.values()}:
            raise ValueError(f"{name} has {len(words)} words, which does not fit tables of {shapes}")


def _size(weights: Tensor) -> str:
    return f"{weights.shape[0]} queries x {weights.shape[1]} keys"
