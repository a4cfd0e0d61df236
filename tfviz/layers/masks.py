"""Masks as predicates: which key may a query look at?

A mask is a function of four indices, `(batch, head, query, key) -> bool`, True where the query MAY look. Written
so, masks compose with `&`, `|` and `~`, become a dense tensor of any size, explain themselves cell by cell, and
serve as FlexAttention's `mask_mod` as they are.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from tfviz.bounds import at_least, between
from tfviz.layers.mask import Mask, PerHead
from tfviz.shapes import Bool, Int

__all__ = [
    "Mask",
    "causal",
    "dilated",
    "documents",
    "fixed",
    "full",
    "graph",
    "padding",
    "per_head",
    "prefix",
    "strided",
    "window",
]


class NamedMask(Mask):
    """A mask with a name in this module, which is the same one wherever it is copied or loaded."""

    def __reduce__(self) -> str:
        return self.name


full = NamedMask(lambda batch, head, query, key: (query >= 0) & (key >= 0), "full")
causal = NamedMask(lambda batch, head, query, key: key <= query, "causal")


def padding(lengths: Int[Tensor, "batch"]) -> Mask:
    """Only the first `lengths[batch]` keys are words; the rest is padding."""
    _lengths(lengths)
    return Mask(lambda batch, head, query, key: key < lengths[batch], "padding", len(lengths))


def window(size: int) -> Mask:
    """Keys fewer than `size` positions away, to either side."""
    at_least(1, size=size)
    return Mask(lambda batch, head, query, key: (query - key).abs() < size, f"window({size})")


def dilated(stride: int) -> Mask:
    """Keys a multiple of `stride` positions away."""
    at_least(1, stride=stride)
    return Mask(lambda batch, head, query, key: (query - key) % stride == 0, f"dilated({stride})")


def strided(stride: int) -> Mask:
    """The last `stride` positions and every `stride`-th before them (Child et al. 2019, section 4.3, strided)."""
    at_least(1, stride=stride)
    return causal & (window(stride) | dilated(stride))


def fixed(stride: int, summary: int = 1) -> Mask:
    """The own block of `stride` and the last `summary` cells of each block (Child et al. 2019, section 4.3, fixed)."""
    at_least(1, stride=stride)
    between(1, stride, summary=summary)
    block = Mask(lambda batch, head, query, key: query // stride == key // stride, f"block({stride})")
    ends = Mask(lambda batch, head, query, key: key % stride >= stride - summary, f"summary({summary})")
    return causal & (block | ends)


def prefix(lengths: Int[Tensor, "batch"]) -> Mask:
    """The first `lengths[batch]` keys are open to all, the rest causally (Raffel et al. 2020, figure 3)."""
    _lengths(lengths)
    start = Mask(lambda batch, head, query, key: key < lengths[batch], "prefix", len(lengths))
    return causal | start


def documents(ids: Int[Tensor, "batch position"]) -> Mask:
    """Only keys of the query's own document, where several are packed into one row."""
    _axes(ids, 2, "ids", "batch position")
    return Mask(lambda batch, head, query, key: ids[batch, query] == ids[batch, key], "documents", len(ids))


def graph(edges: Bool[Tensor, "batch node node"]) -> Mask:
    """Only neighbours: node `query` may look at node `key` where `edges[batch, query, key]` (Velickovic et al. 2018).

    A node sees itself only where the edges say so; one without edges looks nowhere.
    """
    _axes(edges, 3, "edges", "batch node node")
    if edges.shape[1] != edges.shape[2]:
        raise ValueError(f"edges are {list(edges.shape)}; there must be as many nodes to look as to be looked at")
    readable = edges.is_floating_point() and edges.device.type == "cpu" and not torch.compiler.is_compiling()
    if readable and not ((edges == 0) | (edges == 1)).all():
        raise ValueError("edges hold numbers beside 0 and 1, which are no weights here; give edges > 0, say")
    linked = edges != 0  # an adjacency matrix of numbers would be added to the scores
    return Mask(lambda batch, head, query, key: linked[batch, query, key], "graph", len(edges))


def per_head(*masks: Mask) -> Mask:
    """Head h obeys `masks[h % len(masks)]`: the heads share a pattern out (Child et al. 2019, section 5.1).

    >>> per_head(window(1), causal).dense(2, 2, heads=2)[0].int().tolist()
    [[[1, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    if not masks:
        raise ValueError("per_head needs at least one mask, such as per_head(causal, window(3))")
    return PerHead(masks) if len(masks) > 1 else masks[0]


def _rebuild(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Mask:
    return globals()[name](*args, **named)


def _picklable(make: Callable[..., Mask]) -> Callable[..., Mask]:
    """The same function; its masks are copied and stored as what they were made of, since a rule cannot be."""

    @wraps(make)
    def making(*args: Any, **named: Any) -> Mask:
        mask = make(*args, **named)
        mask.recipe = _rebuild, (make.__name__, args, named)
        return mask

    return making


for _one in (padding, window, dilated, strided, fixed, prefix, documents, graph):
    globals()[_one.__name__] = _picklable(_one)


def _lengths(lengths: Tensor) -> None:
    _axes(lengths, 1, "lengths", "batch")
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths are {str(lengths.dtype).removeprefix('torch.')}; give whole numbers, batch")
    if lengths.device.type == "cpu" and lengths.numel():  # another device would have to be waited for
        at_least(0, lengths=lengths.min().item())


def _axes(table: Tensor, count: int, name: str, axes: str) -> None:
    if table.dim() != count:
        raise ValueError(f"{name} is {list(table.shape)}; it must have {count} axes: {axes}")
