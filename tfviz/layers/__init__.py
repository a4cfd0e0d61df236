"""The parts models are built of."""

from tfviz.layers import masks, positions
from tfviz.layers.attention import MultiHead, attend
from tfviz.layers.blocks import Block, FeedForward, post_norm, pre_norm
from tfviz.layers.cache import KeyValues

__all__ = [
    "Block",
    "FeedForward",
    "KeyValues",
    "MultiHead",
    "attend",
    "masks",
    "positions",
    "post_norm",
    "pre_norm",
]
