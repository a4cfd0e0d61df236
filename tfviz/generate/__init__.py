"""Text from trained models."""

from tfviz.doors import guard
from tfviz.generate import beam
from tfviz.generate.sample import GREEDY, Sampler, ids, stream, text
from tfviz.generate.translate import translate

__all__ = ["GREEDY", "Sampler", "beam", "ids", "stream", "text", "translate"]

guard(globals(), __all__)
guard(vars(beam), ["steps", "search", "greedy", "rows"])
