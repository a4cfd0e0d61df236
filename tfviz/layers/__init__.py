"""The parts models are built of."""

from tfviz.doors import guard
from tfviz.layers import masks, positions
from tfviz.layers.attention import MultiHead, attend
from tfviz.layers.blocks import Block, DecoderBlock, FeedForward, post_norm, pre_norm
from tfviz.layers.cache import KeyValues
from tfviz.layers.embeddings import Bigrams, Tokens
from tfviz.layers.recurrent import LSTM, RNN, Cell, Recurrent
from tfviz.layers.seq2seq_attention import Additive, Dot

__all__ = [
    "LSTM",
    "RNN",
    "Additive",
    "Bigrams",
    "Block",
    "Cell",
    "DecoderBlock",
    "Dot",
    "FeedForward",
    "KeyValues",
    "MultiHead",
    "Recurrent",
    "Tokens",
    "attend",
    "masks",
    "positions",
    "post_norm",
    "pre_norm",
]

# functions of the forward pass have none
guard(globals(), __all__, without=("attend", "post_norm", "pre_norm"))
guard(vars(masks), ["padding", "window", "dilated", "strided", "fixed", "prefix", "documents", "graph", "per_head"])
guard(vars(positions), ["sinusoids", "alibi", "relative", "Learned", "Sinusoidal", "Rotary", "ALiBi", "Relative"])
