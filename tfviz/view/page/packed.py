"""Attention maps as the page takes them: a description in plain values and one run of bytes.

Weights travel as bytes of their square roots (`AttentionMaps.packed`), only the cells that the mask allows, deflated
head by head, so that the page unpacks no more than it shows. Past the budget, heads travel as blocks: the
largest weight of each `block` x `block` cells.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.shapes import UInt8
from tfviz.view.page import carried
from tfviz.view.page.named import described
from tfviz.view.page.pieces import LEVEL, Packed
from tfviz.view.page.strongest import strongest
from tfviz.view.still.formatting import formatted

CELLS = 64_000_000  # what a page unpacks at most, in cells of all heads
LARGE = 4_000_000  # cells of a head
FEW = 8  # heads that tell what all may take


def deflated(codes: UInt8[Tensor, "query key"], allowed: Tensor | None, level: int = LEVEL) -> bytes:
    """The cells of a head that may be looked at, row by row; a large head is packed fast rather than tight."""
    cells = codes if allowed is None else codes[allowed]
    level = 1 if cells.numel() > LARGE else level
    squeeze = zlib.compressobj(level, strategy=zlib.Z_FILTERED)  # weights are noise with zeros in it, not repeated text
    return squeeze.compress(cells.numpy().tobytes()) + squeeze.flush()


def pack(
    parts: Mapping[str, AttentionMaps], budget: float, first: tuple[int, int] = (0, 0), top: int | None = None
) -> tuple[list[dict[str, Any]], Packed, str]:
    """The parts as the page takes them, their bytes, and a sentence on what was left out (empty if nothing was).

    Args:
        budget: bytes that all of it may take, as base64.
        first: the layer and head that is shown first, which is kept whole as long as anything is.
        top: of each query so many keys only, and what the others hold.

    Raises:
        ValueError: the budget is too small for anything.
    """
    if not budget > 0:
        raise ValueError(f"budget is {budget}; it is a number of bytes above 0")
    if top is not None:
        return strongest(parts, top, budget)
    cells = sum(math.prod(maps.shape) for maps in parts.values())
    longest = max(max(maps.shape[2:]) for maps in parts.values())
    start = 2
    while cells / start**2 > min(CELLS, 0.6 * budget) and start < longest:
        start *= 2
    sizes = [start << i for i in range(16) if start << i <= max(start, longest // 16)]
    kept: dict[tuple[str, int, int], bytes] = {}  # heads in full are deflated once, however many sizes are tried
    if cells <= CELLS and (found := _tried(parts, 1, first, budget, kept)):
        return *found, ""
    if made := carried.parts(parts, budget):
        return made
    kept = {key: piece for key, piece in kept.items() if key[1:] == first}
    for block, whole in [(size, first) for size in sizes] + [(size, None) for size in sizes]:
        if whole and sum(map(len, kept.values())) * 4 / 3 > budget:
            continue
        if found := _tried(parts, block, whole, budget, kept):
            return *found, _left(found[0], block, budget)
    raise ValueError(f"not even blocks of {sizes[-1]} x {sizes[-1]} cells fit into a budget of {budget:,.0f} bytes")


def _tried(
    parts: Mapping[str, AttentionMaps],
    block: int,
    whole: tuple[int, int] | None,
    budget: float,
    kept: dict[tuple[str, int, int], bytes],
) -> tuple[list[dict[str, Any]], Packed] | None:
    """All heads in blocks, or in full; None if that is more than the budget."""
    packed = Packed()
    made = [_part(name, maps, packed, block, whole, budget, kept) for name, maps in parts.items()]
    return ([part for part in made if part], packed) if all(made) else None


def _left(parts: Sequence[dict[str, Any]], block: int, budget: float) -> str:
    """What was left out, in a sentence."""
    whole = sum(blob[2] == 1 for part in parts for blob in part["blobs"])
    total = sum(len(part["blobs"]) for part in parts)
    return (
        f"{whole} of {total} heads {'is' if whole == 1 else 'are'} here in full, the others as the largest weight of "
        f"each {block} × {block} cells: all would take more than the view's budget of {formatted(budget / 1e6, 3)} MB."
    )


def _part(
    name: str,
    maps: AttentionMaps,
    packed: Packed,
    block: int,
    whole: tuple[int, int] | None,
    budget: float,
    kept: dict[tuple[str, int, int], bytes],
) -> dict[str, Any] | None:
    """One part, or None as soon as all that is packed is more than the budget."""
    layers, heads, *_ = maps.shape
    blobs: list[list[int]] = []
    masks: list[int | None] = []
    known: dict[tuple[int, ...], int] = {}
    for layer in range(layers):
        for head in range(heads):
            allowed = maps.allowed(layer, head)
            masks.append(None if allowed is None else _number(packed, allowed, known, maps.mask is not None))
            if block > 1 and (layer, head) != whole:
                blobs.append([*packed.add(deflated(maps.packed(layer, head, block), None)), block])
            else:
                at = (name, layer, head)
                kept[at] = kept.get(at) or deflated(maps.packed(layer, head), allowed)
                blobs.append([*packed.add(kept[at]), 1])
            seen = len(blobs) / (layers * heads)
            likely = packed.size / seen if block == 1 and len(blobs) >= FEW else 0  # no need to pack all to see it
            if packed.size * 4 / 3 > budget or likely * 4 / 3 > 2 * budget:
                return None
    forbids = any(number is not None for number in masks)
    return {**described(name, maps), "blobs": blobs, "masks": masks if forbids else None, "rules": None}


def _number(packed: Packed, allowed: Tensor, known: dict[tuple[int, ...], int], stays: bool) -> int:
    """A mask's number; one that stays where it is need not be looked at for each head."""
    where = (allowed.data_ptr(), *allowed.stride())
    if not stays or where not in known:
        known[where] = packed.mask(allowed)
    return known[where]
