"""Text generation with trained models: sampling, beam search, translation."""

from tfviz.generate import beam
from tfviz.generate.hf_batch import batch
from tfviz.generate.sample import GREEDY, Sampler, ids, stream, text
from tfviz.generate.translate import translate
from tfviz.validation import validate_public

__all__ = ["GREEDY", "Sampler", "batch", "beam", "ids", "stream", "text", "translate"]

validate_public(globals(), __all__)
validate_public(vars(beam), ["steps", "search", "greedy", "beam_indices"])
