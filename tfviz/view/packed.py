"""Attention maps as the page takes them: a description in plain values and one run of bytes.

Weights travel as bytes of their square roots (`AttentionMaps.packed`), only the cells that the mask allows, deflated
head by head, so that the page unpacks no more than it shows. Past the budget, heads travel as blocks: the
largest weight of each `block` x `block` cells.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from torch import Tensor
from torch.nn import functional

from tfviz.look.maps import AttentionMaps
from tfviz.shapes import UInt8

CELLS = 64_000_000  # what a page unpacks at most, in cells of all heads
LEVEL = 6  # of zlib


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
    """The cells of a head that may be looked at, row by row."""
    return zlib.compress((codes if allowed is None else codes[allowed]).numpy().tobytes(), level)


def blocks(codes: UInt8[Tensor, "query key"], size: int) -> UInt8[Tensor, "down across"]:
    """The largest of each `size` x `size` cells."""
    down, across = -codes.shape[0] % size, -codes.shape[1] % size
    padded = functional.pad(codes, (0, across, 0, down))
    return padded.unflatten(0, (-1, size)).amax(1).unflatten(1, (-1, size)).amax(2)


def pack(
    parts: Mapping[str, AttentionMaps], budget: float, first: tuple[int, int] = (0, 0)
) -> tuple[list[dict[str, Any]], Packed, str]:
    """The parts as the page takes them, their bytes, and a sentence on what was left out (empty if nothing was).

    Args:
        budget: bytes that all of it may take, as base64.
        first: the layer and head that is shown first, which is kept whole as long as anything is.
    """
    cells = sum(maps.shape[0] * maps.shape[1] * maps.shape[2] * maps.shape[3] for maps in parts.values())
    if cells <= CELLS:
        packed = Packed()
        made = [_part(name, maps, packed, 1, (), budget) for name, maps in parts.items()]
        if all(made):
            return [part for part in made if part], packed, ""
    return _coarse(parts, budget, first, cells)


def _coarse(
    parts: Mapping[str, AttentionMaps], budget: float, first: tuple[int, int], cells: int
) -> tuple[list[dict[str, Any]], Packed, str]:
    longest = max(max(maps.shape[2:]) for maps in parts.values())
    start = 2
    while cells / start**2 > min(CELLS, budget):
        start *= 2
    sizes = [start << i for i in range(16) if start << i <= max(start, longest // 16)]
    for full, block in ((full, block) for full in ([first], []) for block in sizes):
        packed = Packed()
        made = [_part(name, maps, packed, block, full, budget) for name, maps in parts.items()]
        if all(made):
            break
    else:
        raise ValueError(f"not even blocks of {sizes[-1]} x {sizes[-1]} cells fit into a budget of {budget:,} bytes")
    whole = sum(blob[2] == 1 for part in made if part for blob in part["blobs"])
    total = sum(len(part["blobs"]) for part in made if part)
    note = (
        f"{whole} of {total} heads {'is' if whole == 1 else 'are'} here in full, the others as the largest weight of "
        f"each {block} × {block} cells: all would take more than the view's budget of {budget / 1e6:.3g} MB."
    )
    return [part for part in made if part], packed, note


def _part(
    name: str, maps: AttentionMaps, packed: Packed, block: int, whole: Sequence[tuple[int, int]], budget: float
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
                known.setdefault(where, -1)
                if known[where] < 0:
                    known[where] = packed.mask(allowed)
                masks.append(known[where])
            codes = maps.packed(layer, head)
            full = block == 1 or (layer, head) in whole
            piece = deflated(codes, allowed) if full else deflated(blocks(codes, block), None)
            blobs.append([*packed.add(piece), 1 if full else block])
            if packed.size * 4 / 3 > budget:
                return None
    return {
        "name": name, "rows": maps.rows, "cols": maps.cols, "sites": maps.sites, "layers": layers, "heads": heads,
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
