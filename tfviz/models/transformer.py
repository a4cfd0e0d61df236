"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from tfviz import bounds
from tfviz.doors import what
from tfviz.layers import Block, DecoderBlock, KeyValues, MultiHead, Tokens, masks, positions, pre_norm, sizes
from tfviz.layers.attention import NOTHING
from tfviz.layers.blocks import Activation, Residual, shrink_branches, stack
from tfviz.layers.cache import CrossAttentionCache
from tfviz.shapes import Bool, Float, Int


class Memory(NamedTuple):
    """What the encoder made of a source, which the decoder looks at in every step."""

    states: Float[Tensor, "batch source dim"]
    words: Bool[Tensor, "batch source"]  # False at padding


class Transformer(nn.Module):
    """A text in, another out: an encoder that reads both ways, a decoder that sees its past and the whole source.

    Input embeddings are scaled by the square root of the width, and those of the target are the output weights too
    (section 3.4). Id 0 is padding, which nothing looks at.

    Args:
        source_vocab: number of source tokens.
        target_vocab: number of target tokens; None for one vocabulary, and one table, for both languages.
        context: the longest text it is trained on, in tokens.
        inner: width inside the feed-forward networks; default 4 `dim`.
        positions: a kind from `layers.positions`, used by the self-attention of both halves.
        residual: `pre_norm` (with a last norm on each half), or `post_norm` as in the paper.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int | None = None,
        *,
        context: int = 256,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        inner: int | None = None,
        dropout: float = 0.1,
        positions: type[positions.Positions] = positions.Sinusoidal,
        residual: Residual = pre_norm,
        activation: Activation = nn.ReLU,
    ):
        super().__init__()
        bounds.at_least(1, context=context, heads=heads)
        bounds.between(0, 1, dropout=dropout)
        parts: dict[str, Any] = {"residual": residual, "activation": activation}
        self.source = Tokens(source_vocab, dim)
        self.target = self.source if target_vocab is None else Tokens(target_vocab, dim)
        self.positions = positions(context, dim, heads)
        self.dropout = nn.Dropout(dropout)
        self.encoder = stack(layers, lambda: Block(dim, heads, inner, dropout, **parts))
        self.decoder = stack(layers, lambda: DecoderBlock(dim, heads, inner, dropout, **parts))
        self.encoder_norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        self._init_weights()
        if residual is pre_norm:
            shrink_branches(self)

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Logits of the token that follows each target position, the target so far being given (teacher forcing)."""
        return self.decode(target, self.encode(source))

    def encode(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Read the source, once."""
        words = source != 0
        x = self._embed(self.source, source)
        for block in self.encoder:
            x = block(x, mask=words[:, None, None], positions=self.positions)
        return Memory(self.encoder_norm(x), words)

    def decode(
        self, target: Int[Tensor, "batch target"], memory: Memory, cache: Sequence[KeyValues] = ()
    ) -> Float[Tensor, "batch target vocab"]:
        """Logits after each target position; queries come from the target, keys and values from the memory.

        Args:
            memory: of as many sources as targets, or of fewer, each for as many targets that stand side by side.
            cache: from `new_cache()`; then `target` continues the texts seen before, and only that is computed.
        """
        sizes.ids(target=target)
        sizes.caches(cache, 2 * len(self.decoder), lambda kept: hasattr(kept, "extend"), texts=target.shape[0])
        if getattr(memory, "_fields", None) != Memory._fields:
            raise TypeError(f"memory is {what(memory)}; give this model's own, model.encode(source)")
        sizes.shared(target, memory.states)
        if cache and isinstance(cache[1], CrossAttentionCache):
            cache[1].of(memory.states)
        start, length = cache[0].length if cache else 0, target.shape[1]
        x = self._embed(self.target, target, start)
        mask: Any = None if start and length == 1 else masks.causal  # a single new word may look at all that is kept
        if start and length > 1:
            mask = masks.causal.dense(length, start + length, start=start, device=x.device)
        how = {"mask": mask, "positions": self.positions}
        kept = cache or [NOTHING] * (2 * len(self.decoder))
        for block, own, other in zip(self.decoder, kept[::2], kept[1::2], strict=True):
            x = block(x, memory.states, memory.words[:, None, None], other, cache=own, **how)
        return functional.linear(self.decoder_norm(x), self.target.weight)

    def new_cache(self, length: int) -> list[KeyValues]:
        """An empty cache for targets of up to `length` tokens: of each block its own words, then the source's."""
        return [cache for _ in self.decoder for cache in (KeyValues(length), CrossAttentionCache())]

    def _embed(self, table: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        return self.dropout(self.positions(table(ids) * table.embedding_dim**0.5, start))

    def _init_weights(self) -> None:
        """Xavier uniform (Glorot & Bengio 2010), the packed queries, keys and values being one matrix each."""
        packed = {module.in_proj for module in self.modules() if isinstance(module, MultiHead)}
        for module in self.modules():
            if isinstance(module, nn.Linear):
                for matrix in module.weight.chunk(3 if module in packed else 1):
                    nn.init.xavier_uniform_(matrix)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
