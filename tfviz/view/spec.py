"""Specifications of pictures: matplotlib and the page's JavaScript draw these and add no meaning.

A specification holds values, the name and labels of each axis, the scale of its colours, masked and outlined cells,
dividers and thresholds. Further constants that both languages need are written for the page's scripts by
`documents/generate.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from torch import Tensor

from tfviz.look import AttentionMaps

MAX_NUMBERED_CELLS = 100  # a heatmap of more cells shows no numbers and has no linear scale
WEIGHT_TICKS = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0)
LINEAR_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_SCALE_EVEN_WEIGHTS = 16  # the scale of weights on a picture ends at this multiple of 1 / keys, or later

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
    rows, columns = Axis(axes[0], maps.query_tokens), Axis(axes[1], maps.key_tokens)
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
