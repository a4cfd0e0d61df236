"""Binary data of a page: a byte store in which heads share masks and key ranges."""

from __future__ import annotations

import hashlib
import zlib

import numpy
import torch
from torch import Tensor

from tfviz.look import AttentionMaps, LazyAttention
from tfviz.look.key_ranges import KeyRanges
from tfviz.view.documents.heads import ByteRange, HeadCodes

ZLIB_LEVEL = 6
BASE64_RATIO = 4 / 3  # characters per byte


class BlobStore:
    """A growing byte string whose pieces start at multiples of 3, so that each can be decoded from base64 alone.

    Attributes:
        pieces: the pieces and the padding after each.
        size: the total size, in bytes.
        masks: the byte range of each distinct mask.
        key_ranges: the byte range of each distinct array of key ranges.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, int] = {}
        self.masks: list[ByteRange] = []
        self.key_ranges: list[ByteRange] = []

    def add(self, piece: bytes) -> ByteRange:
        """Append a piece and return its byte range as (start, size)."""
        start = self.size
        self.pieces += [piece, bytes(-len(piece) % 3)]
        self.size += len(piece) + -len(piece) % 3
        return start, len(piece)

    def add_head(self, codes: bytes, pool_size: int) -> HeadCodes:
        """Append a head's deflated codes, each for a square of `pool_size` by `pool_size` cells."""
        offset, length = self.add(codes)
        return {"offset": offset, "length": length, "pool_size": pool_size}

    def mask_index(self, allowed: Tensor) -> int:
        """Return the index of a mask [query, key], stored once, with one bit per cell, most significant bit first."""
        return self._index_of(self.masks, numpy.packbits(allowed.numpy().astype(bool)).tobytes())

    def key_ranges_index(self, maps: AttentionMaps, layer: int, head: int) -> int | None:
        """Return the index of a head's key ranges; None if the head has no mask, or a row of its mask has a gap.

        Key ranges are int32: the first visible key of each query, then for each query one past its last visible key.
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

    def _index_of(self, pieces: list[ByteRange], piece: bytes) -> int:
        key = hashlib.sha256(piece).digest() + bytes([pieces is self.key_ranges])
        if key not in self._known:
            self._known[key] = len(pieces)
            pieces.append(self.add(zlib.compress(piece, ZLIB_LEVEL)))
        return self._known[key]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)
