"""Attention maps as the page takes them: a description in plain values and one run of bytes.

Weights travel as bytes of their square roots (`AttentionMaps.packed`), only the cells that the mask allows, deflated
head by head, so that the page unpacks no more than it shows. Past the budget, heads travel as blocks: the
largest weight of each `block` x `block` cells.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.shapes import UInt8

CELLS = 64_000_000  # what a page unpacks at most, in cells of all heads
LEVEL = 6  # of zlib
LARGE = 4_000_000  # cells of a head
FEW = 8  # heads that tell what all may take


class Packed:
    """Pieces of bytes one behind the other, each beginning at a multiple of three, which base64 can cut at."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._masks: dict[str, int] = {}
        self.masks: list[list[int]] = []

    def add(self, piece: bytes) -> list[int]:
        """Where the piece stands: [start, length]."""
        start = self.size
        self.pieces += [piece, bytes(-len(piece) % 3)]
        self.size += len(piece) + -len(piece) % 3
        return [start, len(piece)]

    def mask(self, allowed: Tensor) -> int:
        """The number of a mask, stored once however many heads share it: a bit for each cell."""
        bits = packbits(allowed)
        key = hashlib.sha256(bits).hexdigest() + str(tuple(allowed.shape))
        if key not in self._masks:
            self._masks[key] = len(self.masks)
            self.masks.append(self.add(zlib.compress(bits, LEVEL)))
        return self._masks[key]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def packbits(allowed: Tensor) -> bytes:
    """A bit for each cell, the first of eight the highest."""
    return numpy.packbits(allowed.numpy().astype(bool)).tobytes()


def deflated(codes: UInt8[Tensor, "query key"], allowed: Tensor | None, level: int = LEVEL) -> bytes:
    """The cells of a head that may be looked at, row by row; a large head is packed fast rather than tight."""
    cells = codes if allowed is None else codes[allowed]
    level = 1 if cells.numel() > LARGE else level
    squeeze = zlib.compressobj(level, strategy=zlib.Z_FILTERED)  # weights are noise with zeros in it, not repeated text
    return squeeze.compress(cells.numpy().tobytes()) + squeeze.flush()


def pack(
    parts: Mapping[str, AttentionMaps], budget: float, first: tuple[int, int] = (0, 0)
) -> tuple[list[dict[str, Any]], Packed, str]:
    """The parts as the page takes them, their bytes, and a sentence on what was left out (empty if nothing was).

    Args:
        budget: bytes that all of it may take, as base64.
        first: the layer and head that is shown first, which is kept whole as long as anything is.

    Raises:
        ValueError: the budget is too small for anything.
    """
    if not budget > 0:
        raise ValueError(f"budget is {budget}; it is a number of bytes above 0")
    cells = sum(math.prod(maps.shape) for maps in parts.values())
    longest = max(max(maps.shape[2:]) for maps in parts.values())
    start = 2
    while cells / start**2 > min(CELLS, 0.6 * budget) and start < longest:
        start *= 2
    sizes = [start << i for i in range(16) if start << i <= max(start, longest // 16)]
    kept: dict[tuple[str, int, int], bytes] = {}  # heads in full are deflated once, however many sizes are tried
    tries = [(1, True)] * (cells <= CELLS) + [(size, True) for size in sizes] + [(size, False) for size in sizes]
    for block, whole in tries:
        if whole and block > 1 and sum(map(len, kept.values())) * 4 / 3 > budget:
            continue
        packed = Packed()
        made = [
            _part(name, maps, packed, block, first if whole else None, budget, kept) for name, maps in parts.items()
        ]
        if all(made):
            described = [part for part in made if part]
            return described, packed, "" if block == 1 else _left(described, block, budget)
        kept = {key: piece for key, piece in kept.items() if key[1:] == first}
    raise ValueError(f"not even blocks of {sizes[-1]} x {sizes[-1]} cells fit into a budget of {budget:,.0f} bytes")


def _left(parts: Sequence[dict[str, Any]], block: int, budget: float) -> str:
    """What was left out, in a sentence."""
    whole = sum(blob[2] == 1 for part in parts for blob in part["blobs"])
    total = sum(len(part["blobs"]) for part in parts)
    return (
        f"{whole} of {total} heads {'is' if whole == 1 else 'are'} here in full, the others as the largest weight of "
        f"each {block} × {block} cells: all would take more than the view's budget of {budget / 1e6:.3g} MB."
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
    masks: list[int] | None = None if maps.mask is None else []
    known: dict[tuple[int, ...], int] = {}
    for layer in range(layers):
        for head in range(heads):
            allowed = maps.allowed(layer, head)
            if masks is not None and allowed is not None:
                where = (allowed.data_ptr(), *allowed.stride())
                if where not in known:
                    known[where] = packed.mask(allowed)
                masks.append(known[where])
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
    return {
        "name": str(name), "rows": maps.rows, "cols": maps.cols, "sites": maps.sites, "layers": layers, "heads": heads,
        "blobs": blobs, "masks": masks, "groups": _groups(maps),
    }  # fmt: skip


def _groups(maps: AttentionMaps) -> dict[str, list[int]] | None:
    rows, cols = groups(maps.rows), groups(maps.cols)
    pieces = len(set(rows)) < len(rows) or len(set(cols)) < len(cols)
    return {"rows": rows, "cols": cols} if pieces else None


def groups(pieces: Sequence[str]) -> list[int]:
    """The number of the word that each piece belongs to, by the marks of the common vocabularies.

    WordPiece continues a word with `##`; byte-level BPE and SentencePiece begin one with a space, `Ġ` or `▁`; single
    characters are parted by spaces, which go with the word that follows.

    >>> groups(["un", "##believ", "##able", "!"])
    [0, 0, 0, 1]
    >>> groups(list("to be"))
    [0, 0, 1, 1, 1]
    """
    if any(piece.startswith("##") and len(piece) > 2 for piece in pieces):
        starts = [not piece.startswith("##") for piece in pieces]
    elif any(piece[:1] in ("Ġ", "▁", " ") for piece in pieces):
        starts = [piece[:1] in ("Ġ", "▁", " ", "\n") or before.endswith("\n") or _special(piece) or _special(before)
                  for before, piece in zip(["\n", *pieces], pieces)]  # fmt: skip
    else:
        starts = [True] * len(pieces)
    number, numbers = -1, []
    for start in starts:
        number += start or number < 0
        numbers.append(number)
    return numbers


def _special(piece: str) -> bool:
    return len(piece) > 2 and (piece[0], piece[-1]) in (("<", ">"), ("[", "]"))
