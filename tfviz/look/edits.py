"""Changes of attention weights, for `capture(edit=)`; the page's engine makes the same (`js/engine/edits.js`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tfviz.shapes import Float

Weights = Float[Tensor, "batch head query key"]
Cell = tuple[int | None, int | None]  # query, key; None for every one


def zero(head: int | None = None) -> Callable[[Tensor], Tensor]:
    """The head gives nothing; None for every head.

    >>> zero(1)(torch.full((1, 2, 1, 4), 0.25))[0, :, 0, 0]
    tensor([0.2500, 0.0000])
    """
    return _changed(head, torch.zeros_like)


def even(head: int | None = None) -> Callable[[Tensor], Tensor]:
    """The head looks evenly at all that it may see: that is, where it has a weight at all.

    >>> even()(torch.tensor([[[[0.75, 0.25, 0.0]]]]))
    tensor([[[[0.5000, 0.5000, 0.0000]]]])
    """

    def change(weights: Tensor) -> Tensor:
        may = (weights > 0).to(weights.dtype)
        return may / may.sum(-1, keepdim=True).clamp(min=1)

    return _changed(head, change)


def hide(cells: Sequence[Cell], head: int | None = None) -> Callable[[Tensor], Tensor]:
    """A query may not look at a key; what it gave it, the other keys of its row share in proportion.

    >>> hide([(0, 0)])(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    return pin(cells, 0.0, head)


def pin(cells: Sequence[Cell], to: float, head: int | None = None) -> Callable[[Tensor], Tensor]:
    """A query looks at a key with this weight; the other keys of its row share what is left in proportion.

    >>> pin([(0, 0)], 0.8)(torch.tensor([[[[0.5, 0.25, 0.25]]]]))
    tensor([[[[0.8000, 0.1000, 0.1000]]]])
    """
    if not 0 <= to <= 1:
        raise ValueError(f"to is {to}; a weight lies between 0 and 1")

    def change(weights: Tensor) -> Tensor:
        chosen = torch.zeros(weights.shape[-2:], dtype=torch.bool, device=weights.device)
        for cell in cells:
            chosen[tuple(_places(name, at, many) for name, at, many in zip(("query", "key"), cell, chosen.shape))] = (
                True
            )
        others = weights.masked_fill(chosen, 0.0)
        sums = others.sum(-1, keepdim=True)
        left = 1 - to * chosen.sum(-1, keepdim=True)
        shared = torch.where(sums > 0, others / sums.clamp(min=torch.finfo(weights.dtype).tiny) * left, 0.0)
        touched = chosen.any(-1, keepdim=True)
        return torch.where(touched, shared.masked_fill(chosen, to), weights)

    return _changed(head, change)


def _places(name: str, at: int | None, many: int) -> int | slice:
    if at is None:
        return slice(None)
    if not 0 <= at < many:
        raise ValueError(f"there is no {name} {at}; there are {many}, counted from 0")
    return at


def _changed(head: int | None, change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The change, of one head or of all."""

    def edit(weights: Tensor) -> Tensor:
        if head is None:
            return change(weights)
        if not 0 <= head < weights.shape[1]:
            raise ValueError(f"head is {head}; there are {weights.shape[1]}, counted from 0")
        made = weights.clone()
        made[:, head] = change(weights[:, head])
        return made

    return edit
