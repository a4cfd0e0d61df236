"""Checks of numbers to be drawn: they must be real, finite, and few enough for a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MAX_SAFE_INTEGER = 2**53 - 1  # the largest integer that JavaScript represents exactly


def check_finite(name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Tensor:
    """Return numbers as a dense floating-point tensor on the CPU, after checking that all are real and finite.

    The shape is unchanged. Lists, integers and booleans become float64.

    Args:
        name: the name of the numbers in error messages.
        values: the numbers.
        gaps: whether NaN is allowed for missing numbers, unless all are missing.

    Raises:
        ValueError: the numbers are complex or on the meta device, or hold infinity or NaN.
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


def check_references(references: Mapping[str, float] | None) -> dict[str, float]:
    """Return the values of named reference lines, none for None, after checking that they are finite.

    Raises:
        ValueError: a value is infinite or NaN.
    """
    named = references or {}
    return dict(zip(named, check_finite("references", list(named.values())).tolist()))


@dataclass(frozen=True)
class Spread:
    """Mean, minimum and maximum over training runs, each of shape [number].

    Attributes:
        mean: the means.
        low: the minima.
        high: the maxima.
        several: whether the numbers come from several training runs.
    """

    mean: Tensor
    low: Tensor
    high: Tensor
    several: bool

    @classmethod
    def from_values(cls, name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Spread:
        """Compute the spread over training runs, [training, number], or of a single run, [number], in float64.

        Raises:
            ValueError: the values have neither one nor two axes, have no runs, or are not finite (see `check_finite`).
        """
        table = check_finite(name, values, gaps).double()
        if table.dim() == 1:
            return cls(table, table, table, several=False)
        if table.dim() != 2 or not len(table):
            raise ValueError(f"{name!r} has the shape {list(table.shape)}; give one axis, or [training, number]")
        return cls(table.mean(0), table.amin(0), table.amax(0), several=True)


def dense_tensor(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor detached, on the CPU, dense (strided) and dequantized.

    Raises:
        ValueError: the tensor is on the meta device, and so has no numbers.
    """
    if tensor.is_meta:
        raise ValueError(f"{name!r} is a tensor on the meta device, which holds no numbers; give one that does")
    tensor = tensor.detach().cpu()
    tensor = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return tensor.dequantize() if tensor.is_quantized else tensor


def check_positive(name: str, value: float | None) -> None:
    """Raise ValueError unless a number is None, or positive and finite."""
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; it must be a finite number above 0")


def check_at_most(count: int, max_count: int, what: str, instead: str) -> None:
    """Raise ValueError if `count` exceeds `max_count`; larger pictures would take hours to draw."""
    if count > max_count:
        raise ValueError(f"there are {count:,} {what}, and a picture has room for {max_count:,}: {instead}")
