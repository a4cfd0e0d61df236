"""The mask of compiled FlexAttention, which reads only the blocks listed in a `BlockMask`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tfviz.look.torch_modes import frames
from tfviz.shapes import Bool, Int


def compiled_mask_mod(block_mask: tuple[Any, ...]) -> Callable[..., Tensor]:
    """Return the mask of a compiled kernel: `mask_mod` in partial blocks, True in full blocks, False in unlisted ones.

    Args:
        block_mask: `BlockMask.as_tuple()`.
    """
    _, _, counts, indices, full_counts, full_indices, *_, rows, columns, mask_mod = block_mask
    listed = _dense(counts, indices)
    full = None if full_counts is None else _dense(full_counts, full_indices)

    def mask(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        cell = (batch % len(listed), head % listed.shape[1], query // rows, key // columns)
        seen = listed[cell] & mask_mod(batch, head, query, key)
        return seen if full is None else seen | full[cell]

    return mask


def _dense(counts: Int[Tensor, "batch head row"], indices: Int[Tensor, "batch head row column"]) -> Bool[Tensor, "..."]:
    """Return a mask of blocks, True for each listed one: the first `counts` of `indices`."""
    columns = indices.shape[-1]
    valid = torch.arange(columns, device=indices.device) < counts[..., None]
    listed = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.bool, device=indices.device)
    return listed.scatter(-1, torch.where(valid, indices, columns).long(), True)[..., :columns]


def is_compiled() -> bool:
    """Return whether the running `flex_attention` would be compiled without a capture."""
    inside = True
    for frame in frames():
        if not inside and frame.f_globals.get("__name__") == "torch._dynamo.eval_frame":
            return True
        # uncompiled, flex_attention compiles its inner part to run eagerly
        inside &= frame.f_code.co_name != "flex_attention"
    return False
