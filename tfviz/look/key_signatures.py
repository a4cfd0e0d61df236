"""Signatures of keys: a few numbers for each key, by which the firings of one text are told from those of another.

A key, or the value beside it, is projected on fixed random directions (Johnson & Lindenstrauss 1984): the same key has
the same numbers wherever a cache has moved it, and another key gives others.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tfviz.look.attention_call import AttentionCall
from tfviz.look.axes import Layout
from tfviz.look.products import Product
from tfviz.shapes import Float

WIDTH = 8  # numbers for a key
TOLERANCE = 1e-3  # relative distance of two signatures of one key that was computed twice in float32
TOLERANCE_HALF = 2e-2  # the same in half precision

Keys = Float[Tensor, "_ _ width"]  # batch key width


@lru_cache(maxsize=64)
def _directions(size: int, device: torch.device) -> Float[Tensor, "size width"]:
    return torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(size)).to(device) / size**0.5


def tolerance(dtype: torch.dtype) -> float:
    """Return the relative distance within which two signatures are of the same key."""
    return TOLERANCE_HALF if dtype in (torch.float16, torch.bfloat16) else TOLERANCE


def of_call(call: AttentionCall, layout: Layout) -> Keys:
    """Return signatures of the keys of a fused call: the mean over heads, whether or not a model has repeated them."""
    key = call.key.float()
    directions = _directions(key.shape[-1], key.device)
    if layout.is_plain:
        return _finite(key.mean(1) @ directions).cpu()
    projected = key.repeat_interleave(call.shape[1] // key.shape[1], 1) @ directions
    return _arranged(projected.reshape(*call.batch_shape, 1, *projected.shape[-2:]), layout)


def of_product(product: Product, place: int, keys: int, layout: Layout) -> Keys:
    """Return signatures of the values in a product with weights.

    Args:
        place: which factor has the weights.
        keys: their axis of keys.
    """
    own, other = product.letters[place], product.letters[1 - place]
    values = product.factors[1 - place].float()
    shared = [axis for axis, letter in enumerate(own) if letter is not None and letter in other and axis != keys]
    order = [*(other.index(own[axis]) for axis in shared), other.index(own[keys])]
    features = [axis for axis in range(values.dim()) if axis not in order]
    flat = values.permute(*order, *features).flatten(len(order)) if features else values.permute(*order)[..., None]
    projected = flat @ _directions(flat.shape[-1], flat.device)
    # the axes of the weights, with one query, and of size 1 where the values do not have them
    sizes = [projected.shape[shared.index(axis)] if axis in shared else 1 for axis in range(len(own))]
    sizes[keys] = projected.shape[-2]
    places = sorted(range(len(order)), key=[*shared, keys].__getitem__)
    return _arranged(projected.permute(*places, len(order)).reshape(*sizes, WIDTH), layout)


def _arranged(projected: Float[Tensor, "*axes width"], layout: Layout) -> Keys:
    """Reorder signatures from the axes of the weights, with one query or with all, to [batch, key, width]."""
    batch, heads, _, keys = layout.sizes
    shape = list(layout.shape)
    if layout.order == tuple(sorted(layout.order)) and shape[-2:] == list(layout.sizes[-2:]):
        shape[-2], moved = 1, lambda column: column.reshape(batch, heads, keys)
    else:
        moved = lambda column: layout.to_bhqk(column)[:, :, 0]  # noqa: E731
    columns = [moved(column.expand(shape)) for column in projected.unbind(-1)]
    return _finite(torch.stack(columns, -1).mean(1)).cpu()


def _finite(keys: Tensor) -> Tensor:
    return torch.zeros(keys.shape) if keys.is_meta else keys.nan_to_num(0.0, 0.0, 0.0)
