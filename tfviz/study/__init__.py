"""Analyses of a model: activation patching, logit lens, logit attribution, and head scores over a data set.

An analysis of a prompt returns a `Table`: numbers with a name for each axis, a label for each position on it, and a
unit. An analysis of a data set returns `Statistics`, whose mean is a `Table`.

    patching        put activations of one run into another (patch_sweep, patch_sources; partial_results stores long
                    sweeps)
    path_patching   the same, only through chosen later heads (path_sweep)
    means           mean activations over a data set, for mean ablation
    logit_lens      the logit lens: the prediction of each layer, or a metric of it
    logit_attribution
                    the contribution of each part to a logit (residual_terms splits the residual stream into terms;
                    frozen_norm makes a norm linear)
    aggregation     statistics of any measure over a data set (collate, statistics, resumable_statistics)
    head_weights    W_Q, W_K, W_V and W_O of each head, and the composition of heads (head_responses)
    heads           head scores over a data set (aligned_texts)
    compare         the difference between two checkpoints over a data set
    training_maps   attention maps during training
    map_store       many attention maps in one folder

Shared modules: `table` (`table_labels`), `inputs` (the arguments of a model's call; `check_prompts`, `padding`),
`metrics`, `sites`, `patch_targets`, `resumable_file` (`partial_results`, `resumable_statistics`), `block_replay` (skips
blocks whose output cannot change) and `partial_forward` (computes only what the metric reads; `last_position`,
`token_logits`). `aggregate` measures each batch by `batch_statistics`, in this process or on the workers of a Dask
cluster (`cluster`).
"""

from tfviz.study.aggregation import aggregate
from tfviz.study.compare import compare
from tfviz.study.head_weights import HeadWeights, head_weights
from tfviz.study.heads import HeadScores, mean_head_scores
from tfviz.study.inputs import Inputs
from tfviz.study.logit_attribution import logit_attribution
from tfviz.study.logit_lens import LensTable, logit_lens, metric_by_layer
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
    "compare",
    "head_weights",
    "log_probability",
    "logit",
    "logit_attribution",
    "logit_difference",
    "logit_lens",
    "maps_during_training",
    "mean_activations",
    "mean_head_scores",
    "metric_by_layer",
    "patch",
    "patch_path",
]

validate_public(globals(), [name for name in __all__ if name != "LensTable"])
