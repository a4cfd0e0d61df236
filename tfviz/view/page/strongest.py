"""Maps that travel as their strongest weights: of each query the keys it looks at most, and what all others hold."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch import Tensor

from tfviz.bounds import at_least
from tfviz.look.ingredients import Ingredients
from tfviz.look.kept import codes, packable
from tfviz.look.maps import AttentionMaps
from tfviz.look.spans import Spans
from tfviz.view.page.named import described
from tfviz.view.page.pieces import LEVEL, Packed
from tfviz.view.still.formatting import at_most, counted, formatted, percent

CELLS = 16_000_000  # of a head that are looked at together


def strongest(given: Mapping[str, AttentionMaps], top: int, budget: float) -> tuple[list[dict[str, Any]], Packed, str]:
    """The parts as the page takes them, their bytes, and a sentence on what was left out.

    Args:
        top: keys of each query.
        budget: bytes that all of it may take, as base64.

    Raises:
        ValueError: it takes more.
    """
    at_least(1, top=top)
    packed, told, most = Packed(), [], 0.0
    shares: list[float] = []
    for name, maps in given.items():
        layers, heads, _, keys = maps.shape
        blobs, rules = [], []
        for layer in range(layers):
            for head in range(heads):
                piece, left, share = _head(maps, layer, head, min(top, keys))
                blobs.append([*packed.add(piece), 1])
                rules.append(_rule(maps, layer, head, packed))
                most, shares = max(most, left), [*shares, share]
                if packed.size * 4 / 3 > budget:
                    raise ValueError(
                        f"the {counted(top, 'strongest key')} of all queries take more than the budget of "
                        f"{formatted(budget / 1e6, 3)} MB: take fewer with top=, or give a larger budget="
                    )
        shown = {"blobs": blobs, "masks": None, "rules": rules, "top": min(top, keys)}
        told.append({**described(name, maps), **shown})
    share = sum(shares) / len(shares)
    count = min(top, max(maps.shape[3] for maps in given.values()))
    some = "strongest key is" if count == 1 else f"{count} strongest keys are"
    said = (
        f"Of each query the {some} here, {percent(share)} of its weight on average; no weight that is left out is above"
    )
    return told, packed, f"{said} {at_most(most)}."


def _head(maps: AttentionMaps, layer: int, head: int, top: int) -> tuple[bytes, float, float]:
    """One head's strongest: their keys, their codes, and the code of what the others hold; the largest of the others,
    and the share of all weight that is there.
    """
    *_, queries, keys = maps.shape
    chunk = max(1, CELLS // keys)
    found: list[list[Tensor]] = []
    most = shown = total = 0.0
    for start in range(0, queries, chunk):
        rows = maps.tile(layer, head, slice(start, start + chunk))
        if not packable(rows):
            raise ValueError(
                f"layer {layer}, head {head} holds numbers below 0, above 1, or NaN: give weights of attention"
            )
        rows = rows.clamp(0, 1)
        values, places = rows.topk(min(top + 1, keys))
        if keys > top:
            most = max(most, float(values[:, top].max()))
        values, places, whole = values[:, :top], places[:, :top], rows.sum(-1)
        found.append([places, codes(values), codes((whole - values.sum(-1)).clamp(0, 1))])
        shown, total = shown + float(values.sum()), total + float(whole.sum())
    place, value, rest = (torch.cat(part).cpu().numpy() for part in zip(*found))
    numbers = place.astype(numpy.uint16 if keys <= 2**16 else numpy.uint32)
    return zlib.compress(numbers.tobytes() + value.tobytes() + rest.tobytes(), LEVEL), most, shown / (total or 1.0)


def _rule(maps: AttentionMaps, layer: int, head: int, packed: Packed) -> int | None:
    """The number of a head's rule, if it has one that a page knows; else what may not be looked at is left out, too."""
    made = maps.layers[layer]
    if isinstance(made, Ingredients):
        mask = made.call.mask
        return packed.rule(mask if isinstance(mask, Spans) else None, head)
    allowed = maps.allowed(layer, head)
    return packed.rule(None if allowed is None else Spans.of(allowed[None, None]), 0)
