"""Text from trained models."""

from tfviz.generate import beam
from tfviz.generate.sample import GREEDY, Sampler, ids, stream, text

__all__ = ["GREEDY", "Sampler", "beam", "ids", "stream", "text"]
