"""`CostLimit`: bound the memory and work of a program by running it on meta tensors first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tfviz.checks import total_memory

MAX_MULTIPLICATIONS = 10**12  # some minutes of work
MULTIPLICATIONS_PER_NUMBER = 8  # the cost of reading or writing one number
MULTIPLICATIONS_PER_CALL = 10**6
MAX_RESULTS = 100_000  # of one operator
PRODUCT_OPS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "convolution", "_cdist_forward", "mkldnn_rnn_layer")
POOL_OPS = ("max_pool2d_with_indices", "avg_pool2d")
SPLIT_OPS = ("split", "split_with_sizes", "unbind", "unsafe_split")


class CostLimit(TorchDispatchMode):
    """A dispatch mode that sums the memory and work of operators on meta tensors.

    It includes operators that other operators call.

    Raises:
        ValueError: inside the context, if operators would take more memory than this machine has or more than some
            minutes of work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.work, self.max_bytes = 0, 0, total_memory()

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name in SPLIT_OPS and _result_count(name, *args) > MAX_RESULTS:
            raise ValueError(f"{name} makes more than {MAX_RESULTS:,} tensors")
        result = func(*args, **(kwargs or {}))
        results = _tensors(result)
        inputs = _tensors(args)
        self.work += MULTIPLICATIONS_PER_CALL + _operation_cost(name, inputs, results, args)
        if not func.is_view:
            self.bytes += sum(result.numel() * result.element_size() for result in results)
        if self.bytes > self.max_bytes:
            raise ValueError(f"it takes more than the {self.max_bytes // 10**9:,} GB of memory that this machine has")
        if self.work > MAX_MULTIPLICATIONS:
            raise ValueError("it would take more than some minutes of work")
        return result


def _operation_cost(name: str, inputs: Sequence[Tensor], results: Sequence[Tensor], args: Sequence[Any]) -> int:
    sizes = [tensor.numel() for tensor in (*inputs, *results)]
    work = MULTIPLICATIONS_PER_NUMBER * sum(sizes)
    if name in PRODUCT_OPS:  # [n k] times [k m]: the product of their sizes is the square of n k m
        work += math.isqrt(math.prod(filter(None, sizes)))
    if name in POOL_OPS:
        work += sum(result.numel() for result in results) * math.prod(args[1])
    return work


def _result_count(name: str, tensor: Tensor, size: Any = 0, dim: int = 0) -> int:
    """Return the number of parts into which an operator splits a tensor; `unbind` takes its axis second."""
    if isinstance(size, Sequence):
        return len(size)
    axis, size = (size, 1) if name == "unbind" else (dim, size)
    return tensor.shape[axis] // max(1, size) if -tensor.dim() <= axis < tensor.dim() else 0


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]


def to_meta(tensor: Tensor) -> Tensor:
    """Return a meta tensor of the same shape and dtype."""
    return torch.empty_like(tensor, device="meta")
