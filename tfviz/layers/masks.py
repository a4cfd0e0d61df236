"""Attention masks: causal, padding, windows, strided and fixed sparse masks, prefixes, documents, graphs.

A mask is a function of four indices, `(batch, head, query, key) -> bool`, True where the query MAY attend to the key.
Masks can be combined with `&`, `|` and `~`, converted to dense tensors of any size, and passed to FlexAttention as a
`mask_mod`. `Mask.explain` names the masks that forbid a cell.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from tfviz.checks import at_least, between
from tfviz.layers.mask_predicate import Mask, PerHead
from tfviz.shapes import Bool, Int

__all__ = [
    "Mask", "causal", "dilated", "documents", "fixed", "full", "graph", "padding", "per_head", "prefix", "strided",
    "window",
]  # fmt: skip


class NamedMask(Mask):
    """A constant mask of this module, which remains the same object when it is copied or unpickled."""

    def __reduce__(self) -> str:
        return self.name


full = NamedMask(lambda batch, head, query, key: (query >= 0) & (key >= 0), "full")
causal = NamedMask(lambda batch, head, query, key: key <= query, "causal")


def _picklable(make: Callable[..., Mask]) -> Callable[..., Mask]:
    """Decorate a function so that the masks it returns are copied and pickled by its name and arguments."""

    @wraps(make)
    def wrapper(*args: Any, **kwargs: Any) -> Mask:
        mask = make(*args, **kwargs)
        mask.recipe = _rebuild, (make.__name__, args, kwargs)
        return mask

    return wrapper


def _rebuild(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mask:
    return globals()[name](*args, **kwargs)


class _Table:
    """A tensor that a rule indexes, with a copy on the device of the indices."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self._copies: dict[torch.device, Tensor] = {}

    def __getitem__(self, indices: Tensor | tuple[Tensor, ...]) -> Tensor:
        device = indices[0].device if isinstance(indices, tuple) else indices.device
        return self._on(device)[indices]

    def _on(self, device: torch.device) -> Tensor:
        """Return the tensor on a device; copies are stored, except in tracing, whose program would contain them."""
        if device == self.tensor.device:
            return self.tensor
        if torch.compiler.is_compiling():
            return self.tensor.to(device)
        if device not in self._copies:
            copy = self.tensor.to(device)
            if type(copy) is not type(self.tensor):  # a fake tensor, or one of another temporary mode
                return copy
            self._copies[device] = copy
        return self._copies[device]


@_picklable
def padding(lengths: Int[Tensor, "batch"]) -> Mask:
    """Allow the first `lengths[batch]` keys of each text; the rest is padding."""
    _check_lengths(lengths)
    table = _Table(lengths)
    return Mask(lambda batch, head, query, key: key < table[batch], "padding", len(lengths))


@_picklable
def window(size: int) -> Mask:
    """Allow keys fewer than `size` positions from the query, on either side."""
    at_least(1, size=size)
    return Mask(lambda batch, head, query, key: (query - key).abs() < size, f"window({size})")


@_picklable
def dilated(stride: int) -> Mask:
    """Allow keys whose distance from the query is a multiple of `stride`."""
    at_least(1, stride=stride)
    return Mask(lambda batch, head, query, key: (query - key) % stride == 0, f"dilated({stride})")


def strided(stride: int) -> Mask:
    """Allow the last `stride` positions and every `stride`-th before them (Child et al. 2019, section 4.3, strided)."""
    at_least(1, stride=stride)
    return causal & (window(stride) | dilated(stride))


@_picklable
def fixed(stride: int, summary: int = 1) -> Mask:
    """Allow past keys in the query's block of `stride`, and the last `summary` of each block (Child et al. 2019, 4.3).

    This is the paper's fixed pattern.
    """
    at_least(1, stride=stride)
    between(1, stride, summary=summary)
    block = Mask(lambda batch, head, query, key: query // stride == key // stride, f"block({stride})")
    ends = Mask(lambda batch, head, query, key: key % stride >= stride - summary, f"summary({summary})")
    return causal & (block | ends)


@_picklable
def prefix(lengths: Int[Tensor, "batch"]) -> Mask:
    """Allow the first `lengths[batch]` keys for all queries, and other keys causally (Raffel et al. 2020, figure 3)."""
    _check_lengths(lengths)
    table = _Table(lengths)
    start = Mask(lambda batch, head, query, key: key < table[batch], "prefix", len(lengths))
    return causal | start


@_picklable
def documents(ids: Int[Tensor, "batch position"]) -> Mask:
    """Allow keys of the query's own document, for rows of several documents; `ids` are document ids of the tokens."""
    _check_axes(ids, "ids", "batch, position")
    table = _Table(ids)
    return Mask(lambda batch, head, query, key: table[batch, query] == table[batch, key], "documents", len(ids))


@_picklable
def graph(edges: Bool[Tensor, "batch node node"]) -> Mask:
    """Allow neighbours: node `query` may attend to `key` where `edges[batch, query, key]` (Velickovic et al. 2018).

    A node attends to itself only if it has an edge to itself. A node without edges attends to no node.

    Raises:
        ValueError: `edges` is not `[batch, node, node]`, or holds values other than 0 and 1.
    """
    _check_axes(edges, "edges", "batch, node, node")
    if edges.shape[1] != edges.shape[2]:
        raise ValueError(f"edges are {list(edges.shape)}; they must be square")
    is_checkable = edges.is_floating_point() and edges.device.type == "cpu" and not torch.compiler.is_compiling()
    if is_checkable and not ((edges == 0) | (edges == 1)).all():
        raise ValueError(
            "edges hold values other than 0 and 1, which would not be used as weights; give booleans, such as edges > 0"
        )
    linked = _Table(edges != 0)
    return Mask(lambda batch, head, query, key: linked[batch, query, key], "graph", len(edges))


def per_head(*masks: Mask) -> Mask:
    """Apply `masks[h % len(masks)]` to head h, so that heads have different masks (Child et al. 2019, section 5.1).

    Raises:
        ValueError: no mask is passed.

    >>> per_head(window(1), causal).dense(2, 2, heads=2)[0].int().tolist()
    [[[1, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    if not masks:
        raise ValueError("per_head needs at least one mask, such as per_head(causal, window(3))")
    return PerHead(masks) if len(masks) > 1 else masks[0]


def _check_lengths(lengths: Tensor) -> None:
    _check_axes(lengths, "lengths", "batch")
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths are {lengths.dtype}; give integers")
    if lengths.device.type == "cpu" and lengths.numel():  # reading from another device would wait for it
        at_least(0, lengths=lengths.min().item())


def _check_axes(table: Tensor, name: str, axes: str) -> None:
    if table.dim() != axes.count(",") + 1:
        raise ValueError(f"{name} has the shape {list(table.shape)}; it must be [{axes}]")
