"""A result of a function as it is to be drawn: its numbers and words, and the scale of its colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from torch import Tensor


@dataclass(frozen=True)
class Panel:
    """A result as it is drawn; see `view.draw`."""

    kind: str
    title: str
    values: Tensor
    rows: Sequence[str]
    cols: Sequence[str]
    scale: str
    limit: float
    places: Sequence[Sequence[float]] = ()
    filled: bool = False

    @property
    def numbers(self) -> numpy.ndarray:
        return self.values.numpy().astype(float)

    def named(self, side: str, count: int) -> list[str]:
        """A word for each of so many; numbers where there are no words, or not so many."""
        words = getattr(self, side)
        return list(words) if len(words) == count else [str(i) for i in range(count)]


def colours(
    kind: str, values: Tensor, scale: str = "", limit: float | None = None, least: float = 0.0
) -> tuple[str, float]:
    """The scale of a result and where it ends; the page has the same rule (`js/interact/scales.js`)."""
    numbers = values.detach().cpu().numpy().astype(float)
    finite = numbers[numpy.isfinite(numbers)]
    chosen = scale or ("signed" if bool((finite < 0).any()) else "share")
    if limit is not None:
        return chosen, limit
    if scale in ("share", "weight") or (chosen == "share" and (_truth(values) or _shares(numbers))):
        return chosen, 1.0
    room = 1.1 if kind in ("arrows", "dots") else 1.0  # for names
    return chosen, nice(max(room * float(abs(finite).max(initial=0.0)), least))


def _truth(values: Tensor) -> bool:
    return not values.dtype.is_floating_point and bool(((values == 0) | (values == 1)).all())


def _shares(numbers: numpy.ndarray) -> bool:
    """Whether each row adds up to 1."""
    if not numbers.size or not numbers.ndim:
        return False
    table = numpy.where(numbers == -numpy.inf, 0.0, numbers)
    return bool((abs(table.sum(-1) - 1) < 1e-3).all())


def nice(value: float, sizes: Sequence[float] = (1, 1.5, 2, 3, 4, 5, 6, 8)) -> float:
    """The next round number that is not less: one of these sizes times a power of ten; 1 for 0.

    >>> nice(0.3), nice(1.01), nice(2.4), nice(0.0)
    (0.3, 1.5, 3.0, 1.0)
    """
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = next(size for size in (*sizes, 10, 20) if size * power >= value * (1 - 1e-6))
    return float(f"{fitting * power:.6g}")
