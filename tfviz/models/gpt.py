"""GPT, a decoder-only language model (Radford et al. 2018, 2019)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import Block, KVCache, TokenEmbedding, masks, positions
from tfviz.layers.attention import AttentionMask
from tfviz.layers.blocks import final_norm, init_weights, stack
from tfviz.layers.cache import check_entries
from tfviz.shapes import Float, Int


class GPT(nn.Module):
    """A decoder-only language model with causal blocks, whose input and output embeddings are tied.

    Args:
        vocab_size: number of tokens.
        context: length of the longest training text, in tokens. For a longer text, `positions.Learned` raises an error;
            other position encodings extrapolate to positions that were not trained. A cache has room for `context`
            tokens.
        layers: number of blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of the embeddings and of each branch.
        mask: the keys that each query may attend to; `masks.strided(8)` makes a sparse Transformer.
        positions: a class of `layers.positions`.
        block: further arguments of `layers.Block`, such as `residual=post_norm` (without a final norm), `norm` (also
            of the final norm), `activation`, and `attention`, whose linear layers are initialized like all others.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        context: int = 256,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.0,
        mask: masks.Mask = masks.causal,
        positions: type[positions.PositionEncoding] = positions.Learned,
        **block: Any,
    ):
        super().__init__()
        checks.at_least(1, context=context)
        self.context, self.mask, self.heads = context, mask, heads
        self.tokens = TokenEmbedding(vocab_size, dim)
        self.positions = positions(context, dim, heads)
        self.blocks = stack(layers, lambda: Block(dim, heads, dropout=dropout, **block))
        self.dropout = nn.Dropout(dropout)
        self.norm = final_norm(dim, **block)
        init_weights(self)
        nn.init.normal_(self.tokens.weight, std=0.02)  # small, since it is also the output matrix

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: Sequence[KVCache] | None = None
    ) -> Float[Tensor, "batch position vocab"]:
        """Return the logits of the token that follows each position.

        Args:
            ids: the ids of the tokens, `[batch, position]`.
            cache: a cache from `new_cache()`, with which `ids` continue the texts of earlier calls, and only their
                positions are computed.
        """
        start = 0 if cache is None else self._cached(cache)
        x = self.dropout(self.positions(self.tokens(ids), start))  # [batch, position, dim]
        mask = self.attention_mask(len(ids), ids.shape[1], start, ids.device)
        for index, block in enumerate(self.blocks):
            x = block(x, mask=mask, positions=self.positions, cache=cache[index] if cache else None)
        return functional.linear(self.norm(x), self.tokens.weight)

    def _cached(self, cache: Sequence[KVCache]) -> int:
        """Return the number of positions in a cache.

        Raises:
            ValueError: the cache belongs to another model, or its layers hold different numbers of positions.
        """
        check_entries(cache, len(self.blocks))
        start = cache[0].length
        if not torch.compiler.is_compiling() and any(part.length != start for part in cache):
            raise ValueError(
                "layers of the cache hold different lengths, as after an interrupted call; begin a new cache"
            )
        return start

    def attention_mask(self, batch: int, length: int, start: int, device: torch.device) -> AttentionMask:
        """Return the attention mask of `length` queries from position `start` on, in each of `batch` texts."""
        if self.mask is masks.causal:  # `MultiHeadAttention` shifts it by the cached positions
            return masks.causal
        return self.mask.dense(length, start + length, batch=batch, heads=self.heads, start=start, device=device)

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache, one for each block, with room for `context` positions."""
        return [KVCache(self.context) for _ in self.blocks]
