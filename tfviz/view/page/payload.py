"""Attention maps as bytes of a page, within a budget: exact heads, heads that the page computes, or heads in blocks.

Weights are sent as bytes of their square roots (`AttentionMaps.packed`), only for cells that the mask allows, and
deflated head by head, so that the page unpacks no more than it shows. If this exceeds the budget, heads are sent as the
queries and keys from which they are computed (`payload_lazy`), or as the largest weight of each block x block cells.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.look.map_arguments import memory_view
from tfviz.shapes import UInt8
from tfviz.view.documents.heads import MapsPart
from tfviz.view.figures.formatting import formatted
from tfviz.view.page import payload_lazy
from tfviz.view.page.blobs import BASE64_RATIO, ZLIB_LEVEL, BlobStore
from tfviz.view.page.maps import maps_part
from tfviz.view.page.payload_topk import pack_top_keys

MAX_PAGE_CELLS = 64_000_000  # of all heads, which the page unpacks
LARGE_HEAD_CELLS = 4_000_000  # larger heads are deflated fast rather than well
SAMPLED_HEADS = 8  # from which the size of all heads is estimated

Payload = tuple[list[MapsPart], BlobStore]  # the parts of a document, and their bytes
HeadKey = tuple[str, int, int]  # part, layer, head


def deflated(codes: UInt8[Tensor, "query key"], allowed: Tensor | None, level: int = ZLIB_LEVEL) -> bytes:
    """Return the allowed cells of a head, row by row."""
    cells = codes if allowed is None else codes[allowed]
    level = 1 if cells.numel() > LARGE_HEAD_CELLS else level
    squeeze = zlib.compressobj(level, strategy=zlib.Z_FILTERED)  # weights are noise with zeros in it, not repeated text
    return squeeze.compress(cells.numpy().tobytes()) + squeeze.flush()


def pack(
    maps: Mapping[str, AttentionMaps], budget: float, first: tuple[int, int] = (0, 0), top: int | None = None
) -> tuple[list[MapsPart], BlobStore, str]:
    """Pack maps by name, as exactly as the budget allows.

    Args:
        maps: the attention maps by name.
        budget: maximum size of the result as base64, in bytes.
        first: the layer and head shown first, which is the last to be reduced.
        top: number of strongest keys to keep for each query, with the sum of the others.

    Returns:
        The parts of the document, their bytes, and a sentence on omissions (empty if there are none).

    Raises:
        ValueError: the budget is too small.
    """
    if not budget > 0:
        raise ValueError(f"budget is {budget}; it is a number of bytes above 0")
    if top is not None:
        return pack_top_keys(maps, top, budget)
    exact: dict[HeadKey, bytes] = {}  # full heads are deflated only once, however many block sizes are tried
    cells = sum(math.prod(one.shape) for one in maps.values())
    if cells <= MAX_PAGE_CELLS and (found := _packed(maps, 1, first, budget, exact)):
        return *found, ""
    if lazy := payload_lazy.pack(maps, budget):
        return lazy
    exact = {key: piece for key, piece in exact.items() if key[1:] == first}
    sizes = _block_sizes(maps, budget)
    for block, exact_head in [(size, first) for size in sizes] + [(size, None) for size in sizes]:
        if exact_head and sum(map(len, exact.values())) * BASE64_RATIO > budget:
            continue
        if found := _packed(maps, block, exact_head, budget, exact):
            return *found, _omitted(found[0], block, budget)
    raise ValueError(f"not even blocks of {sizes[-1]} x {sizes[-1]} cells fit into a budget of {budget:,.0f} bytes")


def _block_sizes(maps: Mapping[str, AttentionMaps], budget: float) -> list[int]:
    """Return the block sizes to try: powers of two, from the first that may fit."""
    cells = sum(math.prod(one.shape) for one in maps.values())
    longest = max(max(one.shape[2:]) for one in maps.values())
    start = 2
    while cells / start**2 > min(MAX_PAGE_CELLS, 0.6 * budget) and start < longest:
        start *= 2
    return [start << i for i in range(16) if start << i <= max(start, longest // 16)]


def _packed(
    maps: Mapping[str, AttentionMaps],
    block: int,
    exact_head: tuple[int, int] | None,
    budget: float,
    exact: dict[HeadKey, bytes],
) -> Payload | None:
    """Pack all heads in blocks, except `exact_head`; return None if they exceed the budget."""
    blobs, parts = BlobStore(), []
    for name, one in maps.items():
        part = _pack_part(name, one, blobs, block, exact_head, budget, exact)
        if part is None:
            return None
        parts.append(part)
    return parts, blobs


def _pack_part(
    name: str,
    maps: AttentionMaps,
    blobs: BlobStore,
    block: int,
    exact_head: tuple[int, int] | None,
    budget: float,
    exact: dict[HeadKey, bytes],
) -> MapsPart | None:
    """Pack one part; return None as soon as the total exceeds the budget."""
    layers, heads, *_ = maps.shape
    weights: list[tuple[int, int, int]] = []
    masks: list[int | None] = []
    numbers: dict[tuple[object, ...], int] = {}
    for layer in range(layers):
        for head in range(heads):
            allowed = maps.allowed(layer, head)
            masks.append(None if allowed is None else _mask_number(blobs, allowed, numbers, maps.mask is not None))
            if block > 1 and (layer, head) != exact_head:
                weights.append((*blobs.add(deflated(maps.packed(layer, head, block), None)), block))
            else:
                key = (name, layer, head)
                exact[key] = exact.get(key) or deflated(maps.packed(layer, head), allowed)
                weights.append((*blobs.add(exact[key]), 1))
            done = len(weights) / (layers * heads)
            likely = blobs.size / done if block == 1 and len(weights) >= SAMPLED_HEADS else 0  # stop early
            if blobs.size * BASE64_RATIO > budget or likely * BASE64_RATIO > 2 * budget:
                return None
    forbids = any(number is not None for number in masks)
    return maps_part(name, maps, weights, masks if forbids else None)


def _mask_number(blobs: BlobStore, allowed: Tensor, numbers: dict[tuple[object, ...], int], stays: bool) -> int:
    """Return a mask's number; the same view of memory need not be compared for each head."""
    where = memory_view(allowed)
    if not stays or where not in numbers:
        numbers[where] = blobs.mask_index(allowed)
    return numbers[where]


def _omitted(parts: Sequence[MapsPart], block: int, budget: float) -> str:
    exact = sum(piece[2] == 1 for part in parts for piece in part["weights"])
    total = sum(len(part["weights"]) for part in parts)
    return (
        f"{exact} of {total} heads {'is' if exact == 1 else 'are'} stored exactly, the others as the largest weight of "
        f"each {block} × {block} cells: all would take more than the view's budget of {formatted(budget / 1e6, 3)} MB."
    )
