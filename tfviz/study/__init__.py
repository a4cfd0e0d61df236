"""Study a model: patch activations, read layers, attribute logits, score heads over a data set.

An analysis returns a `Table` (numbers, a name for each axis, a label for each position on it, a unit), or, over a data
set, `Statistics`, whose mean is one.

    patching        activations of one run put into another (patch_sweep; partial_results keeps long sweeps)
    path_patching   the same, only through chosen later heads (path_sweep)
    means           mean activations over a data set, for mean ablation
    lens            the logit lens: each layer's prediction, and a metric of it
    attribution     what each part adds to a logit (residual_terms finds what adds up to the residual stream)
    aggregation        any measure over a data set (collate, statistics, resumable_statistics)
    head_weights    weights of heads apart from a text, and their composition (head_responses)
    heads, compare  scores of heads over a data set (aligned_texts); two checkpoints over a data set
    training_maps   maps while a model is trained
    map_store       many maps in one folder

They use `inputs`, the arguments of a model's call, `metrics`, `sites` and `patch_targets`, `block_replay`, which skips
blocks whose output cannot change, and `partial_forward`, which computes only what the metric reads (`last_position`,
`token_logits`). `aggregate` measures each batch by `batch_statistics`, here or on the workers of a Dask cluster
(`cluster`).
"""

from tfviz.study.aggregation import aggregate
from tfviz.study.attribution import attribute
from tfviz.study.compare import compare
from tfviz.study.head_weights import HeadWeights, head_weights
from tfviz.study.heads import HeadScores, find_heads
from tfviz.study.inputs import Inputs
from tfviz.study.lens import LensTable, lens, metric_by_layer
from tfviz.study.map_store import MapStore
from tfviz.study.means import mean_activations
from tfviz.study.metrics import log_probability, logit, logit_difference
from tfviz.study.patching import patch
from tfviz.study.path_patching import patch_path
from tfviz.study.statistics import Statistics
from tfviz.study.table import Table
from tfviz.study.training_maps import maps_during_training
from tfviz.validation import validate_public

__all__ = [
    "HeadScores",
    "HeadWeights",
    "Inputs",
    "LensTable",
    "MapStore",
    "Statistics",
    "Table",
    "aggregate",
    "attribute",
    "compare",
    "find_heads",
    "head_weights",
    "lens",
    "log_probability",
    "logit",
    "logit_difference",
    "maps_during_training",
    "mean_activations",
    "metric_by_layer",
    "patch",
    "patch_path",
]

validate_public(globals(), [name for name in __all__ if name != "LensTable"])
