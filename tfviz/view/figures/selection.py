"""Select the parts of attention maps to draw, and reject maps that no picture can show."""

from __future__ import annotations

import numpy
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.shapes import Bool, Float
from tfviz.view.check_numbers import check_at_most
from tfviz.view.spec import Divider

MAX_HEADS = 20_000  # of maps
MAX_SHEET_SIDE = 24  # layers, and heads, of a sheet


def check_drawable(maps: AttentionMaps) -> tuple[int, int, int, int]:
    """Return the shape of maps, [layer, head, query, key], after checking that they can be drawn.

    Raises:
        TypeError: `maps` is not an `AttentionMaps`.
        ValueError: there is no word, head or layer, or more heads than any model has.
    """
    if not isinstance(maps, AttentionMaps):
        kind = type(maps).__name__
        raise TypeError(
            f"this is a {kind}: give AttentionMaps.from_capture(captured, query_tokens=words), or "
            "AttentionMaps(weights, query_tokens=words)"
        )
    if 0 in maps.shape:
        raise ValueError(f"there is nothing to draw: {maps!r}")
    remedy = "give some of the layers, such as AttentionMaps(maps.layers[:8])"
    check_at_most(maps.shape[0] * maps.shape[1], MAX_HEADS, "heads", remedy)
    return maps.shape


def check_head(maps: AttentionMaps, layer: int, head: int) -> tuple[int, int, int, int]:
    """Return the shape of maps, after checking that they have this head.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: there is no word.
    """
    layers, heads, *_ = check_drawable(maps)
    check_index("layer", layer, layers, "layers")
    check_index("head", head, heads, "heads")
    return maps.shape


def check_index(name: str, index: int, count: int, many: str) -> None:
    """Raise IndexError unless a layer or head with this number exists."""
    if not 0 <= index < count:
        raise IndexError(f"{name} is {index}; the maps have {count} {many}, from 0 to {count - 1}")


def check_divider(divide: int | None, keys: int) -> list[Divider]:
    """Return the line before a key, or none, after checking that it stands between two keys.

    Raises:
        ValueError: it does not stand between two keys.
    """
    if divide is not None and not 0 < divide < keys:
        raise ValueError(f"divide is {divide}; a line stands before one of the keys 1 to {keys - 1}")
    return [] if divide is None else [("cols", divide)]


def head_and_mask(
    maps: AttentionMaps, layer: int, head: int
) -> tuple[Float[Tensor, "query key"], Bool[Tensor, "query key"] | None]:
    """Return one head's weights and mask; errors as `check_head`."""
    check_head(maps, layer, head)
    return maps[layer, head], maps.allowed(layer, head)


def spread(count: int, max_count: int = MAX_SHEET_SIDE) -> list[int]:
    """Return all numbers below `count`, or `max_count` of them, evenly spaced from first to last."""
    return [round(float(place)) for place in numpy.linspace(0, count - 1, min(count, max_count))]
