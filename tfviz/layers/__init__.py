"""Layers of models: attention, blocks, embeddings, position encodings, masks, recurrent cells and caches."""

from tfviz.layers import masks, positions
from tfviz.layers.attention import MultiHeadAttention, attend
from tfviz.layers.blocks import Block, DecoderBlock, FeedForward, post_norm, pre_norm
from tfviz.layers.cache import KVCache
from tfviz.layers.embeddings import BigramEmbedding, TokenEmbedding
from tfviz.layers.recurrent import LSTM, RNN, Cell, Recurrent
from tfviz.layers.seq2seq_attention import AdditiveAttention, DotAttention
from tfviz.validation import validate_public

__all__ = [
    "LSTM", "RNN", "AdditiveAttention", "BigramEmbedding", "Block", "Cell", "DecoderBlock", "DotAttention",
    "FeedForward", "KVCache", "MultiHeadAttention", "Recurrent", "TokenEmbedding", "attend", "masks", "positions",
    "post_norm", "pre_norm",
]  # fmt: skip

# functions of the forward pass are not validated
validate_public(globals(), __all__, exclude=("attend", "post_norm", "pre_norm"))
validate_public(
    vars(masks), ["padding", "window", "dilated", "strided", "fixed", "prefix", "documents", "graph", "per_head"]
)
validate_public(
    vars(positions), ["sinusoids", "alibi", "relative", "Learned", "Sinusoidal", "Rotary", "ALiBi", "Relative"]
)
