"""Masks as predicates: which key may a query look at?

A mask is a function of four indices, `(batch, head, query, key) -> bool`, True where the query MAY look. Written
so, masks compose with `&`, `|` and `~`, become a dense tensor of any size, explain themselves cell by cell, and
serve as FlexAttention's `mask_mod` as they are.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import torch
from torch import Tensor

from tfviz.shapes import Bool, Int

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Mask:
    """A predicate over cells of an attention map.

    Args:
        rule: from index tensors `(batch, head, query, key)` that broadcast against each other to booleans.
        name: what the mask is called when it explains why a cell is forbidden.

    >>> causal.dense(3, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> (causal & window(2)).why(query=2, key=0)
    ['window(2)']
    """

    def __init__(self, rule: Rule, name: str):
        self.rule, self.name = rule, name

    def __call__(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.rule(batch, head, query, key)

    def __and__(self, other: "Mask") -> "Mask":
        return _Both(self, other)

    def __or__(self, other: "Mask") -> "Mask":
        return _Either(self, other)

    def __invert__(self) -> "Mask":
        return Mask(lambda *cell: ~self(*cell), f"~{self.name}")

    def __repr__(self) -> str:
        return self.name

    def dense(
        self,
        queries: int,
        keys: int,
        *,
        batch: int = 1,
        heads: int = 1,
        start: int = 0,
        device: torch.device | str | None = None,
    ) -> Bool[Tensor, "batch head query key"]:
        """The mask as a tensor. Batch and head have size 1 where the rule does not tell them apart.

        Args:
            start: the position of the first query; while generating, the keys already in the cache precede it.
        """

        def index(size: int, axis: int, first: int = 0) -> Tensor:
            shape = [-1 if other == axis else 1 for other in range(4)]
            return torch.arange(first, first + size, device=device).view(shape)

        allowed = self(index(batch, 0), index(heads, 1), index(queries, 2, start), index(keys, 3))
        return allowed.expand(*allowed.shape[:2], queries, keys)

    def blocks(
        self,
        queries: int,
        keys: int,
        *,
        batch: int | None = None,
        heads: int | None = None,
        start: int = 0,
        device: torch.device | str | None = None,
        size: int = 128,
    ) -> Any:
        """The mask as FlexAttention's `BlockMask`: a compiled kernel skips what it forbids. Making it is slow: keep it.

        Args:
            batch, heads: their number, where the rule tells them apart.
            start: the position of the first query, as in `dense`.
            size: queries and keys in a block.
        """
        from torch.nn.attention.flex_attention import create_block_mask

        rule = Mask(lambda b, h, query, key: self(b, h, query + start, key), self.name) if start else self
        device = torch.get_default_device() if device is None else device
        return create_block_mask(rule, batch, heads, queries, keys, device, size)

    def count(self, length: int, *, batch: int = 1, heads: int = 1) -> int:
        """How many cells it allows, in all heads of all rows of the batch; attention needs work in proportion.

        >>> causal.count(4), strided(2).count(4, heads=3)
        (10, 27)
        """
        rows = range(0, length, 128)  # a strip at a time, for little memory
        parts = (self.dense(min(128, length - row), length, batch=batch, heads=heads, start=row) for row in rows)
        return sum(int(part.expand(batch, heads, -1, -1).sum()) for part in parts)

    def why(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        """The names of the predicates that forbid this cell; an empty list where it is allowed."""
        cell = [torch.tensor(index) for index in (batch, head, query, key)]
        return [] if self(*cell) else [self.name]


class _Both(Mask):
    parts: tuple[Mask, ...]

    def __init__(self, left: Mask, right: Mask):
        joined = [part for mask in (left, right) for part in (mask.parts if isinstance(mask, _Both) else (mask,))]
        self.parts = tuple(dict.fromkeys(joined))  # what is joined twice is named once
        super().__init__(self._rule, f"({' & '.join(map(repr, self.parts))})")

    def _rule(self, *cell: Tensor) -> Tensor:
        return reduce(and_, (part(*cell) for part in self.parts))

    def why(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        return [name for part in self.parts for name in part.why(query, key, batch=batch, head=head)]


class _Either(Mask):
    def __init__(self, left: Mask, right: Mask):
        super().__init__(lambda *cell: left(*cell) | right(*cell), f"({left} | {right})")
        self.parts = (left, right)

    def why(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        reasons = [part.why(query, key, batch=batch, head=head) for part in self.parts]
        return [name for names in reasons for name in names] if all(reasons) else []


class _PerHead(Mask):
    def __init__(self, masks: tuple[Mask, ...]):
        super().__init__(self._rule, f"per_head({', '.join(map(repr, masks))})")
        self.parts = masks

    def _rule(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        turns = [head % len(self.parts) == turn for turn in range(len(self.parts))]
        return reduce(or_, (turn & part(batch, head, query, key) for turn, part in zip(turns, self.parts)))

    def why(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        return self.parts[head % len(self.parts)].why(query, key, batch=batch, head=head)


everything = Mask(lambda batch, head, query, key: (query >= 0) & (key >= 0), "everything")
causal = Mask(lambda batch, head, query, key: key <= query, "causal")


def padding(lengths: Int[Tensor, "batch"]) -> Mask:
    """Only the first `lengths[batch]` keys are words; the rest is padding."""
    return Mask(lambda batch, head, query, key: key < lengths[batch], "padding")


def window(size: int) -> Mask:
    """Keys fewer than `size` positions away, to either side."""
    _positive(size, "size")
    return Mask(lambda batch, head, query, key: (query - key).abs() < size, f"window({size})")


def every(stride: int) -> Mask:
    """Keys a multiple of `stride` positions away."""
    _positive(stride, "stride")
    return Mask(lambda batch, head, query, key: (query - key) % stride == 0, f"every({stride})")


def strided(stride: int) -> Mask:
    """The last `stride` positions and every `stride`-th before them (Child et al. 2019, section 4.3, strided)."""
    return causal & (window(stride) | every(stride))


def fixed(stride: int, summary: int = 1) -> Mask:
    """The own block of `stride` and the last `summary` cells of each block (Child et al. 2019, section 4.3, fixed)."""
    _positive(stride, "stride")
    block = Mask(lambda batch, head, query, key: query // stride == key // stride, f"block({stride})")
    ends = Mask(lambda batch, head, query, key: key % stride >= stride - summary, f"summary({summary})")
    return causal & (block | ends)


def prefix(lengths: Int[Tensor, "batch"]) -> Mask:
    """The first `lengths[batch]` keys are open to all, the rest causally (Raffel et al. 2020, figure 3)."""
    start = Mask(lambda batch, head, query, key: key < lengths[batch], "prefix")
    return causal | start


def documents(ids: Int[Tensor, "batch position"]) -> Mask:
    """Only keys of the query's own document, where several are packed into one row."""
    return Mask(lambda batch, head, query, key: ids[batch, query] == ids[batch, key], "documents")


def graph(edges: Bool[Tensor, "batch node node"]) -> Mask:
    """Only neighbours: node `query` may look at node `key` where `edges[batch, query, key]` (Velickovic et al. 2018).

    A node sees itself only where the edges say so; one without edges looks nowhere.
    """
    linked = edges != 0  # an adjacency matrix of numbers would be added to the scores
    return Mask(lambda batch, head, query, key: linked[batch, query, key], "graph")


def per_head(*masks: Mask) -> Mask:
    """Head h obeys `masks[h % len(masks)]`: the heads share a pattern out (Child et al. 2019, section 5.1).

    >>> per_head(window(1), causal).dense(2, 2, heads=2)[0].int().tolist()
    [[[1, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    if not masks:
        raise ValueError("per_head needs at least one mask, such as per_head(causal, window(3))")
    return _PerHead(masks) if len(masks) > 1 else masks[0]


def _positive(size: int, name: str) -> None:
    if size < 1:
        raise ValueError(f"{name} is {size}; it must be at least 1")
