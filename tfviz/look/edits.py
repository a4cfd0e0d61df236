"""Edits of attention weights for `capture(edit=)`, and of activations (`activation_edits`).

Heads, positions, queries and keys are counted from 0, or from the end with -1. `js/engine/edits.js` implements the same
edits of weights for pages, whose indices are never negative.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tfviz.look.activation_edits import ActivationEdit, add, mean, noise, paste, zero_activations
from tfviz.look.edit_indices import HeadIndices, PositionIndices, as_list, axis_index, check_indices
from tfviz.schema import describe
from tfviz.shapes import Bool, Float

__all__ = ["add", "hide", "mean", "noise", "paste", "pin", "uniform", "zero"]

Weights = Float[Tensor, "batch head query key"]
Cell = tuple[int | None, int | None]  # query, key; None: all
ROW_SUM_TOLERANCE = 1e-6  # by which the sum of a row's pinned weights may exceed 1


@dataclass(eq=False)
class ZeroHeads:
    """An edit that sets one head, several, or all (None) to zero.

    If it is the only edit of a pattern of fused attention, no map is computed: `capture` lets the kernel compute the
    output, and sets the output of these heads to zero.
    """

    head: HeadIndices = None

    def __post_init__(self) -> None:
        _check_numbers(self.head)

    def zeroed_mask(self, heads: int, site: str) -> Bool[Tensor, "head"]:
        """Return a mask over the heads, True for each head that is set to zero.

        Raises:
            ValueError: there is no such head.
        """
        mask = torch.zeros(heads, dtype=torch.bool)
        mask[axis_index("head", self.head, heads)] = True
        return mask

    def __call__(self, tensor: Tensor, site: str = "pattern") -> Tensor:
        kind = site.rpartition(".")[2]
        if kind in ("scores", "softmax"):
            raise ValueError(f"{site}: a score of zero is not a weight of zero; name the site that ends in .pattern")
        if kind != "pattern":
            return zero_activations(self.head)(tensor, site)
        _check_axes(tensor)
        return tensor.masked_fill(self.zeroed_mask(tensor.shape[1], site).to(tensor.device).view(-1, 1, 1), 0.0)


def zero(head: HeadIndices = None, positions: PositionIndices = None) -> ZeroHeads | ActivationEdit:
    """Return an edit that sets the weights or activations of a head, of several, or of all (None) to zero.

    Without `positions`, and as the only edit of a pattern of fused attention, it computes no map: the head's output is
    set to zero. At a module's output, which has no head axis, it sets the whole output to zero.

    Args:
        head: the head or heads to edit; None: all.
        positions: the positions to edit, counted from 0, or from the end with -1; for a pattern, the rows of these
            queries; a tensor [batch]: one position in each text; None: all.

    >>> zero(1)(torch.full((1, 2, 1, 4), 0.25))[0, :, 0, 0]
    tensor([0.2500, 0.0000])
    """
    return ZeroHeads(head) if positions is None else zero_activations(head, positions)


def uniform(head: HeadIndices = None) -> Callable[[Tensor], Tensor]:
    """Return an edit that replaces the nonzero weights of each row with a uniform distribution.

    >>> uniform()(torch.tensor([[[[0.75, 0.25, 0.0]]]]))
    tensor([[[[0.5000, 0.5000, 0.0000]]]])
    """

    def spread(weights: Tensor) -> Tensor:
        seen = weights > 0
        return (seen / seen.sum(-1, keepdim=True).clamp(min=1)).to(weights.dtype)

    return _of_head(head, spread)


def hide(cells: Sequence[Cell], head: HeadIndices = None) -> Callable[[Tensor], Tensor]:
    """Return an edit that sets weights of keys to zero and rescales the others, so that the row still sums to 1.

    A query without any other key gets a row of zeros, like a fully masked one.

    Args:
        cells: pairs (query, key) of indices; None: every query, or every key.
        head: the head or heads to edit; None: all.

    >>> hide([(0, 0)])(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    return pin(cells, 0.0, head)


def pin(cells: Sequence[Cell], weight: float, head: HeadIndices = None) -> Callable[[Tensor], Tensor]:
    """Return an edit that sets weights of keys to a number and rescales the others, so that the row still sums to 1.

    A fully masked row remains zero. A masked cell can be pinned, too.

    Args:
        cells: pairs (query, key) of indices; None: every query, or every key.
        weight: that of each pinned cell, from 0 to 1; 0 is the same as `hide`.
        head: the head or heads to edit; None: all.

    Raises:
        ValueError: `weight` is not from 0 to 1. The edit raises it if there is no such query or key, or if the pinned
            weights of a row sum to more than 1, or to less where no other key can take the rest.

    >>> pin([(0, 0)], 0.8)(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.8000, 0.1000, 0.1000]]]])
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight is {weight}; a weight lies between 0 and 1")
    names_queries = any(query is not None for query, _ in cells)
    shapes: set[tuple[int, ...]] = set()

    def set_weights(weights: Tensor) -> Tensor:
        if names_queries:
            _warn_of_steps(shapes, tuple(weights.shape[-2:]))
        pinned = _cell_mask(cells, weights.shape[-2:]).to(weights.device)
        rest = 1 - weight * pinned.sum(-1, keepdim=True, dtype=torch.float64)
        if (rest < -ROW_SUM_TOLERANCE).any():
            query, count = _first_row(rest < -ROW_SUM_TOLERANCE, pinned)
            most = f"more than 1 in all; give at most {1 / count:.4g}, or fewer"
            raise ValueError(f"weight is {weight}, for {count} keys of query {query}: {most}")
        rows = weights if weights.dtype == torch.float64 else weights.float()  # float16 is too coarse for sums
        rest = rest.clamp(min=0).to(rows)  # exactly 0 if only rounding errors are left
        others = rows.masked_fill(pinned, 0.0)
        sums = others.sum(-1, keepdim=True)
        changed = pinned.any(-1, keepdim=True) & (rows.sum(-1, keepdim=True) != 0)
        if weight and (lost := changed & (sums == 0) & (rest > ROW_SUM_TOLERANCE)).any():
            query, count = _first_row(lost, pinned)
            raise ValueError(
                f"weight is {weight}, for {count} of the keys of query {query}, which sees no other key that could "
                f"take the remaining weight: give {1 / count:.4g}, or leave the query out"
            )
        shared = others / torch.where(sums == 0, 1.0, sums) * rest
        return torch.where(changed, shared.masked_fill(pinned, weight), rows).to(weights.dtype)

    return _of_head(head, set_weights)


def _warn_of_steps(shapes: set[tuple[int, ...]], shape: tuple[int, ...]) -> None:
    """Warn if queries arrive one by one, as in generation with a cache, where each has the index 0."""
    shapes.add(shape)
    if shape[0] == 1 and len(shapes) > 1:
        warnings.warn(
            "the model computes one query at a time, as in generation with a cache, where each has index 0, so the "
            "edit cannot tell them apart; give None for the query, or generate with use_cache=False",
            stacklevel=2,
        )


def _cell_mask(cells: Sequence[Cell], shape: Sequence[int]) -> Bool[Tensor, "query key"]:
    """Return a mask, True for the selected cells."""
    mask = torch.zeros(*shape, dtype=torch.bool)
    for cell in cells:
        for name, index, count in zip(("query", "key"), cell, shape):
            if index is not None:
                check_indices(name, [index], count)
        mask[tuple(slice(None) if index is None else index for index in cell)] = True
    return mask


def _first_row(rows: Bool[Tensor, "*lead query 1"], pinned: Bool[Tensor, "query key"]) -> tuple[int, int]:
    """Return the query of the first True row, and the number of its pinned keys."""
    query = int(rows.nonzero()[0, -2])
    return query, int(pinned[query].sum())


def _check_numbers(head: HeadIndices) -> None:
    """Raise ValueError if a head is a string that is not a number."""
    as_list("head", () if head is None else head)


def _check_axes(weights: Tensor) -> None:
    if not isinstance(weights, Tensor) or not weights.is_floating_point():
        kind = weights.dtype if isinstance(weights, Tensor) else describe(weights)
        raise TypeError(f"weights are {kind}; an edit takes a tensor of floats, batch head query key")
    if weights.dim() != 4:
        raise ValueError(f"weights are {list(weights.shape)}; an edit of a head takes batch head query key")


def _of_head(head: HeadIndices, change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return an edit that applies `change` to one head, to several, or to all (None)."""
    _check_numbers(head)

    def edit(weights: Tensor) -> Tensor:
        _check_axes(weights)
        if head is None:
            return change(weights)
        heads = axis_index("head", head, weights.shape[1])
        edited = weights.clone()
        edited[:, heads] = change(weights[:, heads])
        return edited

    edit.changes_weights = True  # type: ignore[attr-defined]
    return edit
