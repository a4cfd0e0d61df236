"""The bytes of a page, piece by piece; masks and key ranges are stored once, however many heads use them."""

from __future__ import annotations

import hashlib
import zlib

import numpy
import torch
from torch import Tensor

from tfviz.look import AttentionMaps, LazyAttention
from tfviz.look.key_ranges import KeyRanges
from tfviz.view.documents.heads import Piece

ZLIB_LEVEL = 6
BASE64_RATIO = 4 / 3  # characters for each byte


class BlobStore:
    """Pieces of bytes, each beginning at a multiple of three, where base64 can be cut."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, int] = {}
        self.masks: list[Piece] = []
        self.key_ranges: list[Piece] = []

    def add(self, piece: bytes) -> Piece:
        """Append a piece; return its byte range, (start, size)."""
        start = self.size
        self.pieces += [piece, bytes(-len(piece) % 3)]
        self.size += len(piece) + -len(piece) % 3
        return start, len(piece)

    def mask_index(self, allowed: Tensor) -> int:
        """Return the index of a mask, which is stored with one bit per cell, the first in the highest bit of a byte."""
        return self._index_of(self.masks, numpy.packbits(allowed.numpy().astype(bool)).tobytes())

    def key_ranges_index(self, maps: AttentionMaps, layer: int, head: int) -> int | None:
        """Return the index of a head's key ranges: each query's first key, then one past its last.

        None without a mask, or if a row of it has a gap.
        """
        one, key_ranges = maps.layers[layer], None
        if isinstance(one, LazyAttention):
            if isinstance(one.call.mask, KeyRanges):
                key_ranges = one.call.mask.select(0, head)
        elif (allowed := maps.allowed(layer, head)) is not None:
            key_ranges = KeyRanges.from_mask(allowed[None, None])
        if key_ranges is None:
            return None
        ends = torch.cat([key_ranges.first, key_ranges.stop], -1)
        return self._index_of(self.key_ranges, ends.int().cpu().numpy().tobytes())

    def _index_of(self, pieces: list[Piece], piece: bytes) -> int:
        key = hashlib.sha256(piece).digest() + bytes([pieces is self.key_ranges])
        if key not in self._known:
            self._known[key] = len(pieces)
            pieces.append(self.add(zlib.compress(piece, ZLIB_LEVEL)))
        return self._known[key]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)
