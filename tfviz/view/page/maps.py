"""Describe the attention maps of one capture for a document, and group its tokens into words."""

from __future__ import annotations

from collections.abc import Sequence

from tfviz.look import AttentionMaps
from tfviz.view.documents.heads import HeadCodes, MapsPart


def maps_part(
    name: str,
    maps: AttentionMaps,
    head_codes: list[HeadCodes],
    masks: list[int | None] | None = None,
    key_ranges: list[int | None] | None = None,
) -> MapsPart:
    """Return the description of one capture's attention maps for a document.

    Args:
        name: the name of the capture.
        maps: the attention maps.
        head_codes: the codes of each head in the data, layer by layer.
        masks: for each head, the index of its mask in the document, None if it has none; None: there are no masks.
        key_ranges: the same for key ranges.
    """
    layers, heads, *_ = maps.shape
    rows, columns = token_groups(maps.query_tokens), token_groups(maps.key_tokens)
    in_pieces = len(set(rows)) < len(rows) or len(set(columns)) < len(columns)
    return {
        "name": str(name), "rows": maps.query_tokens, "columns": maps.key_tokens, "sites": maps.sites,
        "layers": layers, "heads": heads,
        "groups": {"rows": rows, "columns": columns} if in_pieces else None, "head_codes": head_codes,
        "masks": masks, "key_ranges": key_ranges,
    }  # fmt: skip


def token_groups(pieces: Sequence[str]) -> list[int]:
    """Return the index of each token's word, inferred from the markers of common tokenizers.

    WordPiece continues a word with `##`. Byte-level BPE and SentencePiece begin a word with a space, `Ġ` or `▁`. If
    tokens are single characters, a space belongs to the word that follows it. Without markers, each token is a word.

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
