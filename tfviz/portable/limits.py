"""What a program would take in memory and in work, found out without doing any of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tfviz.bounds import memory

WORK = 10**12  # multiplications, some minutes of them
EACH, STEP = 8, 10**6  # what a number that is read or written counts, and an operator, however little it does
PIECES = 100_000  # results of one operator
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "convolution", "_cdist_forward", "mkldnn_rnn_layer")
POOLS = ("max_pool2d_with_indices", "avg_pool2d")
SPLITS = ("split", "split_with_sizes", "unbind", "unsafe_split")


class Limits(TorchDispatchMode):
    """Within it, operators on meta tensors are counted, also those that others consist of.

    Raises:
        ValueError: they would take more memory than this machine has, or hours of work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.work, self.most = 0, 0, memory()

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name in SPLITS and _pieces(*args) > PIECES:
            raise ValueError(f"{name} makes more than {PIECES:,} tensors")
        made = func(*args, **(kwargs or {}))
        results = list(_tensors([made]))
        inputs = list(_tensors(args))
        self.work += STEP + _work(name, inputs, results, args)
        if not func.is_view:
            self.bytes += sum(one.numel() * one.element_size() for one in results)
        if self.bytes > self.most:
            raise ValueError(f"it takes more than the {self.most // 10**9:,} GB of memory that this machine has")
        if self.work > WORK:
            raise ValueError("it would take more than some minutes of work")
        return made


def _work(name: str, inputs: Sequence[Tensor], results: Sequence[Tensor], args: Sequence[Any]) -> int:
    sizes = [one.numel() for one in (*inputs, *results)]
    work = EACH * sum(sizes)
    if name in PRODUCTS:  # [n k] times [k m]: the product of their sizes is the square of n k m
        work += math.isqrt(math.prod(filter(None, sizes)))
    if name in POOLS:
        work += sum(one.numel() for one in results) * math.prod(args[1])
    return work


def _pieces(tensor: Tensor, size: Any = 0, dim: int = 0, *more: Any) -> int:
    """No fewer than a tensor is split into."""
    if isinstance(size, Sequence):
        return len(size)
    return max(tensor.shape, default=0) // max(1, size if size > 1 else 1)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, Mapping):
            yield from _tensors(value.values())


def sketch(tensor: Tensor) -> Tensor:
    """A tensor of this shape and kind, without numbers."""
    return torch.empty_like(tensor, device="meta")
