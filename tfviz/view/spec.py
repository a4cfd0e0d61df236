"""Specifications of pictures: matplotlib and the page's JavaScript draw these and add no meaning.

A specification holds values, the name and labels of each axis, the scale of its colours, masked and outlined cells,
dividers and thresholds. Further constants that both languages need are written for the page's scripts by
`documents/generate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.look.map_arguments import range_labels

MAX_NUMBERED_CELLS = 100  # a heatmap of more cells shows no numbers and has no linear scale
WEIGHT_TICKS = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0)
LINEAR_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_SCALE_EVEN_WEIGHTS = 16  # the scale of weights on a picture ends at this multiple of 1 / keys, or later
STACK_COLOURS = (5, 3, 7, 2, 1, 4)  # of the parts of a stack, among the colours of heads

ScaleKind = Literal["sqrt", "linear", "diverging", "diverging-sqrt"]
NO_NAMES = ("", "")  # of a pair of axes, or of the ends of a scale


@dataclass(frozen=True)
class ScaleRule:
    """The mapping of a type of scale between its ends.

    Attributes:
        root: whether numbers are placed by their square roots, so that small ones are visible.
        diverging: whether the scale runs from -limit through 0 to limit, in two hues, or from 0 to limit, in one.
        ticks: positions of the numbers of its legend, as fractions of the limit.
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


@dataclass(frozen=True)
class Scale:
    """The colours of numbers up to `limit`, and down to its negative if the scale diverges; `name` says of what."""

    kind: ScaleKind = "sqrt"
    limit: float = 1.0
    name: str = ""

    @property
    def rule(self) -> ScaleRule:
        return SCALE_RULES[self.kind]

    @property
    def ticks(self) -> list[float]:
        return [tick * self.limit for tick in self.rule.ticks]

    @property
    def caption(self) -> str:
        """What the colours are, and that they are spread by square roots, if they are."""
        return ", ".join(filter(None, [self.name, "square-root scale" if self.rule.root else ""]))


WEIGHT = "attention weight"
WEIGHT_SCALE = Scale("sqrt", name=WEIGHT)  # of attention, whose weights are mostly small
LINEAR_WEIGHT_SCALE = Scale("linear", name=WEIGHT)
DIFFERENCE_SCALE = Scale("diverging-sqrt", name=f"difference of {WEIGHT}s")  # of two attention maps


@dataclass(frozen=True)
class Axis:
    """An axis: the name of what it counts, and a label for each position."""

    name: str = ""
    labels: Sequence[str] = ()


Divider = tuple[Literal["rows", "cols"], int]
QUERY, KEY = "query", "key"  # the names of the axes of attention
NO_GROUP = "others"  # the name of points without a group


@dataclass(frozen=True)
class Heatmap:
    """A table of numbers as colours.

    Attributes:
        values: [row, column].
        allowed: [row, column], False for cells that a mask forbids, which are hatched; None: no mask.
        space: numbers of rows and columns to show, if they exceed those of the values, as at an early step; the rest is
            blank: neither 0 nor forbidden.
        outlined: cells (row, column) to mark, such as gold alignments.
        outlined_rows: rows to mark.
        dividers: lines before a row or a column.
        block: cells that each value stands for, down and across.
        numbered: write the number into each cell.
        texts: the text of each cell instead, [row][column]; empty: none.
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
    block: int = 1
    title: str = ""
    numbered: bool = False
    texts: Sequence[Sequence[str]] = ()


def attention_heatmap(
    maps: AttentionMaps,
    values: Tensor,
    allowed: Tensor | None,
    block: int = 1,
    *,
    axes: tuple[str, str] = (QUERY, KEY),
    **more: Any,
) -> Heatmap:
    """Specify one head with its words: linear scale and numbers for few weights, square-root scale for many."""
    rows, columns = Axis(axes[0], maps.rows), Axis(axes[1], maps.cols)
    few = is_numbered(*maps.shape[2:])
    return Heatmap(
        values, rows, columns, LINEAR_WEIGHT_SCALE if few else WEIGHT_SCALE, allowed, block=block, numbered=few, **more
    )


def picture_scale(largest: float, keys: int) -> Scale:
    """Return the scale of weights that are shaded on a picture: up to the largest, and to 16 even weights at least.

    Thus the weights of an even head, 1 / keys, are pale, and the picture remains visible.

    >>> picture_scale(0.017, 64).limit, picture_scale(0.9, 64).limit, picture_scale(0.3, 8).limit
    (0.25, 0.9, 1.0)
    """
    return Scale("sqrt", max(largest, min(1.0, MIN_SCALE_EVEN_WEIGHTS / keys)), WEIGHT)


def is_numbered(rows: int, columns: int) -> bool:
    """Return whether a heatmap of this size shows numbers in its cells."""
    return rows * columns <= MAX_NUMBERED_CELLS


@dataclass(frozen=True)
class HeadGrid:
    """Attention heads side by side on one scale: a row for each layer, a column for each head.

    Attributes:
        heatmaps: [layer][head].
        layers, heads: a name for each row and column of the grid.
        size: width and height of a heatmap, in inches.
        labelled: the outer heatmaps have their words.
    """

    heatmaps: Sequence[Sequence[Heatmap]]
    layers: Sequence[str]
    heads: Sequence[str]
    size: tuple[float, float]
    labelled: bool
    title: str = ""


@dataclass(frozen=True)
class Scatter:
    """Points in a plane.

    Attributes:
        points: [point, 2].
        axes: names of the two coordinates.
        groups: names of the groups, each with its own colour.
        labels: the index of each point's group, -1 (grey) for none; empty if there are no groups.
        marked: points that are drawn larger and named first.
    """

    points: numpy.ndarray
    names: Sequence[str]
    axes: tuple[str, str]
    groups: Sequence[str]
    labels: Sequence[int]
    marked: Sequence[int]

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Label and name of each group, ending with points without a group."""
        named = list(enumerate(self.groups))
        return [*named, (-1, NO_GROUP)] if named and -1 in self.labels else named


@dataclass(frozen=True)
class ResultPanel:
    """A result of a function, drawn as `view.draw` specifies.

    Attributes:
        kind: a function of `view.draw`.
        values: with the number of axes that the kind draws.
        rows, columns: words of the axes; numbers if there are no words, or not as many as positions.
        positions: [x, y] of each node of a graph; empty: on a circle.
        filled: the diagonal of a graph fills its nodes.
        axes: names of rows and columns, or of the two coordinates of a plane.
        ends: what the smallest and the largest number of the scale mean.
        hatched: what a hatched cell means.
        unit: of the numbers.
        budget: the largest sum of a stack that fits.
        sentence: the sentence about the result, with names in braces; empty: one made from the numbers.
        mark: words of a plane that are drawn in colour, all others in grey; empty: each in its own colour.
    """

    kind: str
    title: str
    values: Tensor
    rows: Sequence[str]
    columns: Sequence[str]
    scale: Scale
    positions: Sequence[Sequence[float]] = ()
    filled: bool = False
    axes: tuple[str, str] = NO_NAMES
    ends: tuple[str, str] = NO_NAMES
    hatched: str = ""
    unit: str = ""
    budget: float | None = None
    sentence: str = ""
    mark: Sequence[str] = ()

    @property
    def numbers(self) -> numpy.ndarray:
        return self.values.numpy().astype(float)

    @property
    def limit(self) -> float:
        return self.scale.limit

    def row_labels(self, count: int) -> list[str]:
        return labels_or_numbers(self.rows, count)

    def column_labels(self, count: int) -> list[str]:
        return labels_or_numbers(self.columns, count)


def labels_or_numbers(words: Sequence[str], count: int) -> list[str]:
    """Return the labels of an axis; its numbers if it has none."""
    return list(words) if len(words) == count else range_labels(count)


def result_scale(
    kind: str, values: Tensor, scale: ScaleKind | None = None, limit: float | None = None, min_limit: float = 0.0
) -> Scale:
    """Return the scale of a result: up to 1 for truth values, shares and named scales, otherwise up to a round number.

    Pages apply the same rule to results that they compute (`js/interact/scales.js`).

    Args:
        kind: the way to draw the result.
        values: the result.
        scale: the requested scale; None: diverging if a number is below 0, otherwise linear.
        limit: the requested end of the scale, if any.
        min_limit: the smallest limit of the scale.
    """
    numbers = values.detach().cpu().numpy().astype(float)
    finite = numbers[numpy.isfinite(numbers)]
    chosen: ScaleKind = scale or ("diverging" if bool((finite < 0).any()) else "linear")
    if limit is not None:
        return Scale(chosen, limit)
    if scale in ("linear", "sqrt") or (chosen == "linear" and (_is_boolean(values) or _rows_sum_to_one(numbers))):
        return Scale(chosen)
    margin = 1.1 if kind in ("arrows", "dots") else 1.0  # for names
    return Scale(chosen, round_up(max(margin * float(abs(finite).max(initial=0.0)), min_limit)))


def round_up(value: float, sizes: Sequence[float] = (1, 1.5, 2, 3, 4, 5, 6, 8)) -> float:
    """Return the smallest round number not below a value: one of these sizes times a power of ten; 1 for 0.

    >>> round_up(0.3), round_up(1.01), round_up(2.4), round_up(0.0)
    (0.3, 1.5, 3.0, 1.0)
    """
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = next(size for size in (*sizes, 10, 20) if size * power >= value * (1 - 1e-6))
    return float(f"{fitting * power:.6g}")


def stack_end(total: float, budget: float | None) -> float:
    """Return the end of a stack's scale: a round number above its sum and well above its budget.

    >>> stack_end(144, 80), stack_end(10, 80), stack_end(7, None)
    (150.0, 100.0, 8.0)
    """
    return round_up(max(total, 1.25 * (budget or 0.0)))


def is_binary(numbers: numpy.ndarray) -> bool:
    """Return whether all finite numbers are 0 or 1."""
    finite = numbers[numpy.isfinite(numbers)]
    return bool(((finite == 0) | (finite == 1)).all())


def _is_boolean(values: Tensor) -> bool:
    return not values.dtype.is_floating_point and bool(((values == 0) | (values == 1)).all())


def _rows_sum_to_one(numbers: numpy.ndarray) -> bool:
    """Return whether each row sums to 1."""
    if not numbers.size or not numbers.ndim:
        return False
    table = numpy.where(numbers == -numpy.inf, 0.0, numbers)
    return bool((abs(table.sum(-1) - 1) < 1e-3).all())
