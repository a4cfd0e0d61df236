"""`FrozenNorm`: a LayerNorm or RMSNorm with its statistics held at those of one run, so that it is linear."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}


class FrozenNorm(NamedTuple):
    """The linear map x -> (x - its mean) * size * gain of a norm whose size is held.

    Attributes:
        gain: [dim], or one number.
        size: [..., 1], 1 / the standard deviation (LayerNorm) or 1 / the root mean square (RMSNorm) in the run.
        is_centered: whether the mean is taken away (LayerNorm).
        bias: what is added afterwards.
    """

    gain: Tensor
    size: Tensor
    is_centered: bool
    bias: Tensor | float

    @classmethod
    def of(cls, module: nn.Module, taken: Tensor, returned: Tensor) -> FrozenNorm | None:
        """Return the map that a norm was in a run; None if it is neither a LayerNorm nor an RMSNorm.

        Args:
            module: the norm.
            taken: its input in the run, [..., dim].
            returned: its output in the run, [..., dim].
        """
        taken, returned = taken.detach(), returned.detach()
        weight, bias = (
            given.detach() if isinstance(given := getattr(module, name, None), Tensor) else None
            for name in ("weight", "bias")
        )
        shaped = all(part is None or part.shape in ((), taken.shape[-1:]) for part in (weight, bias))
        if taken.shape != returned.shape or not shaped:
            return None
        eps: Any = getattr(module, "eps", None) or getattr(module, "variance_epsilon", None)
        x, y = taken.double(), returned.double()
        gains = [x.new_ones(())] if weight is None else [weight.double(), weight.double() + 1]
        tolerance = TOLERANCES.get(returned.dtype, 1e-3) * max(1.0, y.abs().max().item())
        for is_centered in (True, False):
            centered = _centered(x) if is_centered else x
            variance = centered.square().mean(-1, keepdim=True)
            size = (variance + float(eps or torch.finfo(taken.dtype).eps)).rsqrt()
            for gain in gains:
                found = cls(gain, size, is_centered, 0.0 if bias is None else bias)
                if (found.apply(x) + found.bias - y).abs().max() <= tolerance:
                    return found
        return None

    def apply(self, x: Tensor) -> Tensor:
        """Return the map of a tensor [..., dim], without the bias."""
        return ((_centered(x) if self.is_centered else x).double() * self.size * self.gain).to(x.dtype)

    def transposed(self, gradient: Tensor) -> Tensor:
        """Return the gradient of the input, given that of the output."""
        direction = gradient.double() * self.gain * self.size
        return (_centered(direction) if self.is_centered else direction).to(gradient.dtype)


def _centered(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)
