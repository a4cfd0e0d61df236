"""Text from trained models."""

from tfviz.generate.sample import GREEDY, Sampler, ids, stream, text

__all__ = ["GREEDY", "Sampler", "ids", "stream", "text"]
