"""Specifications of heatmaps, head grids and scatter plots, which matplotlib and the page's JavaScript both draw.

A specification holds everything that a renderer needs, such as values, the names and labels of the axes, the colour
scale, masked and outlined cells, and dividers. `documents/generate.py` exports the constants that both languages need
to the page's scripts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from torch import Tensor

from tfviz.look import AttentionMaps

MAX_NUMBERED_CELLS = 100  # a heatmap of more cells shows no numbers; weights then have no linear scale
MAX_MUTED_NUMBER = 0.05  # of the limit: smaller numbers in cells have the colour of secondary text
WEIGHT_TICKS = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0)
LINEAR_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
TICK_FACTORS = (1, 2, 5, 10)
MAX_INNER_TICK = 0.85  # of the limit: a number nearer to the end of a linear colour bar would touch the last one
ROUND_FACTORS = (1, 1.5, 2, 3, 4, 5, 6, 8)
MIN_SCALE_EVEN_WEIGHTS = 16  # the scale of weights on a picture ends at this multiple of 1 / keys, or later

ScaleKind = Literal["sqrt", "linear", "diverging", "diverging-sqrt"]
NO_NAMES = ("", "")  # for a pair of axes, or for the ends of a scale


@dataclass(frozen=True)
class ScaleRule:
    """The mapping of numbers to positions on one kind of colour scale.

    Attributes:
        root: whether positions follow the square roots of the absolute numbers, so that small ones remain visible.
        diverging: whether the scale runs from -limit to limit, in two hues, instead of from 0 to limit, in one.
        ticks: the numbers on the colour bar, as fractions of the limit.
    """

    root: bool
    diverging: bool
    ticks: tuple[float, ...]


SCALE_RULES: dict[ScaleKind, ScaleRule] = {
    "sqrt": ScaleRule(root=True, diverging=False, ticks=WEIGHT_TICKS),
    "linear": ScaleRule(root=False, diverging=False, ticks=LINEAR_TICKS),
    "diverging": ScaleRule(root=False, diverging=True, ticks=(-1.0, -0.5, 0.0, 0.5, 1.0)),
    "diverging-sqrt": ScaleRule(root=True, diverging=True, ticks=(-1.0, -0.5, -0.25, -0.05, 0.0, 0.05, 0.25, 0.5, 1.0)),
}


def round_up(value: float, sizes: Sequence[float] = ROUND_FACTORS) -> float:
    """Return the smallest round number not below `value`: one of `sizes` times a power of ten; 1 unless `value` > 0.

    >>> round_up(0.3), round_up(1.01), round_up(2.4), round_up(0.0)
    (0.3, 1.5, 3.0, 1.0)
    """
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = next(size for size in (*sizes, 10, 20) if size * power >= value * (1 - 1e-6))
    return float(f"{fitting * power:.6g}")


def round_down(value: float) -> float:
    """Return the largest number of `TICK_FACTORS` times a power of ten that is not above `value`, above 0.

    A thousandth is forgiven: 0.09999 becomes 0.1.

    >>> round_down(0.55), round_down(19), round_down(0.001)
    (0.5, 10.0, 0.001)
    """
    power = 10.0 ** math.floor(math.log10(value))
    fitting = max((size for size in TICK_FACTORS if size * power <= 1.001 * value), default=1)
    return float(f"{fitting * power:.6g}")


@dataclass(frozen=True)
class Scale:
    """A colour scale from 0 to `limit`, or from -`limit` to `limit` if it diverges; `name` is the quantity shown."""

    kind: ScaleKind = "sqrt"
    limit: float = 1.0
    name: str = ""

    @property
    def rule(self) -> ScaleRule:
        return SCALE_RULES[self.kind]

    @property
    def ticks(self) -> list[float]:
        """The numbers on the colour bar: those of the rule, or round ones if it does not end at 1, and its ends."""
        if self.limit == 1:
            return list(self.rule.ticks)
        if not self.limit > 0:
            return [0.0]
        parts = [round_down(fraction * self.limit) for fraction in self.rule.ticks if 0 < fraction < 1]
        step = round_up(self.limit / 4, TICK_FACTORS)
        steps = [n * step for n in (1, 2, 3) if n * step <= MAX_INNER_TICK * self.limit]
        positive = [*dict.fromkeys(parts if self.rule.root else steps), self.limit]
        return [*(-tick for tick in reversed(positive) if self.rule.diverging), 0.0, *positive]

    @property
    def caption(self) -> str:
        """The label of the colour bar: the quantity, and "square-root scale" if it is one."""
        return ", ".join(filter(None, [self.name, "square-root scale" if self.rule.root else ""]))


WEIGHT = "attention weight"
WEIGHT_SCALE = Scale("sqrt", name=WEIGHT)  # square roots, because most attention weights are small
LINEAR_WEIGHT_SCALE = Scale("linear", name=WEIGHT)
DIFFERENCE_SCALE = Scale("diverging-sqrt", name=f"difference of {WEIGHT}s")  # of two attention maps


@dataclass(frozen=True)
class Axis:
    """The name of an axis, such as "query", and a label for each of its positions."""

    name: str = ""
    labels: Sequence[str] = ()


Divider = tuple[Literal["rows", "columns"], int]
QUERY, KEY = "query", "key"  # the names of the axes of attention
NO_GROUP = "others"  # the name of points without a group


@dataclass(frozen=True)
class Heatmap:
    """Specification of a heatmap.

    Attributes:
        values: the numbers, [row, column].
        rows: the axis of the rows.
        columns: the axis of the columns.
        scale: the colour scale.
        allowed: [row, column], False for masked cells, which are hatched; None: no mask.
        space: numbers of rows and columns to show if they exceed those of the values, as at an early step; the rest is
            blank, which differs from 0 and from masked.
        outlined: cells (row, column) to outline, such as a reference alignment.
        outlined_rows: rows to outline.
        dividers: ("rows" or "columns", index) of each line to draw before a row or a column.
        pool_size: side of the square block of original cells that each value stands for.
        title: the title of the panel.
        numbered: whether to write its number into each cell.
        texts: texts to write into the cells instead, [row][column]; empty: none.
    """

    values: Tensor
    rows: Axis = Axis()
    columns: Axis = Axis()
    scale: Scale = WEIGHT_SCALE
    allowed: Tensor | None = None
    space: tuple[int, int] | None = None
    outlined: Sequence[tuple[int, int]] = ()
    outlined_rows: Sequence[int] = ()
    dividers: Sequence[Divider] = ()
    pool_size: int = 1
    title: str = ""
    numbered: bool = False
    texts: Sequence[Sequence[str]] = ()


def attention_heatmap(
    maps: AttentionMaps,
    values: Tensor,
    allowed: Tensor | None,
    pool_size: int = 1,
    *,
    axes: tuple[str, str] = (QUERY, KEY),
    **more: Any,
) -> Heatmap:
    """Return the heatmap of one head, on a linear scale with numbers if it has few cells, else by square roots.

    Args:
        maps: the maps of the head, which provide the tokens.
        values: the weights, [query, key].
        allowed: the mask, [query, key]; None: no mask.
        pool_size: side of the square block of original cells that each value stands for.
        axes: names of rows and columns.
        more: further attributes of `Heatmap`.
    """
    rows, columns = Axis(axes[0], maps.query_tokens), Axis(axes[1], maps.key_tokens)
    few = is_numbered(*maps.shape[2:])
    return Heatmap(
        values,
        rows,
        columns,
        LINEAR_WEIGHT_SCALE if few else WEIGHT_SCALE,
        allowed,
        pool_size=pool_size,
        numbered=few,
        **more,
    )


def picture_scale(largest: float, keys: int) -> Scale:
    """Return the scale of weights drawn over an image, up to the largest weight, but at least to min(1, 16 / keys).

    Uniform weights, 1 / keys, are therefore pale, and the image remains visible.

    >>> picture_scale(0.017, 64).limit, picture_scale(0.9, 64).limit, picture_scale(0.3, 8).limit
    (0.25, 0.9, 1.0)
    """
    return Scale("sqrt", max(largest, min(1.0, MIN_SCALE_EVEN_WEIGHTS / keys)), WEIGHT)


def is_numbered(rows: int, columns: int) -> bool:
    """Return whether a heatmap of this size shows numbers in its cells."""
    return rows * columns <= MAX_NUMBERED_CELLS


@dataclass(frozen=True)
class HeadGrid:
    """Specification of a grid of attention heads on one scale: a column for each layer, a row for each head.

    The heads of a single layer stand side by side.

    Attributes:
        heatmaps: the heatmaps, [layer][head].
        layers, heads: names of the columns and rows of the grid.
        size: width and height of a heatmap, in inches.
        labelled: whether the outer heatmaps are labelled with their tokens.
        title: the title.
    """

    heatmaps: Sequence[Sequence[Heatmap]]
    layers: Sequence[str]
    heads: Sequence[str]
    size: tuple[float, float]
    labelled: bool
    title: str = ""


@dataclass(frozen=True)
class Scatter:
    """Specification of a scatter plot.

    Attributes:
        points: the coordinates, [point, 2].
        names: the names of the points.
        axes: names of the two coordinates.
        groups: names of the groups, each with its own colour.
        labels: the index of each point's group, -1 (grey) for none; empty if there are no groups.
        marked: indices of points to draw larger and to label first.
        spread: the lowest and the highest coordinates of each point over training runs, [end, point, 2]; None without
            several runs.
    """

    points: numpy.ndarray
    names: Sequence[str]
    axes: tuple[str, str]
    groups: Sequence[str]
    labels: Sequence[int]
    marked: Sequence[int]
    spread: numpy.ndarray | None = None

    @property
    def legend(self) -> list[tuple[int, str]]:
        """The index and name of each group, ending with -1 for points without a group, if there are any."""
        named = list(enumerate(self.groups))
        return [*named, (-1, NO_GROUP)] if named and -1 in self.labels else named
