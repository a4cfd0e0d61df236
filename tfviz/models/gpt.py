"""GPT: a stack of blocks that sees only the past and predicts the next token (Radford et al. 2018, 2019)."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import bounds
from tfviz.doors import what
from tfviz.layers import Block, KeyValues, MultiHead, Tokens, masks, positions, pre_norm, sizes
from tfviz.layers.attention import NOTHING, Allowed
from tfviz.layers.blocks import Activation, Residual, init_weights, stack
from tfviz.shapes import Float, Int


class GPT(nn.Module):
    """A language model: decoder blocks without cross-attention, input and output embeddings tied.

    Args:
        vocab: number of tokens.
        context: the longest text it is trained on, in tokens. `positions.Learned` refuses a longer one; the other kinds
            go on, as if built for it, though nothing was learned there. A cache has room for `context` tokens.
        dim: width of the residual stream.
        mask: which keys a query may see; `masks.strided(8)` here makes the sparse Transformer.
        positions: a kind from `layers.positions`.
        residual: `pre_norm`, or `post_norm` (which then has no last norm).
        activation: of the feed-forward networks.
        attention: from width and heads to the attention of a block; its linear layers get new first weights, as all do.
    """

    def __init__(
        self,
        vocab: int,
        *,
        context: int = 256,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.0,
        mask: masks.Mask = masks.causal,
        positions: type[positions.Positions] = positions.Learned,
        residual: Residual = pre_norm,
        activation: Activation = nn.GELU,
        attention: Callable[[int, int], nn.Module] = MultiHead,
    ):
        super().__init__()
        bounds.at_least(1, context=context, heads=heads)
        bounds.between(0, 1, dropout=dropout)
        self.context, self.mask, self.heads = context, mask, heads
        parts: dict[str, Any] = {
            "dropout": dropout,
            "residual": residual,
            "activation": activation,
            "attention": attention,
        }
        self.tokens = Tokens(vocab, dim)
        self.positions = positions(context, dim, heads)
        self.dropout = nn.Dropout(dropout)
        self.blocks = stack(layers, lambda: Block(dim, heads, **parts))
        _check_attention(attention, self.blocks[0].attention)
        self.norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        init_weights(self)
        nn.init.normal_(self.tokens.weight, std=0.02)  # small, since it is also the output's

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: Sequence[KeyValues] = ()
    ) -> Float[Tensor, "batch position vocab"]:
        """Logits of the token that follows each position.

        Args:
            cache: from `new_cache()`; then `ids` continue the text seen before, and only they are computed.
        """
        sizes.ids(ids=ids)
        sizes.caches(cache, len(self.blocks), lambda kept: hasattr(kept, "extend"), texts=ids.shape[0])
        start = cache[0].length if cache else 0
        if not torch.compiler.is_compiling() and cache and {kept.length for kept in cache} != {start}:
            raise ValueError("layers of the cache hold unlike lengths, as after an interrupted call; begin a new one")
        x = self.dropout(self.positions(self.tokens(ids), start))
        mask = self.attention_mask(len(ids), ids.shape[1], start, ids.device)
        for block, kept in zip(self.blocks, cache or [NOTHING] * len(self.blocks), strict=True):
            x = block(x, mask=mask, positions=self.positions, cache=kept)
        return functional.linear(self.norm(x), self.tokens.weight)

    def attention_mask(self, batch: int, length: int, start: int, device: torch.device) -> Allowed:
        """Where the `length` positions from `start` on may look, in each of `batch` texts; None for everywhere."""
        if self.mask is masks.causal and length == 1:  # a single new token may look at all that is kept
            return None
        if self.mask is masks.causal and start == 0:
            return masks.causal
        return self.mask.dense(length, start + length, batch=batch, heads=self.heads, start=start, device=device)

    def new_cache(self) -> list[KeyValues]:
        """An empty cache, one for each block, with room for `context` positions."""
        return [KeyValues(self.context) for _ in self.blocks]


def _check_attention(attention: object, made: Any) -> None:
    """It takes what `MultiHead` takes."""
    try:
        signature(made.forward).bind(None, mask=None, positions=None, cache=None)
    except TypeError as error:
        asked = "its forward must take (x, mask=, positions=, cache=), as MultiHead"
        raise TypeError(f"attention is {what(attention)}; {asked}: {error}") from error
