"""`AttentionCall`: the arguments of a fused attention call, from which its scores and weights are recomputed.

A fused kernel never materializes the whole map. The weights are recomputed from the same queries, keys, mask and scale:
a few rows at a time, only over keys that those rows may attend to, and directly in the dtype in which they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfviz.checks import materialized
from tfviz.look.device_sync import is_host_readable, may_be_true, read_flags
from tfviz.look.key_ranges import KeyRanges
from tfviz.look.quantization import quantize_unchecked
from tfviz.shapes import Bool, Float

EVERY_INDEX = slice(None)
# Bytes of float32 scores per chunk: on a CPU small enough for a core's cache, elsewhere large enough to amortize kernel
# launches.
CHUNK_BYTES, CHUNK_BYTES_ELSEWHERE = 2**20, 2**26


@dataclass(frozen=True)
class AttentionCall:
    """The arguments of one fused attention call, with explicit batch and head axes.

    Attributes:
        query, key, value: [batch, head, position, dim]; key and value may have fewer heads, each shared by the same
            number of consecutive query heads (grouped-query attention, Ainslie et al. 2023).
        mask: boolean (True: may attend) or float (added to the scores), broadcastable to [batch, head, query, key]; or
            the range of keys that each row may attend to; None: no mask.
        scale: the factor of the scores.
        score_mod: FlexAttention's score_mod with its mask applied: (score, batch, head, query, key) -> score, or -inf.
        leading_shape: sizes of the output's axes before position and dim, in the model's own layout.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | KeyRanges | None
    scale: float
    score_mod: Callable[..., Tensor] | None = None
    leading_shape: tuple[int, ...] = ()

    @classmethod
    def from_arguments(
        cls, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, causal: bool = False
    ) -> AttentionCall:
        """Build a call from the arguments of `scaled_dot_product_attention`, whose axes may be missing or broadcast.

        Args:
            query: [..., query, dim].
            key: [..., key, dim].
            value: [..., key, out].
            mask: boolean (True: may attend) or float (added to the scores), broadcastable to [..., query, key]; None:
                no mask.
            scale: the factor of the scores; None: 1 / sqrt(dim).
            causal: PyTorch's `is_causal`, a causal mask that is aligned to the upper left.
        """
        heads = query.shape[-3] if query.dim() > 2 else 1
        lead = torch.broadcast_shapes(query.shape[:-2], *(_leading_shape(part, heads) for part in (key, value)))
        query, key, value = (_expand(part, lead, heads) for part in (query, key, value))
        rule: Tensor | KeyRanges | None = mask
        if mask is not None:  # PyTorch aligns its axes with the scores' from the right
            mask = mask._materialize(query.device) if hasattr(mask, "_materialize") else mask
            mask = mask[(None,) * (query.dim() - mask.dim())]
            rule = as_4d(mask.expand(*lead, *mask.shape[-2:]) if query.dim() > 4 else mask)
        elif causal:
            rule = KeyRanges.causal(query.shape[-2], key.shape[-2], query.device)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return cls(as_4d(query), as_4d(key), as_4d(value), rule, scale, leading_shape=tuple(lead))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The sizes of [batch, head, query, key]."""
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.key.shape[2]

    @property
    def has_no_nan(self) -> bool:
        """Whether the scores are known to contain no NaN."""
        added = [self.mask] if isinstance(self.mask, Tensor) and self.mask.is_floating_point() else []
        return not any(bool(part.isnan().any() | (part == torch.inf).any()) for part in (self.query, self.key, *added))

    def allowed(
        self, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX
    ) -> Bool[Tensor, "#batch #head query key"] | None:
        """Return a mask, True where a query may attend; None if every query may attend to every key."""
        if self.score_mod is not None:
            return compact_mask(is_unmasked(self.scores(queries, keys)))
        if self.mask is None:
            return None
        if isinstance(self.mask, KeyRanges):
            return self.mask.dense(queries, keys)
        mask = self._slice_mask(self.mask, queries, keys)
        return mask if mask.dtype == torch.bool else is_unmasked(mask)

    def key_range(self, queries: slice) -> slice:
        """Return a range that contains every key that any of these queries may attend to.

        It is the smallest such range, or all keys if that cannot be determined cheaply (with a `score_mod`, or for a
        dense mask on a GPU).
        """
        if isinstance(self.mask, KeyRanges):
            return self.mask.key_range(queries)
        allowed = None if self.score_mod or self.mask is None else self.allowed(queries)
        if allowed is None or not is_host_readable(allowed):
            return slice(0, self.shape[3])
        seen = allowed.flatten(0, 2).any(0).nonzero()
        return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)

    def scores(self, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX) -> Float[Tensor, "batch head query key"]:
        """Return the scores of some queries and keys: the scaled dot products with `score_mod` and the mask applied."""
        query, key = self.query[:, :, queries].float(), self.key[:, :, keys].float()
        scores = _matmul_per_head(query * self.scale, key.transpose(-1, -2))
        if self.score_mod is not None and scores.numel():
            scores = _apply_score_mod(scores, self.score_mod, (queries, self.shape[2]), (keys, self.shape[3]))
        if self.mask is None:
            return scores
        if isinstance(self.mask, KeyRanges):
            return self.mask.mask_scores_(scores, queries, keys)
        mask = self._slice_mask(self.mask, queries, keys)
        return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask

    def _slice_mask(self, mask: Tensor, queries: slice, keys: slice) -> Tensor:
        return mask.expand(*mask.shape[:2], *self.shape[2:])[:, :, queries, keys]

    @torch.no_grad()
    def pattern(self, dtype: torch.dtype) -> Tensor:
        """Return the attention weights, [batch, head, query, key], as float32, float16, or uint8 (see `quantize`).

        If queries, keys or mask contain NaN or infinity, uint8 is replaced by float32, which can hold NaN.
        """
        materialized(query=self.query)
        batch, heads, queries, keys = self.shape
        dtype = dtype if dtype != torch.uint8 or self.has_no_nan else torch.float32
        call = replace(self, query=self.query.float(), key=self.key.float().contiguous())  # once, not for each chunk
        stored = torch.zeros(self.shape, dtype=dtype, device=self.query.device)
        room = CHUNK_BYTES if self.query.device.type == "cpu" else CHUNK_BYTES_ELSEWHERE
        height = max(1, room // max(1, 4 * batch * heads * keys))
        for start in range(0, queries, height):
            rows = slice(start, min(start + height, queries))
            seen = call.key_range(rows)
            if seen.stop > seen.start:
                weights = softmax_weights(call.scores(rows, seen))
                stored[:, :, rows, seen] = quantize_unchecked(weights) if dtype == torch.uint8 else weights
        return stored

    def apply_to_values(self, weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "*lead query dim"]:
        """Return the attention output: the values averaged with these weights, in the model's own leading axes."""
        mixed = _matmul_per_head(weights, self.value.float()).to(self.query.dtype)
        return mixed.reshape(*self.leading_shape, *mixed.shape[-2:])


def is_unmasked(added: Float[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
    """Return a boolean mask, True where a float mask allows a query to attend.

    Forbidden cells are -inf, the lowest number of the dtype, or that number divided by a scale that is applied later
    (as in CodeGen).
    """
    return ~(added <= torch.finfo(added.dtype).min / (8 if added.dtype == torch.float16 else 4096))


def compact_mask(mask: Bool[Tensor, "batch head query key"]) -> Bool[Tensor, "#batch #head query key"] | None:
    """Return a mask with batch or head reduced to size 1 where all are equal; None if the mask forbids nothing."""
    allows_all, *are_equal = read_flags(
        [mask.all, lambda: (mask == mask[:1]).all(), lambda: (mask == mask[:, :1]).all()], mask
    )
    if allows_all:
        return None
    shared = [axis for axis, is_equal in enumerate(are_equal) if is_equal and mask.shape[axis] > 1]
    for axis in shared:
        mask = mask.narrow(axis, 0, 1)
    return mask.clone() if shared else mask


def softmax_weights(scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """Return the softmax over keys, with zeros in rows where every score is -inf."""
    if not scores.shape[-1]:
        return scores
    materialized(scores=scores)
    weights = scores.softmax(-1)
    has_masked = may_be_true(weights[..., 0].isnan())  # such a row is NaN throughout
    return zero_masked_rows(weights, scores) if has_masked else weights


def zero_masked_rows(
    weights: Float[Tensor, "*lead key"], scores: Float[Tensor, "*lead key"]
) -> Float[Tensor, "*lead key"]:
    """Return the softmax's output with zeros instead of NaN in rows where every score is -inf."""
    materialized(scores=scores)
    masked = scores.amax(-1, keepdim=True) == -torch.inf
    return weights.masked_fill(masked, 0.0) if may_be_true(masked) else weights


def as_4d(tensor: Tensor) -> Tensor:
    """Add missing batch and head axes: [n, d] -> [1, 1, n, d], [b, n, d] -> [b, 1, n, d]."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor[(None,) * (4 - tensor.dim())]


def _leading_shape(part: Tensor, heads: int) -> tuple[int, ...]:
    """Return the sizes of the axes of keys or values before position and dim, with 1 for shared heads."""
    return (*part.shape[:-3], 1) if _is_shared(part, heads) else part.shape[:-2]


def _is_shared(part: Tensor, heads: int) -> bool:
    return part.dim() > 2 and 1 < part.shape[-3] < heads and heads % part.shape[-3] == 0


def _expand(part: Tensor, lead: tuple[int, ...], heads: int) -> Tensor:
    shared = _is_shared(part, heads)
    return part.expand(*(lead[:-1] if shared else lead), *part.shape[-3 if shared else -2 :])


def _matmul_per_head(left: Tensor, right: Tensor) -> Tensor:
    """Multiply matrices head by head; `right` may have fewer heads, each shared by several heads of `left`."""
    if left.shape[1] == right.shape[1]:
        return left @ right
    groups, rows = right.shape[1], left.shape[2]
    product = left.unflatten(1, (groups, -1)).flatten(2, 3) @ right
    return product.unflatten(2, (-1, rows)).flatten(1, 2)


def _apply_score_mod(scores: Tensor, score_mod: Callable[..., Tensor], *cut: tuple[slice, int]) -> Tensor:
    """Apply a function of a score and its four indices to all scores, as eager FlexAttention does."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    chosen = [(EVERY_INDEX, scores.shape[0]), (EVERY_INDEX, scores.shape[1]), *cut]
    cells = [torch.arange(size, device=scores.device)[part] for part, size in chosen]
    for axis in (3, 2, 1, 0):
        over = [0 if axis == index else None for index in range(4)]
        score_mod = torch.vmap(score_mod, in_dims=(0, *over))
    with TransformGetItemToIndex():  # a score_mod may index its own tensors, `bias[head]`, which vmap alone cannot
        return score_mod(scores, *cells)
