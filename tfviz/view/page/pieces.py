"""Bytes of a page one behind the other, and what is stored once however many use it."""

from __future__ import annotations

import hashlib
import zlib

import numpy
import torch
from torch import Tensor

from tfviz.look.spans import Spans

LEVEL = 6  # of zlib


class Packed:
    """Pieces of bytes one behind the other, each beginning at a multiple of three, which base64 can cut at."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, int] = {}
        self.masks: list[list[int]] = []
        self.rules: list[list[int]] = []

    def add(self, piece: bytes) -> list[int]:
        """Where the piece stands: [start, length]."""
        start = self.size
        self.pieces += [piece, bytes(-len(piece) % 3)]
        self.size += len(piece) + -len(piece) % 3
        return [start, len(piece)]

    def mask(self, allowed: Tensor) -> int:
        """The number of a mask, stored once however many heads share it: a bit for each cell."""
        return self._once(self.masks, packbits(allowed))

    def rule(self, spans: Spans | None, head: int) -> int | None:
        """The number of a rule, stored once: each query's first key, then one past its last."""
        if spans is None:
            return None
        one = spans.at(0, head)
        return self._once(self.rules, torch.cat([one.first, one.stop], -1).int().cpu().numpy().tobytes())

    def _once(self, kind: list[list[int]], piece: bytes) -> int:
        key = hashlib.sha256(piece).digest() + bytes([kind is self.rules])
        if key not in self._known:
            self._known[key] = len(kind)
            kind.append(self.add(zlib.compress(piece, LEVEL)))
        return self._known[key]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def packbits(allowed: Tensor) -> bytes:
    """A bit for each cell, the first of eight the highest."""
    return numpy.packbits(allowed.numpy().astype(bool)).tobytes()
