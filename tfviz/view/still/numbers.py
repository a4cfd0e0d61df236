"""Numbers that can be drawn: real, finite, and not too many for a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def real(name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Tensor:
    """As numbers on the processor, of the same shape; of lists in float64.

    Args:
        gaps: NaN may stand where nothing was measured, if not everywhere.

    Raises:
        ValueError: complex numbers, infinity, or NaN.
    """
    made = values if isinstance(values, Tensor) else torch.tensor([float(value) for value in values]).double()
    made = plain_tensor(name, made)
    if made.is_complex():
        raise ValueError(f"{name!r} holds complex numbers; give .real, .abs() or .angle() of them")
    made = made if made.is_floating_point() else made.double()
    wrong = made.isinf() if gaps else ~made.isfinite()
    if wrong.any() or (gaps and made.isnan().all()):
        at = wrong.nonzero()[0].tolist() if wrong.any() else [0]
        value = float(made[tuple(at)])
        where = at[0] if len(at) == 1 else at
        raise ValueError(f"{name!r} holds {value} (first at {where}); give finite numbers, or leave those out")
    return made


@dataclass(frozen=True)
class Spread:
    """Numbers that were measured once, or in several trainings: their mean, lowest and highest."""

    mean: Tensor
    low: Tensor
    high: Tensor
    several: bool

    @classmethod
    def of(cls, name: str, values: Tensor | Sequence[float], gaps: bool = False) -> Spread:
        """Of one axis, or of [training, number]; in float64."""
        made = real(name, values, gaps).double()
        if made.dim() == 1:
            return cls(made, made, made, several=False)
        if made.dim() != 2 or not len(made):
            raise ValueError(f"{name!r} has the shape {list(made.shape)}; give one axis, or [training, number]")
        return cls(made.mean(0), made.amin(0), made.amax(0), several=True)


def plain_tensor(name: str, tensor: Tensor) -> Tensor:
    """Without its gradient, on the processor, dense; its numbers decoded, if they are quantized.

    Raises:
        ValueError: it has a shape but no numbers.
    """
    if tensor.is_meta:
        raise ValueError(f"{name!r} is a tensor on the meta device, which holds no numbers; give one that does")
    tensor = tensor.detach().cpu()
    tensor = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return tensor.dequantize() if tensor.is_quantized else tensor


def above(name: str, value: float | None) -> None:
    """A number that must be above 0, where it is given."""
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; it must be a finite number above 0")


def few(count: int, most: int, what: str, instead: str) -> None:
    """Refuse what no picture has room for, rather than draw for hours."""
    if count > most:
        raise ValueError(f"there are {count:,} {what}, and a picture has room for {most:,}: {instead}")
