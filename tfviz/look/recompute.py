"""The weights of a fused attention call, computed again from its arguments.

A fused kernel never holds the whole map. Its weights are made here from the same queries, keys, mask and scale, a
few rows at a time and only over keys that those rows may see, and go straight into the form they are kept in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfviz.shapes import Bool, Float, UInt8

CHUNK = 2 * 2**20  # bytes of float32 scores at a time: small enough to stay in the processor's cache


@dataclass(frozen=True)
class Call:
    """The arguments of one fused call, with batch and head axes made explicit.

    Attributes:
        query, key, value: batch head position dim, all with the same number of heads.
        mask: boolean (True: may look) or float (added to the scores), broadcastable to the map.
        causal: aligned to the upper left, as PyTorch's `is_causal` is.
        change: from a score and its batch, head, query and key, each a number, to another score, or -inf.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    scale: float
    causal: bool
    change: Callable[..., Tensor] | None = None

    @classmethod
    def of(
        cls, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, causal: bool
    ) -> "Call":
        """From the arguments of `scaled_dot_product_attention`: axes may be missing, a key's head may serve several."""
        if mask is not None:  # PyTorch lines its axes up with the scores' from the right
            mask = four(mask[(None,) * (query.dim() - mask.dim())])
        query, key, value = four(query), four(key), four(value)
        if key.shape[1] != query.shape[1]:
            key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
        width = query.shape[-1] ** -0.5
        return cls(query, key, value, mask, width if scale is None else scale, causal)

    @classmethod
    def flex(
        cls,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor],
        mask_mod: Callable[..., Tensor],
        scale: float,
    ) -> "Call":
        """From the arguments of `flex_attention`, whose rules say of each cell what its score is and if it is seen."""

        def change(score: Tensor, *cell: Tensor) -> Tensor:
            return torch.where(mask_mod(*cell), score_mod(score, *cell), -torch.inf)

        return replace(cls.of(query, key, value, None, scale, causal=False), change=change)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """batch head query key"""
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.key.shape[2]

    def allowed(self) -> Bool[Tensor, "#batch #head query key"] | None:
        """True where a query may look; None where all may look everywhere."""
        *_, queries, keys = self.shape
        if self.change is not None:
            allowed = _narrow(is_open(self.scores()))
            return None if allowed.all() else allowed
        if self.causal:
            return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=self.query.device).tril()
        if self.mask is None:
            return None
        allowed = self.mask if self.mask.dtype == torch.bool else is_open(self.mask)
        return allowed.expand(*allowed.shape[:2], queries, keys)

    def scores(self, rows: slice = slice(None), keys: slice = slice(None)) -> Float[Tensor, "batch head row key"]:
        """Scaled dot products of some rows with some keys, -inf (or less, by a float mask) where forbidden."""
        query, key = self.query[:, :, rows].float(), self.key[:, :, keys].float()
        scores = (query * self.scale) @ key.transpose(-1, -2)
        if self.change is not None:
            scores = _changed(scores, self.change, rows, keys)
        if self.causal:
            first = rows.indices(self.shape[2])[0] - keys.indices(self.shape[3])[0]
            future = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(first + 1)
            return scores.masked_fill(future, -torch.inf)
        if self.mask is None:
            return scores
        mask = self.mask.expand(*self.mask.shape[:2], *self.shape[2:])[:, :, rows, keys]
        if mask.dtype == torch.bool:
            return scores.masked_fill(~mask, -torch.inf)
        return scores + mask

    def mix(self, weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query dim"]:
        """The output: values averaged with these weights."""
        return (weights @ self.value.float()).to(self.query.dtype)


def weights(scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """Softmax over keys; zeros in a row where every key is at -inf."""
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    soft = scores.softmax(-1)
    return soft.masked_fill(dead, 0.0) if dead.any() else soft


@torch.no_grad()
def pattern(call: Call, dtype: torch.dtype) -> Tensor:
    """The attention weights, batch head query key, as `dtype`: float32, float16, or uint8 (see `pack`)."""
    batch, heads, queries, keys = call.shape
    call = replace(call, query=call.query.float(), key=call.key.float().contiguous())  # once, not for each chunk
    kept = torch.zeros(call.shape, dtype=dtype, device=call.query.device)
    allowed = None if call.causal or call.change else call.allowed()
    height = max(1, CHUNK // max(1, 4 * batch * heads * keys))
    for start in range(0, queries, height):
        rows = slice(start, min(start + height, queries))
        seen = slice(0, min(rows.stop, keys)) if call.causal else _span(allowed, rows, keys)
        if seen.stop > seen.start:
            soft = weights(call.scores(rows, seen))
            kept[:, :, rows, seen] = pack(soft) if dtype == torch.uint8 else soft
    return kept


def pack(weights: Float[Tensor, "*any"]) -> UInt8[Tensor, "*any"]:
    """Weights as bytes: 255 times their square root, which keeps small ones apart; errs by at most 0.004.

    >>> pack(torch.tensor([0.0, 1 / 512, 0.5, 1.0])).tolist()
    [0, 11, 180, 255]
    """
    return weights.sqrt().mul_(255).add_(0.5).to(torch.uint8)


def unpack(stored: Tensor) -> Float[Tensor, "*any"]:
    """Weights in float32 from any form they are kept in."""
    return stored.float().div_(255).square_() if stored.dtype == torch.uint8 else stored.float()


def is_open(added: Float[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
    """Where a number added to the scores does not forbid: neither -inf nor the lowest number of its type."""
    return added > torch.finfo(added.dtype).min / 2


def _span(allowed: Tensor | None, rows: slice, keys: int) -> slice:
    """From the first to the last key that any of these rows may see."""
    if allowed is None:
        return slice(0, keys)
    seen = allowed[:, :, rows].flatten(0, 2).any(0).nonzero()
    return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)


def _changed(scores: Tensor, change: Callable[..., Tensor], rows: slice, keys: slice) -> Tensor:
    """A rule for one score with four indices, applied to all, as FlexAttention's eager form does."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    first = (0, 0, rows.start or 0, keys.start or 0)
    cells = [torch.arange(at, at + size, device=scores.device) for at, size in zip(first, scores.shape)]
    for axis in (3, 2, 1, 0):
        over = [0 if axis == index else None for index in range(4)]
        change = torch.vmap(change, in_dims=(0, *over))
    with TransformGetItemToIndex():  # a rule may index its own tensors, `bias[head]`, which vmap alone cannot
        return change(scores, *cells)


def _narrow(mask: Bool[Tensor, "batch head query key"]) -> Bool[Tensor, "#batch #head query key"]:
    """One of batch or head where all are the same."""
    for axis in (0, 1):
        first = mask.narrow(axis, 0, 1)
        mask = first.clone() if (mask == first).all() else mask
    return mask


def four(tensor: Tensor) -> Tensor:
    """Explicit batch and head axes: position dim -> 1 1 position dim, batch position dim -> batch 1 position dim."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor[(None,) * (4 - tensor.dim())]
