"""Specifications of an instrument's results: panels as `view.draw` describes them, and the scales of their colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from torch import Tensor

from tfviz.look.map_arguments import range_labels
from tfviz.view.documents.interact import DrawingKind
from tfviz.view.spec import NO_NAMES, Scale, ScaleKind, round_up

STACK_COLOURS = (5, 3, 7, 2, 1, 4)  # of the parts of a stack, as indices of the colour cycle


@dataclass(frozen=True)
class Drawing:
    """Specification of how one result is drawn.

    Attributes:
        kind: the name of a function of `view.draw`.
        title: the title; empty: the name of the result.
        rows, columns: labels, or the name of a control that provides them.
        scale: the kind of colour scale; None: chosen from the numbers.
        limit: the end of the scale; None: chosen from the numbers.
        positions: [x, y] of each node of a graph, or the name of a control; empty: on a circle.
        top: the number of bars to draw, largest first; 0: all, in their order.
        filled: whether the diagonal of a graph's matrix fills its nodes with colour.
        axes: names of the row and column axes, or of the horizontal and vertical coordinates of a plane.
        mark: labels of the points or vectors drawn in colour, all others in grey; empty: each in its own colour.
        expected: the sign that the number of each bar should have; empty: any.
        ends: the meanings of the smallest and the largest number of the scale.
        hatched: the meaning of a hatched cell, whose number is minus infinity.
        unit: the unit of the numbers.
        budget: the largest sum of a stack's parts that fits.
        sentence: a template for the sentence about the result; empty: a sentence made from the numbers.
    """

    kind: DrawingKind
    title: str = ""
    rows: str | tuple[str, ...] = ()
    columns: str | tuple[str, ...] = ()
    scale: ScaleKind | None = None
    limit: float | None = None
    positions: str | tuple[tuple[float, float], ...] = ()
    top: int = 0
    filled: bool = False
    axes: tuple[str, str] = NO_NAMES
    ends: tuple[str, str] = NO_NAMES
    hatched: str = ""
    unit: str = ""
    budget: float | None = None
    sentence: str = ""
    mark: tuple[str, ...] = ()
    expected: tuple[float, ...] = ()


@dataclass(frozen=True)
class ResultPanel:
    """A result of an instrument, or a part of it, with the specification of its drawing.

    Attributes:
        drawing: how it is drawn; its labels and positions are those that belong to the values of the controls. Labels
            are replaced by numbers if they are not as many as the values.
        values: the numbers, with as many axes as the kind draws.
        scale: the scale of the colours or lengths.
    """

    drawing: Drawing
    values: Tensor
    scale: Scale

    @property
    def numbers(self) -> numpy.ndarray:
        return self.values.numpy().astype(float)

    @property
    def limit(self) -> float:
        return self.scale.limit

    def row_labels(self, count: int) -> list[str]:
        return labels_or_numbers(self.drawing.rows, count)

    def column_labels(self, count: int) -> list[str]:
        return labels_or_numbers(self.drawing.columns, count)


def labels_or_numbers(labels: Sequence[str], count: int) -> list[str]:
    """Return the labels of an axis, or numbers from 0 unless there are `count` labels."""
    return list(labels) if len(labels) == count else range_labels(count)


def result_scale(
    kind: str, values: Tensor, scale: ScaleKind | None = None, limit: float | None = None, min_limit: float = 0.0
) -> Scale:
    """Return the scale of a result, up to `limit`, to 1, or to a round number.

    By default the limit is 1 for an explicit "linear" or "sqrt", and for non-negative results that are boolean or whose
    rows sum to 1. Pages apply the same rule to the results that they compute (`js/interact/scales.js`).

    Args:
        kind: the kind of drawing.
        values: the result.
        scale: the requested kind of scale; None: diverging if a number is below 0, otherwise linear.
        limit: the requested end of the scale, if any.
        min_limit: the smallest value of a limit that is a round number.
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


def stack_end(total: float, budget: float | None) -> float:
    """Return the end of a stack's scale: the smallest round number not below its sum or 1.25 times its budget.

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
