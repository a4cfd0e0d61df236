"""`FrozenNorm`: a LayerNorm or RMSNorm with the statistics of one run frozen, so that it is linear."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}


class FrozenNorm(NamedTuple):
    """The affine map of a norm with frozen statistics: x -> (x - mean) * inv_std * weight + bias.

    Attributes:
        weight: [dim] or [], the scale of each dimension.
        inv_std: [..., 1], 1 / the standard deviation (LayerNorm) or 1 / the root mean square (RMSNorm) in the run.
        is_centered: whether the mean is subtracted (LayerNorm).
        bias: [dim] or one number, added to the result.
    """

    weight: Tensor
    inv_std: Tensor
    is_centered: bool
    bias: Tensor | float

    @classmethod
    def from_module(cls, module: nn.Module, x: Tensor, output: Tensor) -> FrozenNorm | None:
        """Return the affine map that a norm computed in a run, given its input and output.

        Args:
            module: the norm.
            x: its input in the run, [..., dim].
            output: its output in the run, [..., dim].

        Returns:
            The map, or None if neither a LayerNorm nor an RMSNorm gives this output.
        """
        x, output = x.detach(), output.detach()
        weight, bias = (
            given.detach() if isinstance(given := getattr(module, name, None), Tensor) else None
            for name in ("weight", "bias")
        )
        shaped = all(part is None or part.shape in ((), x.shape[-1:]) for part in (weight, bias))
        if x.shape != output.shape or not shaped:
            return None
        eps: Any = getattr(module, "eps", None) or getattr(module, "variance_epsilon", None)
        tolerance = TOLERANCES.get(output.dtype, 1e-3) * max(1.0, output.abs().max().item())
        default_eps = torch.finfo(x.dtype).eps
        x, y = x.double(), output.double()
        weights = [x.new_ones(())] if weight is None else [weight.double(), weight.double() + 1]
        for is_centered in (True, False):
            centered = _centered(x) if is_centered else x
            variance = centered.square().mean(-1, keepdim=True)
            inv_std = (variance + float(eps or default_eps)).rsqrt()
            for candidate in weights:
                found = cls(candidate, inv_std, is_centered, 0.0 if bias is None else bias)
                if (found.apply(x) + found.bias - y).abs().max() <= tolerance:
                    return found
        return None

    def apply(self, x: Tensor) -> Tensor:
        """Apply the map to a tensor [..., dim], without the bias."""
        return ((_centered(x) if self.is_centered else x).double() * self.inv_std * self.weight).to(x.dtype)

    def input_gradient(self, gradient: Tensor) -> Tensor:
        """Return the gradient with respect to the input, given the gradient with respect to the output, [..., dim]."""
        direction = gradient.double() * self.weight * self.inv_std
        return (_centered(direction) if self.is_centered else direction).to(gradient.dtype)


def _centered(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)
