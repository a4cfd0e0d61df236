"""Capture, measure and edit the attention weights and activations of a PyTorch model.

The modules of a capture, in the order of the data flow:

    capture       opens a tracer; capture_result holds what it recorded, a mapping from sites to tensors
    capture_state what the parts of one capture share
    tracer        observes the forward of each module (module_stack) and each torch call (torch_modes)
    fused         calls whose kernel does not return the weights; fused_weights recomputes them (attention_call, flex,
                  external_kernels, multi_head)
    eager         attention in steps: softmaxes and products (products, weight_tracker, weight_finder, linear_attention)
    axes          identifies the batch, head, query and key axes
    chunk_tracker positions of weights that cover a chunk of a text or a window of a picture (text_chunks)
    recorder      edits a tensor, then stores it as numbers (quantization) or lazily (lazy, key_ranges)
    device_sync   reads values of tensors with few synchronizations of the device
    key_signatures
                  signatures of each invocation's keys, by which the invocations of one generated text are matched

The modules that use a capture:

    maps          attention weights with the tokens of both axes (map_arguments, serialization)
    map_layers    the layers of maps: invocations selected (text_selection) or joined over time (text_matching)
    map_groups    maps of one kind and shape
    measures      numbers for each head (head_scores, map_statistics, ablate)
    edits         functions that replace weights or activations (activation_edits, edit_indices)
    module_paths  the paths of a model's blocks, for naming their sites
    capture_checks
                  what a capture could not observe or name (nearest_sites, error_hints)
"""

from tfviz.look import edits, measures
from tfviz.look.ablate import ablate
from tfviz.look.capture import capture
from tfviz.look.capture_result import Capture
from tfviz.look.external_kernels import register_attention_kernel
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_groups import groups
from tfviz.look.maps import AttentionMaps
from tfviz.look.module_paths import blocks
from tfviz.look.quantization import dequantize, quantize
from tfviz.validation import validate_public

__all__ = [
    "AttentionMaps",
    "Capture",
    "LazyAttention",
    "ablate",
    "blocks",
    "capture",
    "dequantize",
    "edits",
    "groups",
    "measures",
    "quantize",
    "register_attention_kernel",
]

validate_public(globals(), __all__)
validate_public(vars(measures), [name for name in measures.__all__ if name != "SCORE_KINDS"])
validate_public(vars(edits), edits.__all__)
