"""The weights of a fused attention call, computed again from its arguments.

A fused kernel never holds the whole map. Its weights are made here from the same queries, keys, mask and scale, a
few rows at a time and only over keys that those rows may see, and go straight into the form they are kept in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfviz.bounds import readable
from tfviz.look.aside import bare, is_wrapped
from tfviz.look.kept import codes, pack, packable
from tfviz.shapes import Bool, Float

CHUNK = 2 * 2**20  # bytes of float32 scores at a time: small enough to stay in the processor's cache


@dataclass(frozen=True)
class Call:
    """The arguments of one fused call, with batch and head axes made explicit.

    Attributes:
        query, key, value: batch head position dim, all with the same number of heads.
        mask: boolean (True: may look) or float (added to the scores), broadcastable to the map.
        causal: aligned to the upper left, as PyTorch's `is_causal` is.
        change: from a score and its batch, head, query and key, each a number, to another score, or -inf.
        lead: the axes before position and dim, as they were given.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    scale: float
    causal: bool
    change: Callable[..., Tensor] | None = None
    lead: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, causal: bool
    ) -> "Call":
        """From the arguments of `scaled_dot_product_attention`: axes may be missing, or shared; so may a key's head."""
        if key.dim() > 2 and query.dim() > 2 and key.shape[-3] not in (1, query.shape[-3]):
            key, value = (part.repeat_interleave(query.shape[-3] // part.shape[-3], dim=-3) for part in (key, value))
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        query, key, value = (part.expand(*lead, *part.shape[-2:]) for part in (query, key, value))
        if mask is not None:  # PyTorch lines its axes up with the scores' from the right
            mask = mask._materialize(query.device) if hasattr(mask, "_materialize") else mask
            mask = mask[(None,) * (query.dim() - mask.dim())]
            mask = four(mask.expand(*lead, *mask.shape[-2:]) if query.dim() > 4 else mask)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return cls(four(query), four(key), four(value), mask, scale, causal, lead=tuple(lead))

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

    @property
    def is_wrapped(self) -> bool:
        """Whether `torch.vmap` or another transform is at work, where nothing may depend on values."""
        return any(is_wrapped(part) for part in (self.query, self.key, self.mask) if part is not None)

    def allowed(self) -> Bool[Tensor, "#batch #head query key"] | None:
        """True where a query may look; None where all may look everywhere."""
        *_, queries, keys = self.shape
        if self.change is not None or self.is_wrapped:
            allowed = _narrow(four(bare(is_open(self.scores()))))
            return None if allowed.all() else allowed
        if self.causal:
            return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=self.query.device).tril()
        if self.mask is None:
            return None
        allowed = self.mask if self.mask.dtype == torch.bool else is_open(self.mask)
        return allowed.expand(*allowed.shape[:2], queries, keys)

    @property
    def is_finite(self) -> bool:
        """Whether no NaN can come of it."""
        parts = [
            self.query,
            self.key,
            *([self.mask] if self.mask is not None and self.mask.is_floating_point() else []),
        ]
        return not any(bool(part.isnan().any() | (part == torch.inf).any()) for part in parts)

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

    def mix(self, weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "*lead query dim"]:
        """The output: values averaged with these weights."""
        mixed = (weights @ self.value.float()).to(self.query.dtype)
        return mixed.reshape(*self.lead, *mixed.shape[-2:])


def weights(scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """Softmax over keys; zeros in a row where every key is at -inf."""
    return living(scores.softmax(-1), scores) if scores.shape[-1] else scores


def living(soft: Float[Tensor, "*lead key"], scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """A softmax, with zeros for NaN in a row where every score is at -inf."""
    readable(scores=scores)
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    return soft.masked_fill(dead, 0.0) if is_wrapped(dead) or dead.any() else soft


@torch.no_grad()
def pattern(call: Call, dtype: torch.dtype) -> Tensor:
    """The attention weights, batch head query key, as `dtype`: float32, float16, or uint8 (see `pack`).

    What no byte can say, NaN, is kept in float32.
    """
    readable(query=call.query)
    if call.is_wrapped:
        soft = bare(weights(call.scores()))
        return (
            pack(soft)
            if dtype == torch.uint8 and packable(soft)
            else soft.to(torch.float16 if dtype == torch.float16 else torch.float32)
        )
    batch, heads, queries, keys = call.shape
    dtype = dtype if dtype != torch.uint8 or call.is_finite else torch.float32
    call = replace(call, query=call.query.float(), key=call.key.float().contiguous())  # once, not for each chunk
    kept = torch.zeros(call.shape, dtype=dtype, device=call.query.device)
    allowed = None if call.causal or call.change else call.allowed()
    height = max(1, CHUNK // max(1, 4 * batch * heads * keys))
    for start in range(0, queries, height):
        rows = slice(start, min(start + height, queries))
        seen = slice(0, min(rows.stop, keys)) if call.causal else _span(allowed, rows, keys)
        if seen.stop > seen.start:
            soft = weights(call.scores(rows, seen))
            kept[:, :, rows, seen] = codes(soft) if dtype == torch.uint8 else soft
    return kept


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
