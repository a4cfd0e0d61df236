"""Look inside a model: capture its attention, store it as maps, measure and edit it.

The modules of a capture, in the order of the data flow:

    capture       opens a tracer; what it saw is a mapping from sites to tensors (captured)
    tracer        sees each module start (module_stack) and each torch call, by a mode (torch_state)
    fused         calls whose kernel hides the weights, which fused_weights computes again (attention_call, flex,
                  external_kernels, multi_head)
    eager         softmaxes and products (products, lineage, weight_finder, linear_attention)
    axes          which axes are batch, head, query and key
    recorder      edits a tensor, and stores it: as numbers (quantize) or lazily (lazy, key_ranges)
    key_fingerprints
                  of the keys of each invocation, by which invocations of one generated text are joined over time

The modules that use a capture:

    maps          attention weights with the words of both axes (map_arguments, serialization)
    map_layers    their layers: invocations selected (text_selection) or joined over time (text_matching), blocks joined
                  (text_blocks)
    map_groups    those of one kind and shape
    measures      numbers of heads (head_scores, map_statistics, ablate)
    block_paths   the paths of a model's blocks, from which sites are named
    caveats       what a capture could not see or name, in a sentence (nearest_sites: a site that is not there)
"""

from tfviz.look import edits, measures
from tfviz.look.ablate import ablate
from tfviz.look.block_paths import blocks
from tfviz.look.capture import capture
from tfviz.look.captured import Capture
from tfviz.look.external_kernels import register_kernel
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_groups import groups
from tfviz.look.maps import AttentionMaps
from tfviz.look.quantize import pack, unpack
from tfviz.validation import validate_public

__all__ = [
    "AttentionMaps",
    "Capture",
    "LazyAttention",
    "ablate",
    "blocks",
    "capture",
    "edits",
    "groups",
    "measures",
    "pack",
    "register_kernel",
    "unpack",
]

validate_public(globals(), __all__)
validate_public(vars(measures), [name for name in measures.__all__ if name != "SCORE_KINDS"])
validate_public(vars(edits), edits.__all__)
