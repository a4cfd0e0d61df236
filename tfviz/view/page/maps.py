"""Attention maps in a document: words, sites, the grouping of tokens into words, and the location of weights."""

from __future__ import annotations

from collections.abc import Sequence

from tfviz.look import AttentionMaps
from tfviz.view.documents.heads import MapsPart


def maps_part(
    name: str,
    maps: AttentionMaps,
    weights: list[tuple[int, int, int]],
    masks: list[int | None] | None = None,
    key_ranges: list[int | None] | None = None,
) -> MapsPart:
    """Return the maps of a document; `weights`, `masks` and `key_ranges` hold an index into its blobs for each head."""
    layers, heads, *_ = maps.shape
    rows, cols = token_groups(maps.query_tokens), token_groups(maps.key_tokens)
    in_pieces = len(set(rows)) < len(rows) or len(set(cols)) < len(cols)
    return {
        "name": str(name), "rows": maps.query_tokens, "cols": maps.key_tokens, "sites": maps.sites,
        "layers": layers, "heads": heads,
        "groups": {"rows": rows, "cols": cols} if in_pieces else None, "weights": weights, "masks": masks,
        "key_ranges": key_ranges,
    }  # fmt: skip


def token_groups(pieces: Sequence[str]) -> list[int]:
    """Return the word number of each piece, by the markers of common tokenizers.

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
