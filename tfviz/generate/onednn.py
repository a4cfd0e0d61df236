"""One row times a large matrix on a CPU, which is what each generated token costs."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

CACHED = 32 * 2**20  # bytes; weights below this stay in the processor's cache, where any kernel is fast


class FastRows(TorchFunctionMode):
    """Inside this mode, `linear` of a single float32 row runs on oneDNN, which uses all cores.

    PyTorch sends it to a BLAS `gemv`, which in common builds runs on one core and reaches well under half of the
    memory's bandwidth (`benchmarks/generate.py`). The numbers agree to rounding.
    """

    @staticmethod
    def helps(weights: int, device: torch.device) -> bool:
        """Whether a model with this many bytes of weights gains."""
        there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        return there and device.type == "cpu" and weights > CACHED

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is functional.linear and not kwargs and _is_row(*args):
            x, weight, bias = (*args, None)[:3]
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return func(*args, **(kwargs or {}))


def _is_row(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    return x.numel() == x.shape[-1] and x.dtype == weight.dtype == torch.float32 and weight.is_contiguous()
