"""Masks as ranges of keys: each query may see the keys from one number up to another, in place of a dense mask."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.shapes import Bool, Int

ROWS_PER_CHUNK = 256  # rows of a mask that are read at a time


class KeyRanges(NamedTuple):
    """A mask whose rows have no gaps, such as causal masks, windows, padding and their intersections.

    Attributes:
        first: the first key that a query may see.
        stop: one past the last; no more than `first` where it may see none.
        keys: number of keys.
    """

    first: Int[Tensor, "#batch #head query"]
    stop: Int[Tensor, "#batch #head query"]
    keys: int

    @classmethod
    def causal(cls, queries: int, keys: int, device: torch.device | None = None) -> KeyRanges:
        """Return a causal mask aligned to the upper left, as PyTorch's `is_causal`."""
        stop = torch.arange(1, queries + 1, dtype=torch.int32, device=device).clamp(max=keys)[None, None]
        return cls(torch.zeros_like(stop), stop, keys)

    @classmethod
    def of(cls, mask: Bool[Tensor, "#batch #head query #key"]) -> KeyRanges | None:
        """Return the key ranges of a dense mask; None if some row has a gap.

        >>> KeyRanges.of(torch.tensor([[[[True, True, False], [False, True, True]]]])).stop.tolist()
        [[[2, 3]]]
        """
        parts = []
        for rows in mask.split(ROWS_PER_CHUNK, dim=2):  # a few rows at a time, which take little room
            begins = torch.cat([rows[..., :1], rows[..., 1:] & ~rows[..., :-1]], -1)
            if (begins.sum(-1) > 1).any():
                return None
            first = begins.to(torch.uint8).argmax(-1).int()
            parts.append((first, first + rows.sum(-1).int()))
        first, stop = (torch.cat(part, 2) for part in zip(*parts))
        return cls(first, stop, mask.shape[-1])

    def select(self, batch: int, head: int | None = None) -> KeyRanges:
        """Return the key ranges of one batch element, or of one of its heads."""
        return KeyRanges(select(self.first, batch, head), select(self.stop, batch, head), self.keys)

    def to(self, device: torch.device | str) -> KeyRanges:
        return KeyRanges(self.first.to(device), self.stop.to(device), self.keys)

    def dense(self, rows: slice = slice(None), keys: slice = slice(None)) -> Bool[Tensor, "#batch #head row key"]:
        """Return the mask of some rows and keys."""
        places = torch.arange(self.keys, dtype=torch.int32, device=self.first.device)[keys]
        first, stop = self.first[..., rows, None], self.stop[..., rows, None]
        return (places >= first) & (places < stop)

    def mask_scores_(self, scores: Tensor, rows: slice, keys: slice) -> Tensor:
        """Write -inf, in place, into the scores of cells where some rows may not look."""
        first, stop = self.first[..., rows], self.stop[..., rows]
        start, end, _ = keys.indices(self.keys)
        if first.numel() and end > start:
            for left, right in ((start, int(first.max())), (int(stop.min()), end)):
                left, right = max(start, left), min(end, right)
                if left < right:
                    hidden = ~self.dense(rows, slice(left, right))
                    scores[..., left - start : right - start].masked_fill_(hidden, -torch.inf)
        return scores

    def key_range(self, rows: slice) -> slice:
        """Return the range from the first to the last key that any of these rows may see."""
        first, stop = self.first[..., rows], self.stop[..., rows]
        seen = stop > first
        if not seen.any():
            return slice(0, 0)
        return slice(int(first[seen].min()), int(stop[seen].max()))


def select(part: Tensor, batch: int, head: int | None) -> Tensor:
    """Select a batch element, or one of its heads, of a mask or its key ranges; shared axes stay."""
    text = part[batch if len(part) > 1 else 0][None]
    return text if head is None or text.shape[1] == 1 else text[:, head, None]
