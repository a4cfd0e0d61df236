"""The bytes of a page, one piece behind the other; masks and spans are stored once, however many heads use them."""

from __future__ import annotations

import hashlib
import zlib

import numpy
import torch
from torch import Tensor

from tfviz.look.spans import Spans
from tfviz.view.documents.heads import Piece

LEVEL = 6  # of zlib
BASE64 = 4 / 3  # characters of a byte


class BlobStore:
    """Pieces of bytes, each beginning at a multiple of three, where base64 can be cut."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, int] = {}
        self.masks: list[Piece] = []
        self.spans: list[Piece] = []

    def add(self, piece: bytes) -> Piece:
        """Append a piece; return where it stands."""
        start = self.size
        self.pieces += [piece, bytes(-len(piece) % 3)]
        self.size += len(piece) + -len(piece) % 3
        return start, len(piece)

    def mask_index(self, allowed: Tensor) -> int:
        """Return the index of a mask, which is stored with one bit per cell."""
        return self._once(self.masks, packbits(allowed))

    def spans_index(self, spans: Spans | None, head: int) -> int | None:
        """Return the index of a head's spans: each query's first key, then one past its last; None without spans."""
        if spans is None:
            return None
        spans = spans.select(0, head)
        return self._once(self.spans, torch.cat([spans.first, spans.stop], -1).int().cpu().numpy().tobytes())

    def _once(self, pieces: list[Piece], piece: bytes) -> int:
        key = hashlib.sha256(piece).digest() + bytes([pieces is self.spans])
        if key not in self._known:
            self._known[key] = len(pieces)
            pieces.append(self.add(zlib.compress(piece, LEVEL)))
        return self._known[key]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def packbits(allowed: Tensor) -> bytes:
    """Pack cells into bits, eight to a byte, the first in the highest bit."""
    return numpy.packbits(allowed.numpy().astype(bool)).tobytes()
