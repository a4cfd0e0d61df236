"""Scaled dot-product attention and multi-head attention."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import masks
from tfviz.layers.cache import CrossAttentionCache, KVCache
from tfviz.layers.positions import PositionEncoding
from tfviz.shapes import Float

NO_POSITIONS = PositionEncoding()
MIN_FLEX_WIDTH = 16  # minimum width of a head in FlexAttention's GPU kernel
# Bool[Tensor, "#batch #head query key"], True where a query may attend; or a BlockMask, masks.causal, or None
AttentionMask = Any


def attend(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch head key dim"],
    value: Float[Tensor, "batch head key out"],
    mask: AttentionMask = None,
    dropout: float = 0.0,
    bias: Float[Tensor, "#batch #head query key"] | None = None,
) -> Float[Tensor, "batch head query out"]:
    """Compute softmax(Q K^T / sqrt(dim) + bias) V with a fused kernel (Vaswani et al. 2017, equation 1).

    `dim` is the width of a head. The output of a fully masked query is zero. The output of a query with NaN scores may
    be zero, too, depending on PyTorch's kernel.

    Args:
        query: the queries, `[batch, head, query, dim]`.
        key: the keys, `[batch, head, key, dim]`.
        value: the values, `[batch, head, key, out]`.
        mask: True where a query may attend to a key, `[batch, head, query, key]`; axes of size 1 are broadcast. With
            `masks.causal` itself, queries and keys both start at position 0, and the kernel skips later keys without
            storing a mask. A `BlockMask` (see `Mask.block_mask`) is passed to FlexAttention, which skips the blocks
            that it forbids, and supports neither dropout nor a bias.
        dropout: probability with which an attention weight is set to zero.
        bias: a tensor added to the scores, of the shape of a mask.

    Raises:
        ValueError: the mask is not boolean, the bias is boolean, or shapes do not match.
        TypeError: the mask is a predicate other than `masks.causal`, or not a tensor.
    """
    _check_sizes(query, key, value)
    if mask is masks.causal and bias is None:
        return functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    if mask is masks.causal:
        mask = masks.causal.dense(query.shape[2], key.shape[2], device=query.device)
    if hasattr(mask, "mask_mod"):
        return _flex_attention(query, key, value, mask, dropout, bias)
    if mask is not None:
        _check_mask(mask, query, key)
    if bias is not None:
        if bias.dtype == torch.bool:
            raise ValueError("bias is bool; a bias is added to the scores; give booleans as mask")
        _check_table("bias", bias, query, key)
        bias = bias.to(query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def _check_sizes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise ValueError for shapes that PyTorch's kernels would misinterpret or broadcast."""
    if torch.compiler.is_compiling():
        return
    same_axes = query.dim() == key.dim() == value.dim()
    if not same_axes or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        shapes = f"query is {list(query.shape)}, key is {list(key.shape)}, value is {list(value.shape)}"
        raise ValueError(f"{shapes}; give [batch, head, query, dim], [batch, head, key, dim], [batch, head, key, out]")


def _check_mask(mask: AttentionMask, query: Tensor, key: Tensor) -> None:
    if not isinstance(mask, Tensor):
        raise TypeError(
            f"mask is {mask!r:.60}; give masks.causal, or a boolean tensor; for a predicate, mask.dense(...)"
        )
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask is {mask.dtype}; it must be boolean, True where a query may attend; give numbers "
            f"that are added to the scores as bias"
        )
    _check_table("mask", mask, query, key)


def _check_table(name: str, table: Tensor, query: Tensor, key: Tensor) -> None:
    """Raise ValueError unless a mask or bias is `[batch, head, query, key]` or `[query, key]`, each axis full or 1."""
    if torch.compiler.is_compiling():
        return
    scores = (*query.shape[:-1], key.shape[-2])
    fits = all(size in (1, full) for size, full in zip(reversed(table.shape), reversed(scores)))
    if table.dim() not in (2, len(scores)) or not fits:
        raise ValueError(
            f"{name} is {list(table.shape)}, the scores are {list(scores)}, [batch, head, query, key]; "
            f"every axis must have that size or 1, so for one {name} per text give {name}[:, None]"
        )


def _flex_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, dropout: float, bias: Tensor | None
) -> Tensor:
    if dropout or bias is not None:
        raise ValueError("a block mask allows neither dropout of weights nor a bias; give a dense one, mask.dense()")
    if query.is_cuda and min(query.shape[-1], value.shape[-1]) < MIN_FLEX_WIDTH:
        raise ValueError(
            f"heads are {query.shape[-1]} wide; on a GPU, FlexAttention needs {MIN_FLEX_WIDTH} or more: give wider "
            "heads, or a dense mask, mask.dense()"
        )
    kernel = _flex_kernel(compiled=query.is_cuda and not torch.compiler.is_compiling())
    return kernel(query, key, value, block_mask=mask)


@cache
def _flex_kernel(compiled: bool) -> Callable[..., Tensor]:
    """Return FlexAttention, compiled for a GPU, since without compilation it materializes all scores."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention) if compiled else flex_attention  # type: ignore[return-value]


def _no_norm(_: int) -> nn.Module:
    return nn.Identity()


class MultiHeadAttention(nn.Module):
    """Multi-head attention: heads that attend in parallel, each in its part of the width (Vaswani et al. 2017, 3.2.2).

    One packed projection computes the queries, keys and values of all heads. It has 3 `dim`^2 weights for any number of
    heads, and `out_proj` has `dim`^2. The layout of the parameters is that of `torch.nn.MultiheadAttention`.

    Args:
        dim: width of the input and of the output.
        heads: number of heads; each is `dim / heads` wide.
        dropout: probability with which an attention weight is set to zero in training.
        bias: whether the projections have biases.
        norm: function from the width of a head to a norm of queries and keys, such as `nn.RMSNorm`, which bounds the
            scores (Henry et al. 2020, "Query-key normalization"); by default no norm.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        norm: Callable[[int], nn.Module] = _no_norm,
    ):
        super().__init__()
        checks.at_least(1, dim=dim, heads=heads)
        checks.between(0, 1, dropout=dropout)
        checks.fits_memory(dim=dim, rows=4 * dim)
        checks.divisible_by_heads(dim, heads)
        self.heads, self.dropout = heads, dropout
        self.in_proj = nn.Linear(dim, 3 * dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim, bias=bias)
        self.query_norm, self.key_norm = norm(dim // heads), norm(dim // heads)

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"] | None = None,
        *,
        mask: AttentionMask = None,
        positions: PositionEncoding = NO_POSITIONS,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        """Attend from `x` to `memory`, or to `x` itself (self-attention).

        Args:
            x: the input, from which queries are computed, `[batch, query, dim]`.
            memory: the states from which keys and values are computed, `[batch, key, dim]`; None for self-attention.
            mask: True where a query may attend to a key; see `attend`.
            positions: the position encoding, which rotates queries and keys, or biases the scores.
            cache: keys and values of the positions before `x`; the keys and values of `x` are appended to it.

        Raises:
            ValueError: `x` does not have three axes.
        """
        if x.dim() != 3:
            raise ValueError(f"x is {list(x.shape)}; give [batch, position, dim]; for one text, x[None]")
        start = 0 if cache is None else cache.length
        if isinstance(cache, CrossAttentionCache) and cache.keys is not None and cache.values is not None:
            query, key, value = self._query(x), cache.keys, cache.values
        else:
            query, key, value = self._project(x, x if memory is None else memory)  # [batch, head, position, dim / head]
            key = positions.rotate(self.key_norm(key), start)
            if cache is not None:
                key, value = cache.extend(key, value)  # [batch, head, start + position, dim / head]
        if mask is masks.causal and start:  # the cached positions precede the queries
            length = query.shape[2]
            mask = None if length == 1 else masks.causal.dense(length, start + length, start=start, device=x.device)
        query = positions.rotate(self.query_norm(query), start)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(query, key, value, mask, dropout, positions.bias(query, key))  # [batch, head, query, dim / head]
        return self.out_proj(mixed.transpose(1, 2).flatten(2))  # [batch, query, dim]

    def _project(self, x: Tensor, memory: Tensor) -> Any:
        """Compute queries, keys and values, in a single product for self-attention."""
        if memory is x:
            return self._split_heads(self.in_proj(x), parts=3)
        return self._query(x), *self._split_heads(self._packed(memory, 1, 3), parts=2)

    def _query(self, x: Tensor) -> Float[Tensor, "batch head position width"]:
        return self._split_heads(self._packed(x, 0, 1), parts=1)[0]

    def _packed(self, x: Tensor, start: int, stop: int) -> Float[Tensor, "batch position width"]:
        """Apply parts `start` to `stop - 1` of the packed projection; parts 0, 1, 2 are queries, keys, values."""
        rows, bias = slice(start * x.shape[-1], stop * x.shape[-1]), self.in_proj.bias
        return functional.linear(x, self.in_proj.weight[rows], None if bias is None else bias[rows])

    def _split_heads(self, x: Tensor, parts: int) -> Float[Tensor, "part batch head position width"]:
        return x.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4)
