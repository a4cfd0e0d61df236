"""What a compiled FlexAttention reads: blocks of keys, listed for each block of queries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tfviz.shapes import Bool, Int


def by_blocks(block_mask: tuple[Any, ...]) -> Callable[..., Tensor]:
    """The mask of a compiled kernel: its rule in blocks that are listed, all of those that are full, nothing else.

    Args:
        block_mask: `BlockMask.as_tuple()`.
    """
    _, _, counts, indices, full_counts, full_indices, *_, rows, columns, rule = block_mask
    listed = _dense(counts, indices)
    full = None if full_counts is None else _dense(full_counts, full_indices)

    def mask(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        cell = (batch % len(listed), head % listed.shape[1], query // rows, key // columns)
        seen = listed[cell] & rule(batch, head, query, key)
        return seen if full is None else seen | full[cell]

    return mask


def _dense(counts: Int[Tensor, "batch head row"], indices: Int[Tensor, "batch head row column"]) -> Bool[Tensor, "..."]:
    """True for each block that is listed: the first `counts` of `indices`."""
    columns = indices.shape[-1]
    valid = torch.arange(columns, device=indices.device) < counts[..., None]
    listed = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.bool, device=indices.device)
    return listed.scatter(-1, torch.where(valid, indices, columns).long(), True)[..., :columns]


def is_compiled() -> bool:
    """Whether the `flex_attention` under way is, outside of a capture, part of what `torch.compile` makes."""
    frame, inside = sys._getframe(), True
    while frame is not None:
        if not inside and frame.f_globals.get("__name__") == "torch._dynamo.eval_frame":
            return True
        inside &= frame.f_code.co_name != "flex_attention"  # which, uncompiled, compiles its inner part to run eagerly
        frame = frame.f_back  # type: ignore[assignment]
    return False
