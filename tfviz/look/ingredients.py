"""What attention weights are made of, kept in place of them: any part is computed when it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tfviz.look.call import ALL, Call, is_open
from tfviz.look.kept import across, blocks
from tfviz.look.recompute import pattern, weights
from tfviz.look.spans import Spans
from tfviz.shapes import Bool, Float

TILE = 16 * 2**20  # bytes of float32 scores at a time


class Shelf:
    """Keeps calls, each in the type of its model and without what it repeats.

    Args:
        device: where; None: where they are.
    """

    def __init__(self, device: torch.device | str | None = None) -> None:
        self.device = device
        self.rules: dict[tuple[object, ...], tuple[Tensor, Tensor | Spans]] = {}

    def keep(self, call: Call, groups: int | None = None) -> Call:
        """
        Args:
            groups: how many heads of keys there are, where the model says so: it may have repeated them.
        """
        mask = self._rule(call.mask) if isinstance(call.mask, Tensor) else call.mask
        if (
            isinstance(mask, Spans) and mask.first.shape[2] != call.shape[2]
        ):  # a mask of one row stands for all queries, of which some may be looked at
            first, stop = (part.expand(-1, -1, call.shape[2]) for part in mask[:2])
            mask = Spans(first, stop, mask.keys)
        query, key = (self._copy(part) for part in (call.query, _once(call.key, groups)))
        return Call(query, key, key[..., :0], mask, call.scale, call.change)

    def _copy(self, part: Tensor) -> Tensor:
        """Of its own: the model may write over it, and one of three parts would keep all three in memory."""
        return part.detach().to(self.device or part.device, copy=True, memory_format=torch.contiguous_format)

    def _closed(self, mask: Tensor) -> Tensor:
        """A mask's copy; the lowest number of its type hides as -inf does, also where all is hidden."""
        copy = self._copy(mask)
        return copy if copy.dtype == torch.bool else copy.masked_fill_(~is_open(copy), -torch.inf)

    def _rule(self, mask: Tensor) -> Tensor | Spans:
        """A mask as spans if it is of that kind, else a copy; all layers share it."""
        version = None if mask.is_inference() else mask._version
        known = (mask.data_ptr(), mask.shape, mask.stride(), mask.dtype, version)
        if version is None or known not in self.rules:
            hides = mask if mask.dtype == torch.bool else _hides(mask)
            rule = None if hides is None else Spans.of(_unexpanded(hides))
            kept = self._closed(_unexpanded(mask)) if rule is None else rule.to(self.device or mask.device)
            self.rules[known] = mask, kept  # the mask, too: else another could come to lie in its place
        return self.rules[known][1]


def _once(key: Tensor, groups: int | None) -> Tensor:
    """Keys without their copies for other heads."""
    heads = key.shape[1]
    if key.stride(1) == 0 and heads > 1:
        return key[:, :1]
    if not groups or heads % groups or groups == heads:
        return key
    parted = key.unflatten(1, (groups, -1))
    return parted[:, :, 0] if torch.equal(parted, parted[:, :, :1].expand_as(parted)) else key


def _hides(added: Tensor) -> Tensor | None:
    """A mask that is added to scores as one that hides, if it does nothing else."""
    shown = added == 0
    return shown if bool((shown | ~is_open(added)).all()) else None


def _unexpanded(mask: Tensor) -> Tensor:
    """Without the axes that an expansion made."""
    return mask[tuple(slice(0, 1) if stride == 0 else ALL for stride in mask.stride()[:2])]


class Ingredients:
    """One layer's weights of one text, head query key, as what they are made of."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.dtype = torch.float32
        self._sums: dict[int, Tensor] = {}  # head -> logarithm of the sum of each row's exponentials

    @classmethod
    def of(cls, call: Call, batch: int) -> Ingredients:
        """Of one text of a call."""
        return cls(_narrowed(call, batch=batch))

    def with_parts(self, query: Tensor, key: Tensor, head: int) -> Ingredients:
        """One head, made of other queries and keys: position dim."""
        mask = _narrowed(self.call, head=head).mask
        return Ingredients(Call(query[None, None], key[None, None], key[None, None, :, :0], mask, self.call.scale))

    @property
    def shape(self) -> tuple[int, int, int]:
        """head query key"""
        return self.call.shape[1:]

    @torch.no_grad()
    def __getitem__(self, where: tuple[Any, ...]) -> Float[Tensor, "*cells"]:
        """All weights, those of a head, or of some of its queries and keys, as a tensor is indexed."""
        if not where:
            return pattern(self.call, torch.float32)[0].cpu()
        head, *cells = where
        call = self._head(head)
        if not cells:
            return pattern(call, torch.float32)[0, 0].cpu()
        row, keys = cells[0], cells[1:]
        rows = row if isinstance(row, slice) else slice(row, row + 1 or None)
        soft = weights(call.scores(rows))[0, 0].cpu()
        return soft[(ALL if isinstance(row, slice) else 0, *keys)]

    def allowed(self, head: int, rows: slice = ALL, keys: slice = ALL) -> Bool[Tensor, "row key"] | None:
        """True where a query may look; None if nothing is forbidden."""
        allowed = self._head(head).allowed(rows, keys)
        return None if allowed is None else allowed[0, 0].cpu()

    def opened(self, head: int, block: int) -> Bool[Tensor, "down across"] | None:
        """Blocks of cells of which some may be seen; None if nothing is forbidden."""
        mask = self._head(head).mask
        if not isinstance(mask, Spans):
            allowed = self.allowed(head)
            return None if allowed is None else blocks(allowed.float(), block) > 0
        seen = mask.stop > mask.first
        first = torch.where(seen, mask.first, mask.keys)[0, 0].cpu()
        stop = torch.where(seen, mask.stop, 0)[0, 0].cpu()
        made = torch.zeros(-(-len(first) // block), -(-mask.keys // block), dtype=torch.bool)
        for down, rows in enumerate(zip(first.split(block), stop.split(block))):
            made[down, int(rows[0].min()) // block : -(-int(rows[1].max()) // block)] = True
        return made

    @torch.no_grad()
    def tile(self, head: int, rows: slice = ALL, keys: slice = ALL, block: int = 1) -> Float[Tensor, "down across"]:
        """The largest weight of each `block` x `block` cells of a part of the map.

        The sum of each row's exponentials is computed once, and kept.
        """
        call, (_, queries, count) = self._head(head), self.shape
        (top, bottom, _), (left, right, _) = rows.indices(queries), keys.indices(count)
        made = torch.zeros(-(-(bottom - top) // block), -(-(right - left) // block), device=call.query.device)
        height = max(block, TILE // (4 * count) // block * block)
        for start in range(top, bottom, height):
            part = slice(start, min(start + height, bottom))
            reach = call.reach(part)
            seen = slice(max(left, reach.start), min(right, reach.stop))
            if seen.start < seen.stop:
                largest = blocks(self._cells(call, head, part, seen, reach), block, (seen.start - left) % block)
                down, across = (start - top) // block, (seen.start - left) // block
                made[down : down + len(largest), across : across + largest.shape[1]] = largest
        return made.cpu()

    def sketch(self, head: int, block: int) -> Float[Tensor, "down across"]:
        """Of each `block` x `block` cells the largest weight of their first row: a part of the work of all of them."""
        return across(self[(head, slice(None, None, block))], block)

    def _cells(self, call: Call, head: int, rows: slice, keys: slice, reach: slice) -> Tensor:
        """Weights of some rows and keys; `reach` are all keys that these rows may see."""
        unknown = torch.full((self.shape[1],), torch.nan, device=call.query.device)
        sums = self._sums.setdefault(head, unknown)[rows]  # a view
        if not sums.isnan().any():
            return (call.scores(rows, keys)[0, 0] - sums[:, None]).exp_()
        scores = call.scores(rows, reach)[0, 0]
        soft = weights(scores)
        strongest, share = scores.amax(-1), soft.amax(-1)
        sums.copy_(torch.where(share > 0, strongest - share.log(), torch.inf))
        return soft[:, keys.start - reach.start : keys.stop - reach.start]

    def _head(self, head: int) -> Call:
        call = _narrowed(self.call, head=head)
        return replace(call, query=call.query.float(), key=call.key.float())


def _narrowed(call: Call, batch: int = 0, head: int | None = None) -> Call:
    """One text of a call, or one head of that."""
    mask, change = call.mask, call.change
    if isinstance(mask, Spans):
        mask = mask.at(batch, head)
    elif mask is not None:
        mask = mask[batch if len(mask) > 1 else 0][None]
        mask = mask if head is None or mask.shape[1] == 1 else mask[:, head, None]
    if call.change is not None:
        change = _moved(call.change, batch, head or 0)
    query, key, value = (part[batch, None] for part in (call.query, call.key, call.value))
    if head is not None:
        group = head * key.shape[1] // query.shape[1]
        query, key, value = query[:, head, None], key[:, group, None], value[:, group, None]
    return Call(query, key, value, mask, call.scale, change)


def _moved(change: Callable[..., Tensor], batch: int, head: int) -> Callable[..., Tensor]:
    """A rule for cells of one text and head, from one for those of all."""
    return lambda score, b, h, q, k: change(score, b + batch, h + head, q, k)
