"""Study a model: patch activations, read layers, attribute logits, over a data set.

Each analysis returns a `Table`: numbers, a name for each axis, a label for each place, a unit.

    patching      activations of one run put into another (block_replay skips what cannot change)
    metrics       one number of a model's logits
"""

from tfviz.study.metrics import log_probability, logit, logit_difference
from tfviz.study.patching import patch
from tfviz.study.table import Table
from tfviz.validation import validate_public

__all__ = ["Table", "log_probability", "logit", "logit_difference", "patch"]

validate_public(globals(), __all__)
