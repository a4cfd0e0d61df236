"""Attention: every query takes the average of the values, weighted by how well their keys answer it."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import bounds
from tfviz.doors import what
from tfviz.layers import masks, sizes
from tfviz.layers.cache import CrossAttentionCache, KeyValues, NoCache
from tfviz.layers.positions import Positions
from tfviz.shapes import Float

NO_POSITIONS = Positions()
NOTHING = NoCache()
Allowed = (
    Any  # Bool[Tensor, "#batch #head query key"], True where a query may look; or FlexAttention's BlockMask; or None
)


def attend(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch head key dim"],
    value: Float[Tensor, "batch head key out"],
    mask: Allowed = None,
    dropout: float = 0.0,
    bias: Float[Tensor, "#batch #head query key"] | None = None,
) -> Float[Tensor, "batch head query out"]:
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d) + bias) V (Vaswani et al. 2017, equation 1), fused.

    The scores are divided by the square root of the width of a *head*. A query that may look nowhere gets zeros; so may
    one whose scores are NaN, as PyTorch's kernels have it.

    Args:
        mask: True where a query may look. `masks.causal` itself, for queries and keys from the first position on, lets
            the kernel skip the future, which takes neither its time nor a mask's memory. A `BlockMask` (see
            `Mask.block_mask`) goes to FlexAttention, which skips the blocks it forbids; that kernel has neither dropout
            nor a dense bias.
        dropout: share of the weights set to zero.

    Raises:
        ValueError: a mask that is no bool, has no axis for the heads, or is a predicate; sizes that do not fit.
    """
    sizes.attention(query, key, value, mask)
    if dropout:
        bounds.between(0, 1, dropout=dropout)
    if mask is masks.causal and bias is None:
        return functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    if mask is masks.causal:
        mask = masks.causal.dense(query.shape[2], key.shape[2], device=query.device)
    if isinstance(mask, Tensor | masks.Mask):
        _check(mask)
    elif mask is not None:
        if not hasattr(mask, "mask_mod"):
            raise TypeError(
                f"mask is {what(mask)}; give a table of bools, True where a query may look, or masks.causal"
            )
        return _flex(query, key, value, mask, dropout, bias)
    if bias is not None and bias.dtype == torch.bool:
        raise ValueError("bias is bool; numbers are added to the scores, and a table of what may be seen is mask=")
    if bias is not None:
        sizes.attention(query, key, value, bias, "bias")
        bias = bias.to(query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def _check(mask: Tensor | masks.Mask) -> None:
    if isinstance(mask, masks.Mask):
        raise ValueError("mask is a predicate; give its table for this text, mask.dense(queries, keys)")
    if mask.dtype != torch.bool or mask.dim() == 3:
        kind = str(mask.dtype).removeprefix("torch.")
        raise ValueError(
            f"mask is {kind} {list(mask.shape)}; it must be bool, True where a query may look, batch head query key: "
            "mask.bool(), mask[:, None]. What is added to the scores is the bias"
        )


def _flex(query: Tensor, key: Tensor, value: Tensor, mask: Allowed, dropout: float, bias: Tensor | None) -> Tensor:
    if dropout or bias is not None:
        raise ValueError("a block mask allows neither dropout of weights nor a bias; give a dense one, mask.dense()")
    return _kernel(query.is_cuda and not torch.compiler.is_compiling())(query, key, value, block_mask=mask)


@cache
def _kernel(compiled: bool) -> Callable[..., Tensor]:
    """FlexAttention; uncompiled it makes the whole map, so that a GPU needs it compiled."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention) if compiled else flex_attention  # type: ignore[return-value]


def _as_it_is(_: int) -> nn.Module:
    return nn.Identity()


class MultiHead(nn.Module):
    """Several attentions side by side, each in its own slice of the width (Vaswani et al. 2017, section 3.2.2).

    One packed product makes the queries, keys and values of all heads: 3 `dim`^2 weights however many heads there
    are, and `out_proj` adds `dim`^2. Parameters are laid out as in `torch.nn.MultiheadAttention`.

    Args:
        dim: width of the input and of the output.
        heads: number of heads; each is `dim / heads` wide.
        dropout: share of the attention weights set to zero in training.
        norm: from the width of a head to a norm of its queries and keys, such as `nn.RMSNorm`: scores then stay in
            bounds whatever the weights (Henry et al. 2020, "Query-key normalization").
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        norm: Callable[[int], nn.Module] = _as_it_is,
    ):
        super().__init__()
        bounds.at_least(1, dim=dim, heads=heads)
        bounds.between(0, 1, dropout=dropout)
        bounds.affordable(dim=dim, rows=4 * dim)
        if dim % heads:
            raise ValueError(f"width {dim} is not divisible by {heads} heads; take dim={dim // heads * heads or heads}")
        self.heads, self.dropout = heads, dropout
        self.in_proj = nn.Linear(dim, 3 * dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim, bias=bias)
        self.query_norm, self.key_norm = (sizes.made("norm", norm, "nn.RMSNorm", dim // heads) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"] | None = None,
        *,
        mask: Allowed = None,
        positions: Positions = NO_POSITIONS,
        cache: KeyValues = NOTHING,
    ) -> Float[Tensor, "batch query dim"]:
        """Queries come from `x`; keys and values from `memory`, or from `x` itself (self-attention)."""
        dim = self.out_proj.in_features
        sizes.parts(positions=(positions, "rotate", "positions.Rotary(...)"), cache=(cache, "extend", "KeyValues()"))
        sizes.batch(dim, self.in_proj, x=x, **({} if memory is None else {"memory": memory}))
        start = cache.length
        if isinstance(cache, CrossAttentionCache) and cache.keys is not None and cache.values is not None:
            (query,), key, value = self._split(self._of(x, 0, 1), parts=1), cache.keys, cache.values
        else:
            query, key, value = self._project(x, x if memory is None else memory)
            key, value = cache.extend(positions.rotate(self.key_norm(key), start), value)
        if mask is masks.causal and start:  # what is kept stands before the queries
            new = query.shape[2]
            mask = None if new == 1 else masks.causal.dense(new, start + new, start=start, device=x.device)
        query = positions.rotate(self.query_norm(query), start)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(query, key, value, mask, dropout, positions.bias(query, key))
        return self.out_proj(mixed.transpose(1, 2).flatten(2))

    def _project(self, x: Tensor, memory: Tensor) -> Iterable[Float[Tensor, "batch head position width"]]:
        """Queries, keys and values: in one product where they come from the same words."""
        if memory is x:
            return self._split(self.in_proj(x), parts=3)
        return *self._split(self._of(x, 0, 1), parts=1), *self._split(self._of(memory, 1, 3), parts=2)

    def _of(self, x: Tensor, start: int, stop: int) -> Float[Tensor, "batch position width"]:
        """Some of queries, keys and values, which are parts 0, 1 and 2 of the packed product."""
        rows, bias = slice(start * x.shape[-1], stop * x.shape[-1]), self.in_proj.bias
        return functional.linear(x, self.in_proj.weight[rows], None if bias is None else bias[rows])

    def _split(self, x: Tensor, parts: int) -> Tensor:
        """batch position (part head width) -> part batch head position width"""
        return x.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4)
