"""An attention kernel from outside PyTorch: how its arguments become an `AttentionCall`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from tfviz.look.attention_call import AttentionCall
from tfviz.shapes import Bool, Int


@dataclass(frozen=True)
class Kernel:
    """A function that computes attention, and the names of its arguments; None where it has no such argument.

    Attributes:
        causal: a switch that hides the future; the last query stands at the last key, as in flash-attn.
        window: how many keys before and after a query it may see, -1 for all.
        cu_seqlens: the cumulative lengths of texts that are packed on the axis of positions, of queries and of keys.
        axes: of query, key and value: b text, h head, n position, d dim.
        neutral: other arguments, and the value with which each leaves the weights alone.
    """

    function: FunctionType
    query: str
    key: str
    value: str
    mask: str | None
    scale: str | None
    causal: str | None
    window: str | None
    cu_seqlens: tuple[str, str] | None
    axes: str
    neutral: tuple[tuple[str, Any], ...]

    def call(self, arguments: dict[str, Any]) -> AttentionCall | str:
        """Return the attention call with these arguments, or why its weights cannot be computed."""
        for name, value in self.neutral:
            if arguments.get(name, value) is not value and arguments[name] != value:
                return f"{self.function.__name__} with {name}"
        query, key, value = (self._to_bhnd(arguments[name]) for name in (self.query, self.key, self.value))
        mask, scale, causal, window = (
            None if name is None else arguments.get(name) for name in (self.mask, self.scale, self.causal, self.window)
        )
        if mask is not None and not isinstance(mask, Tensor):
            return f"{self.function.__name__} with a mask that is a {type(mask).__name__}"
        before, after = window or (-1, -1)
        after = 0 if causal else after
        if self.cu_seqlens is None:
            allowed = _window(query.shape[-2], key.shape[-2], before, after).to(query.device)
        else:
            queries, keys = (arguments[name] for name in self.cu_seqlens)
            keys = queries if keys is None else keys
            allowed = packed_mask(queries, keys, before, after, query.shape[-2], key.shape[-2])
        if mask is None:
            mask = None if allowed.all() else allowed
        else:
            mask = mask & allowed if mask.dtype == torch.bool else mask.masked_fill(~allowed, -torch.inf)
        return AttentionCall.of(query, key, value, mask, scale)

    def _to_bhnd(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the kernel's axes as [batch, head, position, dim]."""
        if tensor.dim() != len(self.axes.split()):
            raise ValueError(
                f"{self.function.__name__} was called with {list(tensor.shape)}, and look.attention was told that its "
                f"axes are {self.axes!r}"
            )
        tensor = self._swap_heads(tensor)
        return tensor if "b" in self.axes else tensor[None]

    def from_bhnd(self, tensor: Tensor) -> Tensor:
        """Return a tensor [batch, head, position, dim] with the kernel's axes."""
        return self._swap_heads(tensor if "b" in self.axes else tensor[0])

    def _swap_heads(self, tensor: Tensor) -> Tensor:
        names = self.axes.split()
        head, position = names.index("h"), names.index("n")
        return tensor.transpose(head, position) if head > position else tensor


def _window(queries: int, keys: int, before: int, after: int) -> Tensor:
    """Return True where a query may look, the last one standing at the last key; -1: as far as there are keys."""
    distance = torch.arange(keys) - (torch.arange(queries)[:, None] + keys - queries)
    return ((distance >= -before) | (before < 0)) & ((distance <= after) | (after < 0))


def packed_mask(
    queries: Int[Tensor, "starts"], keys: Int[Tensor, "starts"], before: int, after: int, rows: int, columns: int
) -> Bool[Tensor, "row column"]:
    """Return the mask of texts that are packed one after the other, each of which sees itself alone.

    Args:
        queries, keys: cumulative lengths of the texts, from 0 on (`cu_seqlens`).
        before, after: keys before and after a query that it may see; -1: all.
        rows, columns: how many queries and keys there are; those after the last text see nothing.

    >>> packed_mask(torch.tensor([0, 1, 3]), torch.tensor([0, 2, 4]), -1, 0, 3, 4).int().tolist()
    [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    """
    for name, starts, count in (("queries", queries, rows), ("keys", keys, columns)):
        known = starts.tolist()
        if known != sorted(known) or known[:1] != [0] or known[-1] > count:
            raise ValueError(f"texts of the {name} begin at {known}; they must rise from 0 to at most {count}")
    allowed = torch.zeros(rows, columns, dtype=torch.bool, device=queries.device)
    for (top, bottom), (left, right) in zip(pairwise(queries.tolist()), pairwise(keys.tolist())):
        allowed[top:bottom, left:right] = _window(bottom - top, right - left, before, after)
    return allowed
