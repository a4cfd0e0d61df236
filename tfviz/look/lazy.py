"""Lazy attention: queries, keys and mask are stored instead of weights, and parts of a map are computed on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tfviz.look.attention_call import EVERY_INDEX, AttentionCall, is_unmasked, softmax_weights
from tfviz.look.key_ranges import KeyRanges, select
from tfviz.look.map_arguments import memory_view, unexpanded
from tfviz.look.quantization import max_pool_2d, max_pool_keys
from tfviz.shapes import Bool, Float

TILE_BYTES = 16 * 2**20  # of float32 scores computed at a time


class LazyStore:
    """A store for arguments of attention calls, in the model's dtype, without repeated heads or masks.

    Args:
        device: the device on which they are stored; None: the model's.
    """

    def __init__(self, device: torch.device | str | None = None) -> None:
        self.device = device
        self._masks: dict[tuple[object, ...], tuple[Tensor, Tensor | KeyRanges]] = {}

    def keep(self, call: AttentionCall, kv_heads: int | None = None) -> AttentionCall:
        """Return a copy of a call without its values.

        Args:
            call: the call to copy.
            kv_heads: the number of heads of keys, if the model declares it; keys that it repeated for other heads are
                dropped.
        """
        mask = self._shared_mask(call.mask) if isinstance(call.mask, Tensor) else call.mask
        if isinstance(mask, KeyRanges) and self.device is not None and mask.first.device != torch.device(self.device):
            mask = mask.to(self.device)  # else it stays the one that other layers share
        if isinstance(mask, KeyRanges) and mask.first.shape[2] < call.shape[2]:  # one row for all queries
            first, stop = (part.expand(-1, -1, call.shape[2]) for part in mask[:2])
            mask = KeyRanges(first, stop, mask.keys)
        query, key = self._copy(call.query), self._copy(_without_repeats(call.key, kv_heads))
        return AttentionCall(query, key, key[..., :0], mask, call.scale, call.score_mod)

    def _copy(self, part: Tensor) -> Tensor:
        """Return a copy: the model may overwrite the tensor, and a view would keep queries, keys and values alive."""
        return part.detach().to(self.device or part.device, copy=True, memory_format=torch.contiguous_format)

    def _shared_mask(self, mask: Tensor) -> Tensor | KeyRanges:
        """Return a mask as key ranges if its rows have no gaps, otherwise as a copy; it is shared by all layers."""
        version = None if mask.is_inference() else mask._version
        known = (*memory_view(mask), version)
        if version is None or known not in self._masks:
            boolean = mask if mask.dtype == torch.bool else _as_boolean(mask)
            key_ranges = None if boolean is None else KeyRanges.from_mask(unexpanded(boolean, axes=2))
            copy = (
                self._copy_mask(unexpanded(mask, axes=2))
                if key_ranges is None
                else key_ranges.to(self.device or mask.device)
            )
            self._masks[known] = mask, copy  # keep the mask alive, so that its address is not reused
        return self._masks[known][1]

    def _copy_mask(self, mask: Tensor) -> Tensor:
        """Return a copy in which the lowest value of a float dtype is replaced by -inf, also in fully masked rows."""
        copy = self._copy(mask)
        return copy if copy.dtype == torch.bool else copy.masked_fill_(~is_unmasked(copy), -torch.inf)


def _without_repeats(key: Tensor, kv_heads: int | None) -> Tensor:
    """Return keys without the heads that the model repeated for grouped queries."""
    heads = key.shape[1]
    if key.stride(1) == 0 and heads > 1:
        return key[:, :1]
    if not kv_heads or heads % kv_heads or kv_heads == heads:
        return key
    parted = key.unflatten(1, (kv_heads, -1))
    return parted[:, :, 0] if torch.equal(parted, parted[:, :, :1].expand_as(parted)) else key


def _as_boolean(added: Tensor) -> Tensor | None:
    """Return a float mask as boolean if it contains only 0 and -inf; else None."""
    allowed = added == 0
    return allowed if bool((allowed | ~is_unmasked(added)).all()) else None


class LazyAttention:
    """The weights of one layer for one text, [head, query, key], computed from queries and keys when indexed."""

    def __init__(self, call: AttentionCall) -> None:
        self.call = call
        self.dtype = torch.float32
        self._logsumexp: dict[int, Tensor] = {}  # by head, of each row; NaN: not yet computed

    @classmethod
    def from_call(cls, call: AttentionCall, batch: int) -> LazyAttention:
        """Build the lazy weights of one batch element of a call."""
        return cls(_select(call, batch=batch))

    def with_query_and_key(self, query: Tensor, key: Tensor, head: int) -> LazyAttention:
        """Return one head's weights for another query and key, [position, dim] each, under the same mask and scale."""
        mask = _select(self.call, head=head).mask
        return LazyAttention(
            AttentionCall(query[None, None], key[None, None], key[None, None, :, :0], mask, self.call.scale)
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The sizes of [head, query, key]."""
        return self.call.shape[1:]

    @torch.no_grad()
    def __getitem__(self, where: tuple[Any, ...]) -> Float[Tensor, "*cells"]:
        """Compute the weights at the indices of a tensor: all, those of a head, or those of some queries and keys."""
        if not where:
            return self.call.pattern(torch.float32)[0].cpu()
        head, *cells = where
        call = self.head_call(head)
        if not cells:
            return call.pattern(torch.float32)[0, 0].cpu()
        row, keys = cells[0], cells[1:]
        rows = row if isinstance(row, slice) else slice(row, row + 1 or None)
        weights = softmax_weights(call.scores(rows))[0, 0].cpu()
        return weights[(EVERY_INDEX if isinstance(row, slice) else 0, *keys)]

    def allowed(
        self, head: int, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX
    ) -> Bool[Tensor, "query key"] | None:
        """Return a mask, True where a query may attend; None if nothing is masked."""
        allowed = self.head_call(head).allowed(queries, keys)
        return None if allowed is None else allowed[0, 0].cpu()

    def pooled_mask(self, head: int, pool_size: int) -> Bool[Tensor, "down across"] | None:
        """Return a mask of `pool_size` x `pool_size` cells, True where any may be seen; None if nothing is masked."""
        mask = self.head_call(head).mask
        if not isinstance(mask, KeyRanges):
            allowed = self.allowed(head)
            return None if allowed is None else max_pool_2d(allowed.float(), pool_size) > 0
        seen = mask.stop > mask.first
        first = torch.where(seen, mask.first, mask.keys)[0, 0].cpu()
        stop = torch.where(seen, mask.stop, 0)[0, 0].cpu()
        allowed = torch.zeros(-(-len(first) // pool_size), -(-mask.keys // pool_size), dtype=torch.bool)
        for down, rows in enumerate(zip(first.split(pool_size), stop.split(pool_size))):
            allowed[down, int(rows[0].min()) // pool_size : -(-int(rows[1].max()) // pool_size)] = True
        return allowed

    @torch.no_grad()
    def max_pool(
        self, head: int, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX, pool_size: int = 1
    ) -> Float[Tensor, "down across"]:
        """Return the largest weight of each `pool_size` x `pool_size` cells of a part of the map.

        The normalizer of each row is computed once and cached.
        """
        call, (_, query_count, key_count) = self.head_call(head), self.shape
        rows, columns = range(query_count)[queries], range(key_count)[keys]
        tile = torch.zeros(-(-len(rows) // pool_size), -(-len(columns) // pool_size), device=call.query.device)
        height = max(pool_size, TILE_BYTES // (4 * key_count) // pool_size * pool_size)
        for start in range(0, len(rows), height):
            chunk = rows[start : start + height]
            part = slice(chunk.start, chunk.stop, chunk.step)
            reach = call.key_range(part)
            skipped = len(range(columns.start, reach.start, columns.step))  # selected keys before those of these rows
            seen = slice(columns.start + skipped * columns.step, min(columns.stop, reach.stop))
            if seen.start < seen.stop:
                weights = self._cells(call, head, part, seen, reach)[:, :: columns.step]
                largest = max_pool_2d(weights, pool_size, skipped % pool_size)
                down, across = start // pool_size, skipped // pool_size
                tile[down : down + len(largest), across : across + largest.shape[1]] = largest
        return tile.cpu()

    def downsampled(self, head: int, pool_size: int) -> Float[Tensor, "down across"]:
        """Return the largest weight in the first row of each `pool_size` x `pool_size` cells.

        It is cheaper than `max_pool`, which reads all rows.
        """
        return max_pool_keys(self[(head, slice(None, None, pool_size))], pool_size)

    def _cells(self, call: AttentionCall, head: int, queries: slice, keys: slice, reach: slice) -> Tensor:
        """Compute the weights of some queries and keys; `reach` covers all keys that these may attend to."""
        unknown = torch.full((self.shape[1],), torch.nan, device=call.query.device)
        logsumexp = self._logsumexp.setdefault(head, unknown)[queries]  # a view
        if not logsumexp.isnan().any():
            return (call.scores(queries, keys)[0, 0] - logsumexp[:, None]).exp_()
        scores = call.scores(queries, reach)[0, 0]
        weights = softmax_weights(scores)
        best_score, best_weight = scores.amax(-1), weights.amax(-1)
        logsumexp.copy_(torch.where(best_weight > 0, best_score - best_weight.log(), torch.inf))
        return weights[:, keys.start - reach.start : keys.stop - reach.start]

    def head_call(self, head: int) -> AttentionCall:
        """Return the arguments of one head's attention, with query and key in float32."""
        call = _select(self.call, head=head)
        return replace(call, query=call.query.float(), key=call.key.float())


def _select(call: AttentionCall, batch: int = 0, head: int | None = None) -> AttentionCall:
    """Return one batch element of a call, or one of its heads."""
    mask, score_mod = call.mask, call.score_mod
    if isinstance(mask, KeyRanges):
        mask = mask.select(batch, head)
    elif mask is not None:
        mask = select(mask, batch, head)
    if score_mod is not None:
        score_mod = _shift_score_mod(score_mod, batch, head or 0)
    query, key, value = (part[batch, None] for part in (call.query, call.key, call.value))
    if head is not None:
        group = head * key.shape[1] // query.shape[1]
        query, key, value = query[:, head, None], key[:, group, None], value[:, group, None]
    return AttentionCall(query, key, value, mask, call.scale, score_mod)


def _shift_score_mod(score_mod: Callable[..., Tensor], batch: int, head: int) -> Callable[..., Tensor]:
    """Return a score_mod that adds these offsets to its batch and head indices."""
    return lambda score, b, h, q, k: score_mod(score, b + batch, h + head, q, k)
