"""Edits of attention weights for `capture(edit=)`; the page's engine makes the same (`js/engine/edits.js`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tfviz.doors import what
from tfviz.shapes import Bool, Float

Weights = Float[Tensor, "batch head query key"]
Cell = tuple[int | None, int | None]  # query, key; None for every one
SLACK = 1e-6  # of a sum of weights


class ZeroHeads:
    """An edit of a pattern that needs no map: some heads are switched off, and the others stay as they are.

    `capture` lets a fused kernel compute the output, and writes zeros where these heads have it.
    """

    of_weights = True

    def off(self, heads: int, site: str) -> Bool[Tensor, "head"]:
        """Return True for each of so many heads that is switched off.

        Raises:
            ValueError: there is no such head.
        """
        raise NotImplementedError

    def __call__(self, weights: Weights, site: str = "pattern") -> Weights:
        _check_axes(weights)
        return weights.masked_fill(self.off(weights.shape[1], site).to(weights.device).view(-1, 1, 1), 0.0)


@dataclass(frozen=True)
class ZeroHead(ZeroHeads):
    """One head is switched off; None: every head."""

    head: int | None

    def off(self, heads: int, site: str) -> Bool[Tensor, "head"]:
        if self.head is None:
            return torch.ones(heads, dtype=torch.bool)
        _check_head(self.head, heads)
        return torch.arange(heads) == self.head


def zero(head: int | None = None) -> ZeroHead:
    """Return an edit that switches a head off; None: every head.

    Alone at a site of fused attention it needs no map: the kernel's output of the head becomes zeros.

    >>> zero(1)(torch.full((1, 2, 1, 4), 0.25))[0, :, 0, 0]
    tensor([0.2500, 0.0000])
    """
    return ZeroHead(head)


def even(head: int | None = None) -> Callable[[Tensor], Tensor]:
    """Return an edit that lets a head look evenly at all that it may see: where it has a weight at all.

    >>> even()(torch.tensor([[[[0.75, 0.25, 0.0]]]]))
    tensor([[[[0.5000, 0.5000, 0.0000]]]])
    """

    def change(weights: Tensor) -> Tensor:
        may = weights > 0
        return (may / may.sum(-1, keepdim=True).clamp(min=1)).to(weights.dtype)

    return _changed(head, change)


def hide(cells: Sequence[Cell], head: int | None = None) -> Callable[[Tensor], Tensor]:
    """A query may not look at a key; what it gave it, the other keys of its row share in proportion.

    A query that is left with nothing to look at has a row of zeros, as one that the mask forbids everything.

    >>> hide([(0, 0)])(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    return pin(cells, 0.0, head)


def pin(cells: Sequence[Cell], to: float, head: int | None = None) -> Callable[[Tensor], Tensor]:
    """A query looks at a key with this weight; the other keys of its row share what is left in proportion.

    Rows go on adding up to 1, and a query that sees nothing goes on seeing nothing. The mask is not asked: a cell that
    it forbids can be pinned.

    Args:
        to: from 0 to 1; each of the keys that are pinned in a row gets so much. 0 does as `hide`.

    Raises:
        ValueError: more than 1 is given away in a row; or less, where no other key is left to share the rest.

    >>> pin([(0, 0)], 0.8)(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.8000, 0.1000, 0.1000]]]])
    """
    if not 0 <= to <= 1:
        raise ValueError(f"to is {to}; a weight lies between 0 and 1")

    of_queries = any(query is not None for query, _ in cells)
    sizes: set[tuple[int, ...]] = set()

    def change(weights: Tensor) -> Tensor:
        if of_queries:
            _check_steps(sizes, tuple(weights.shape[-2:]))
        chosen = _chosen(cells, weights.shape[-2:])
        left = 1 - to * chosen.sum(-1, keepdim=True, dtype=torch.float64)
        _check_left(left, chosen, to)
        rows = weights if weights.dtype == torch.float64 else weights.float()  # halves have no room for sums
        chosen, left = chosen.to(rows.device), left.to(rows)
        others = rows.masked_fill(chosen, 0.0)
        sums = others.sum(-1, keepdim=True)
        touched = chosen.any(-1, keepdim=True) & (rows.sum(-1, keepdim=True) != 0)
        if to:
            _check_shared(touched & (sums == 0) & (left > SLACK), chosen, to)
        shared = others / torch.where(sums == 0, 1.0, sums) * left
        return torch.where(touched, shared.masked_fill(chosen, to), rows).to(weights.dtype)

    return _changed(head, change)


def _check_steps(sizes: set[tuple[int, ...]], now: tuple[int, ...]) -> None:
    """Tell of cells that are counted anew in each step of generation."""
    sizes.add(now)
    if now[0] == 1 and len(sizes) > 1:
        warnings.warn(
            "an edit of cells meets one query at a time, as in generation with a cache, where each is query 0: give "
            "None for the query, or generate with use_cache=False",
            stacklevel=2,
        )


def _chosen(cells: Sequence[Cell], shape: Sequence[int]) -> Bool[Tensor, "query key"]:
    chosen = torch.zeros(*shape, dtype=torch.bool)
    for cell in cells:
        chosen[tuple(_places(name, at, many) for name, at, many in zip(("query", "key"), cell, shape))] = True
    return chosen


def _check_left(left: Float[Tensor, "query 1"], chosen: Bool[Tensor, "query key"], to: float) -> None:
    """No row gives away more than it has; its `left` becomes exactly 0 where nothing is left but for rounding."""
    if left.numel() and left.min() < -SLACK:
        query = int(left.argmin())
        count = int(chosen[query].sum())
        raise ValueError(
            f"to is {to}, for {count} keys of query {query}: more than 1 in all; give at most {1 / count:.4g}, or fewer"
        )
    left.clamp_(min=0)


def _check_shared(wrong: Bool[Tensor, "*lead query 1"], chosen: Bool[Tensor, "query key"], to: float) -> None:
    """Where less than 1 is given away there is a key that takes the rest."""
    if wrong.any():
        query = int(wrong.nonzero()[0, -2])
        count = int(chosen[query].sum())
        raise ValueError(
            f"to is {to}, for {count} of the keys of query {query}, which sees no other that could have the rest: give "
            f"{1 / count:.4g}, or leave the query out"
        )


def _places(name: str, at: int | None, many: int) -> int | slice:
    if at is None:
        return slice(None)
    if not 0 <= at < many:
        raise ValueError(f"there is no {name} {at}; there are {many}, counted from 0")
    return at


def _check_head(head: int, heads: int) -> None:
    if not 0 <= head < heads:
        raise ValueError(f"head is {head}; there are {heads}, counted from 0")


def _check_axes(weights: Tensor) -> None:
    if not isinstance(weights, Tensor):
        raise TypeError(f"weights are {what(weights)}; an edit of a head takes a tensor, batch head query key")
    if weights.dim() != 4:
        raise ValueError(f"weights are {list(weights.shape)}; an edit of a head takes batch head query key")


def _changed(head: int | None, change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The change, of one head or of all."""

    def edit(weights: Tensor) -> Tensor:
        if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.dim() < 2:
            kind = f"{weights.dtype} {list(weights.shape)}" if isinstance(weights, Tensor) else what(weights)
            raise TypeError(f"weights are {kind}; an edit takes a tensor of floats, batch head query key")
        if head is None:
            return change(weights)
        _check_axes(weights)
        _check_head(head, weights.shape[1])
        made = weights.clone()
        made[:, head] = change(weights[:, head])
        return made

    edit.of_weights = True  # type: ignore[attr-defined]
    return edit
