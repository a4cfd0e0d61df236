"""What the keys of a firing are, in a few numbers each, so that firings of one text can be told from those of another.

A key, or the value beside it, is projected on a few fixed random directions (Johnson & Lindenstrauss 1984): the same
key gives the same numbers wherever a cache has moved it, another key gives others. Of each firing only those keys are
kept that the firing before did not have at the same place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.look.axes import Layout
from tfviz.look.call import Call
from tfviz.look.products import Product
from tfviz.shapes import Bool, Float, Int

WIDTH = 8  # numbers for a key
NEAR = 1e-3  # relative distance within which two signatures are of the same key, computed twice in float32
NEAR_HALF = 2e-2  # the same in half precision

Keys = Float[Tensor, "_ _ width"]  # batch key width


class Change(NamedTuple):
    """The keys of a firing: those of the firing before with others from `start` on, `more` after them as they were."""

    start: int
    keys: Keys
    more: int


class Firing(NamedTuple):
    """What is known of one firing of a site.

    Attributes:
        call: number of the model's call that it belongs to.
        queries: how many.
        begins: for each text one past the last key that its first query may see.
        starts, ends: for each text the first key that its last query may see, and one past the last.
        near: the relative distance within which two signatures are of the same key.
    """

    call: int
    queries: int
    begins: Int[Tensor, "batch"]
    starts: Int[Tensor, "batch"]
    ends: Int[Tensor, "batch"]
    near: float


class Log:
    """The firings of one site, first to last, and what their keys are."""

    def __init__(self) -> None:
        self.firings: list[Firing] = []
        self.grows = False  # whether a firing had keys that the one before did not have, and some that it had
        self._changes: list[Change] = []
        self._last: Keys | None = None

    def add(self, firing: Firing, keys: Keys) -> None:
        self.firings.append(firing)
        before, self._last = self._last, keys
        if before is None or before.shape[0] != keys.shape[0]:
            self._changes.append(Change(0, keys, 0))
            return
        common = min(before.shape[1], keys.shape[1])
        other = (before[:, :common] != keys[:, :common]).any(-1).any(0)
        start = int(other.to(torch.uint8).argmax()) if other.any() else common
        more = 0
        if before.shape[1] == keys.shape[1] and start < common:  # a cache of fixed size: the rest is as it was
            more = int(other.flip(0).to(torch.uint8).argmax())
        if not self.grows and start < keys.shape[1] and firing.queries < keys.shape[1]:  # some are new, some were there
            self.grows = bool((before[0] == keys[0, 0]).all(-1).any())
        self._changes.append(Change(start, keys[:, start : keys.shape[1] - more].clone(), more))

    def __iter__(self) -> Iterator[Keys]:
        """The signatures of each firing."""
        last: Keys | None = None
        for start, keys, more in self._changes:
            if last is None or not (start or more):  # nothing stayed; there may be another number of texts
                last = keys
            else:
                last = torch.cat([last[:, :start], keys, last[:, last.shape[1] - more :]], 1)
            yield last


@lru_cache(maxsize=64)
def _directions(size: int, device: torch.device) -> Float[Tensor, "size width"]:
    return torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(size)).to(device) / size**0.5


def near(dtype: torch.dtype) -> float:
    return NEAR_HALF if dtype in (torch.float16, torch.bfloat16) else NEAR


def of_call(call: Call, axes: Layout) -> Keys:
    """Of the keys of a fused call: the mean over heads, which is the same whether or not a model has repeated them."""
    key = call.key.float()
    directions = _directions(key.shape[-1], key.device)
    if axes.is_plain:
        return _finite(key.mean(1) @ directions).cpu()
    projected = key.repeat_interleave(call.shape[1] // key.shape[1], 1) @ directions
    return _arranged(projected.reshape(*call.lead, 1, *projected.shape[-2:]), axes)


def of_product(made: Product, place: int, keys: int, axes: Layout) -> Keys:
    """Of the values of a product with weights, whose axis number `keys` is that of the keys."""
    own, other = made.letters[place], made.letters[1 - place]
    values = made.factors[1 - place].float()
    shared = [axis for axis, letter in enumerate(own) if letter is not None and letter in other and axis != keys]
    order = [*(other.index(own[axis]) for axis in shared), other.index(own[keys])]
    features = [axis for axis in range(values.dim()) if axis not in order]
    flat = values.permute(*order, *features).flatten(len(order)) if features else values.permute(*order)[..., None]
    projected = flat @ _directions(flat.shape[-1], flat.device)
    sizes = [projected.shape[shared.index(axis)] if axis in shared else 1 for axis in range(len(own))]
    sizes[keys] = projected.shape[-2]
    places = sorted(range(len(order)), key=[*shared, keys].__getitem__)
    return _arranged(projected.permute(*places, len(order)).reshape(*sizes, WIDTH), axes)


def _arranged(projected: Float[Tensor, "*axes width"], axes: Layout) -> Keys:
    """From the axes that weights have, with one query or as many as there are, to batch key width."""
    batch, heads, _, keys = axes.four
    given = list(axes.given)
    if axes.order == tuple(sorted(axes.order)) and given[-2:] == list(axes.four[-2:]):
        given[-2], moved = 1, lambda one: one.reshape(batch, heads, keys)
    else:
        moved = lambda one: axes.to(one)[:, :, 0]  # noqa: E731
    columns = [moved(column.expand(given)) for column in projected.unbind(-1)]
    return _finite(torch.stack(columns, -1).mean(1)).cpu()


def _finite(keys: Tensor) -> Tensor:
    if keys.is_meta:  # of no numbers all are alike
        return torch.zeros(keys.shape)
    return keys.nan_to_num(0.0, 0.0, 0.0)


def reach(seen: Bool[Tensor, "batch head 1 key"] | None, keys: Keys) -> tuple[Tensor, Tensor]:
    """For each text the first key that a query may see, and one past the last; all where it may see none."""
    batch, count, _ = keys.shape
    if seen is None or seen.is_meta:
        return torch.zeros(batch, dtype=torch.long), torch.full((batch,), count)
    may = seen[:, :, 0].any(1).cpu().expand(batch, count)
    some, marks = may.any(-1), may.to(torch.uint8)
    return torch.where(some, marks.argmax(-1), 0), torch.where(some, count - marks.flip(-1).argmax(-1), count)
