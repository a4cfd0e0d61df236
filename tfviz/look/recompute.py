"""Recomputes the weights of a fused attention call from its arguments.

A fused kernel never holds the whole map. Its weights are computed here from the same queries, keys, mask and scale, a
few rows at a time and only over keys that those rows may see, and go straight into the dtype they are stored in.
"""

from dataclasses import replace

import torch
from torch import Tensor

from tfviz.checks import materialized
from tfviz.look.attention_call import AttentionCall
from tfviz.look.quantize import quantize
from tfviz.shapes import Float

CHUNK = 2 * 2**20  # bytes of float32 scores at a time: small enough to stay in the processor's cache


def softmax_weights(scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """Return a softmax over keys, with zeros in rows where every score is -inf."""
    return zero_masked_rows(scores.softmax(-1), scores) if scores.shape[-1] else scores


def zero_masked_rows(
    weights: Float[Tensor, "*lead key"], scores: Float[Tensor, "*lead key"]
) -> Float[Tensor, "*lead key"]:
    """Return a softmax's output with zeros for NaN in rows where every score is -inf."""
    materialized(scores=scores)
    masked = scores.amax(-1, keepdim=True) == -torch.inf
    return weights.masked_fill(masked, 0.0) if masked.any() else weights


@torch.no_grad()
def attention_pattern(call: AttentionCall, dtype: torch.dtype) -> Tensor:
    """Return the attention weights, [batch, head, query, key], as float32, float16, or uint8 (see `pack`).

    Weights with NaN, which no byte can hold, are float32.
    """
    materialized(query=call.query)
    batch, heads, queries, keys = call.shape
    dtype = dtype if dtype != torch.uint8 or call.is_finite else torch.float32
    call = replace(call, query=call.query.float(), key=call.key.float().contiguous())  # once, not for each chunk
    stored = torch.zeros(call.shape, dtype=dtype, device=call.query.device)
    height = max(1, CHUNK // max(1, 4 * batch * heads * keys))
    for start in range(0, queries, height):
        rows = slice(start, min(start + height, queries))
        seen = call.key_range(rows)
        if seen.stop > seen.start:
            weights = softmax_weights(call.scores(rows, seen))
            stored[:, :, rows, seen] = quantize(weights) if dtype == torch.uint8 else weights
    return stored
