"""Masks as ranges of keys: the first key and one past the last to which each query may attend."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.shapes import Bool, Int

ROWS_PER_CHUNK = 256  # rows of a mask that are read at a time


class KeyRanges(NamedTuple):
    """A mask whose rows have no gaps, such as causal masks, windows, padding and their intersections.

    Attributes:
        first: the first key to which a query may attend.
        stop: one past the last; at most `first` where the query may attend to none.
        keys: number of keys.
        is_causal: whether query i may attend to the first i + 1 keys, in which case no tensor has to be read.
    """

    first: Int[Tensor, "#batch #head query"]
    stop: Int[Tensor, "#batch #head query"]
    keys: int
    is_causal: bool = False

    @classmethod
    def causal(cls, queries: int, keys: int, device: torch.device | None = None) -> KeyRanges:
        """Return the key ranges of a causal mask that is aligned to the upper left, as PyTorch's `is_causal`."""
        stop = torch.arange(1, queries + 1, dtype=torch.int32, device=device).clamp(max=keys)[None, None]
        return cls(torch.zeros_like(stop), stop, keys, True)

    @classmethod
    def from_mask(cls, mask: Bool[Tensor, "#batch #head query #key"]) -> KeyRanges | None:
        """Return the key ranges of a dense mask; None if some row has a gap.

        >>> KeyRanges.from_mask(torch.tensor([[[[True, True, False], [False, True, True]]]])).stop.tolist()
        [[[2, 3]]]
        """
        parts = []
        for rows in mask.split(ROWS_PER_CHUNK, dim=2):  # a few rows at a time, to save memory
            begins = torch.cat([rows[..., :1], rows[..., 1:] & ~rows[..., :-1]], -1)
            if (begins.sum(-1) > 1).any():
                return None
            first = begins.to(torch.uint8).argmax(-1).int()
            parts.append((first, first + rows.sum(-1).int()))
        first, stop = (torch.cat(part, 2) for part in zip(*parts))
        return cls(first, stop, mask.shape[-1])

    def select(self, batch: int, head: int | None = None) -> KeyRanges:
        """Return the key ranges of one batch element, or of one of its heads."""
        return self._replace(first=select(self.first, batch, head), stop=select(self.stop, batch, head))

    def to(self, device: torch.device | str) -> KeyRanges:
        return self._replace(first=self.first.to(device), stop=self.stop.to(device))

    def dense(self, queries: slice = slice(None), keys: slice = slice(None)) -> Bool[Tensor, "#batch #head query key"]:
        """Return the mask of some queries and keys, True where a query may attend."""
        positions = torch.arange(self.keys, dtype=torch.int32, device=self.first.device)[keys]
        first, stop = self.first[..., queries, None], self.stop[..., queries, None]
        return (positions >= first) & (positions < stop)

    def mask_scores_(self, scores: Tensor, queries: slice, keys: slice) -> Tensor:
        """Set the scores of some queries and keys to -inf, in place, where a query may not attend."""
        start, end, _ = keys.indices(self.keys)
        if self.first[..., queries].numel() and end > start:
            for left, right in self._partly_hidden(queries, start, end):
                left, right = max(start, left), min(end, right)
                if left < right:
                    hidden = ~self.dense(queries, slice(left, right))
                    scores[..., left - start : right - start].masked_fill_(hidden, -torch.inf)
        return scores

    def _partly_hidden(self, queries: slice, start: int, end: int) -> list[tuple[int, int]]:
        """Return the ranges before and after the keys to which every one of these queries may attend."""
        if self.is_causal:
            return [(start, start), (min(range(*queries.indices(self.stop.shape[2]))) + 1, end)]
        return [(start, int(self.first[..., queries].max())), (int(self.stop[..., queries].min()), end)]

    def key_range(self, queries: slice) -> slice:
        """Return the range from the first to the last key to which any of these queries may attend."""
        if self.is_causal:
            positions = range(*queries.indices(self.stop.shape[2]))
            return slice(0, min(self.keys, max(positions, default=-1) + 1))
        first, stop = self.first[..., queries], self.stop[..., queries]
        seen = stop > first
        if not seen.any():
            return slice(0, 0)
        return slice(int(first[seen].min()), int(stop[seen].max()))


def select(part: Tensor, batch: int, head: int | None) -> Tensor:
    """Select a batch element, or one of its heads, of a mask or of key ranges; all axes are kept, with size 1."""
    text = part[batch if len(part) > 1 else 0][None]
    return text if head is None or text.shape[1] == 1 else text[:, head, None]
