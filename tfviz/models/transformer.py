"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import Block, DecoderBlock, KVCache, MultiHeadAttention, TokenEmbedding, masks, positions, pre_norm
from tfviz.layers.blocks import Activation, Residual, final_norm, shrink_branches, stack
from tfviz.layers.cache import CrossAttentionCache, check_entries
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.shapes import Bool, Float, Int


class EncoderOutput(NamedTuple):
    """The encoded source, to which the decoder attends in every step."""

    states: Float[Tensor, "batch source dim"]
    attention_mask: Bool[Tensor, "batch source"]  # False at padding


class Transformer(EncoderDecoder):
    """The encoder-decoder Transformer: a bidirectional encoder, and a causal decoder that attends to the whole source.

    Input embeddings are scaled by the square root of the width, and the target's embeddings are also the output weights
    (section 3.4). Id 0 is padding; padding in the source is masked.

    Args:
        source_vocab_size: number of source tokens.
        target_vocab_size: number of target tokens; None for one vocabulary, and one table, for both languages.
        context: length of the longest training text, in tokens.
        layers: number of encoder blocks, and of decoder blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of the embeddings and of each branch's output.
        positions: a class of `layers.positions`, for the self-attention of encoder and decoder.
        residual: `pre_norm` (with a final norm of encoder and decoder), or `post_norm` as in the paper.
        activation: class of the activation function of the feed-forward network; ReLU in the paper.
        block: further arguments of `layers.Block`, such as `inner`; `norm` also makes the final norms.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int | None = None,
        *,
        context: int = 256,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.1,
        positions: type[positions.PositionEncoding] = positions.Sinusoidal,
        residual: Residual = pre_norm,
        activation: Activation = nn.ReLU,
        **block: Any,
    ):
        super().__init__()
        checks.at_least(1, context=context)
        block |= {"dropout": dropout, "residual": residual, "activation": activation}
        self.source = TokenEmbedding(source_vocab_size, dim)
        self.target = self.source if target_vocab_size is None else TokenEmbedding(target_vocab_size, dim)
        self.positions = positions(context, dim, heads)
        self.dropout = nn.Dropout(dropout)
        self.encoder = stack(layers, lambda: Block(dim, heads, **block))
        self.decoder = stack(layers, lambda: DecoderBlock(dim, heads, **block))
        self.encoder_norm = final_norm(dim, **block)
        self.decoder_norm = final_norm(dim, **block)
        self._init_weights()
        if residual is pre_norm:
            shrink_branches(self)

    def encode(self, source: Int[Tensor, "batch source"]) -> EncoderOutput:
        """Encode the source, `[batch, source]`; the result serves all steps of the decoder."""
        attention_mask = source != 0
        x = self._embed(self.source, source)
        for block in self.encoder:
            x = block(x, mask=attention_mask[:, None, None], positions=self.positions)
        return EncoderOutput(self.encoder_norm(x), attention_mask)

    def decode(
        self, target: Int[Tensor, "batch target"], memory: EncoderOutput, cache: Sequence[KVCache] | None = None
    ) -> Float[Tensor, "batch target vocab"]:
        """Return the logits of the token after each target position, given the encoded source.

        Args:
            target: the ids of the target's tokens, `[batch, target]`.
            memory: the encoded sources: one for each target, or fewer, each shared by the same number of consecutive
                targets.
            cache: a cache from `new_cache()`, with which `target` continues the texts of earlier calls, and only its
                positions are computed.
        """
        caches: Sequence[KVCache | None] = [None] * (2 * len(self.decoder)) if cache is None else cache
        check_entries(caches, 2 * len(self.decoder))
        if isinstance(caches[1], CrossAttentionCache):
            caches[1].check_source(memory.states)
        x = self._embed(self.target, target, start=0 if caches[0] is None else caches[0].length)
        # self-attention shifts the mask by the cached positions
        attention = {"mask": masks.causal, "positions": self.positions}
        for block, past, cross in zip(self.decoder, caches[::2], caches[1::2], strict=True):
            x = block(x, memory.states, memory.attention_mask[:, None, None], cross, cache=past, **attention)
        return functional.linear(self.decoder_norm(x), self.target.weight)

    def new_cache(self, length: int) -> list[KVCache]:
        """Return an empty cache for targets of up to `length` tokens.

        For each block it has two entries, for self-attention and for cross-attention.
        """
        return [cache for _ in self.decoder for cache in (KVCache(length), CrossAttentionCache())]

    def _embed(self, table: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        return self.dropout(self.positions(table(ids) * table.embedding_dim**0.5, start))

    def _init_weights(self) -> None:
        """Initialize by Xavier uniform (Glorot & Bengio 2010), packed queries, keys and values as separate matrices."""
        packed = {module.in_proj for module in self.modules() if isinstance(module, MultiHeadAttention)}
        for module in self.modules():
            if isinstance(module, nn.Linear):
                for matrix in module.weight.chunk(3 if module in packed else 1):
                    nn.init.xavier_uniform_(matrix)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
