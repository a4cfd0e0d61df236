"""The arguments of one fused attention call, and any part of the scores that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfviz.look.aside import bare, is_wrapped
from tfviz.look.spans import Spans
from tfviz.shapes import Bool, Float

ALL = slice(None)


@dataclass(frozen=True)
class Call:
    """The arguments of one fused call, with batch and head axes made explicit.

    Attributes:
        query, key, value: batch head position dim; of key and value there may be fewer heads, each for as many of the
            query's in a row (grouped-query attention, Ainslie et al. 2023).
        mask: boolean (True: may look) or float (added to the scores), broadcastable to the map; or a rule.
        change: from a score and its batch, head, query and key, each a number, to another score, or -inf.
        lead: the axes before position and dim, as they were given.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | Spans | None
    scale: float
    change: Callable[..., Tensor] | None = None
    lead: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, causal: bool = False
    ) -> Call:
        """From the arguments of `scaled_dot_product_attention`: axes may be missing, or shared; so may a key's head.

        Args:
            causal: aligned to the upper left, as PyTorch's `is_causal` is.
        """
        heads = query.shape[-3] if query.dim() > 2 else 1
        lead = torch.broadcast_shapes(query.shape[:-2], *(_lead(part, heads) for part in (key, value)))
        query, key, value = (_expanded(part, lead, heads) for part in (query, key, value))
        rule: Tensor | Spans | None = mask
        if mask is not None:  # PyTorch lines its axes up with the scores' from the right
            mask = mask._materialize(query.device) if hasattr(mask, "_materialize") else mask
            mask = mask[(None,) * (query.dim() - mask.dim())]
            rule = four(mask.expand(*lead, *mask.shape[-2:]) if query.dim() > 4 else mask)
        elif causal:
            rule = Spans.causal(query.shape[-2], key.shape[-2], query.device)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return cls(four(query), four(key), four(value), rule, scale, lead=tuple(lead))

    @classmethod
    def flex(
        cls,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor],
        mask_mod: Callable[..., Tensor],
        scale: float,
    ) -> Call:
        """From the arguments of `flex_attention`, whose rules say of each cell what its score is and if it is seen."""

        def change(score: Tensor, *cell: Tensor) -> Tensor:
            return torch.where(mask_mod(*cell), score_mod(score, *cell), -torch.inf)

        return replace(cls.of(query, key, value, None, scale), change=change)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """batch head query key"""
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.key.shape[2]

    @property
    def is_wrapped(self) -> bool:
        """Whether `torch.vmap` or another transform is at work, where nothing may depend on values."""
        return any(is_wrapped(part) for part in (self.query, self.key, self.mask) if isinstance(part, Tensor))

    @property
    def is_finite(self) -> bool:
        """Whether no NaN can come of it."""
        added = [self.mask] if isinstance(self.mask, Tensor) and self.mask.is_floating_point() else []
        return not any(bool(part.isnan().any() | (part == torch.inf).any()) for part in (self.query, self.key, *added))

    def allowed(self, rows: slice = ALL, keys: slice = ALL) -> Bool[Tensor, "#batch #head row key"] | None:
        """True where a query may look; None where all may look everywhere."""
        if self.change is not None or self.is_wrapped:
            allowed = _narrow(four(bare(is_open(self.scores(rows, keys)))))
            return None if allowed.all() else allowed
        if self.mask is None or isinstance(self.mask, Spans):
            return None if self.mask is None else self.mask.dense(rows, keys)
        mask = self._cut(self.mask, rows, keys)
        return mask if mask.dtype == torch.bool else is_open(mask)

    def reach(self, rows: slice) -> slice:
        """From the first to the last key that any of these rows may see."""
        if isinstance(self.mask, Spans):
            return self.mask.reach(rows)
        allowed = None if self.change or self.mask is None else self.allowed(rows)
        if allowed is None:
            return slice(0, self.shape[3])
        seen = allowed.flatten(0, 2).any(0).nonzero()
        return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)

    def scores(self, rows: slice = ALL, keys: slice = ALL) -> Float[Tensor, "batch head row key"]:
        """Scaled dot products of some rows with some keys, -inf (or less, by a float mask) where forbidden."""
        query, key = self.query[:, :, rows].float(), self.key[:, :, keys].float()
        scores = _products(query * self.scale, key)
        if self.change is not None and scores.numel():
            scores = _changed(scores, self.change, (rows, self.shape[2]), (keys, self.shape[3]))
        if self.mask is None:
            return scores
        if isinstance(self.mask, Spans):
            return self.mask.close(scores, rows, keys)
        mask = self._cut(self.mask, rows, keys)
        return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask

    def _cut(self, mask: Tensor, rows: slice, keys: slice) -> Tensor:
        return mask.expand(*mask.shape[:2], *self.shape[2:])[:, :, rows, keys]

    def mix(self, weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "*lead query dim"]:
        """The output: values averaged with these weights."""
        mixed = _shared(weights, self.value.float(), torch.matmul).to(self.query.dtype)
        return mixed.reshape(*self.lead, *mixed.shape[-2:])


def is_open(added: Float[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
    """Where a number added to the scores does not forbid: not -inf, not the lowest number of its type, nor that divided
    by a scale that comes after it (as in CodeGen).
    """
    return ~(added <= torch.finfo(added.dtype).min / (8 if added.dtype == torch.float16 else 4096))


def four(tensor: Tensor) -> Tensor:
    """Explicit batch and head axes: position dim -> 1 1 position dim, batch position dim -> batch 1 position dim."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor[(None,) * (4 - tensor.dim())]


def _lead(part: Tensor, heads: int) -> tuple[int, ...]:
    """The leading axes of keys or values; a head that serves several is one that serves all."""
    return (*part.shape[:-3], 1) if _is_shared(part, heads) else part.shape[:-2]


def _is_shared(part: Tensor, heads: int) -> bool:
    return part.dim() > 2 and 1 < part.shape[-3] < heads and heads % part.shape[-3] == 0


def _expanded(part: Tensor, lead: tuple[int, ...], heads: int) -> Tensor:
    shared = _is_shared(part, heads)
    return part.expand(*(lead[:-1] if shared else lead), *part.shape[-3 if shared else -2 :])


def _products(query: Tensor, key: Tensor) -> Tensor:
    return _shared(query, key, lambda one, other: one @ other.transpose(-1, -2))


def _shared(one: Tensor, other: Tensor, product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A product, head by head, of a tensor with one that may have fewer heads."""
    if one.shape[1] == other.shape[1]:
        return product(one, other)
    groups, rows = other.shape[1], one.shape[2]
    made = product(one.unflatten(1, (groups, -1)).flatten(2, 3), other)
    return made.unflatten(2, (-1, rows)).flatten(1, 2)


def _changed(scores: Tensor, change: Callable[..., Tensor], *cut: tuple[slice, int]) -> Tensor:
    """A rule for one score with four indices, applied to all, as FlexAttention's eager form does."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    chosen = [(ALL, scores.shape[0]), (ALL, scores.shape[1]), *cut]
    cells = [torch.arange(size, device=scores.device)[part] for part, size in chosen]
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
