"""Faster generation on a CPU: products of one row and a large matrix, its main cost, computed on all cores."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

MIN_WEIGHT_BYTES = 32 * 2**20  # smaller weights fit into the processor's cache, where any kernel is fast


class OneDNNLinear(TorchFunctionMode):
    """A context in which `linear` of a single float32 row is computed by oneDNN, which uses all cores.

    PyTorch calls BLAS `gemv`, which in common builds runs on one core and reaches well under half of the memory
    bandwidth (`benchmarks/generate.py`). The results are equal up to rounding.
    """

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is functional.linear and not kwargs and _is_row(*args):
            x, weight, bias = (*args, None)[:3]
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return func(*args, **(kwargs or {}))


def faster_linear(weight_bytes: int, device: torch.device) -> AbstractContextManager:
    """Return `OneDNNLinear` if it speeds up a model with `weight_bytes` of weights, otherwise a null context."""
    available = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return OneDNNLinear() if available and device.type == "cpu" and weight_bytes > MIN_WEIGHT_BYTES else nullcontext()


def _is_row(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    return x.numel() == x.shape[-1] and x.dtype == weight.dtype == torch.float32 and weight.is_contiguous()
