"""Check numbers that are to be drawn: real, finite, and not too many for a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def check_finite(name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Tensor:
    """Return finite numbers on the CPU, of the same shape; lists become float64.

    Args:
        name: the name of the numbers in errors.
        values: the numbers.
        gaps: allow NaN for missing numbers, unless all are missing.

    Raises:
        ValueError: complex numbers, infinity, or NaN.
    """
    tensor = values if isinstance(values, Tensor) else torch.tensor([float(value) for value in values]).double()
    tensor = dense_tensor(name, tensor)
    if tensor.is_complex():
        raise ValueError(f"{name!r} holds complex numbers; give .real, .abs() or .angle() of them")
    tensor = tensor if tensor.is_floating_point() else tensor.double()
    invalid = tensor.isinf() if gaps and not tensor.isnan().all() else ~tensor.isfinite()
    if invalid.any():
        at = invalid.nonzero()[0].tolist()
        where = at[0] if len(at) == 1 else at
        value = float(tensor[tuple(at)])
        raise ValueError(f"{name!r} holds {value} (first at {where}); give finite numbers, or leave those out")
    return tensor


@dataclass(frozen=True)
class Spread:
    """Mean, minimum and maximum of numbers measured in one or several training runs."""

    mean: Tensor
    low: Tensor
    high: Tensor
    several: bool

    @classmethod
    def from_values(cls, name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Spread:
        """Compute the spread over training runs, [training, number], or of a single run, [number], in float64.

        Raises:
            ValueError: the values are empty, or have neither one axis nor two.
        """
        table = check_finite(name, values, gaps).double()
        if table.dim() == 1:
            return cls(table, table, table, several=False)
        if table.dim() != 2 or not len(table):
            raise ValueError(f"{name!r} has the shape {list(table.shape)}; give one axis, or [training, number]")
        return cls(table.mean(0), table.amin(0), table.amax(0), several=True)


def dense_tensor(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor without its gradient, on the CPU, dense and not quantized.

    Raises:
        ValueError: it has a shape but no numbers.
    """
    if tensor.is_meta:
        raise ValueError(f"{name!r} is a tensor on the meta device, which holds no numbers; give one that does")
    tensor = tensor.detach().cpu()
    tensor = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return tensor.dequantize() if tensor.is_quantized else tensor


def check_positive(name: str, value: float | None) -> None:
    """Raise ValueError unless a number is positive and finite, or None."""
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; it must be a finite number above 0")


def check_at_most(count: int, max_count: int, what: str, instead: str) -> None:
    """Raise ValueError if there are more than `max_count`, which would take hours to draw."""
    if count > max_count:
        raise ValueError(f"there are {count:,} {what}, and a picture has room for {max_count:,}: {instead}")
