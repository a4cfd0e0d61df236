"""What numbers that are given as weights say against being weights, in words that end a sentence."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look import kept

OFF = 0.05  # how far from 1 the sum of a row may be, of which nothing need be said
ROUNDED = 0.3  # the same, of bytes
LOOKED = 64  # rows of a head of bytes that are added up


def of_weights(layers: Sequence[Any], mask: Tensor | None) -> str:
    """Empty: nothing. Of what is computed when it is looked at no sum is known, and of bytes a rounded one.

    Args:
        layers: head query key each.
        mask: True where a query may look, layer head query key.
    """
    known = [(layer, part) for layer, part in enumerate(layers) if isinstance(part, Tensor) and part.numel()]
    for layer, part in known:
        if part.is_floating_point():
            low, high = (float(end) for end in part.aminmax())
            if low != low:
                return f"layer {layer} holds NaN, as a softmax over nothing gives"
            if low < -1e-6 or high > 1 + 1e-3:
                return (
                    f"layer {layer} goes from {low:.3g} to {high:.3g}, where weights are from 0 to 1: are these scores?"
                )
    uneven = [layer for layer, part in known if _uneven(part)]
    if uneven:
        return f"rows do not add up to 1 in {', '.join(f'layer {layer}' for layer in uneven)}"
    if mask is None:
        return ""
    for layer, part in known:
        weights = kept.unpack(part)
        if 2 * torch.where(mask[layer], 0.0, weights).sum() > weights.sum() > 0:
            return f"most of layer {layer} lies where the mask is False: it is True where a query may look"
    return ""


def _uneven(weights: Tensor) -> bool:
    """Whether a row that is not all 0 adds up to something else than 1; of bytes some rows are looked at."""
    if weights.is_floating_point():
        sums, off = weights.sum(-1, dtype=torch.float32), OFF
    else:
        sums, off = kept.unpack(weights[:, :: 1 + weights.shape[1] // LOOKED]).sum(-1), ROUNDED
    return bool(((sums - 1).abs() > off)[sums != 0].any())
