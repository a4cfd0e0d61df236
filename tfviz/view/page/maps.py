"""Describe maps to the page, beside their weights: words, sites, and which tokens are pieces of one word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfviz.look.maps import AttentionMaps


def maps_document(name: str, maps: AttentionMaps) -> dict[str, Any]:
    """Return the words, sites and size of maps as plain values."""
    layers, heads, *_ = maps.shape
    return {
        "name": str(name), "rows": maps.rows, "cols": maps.cols, "sites": maps.sites, "layers": layers, "heads": heads,
        "groups": _token_groups(maps),
    }  # fmt: skip


def _token_groups(maps: AttentionMaps) -> dict[str, list[int]] | None:
    rows, cols = token_groups(maps.rows), token_groups(maps.cols)
    pieces = len(set(rows)) < len(rows) or len(set(cols)) < len(cols)
    return {"rows": rows, "cols": cols} if pieces else None


def token_groups(pieces: Sequence[str]) -> list[int]:
    """Return the number of the word that each piece belongs to, by the marks of the common vocabularies.

    WordPiece continues a word with `##`; byte-level BPE and SentencePiece begin one with a space, `Ġ` or `▁`; single
    characters are parted by spaces, which go with the word that follows.

    >>> token_groups(["un", "##believ", "##able", "!"])
    [0, 0, 0, 1]
    >>> token_groups(list("to be"))
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
