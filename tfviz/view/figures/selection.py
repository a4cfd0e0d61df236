"""Checks of attention maps before they are drawn, and selection of the heads to draw."""

from __future__ import annotations

from operator import index

import numpy
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.shapes import Bool, Float
from tfviz.view.check_numbers import check_at_most
from tfviz.view.spec import Divider

MAX_HEADS = 20_000  # in all layers
MAX_SHEET_SIDE = 24  # layers, and heads of a layer, in the grid of all heads


def check_drawable(maps: AttentionMaps) -> tuple[int, int, int, int]:
    """Return the shape of maps, [layer, head, query, key], after checking that they can be drawn.

    Raises:
        TypeError: `maps` is not an `AttentionMaps`.
        ValueError: there are no tokens, heads or layers, or more than 20,000 heads.
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
    """Return the shape of maps, [layer, head, query, key], after checking that they have this head.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: the maps cannot be drawn; see `check_drawable`.
    """
    layers, heads, *_ = check_drawable(maps)
    check_index("layer", layer, layers, "layers")
    check_index("head", head, heads, "heads")
    return maps.shape


def check_index(name: str, number: int, count: int, many: str) -> None:
    """Raise IndexError unless the index of a layer, a head or a query is from 0 to `count` - 1."""
    if not 0 <= number < count:
        raise IndexError(f"{name} is {number}; the maps have {count} {many}, from 0 to {count - 1}")


def nonnegative_index(name: str, number: int, count: int, many: str) -> int:
    """Return an index from 0; a negative one counts from the end.

    Raises:
        IndexError: there is no such layer, head or query.
    """
    at = index(number)
    check_index(name, at % count if -count <= at < 0 else at, count, many)
    return at % count


def check_divider(divider: int | None, keys: int) -> list[Divider]:
    """Return the line before the key `divider`, as a list; empty for None.

    Raises:
        ValueError: the divider is not between two keys.
    """
    if divider is not None and not 0 < divider < keys:
        raise ValueError(f"divider is {divider}; it must be the index of a key, from 1 to {keys - 1}")
    return [] if divider is None else [("columns", divider)]


def head_and_mask(
    maps: AttentionMaps, layer: int, head: int
) -> tuple[Float[Tensor, "query key"], Bool[Tensor, "query key"] | None]:
    """Return the weights of one head and its mask, None if there is no mask; raises the errors of `check_head`."""
    check_head(maps, layer, head)
    return maps[layer, head], maps.allowed(layer, head)


def spread(count: int, max_count: int = MAX_SHEET_SIDE) -> list[int]:
    """Return the indices below `count`, or `max_count` of them, evenly spaced from first to last."""
    return [round(float(index)) for index in numpy.linspace(0, count - 1, min(count, max_count))]
