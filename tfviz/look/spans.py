"""Where queries may look, as a rule of two numbers a row: from one key on, up to another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.shapes import Bool, Int

ROWS = 256  # of a mask that are looked at together


class Spans(NamedTuple):
    """Causal masks, windows and padding are of this kind, alone and together.

    Attributes:
        first: the first key that a query may see.
        stop: one past the last; no more than `first` where it may see none.
        keys: how many there are.
    """

    first: Int[Tensor, "#batch #head query"]
    stop: Int[Tensor, "#batch #head query"]
    keys: int

    @classmethod
    def causal(cls, queries: int, keys: int, device: torch.device | None = None) -> Spans:
        """The first query may see the first key, as PyTorch's `is_causal` has it."""
        stop = torch.arange(1, queries + 1, dtype=torch.int32, device=device).clamp(max=keys)[None, None]
        return cls(torch.zeros_like(stop), stop, keys)

    @classmethod
    def of(cls, mask: Bool[Tensor, "#batch #head query #key"]) -> Spans | None:
        """The rule of a mask; None if some row has a gap.

        >>> Spans.of(torch.tensor([[[[True, True, False], [False, True, True]]]])).stop.tolist()
        [[[2, 3]]]
        """
        parts = []
        for rows in mask.split(ROWS, dim=2):  # a few rows at a time, which take little room
            begins = torch.cat([rows[..., :1], rows[..., 1:] & ~rows[..., :-1]], -1)
            if (begins.sum(-1) > 1).any():
                return None
            first = begins.to(torch.uint8).argmax(-1).int()
            parts.append((first, first + rows.sum(-1).int()))
        first, stop = (torch.cat(part, 2) for part in zip(*parts))
        return cls(first, stop, mask.shape[-1])

    def at(self, batch: int, head: int | None = None) -> Spans:
        """Of one text, and of one of its heads."""
        return Spans(_at(self.first, batch, head), _at(self.stop, batch, head), self.keys)

    def to(self, device: torch.device | str) -> Spans:
        return Spans(self.first.to(device), self.stop.to(device), self.keys)

    def dense(self, rows: slice = slice(None), keys: slice = slice(None)) -> Bool[Tensor, "#batch #head row key"]:
        """The mask of some rows and keys."""
        places = torch.arange(self.keys, dtype=torch.int32, device=self.first.device)[keys]
        first, stop = self.first[..., rows, None], self.stop[..., rows, None]
        return (places >= first) & (places < stop)

    def close(self, scores: Tensor, rows: slice, keys: slice) -> Tensor:
        """Scores of some rows and keys with -inf where these may not look; in place, and only where some may not."""
        first, stop = self.first[..., rows], self.stop[..., rows]
        start, end, _ = keys.indices(self.keys)
        if first.numel() and end > start:
            for left, right in ((start, int(first.max())), (int(stop.min()), end)):
                left, right = max(start, left), min(end, right)
                if left < right:
                    hidden = ~self.dense(rows, slice(left, right))
                    scores[..., left - start : right - start].masked_fill_(hidden, -torch.inf)
        return scores

    def reach(self, rows: slice) -> slice:
        """From the first to the last key that any of these rows may see."""
        first, stop = self.first[..., rows], self.stop[..., rows]
        seen = stop > first
        if not seen.any():
            return slice(0, 0)
        return slice(int(first[seen].min()), int(stop[seen].max()))

    def __repr__(self) -> str:
        return f"Spans of {self.first.shape[-1]} queries over {self.keys} keys"


def _at(part: Tensor, batch: int, head: int | None) -> Tensor:
    text = part[batch if len(part) > 1 else 0][None]
    return text if head is None or text.shape[1] == 1 else text[:, head, None]
