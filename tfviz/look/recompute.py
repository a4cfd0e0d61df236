"""The weights of a fused attention call, computed again from its arguments.

A fused kernel never holds the whole map. Its weights are made here from the same queries, keys, mask and scale, a
few rows at a time and only over keys that those rows may see, and go straight into the form they are kept in.
"""

from dataclasses import replace

import torch
from torch import Tensor

from tfviz.bounds import readable
from tfviz.look.aside import bare, is_wrapped
from tfviz.look.call import Call
from tfviz.look.kept import codes, pack, packable
from tfviz.shapes import Float

CHUNK = 2 * 2**20  # bytes of float32 scores at a time: small enough to stay in the processor's cache


def weights(scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """Softmax over keys; zeros in a row where every key is at -inf."""
    return living(scores.softmax(-1), scores) if scores.shape[-1] else scores


def living(soft: Float[Tensor, "*lead key"], scores: Float[Tensor, "*lead key"]) -> Float[Tensor, "*lead key"]:
    """A softmax, with zeros for NaN in a row where every score is at -inf."""
    readable(scores=scores)
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    return soft.masked_fill(dead, 0.0) if is_wrapped(dead) or dead.any() else soft


@torch.no_grad()
def pattern(call: Call, dtype: torch.dtype) -> Tensor:
    """The attention weights, batch head query key, as `dtype`: float32, float16, or uint8 (see `pack`).

    What no byte can say, NaN, is kept in float32.
    """
    readable(query=call.query)
    if call.is_wrapped:
        soft = bare(weights(call.scores()))
        return (
            pack(soft)
            if dtype == torch.uint8 and packable(soft)
            else soft.to(torch.float16 if dtype == torch.float16 else torch.float32)
        )
    batch, heads, queries, keys = call.shape
    dtype = dtype if dtype != torch.uint8 or call.is_finite else torch.float32
    call = replace(call, query=call.query.float(), key=call.key.float().contiguous())  # once, not for each chunk
    kept = torch.zeros(call.shape, dtype=dtype, device=call.query.device)
    height = max(1, CHUNK // max(1, 4 * batch * heads * keys))
    for start in range(0, queries, height):
        rows = slice(start, min(start + height, queries))
        seen = call.reach(rows)
        if seen.stop > seen.start:
            soft = weights(call.scores(rows, seen))
            kept[:, :, rows, seen] = codes(soft) if dtype == torch.uint8 else soft
    return kept
