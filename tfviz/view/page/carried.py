"""Maps that travel as what they are made of: a page computes each head from its queries and keys when it is opened."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look.ingredients import Ingredients
from tfviz.look.kept import codes
from tfviz.look.maps import AttentionMaps
from tfviz.look.spans import Spans
from tfviz.view.page.named import described
from tfviz.view.page.pieces import Packed
from tfviz.view.still.formatting import at_most, formatted

LEVELS = (127, 90, 64, 45)  # steps of 8 bits up to the largest number of a row: fewer are deflated to less
SKETCHED = 2_000_000  # cells of all heads that the sheet shows at most
HARDLY = 0.75  # of what queries and keys take, is what they take deflated, at the least
TRIED = 16  # rows of a head that tell how far its weights are off


def parts(given: Mapping[str, AttentionMaps], budget: float) -> tuple[list[dict[str, Any]], Packed, str] | None:
    """What all heads are made of, as exactly as the budget has room for; else a sketch of each.

    Also the bytes, and a sentence on how heads come about. None if a page cannot have that.
    """
    layers = {name: made_of(maps) for name, maps in given.items()}
    if not all(layers.values()):
        return None
    every = [part for some in layers.values() for one in some for part in (one.call.query, one.call.key)]
    numbers, largest = sum(part.numel() for part in every), max(float(part.abs().max()) for part in every)
    block = _block(layers.values(), min(SKETCHED, budget / 16))
    sketches = {name: _sketch(some, block) for name, some in layers.items()}

    def sent(levels: int | None, made: bool) -> tuple[list[dict[str, Any]], Packed, float]:
        packed, worst, told = Packed(), 0.0, []
        for name, maps in given.items():
            parts, error = carry(layers[name], packed, levels) if made else (None, 0.0)
            blobs = [[*packed.add(sketch), block] for sketch in sketches[name]]
            shown = {"blobs": blobs, "masks": None, "rules": _rules(layers[name], packed), "made": parts}
            told.append({**described(name, maps), **shown})
            worst = max(worst, error)
        return told, packed, worst

    room = budget * 3 / 4  # in bytes, before base64
    for levels in (None, *LEVELS):
        if levels is None and largest > torch.finfo(torch.float16).max:
            continue
        if numbers * (2 if levels is None else 1) * HARDLY > room:
            continue
        told, packed, worst = sent(levels, made=True)
        if packed.size <= room:
            return told, packed, _computed(levels, worst, block)
    told, packed, _ = sent(None, made=False)
    return (told, packed, _sketched(block, budget)) if packed.size <= room else None


def _sketched(block: int, budget: float) -> str:
    return (
        f"Of each head one row of {block} is here, and of each {block} keys the largest weight: what heads are made of "
        f"would take more than the view's budget of {formatted(budget / 1e6, 3)} MB."
    )


def _computed(levels: int | None, error: float, block: int) -> str:
    """How heads come about that a page computes, in a sentence."""
    form = "16-bit floats" if levels is None else f"whole numbers from −{levels} to {levels}"
    sheet = f" The sheet shows one row of {block}, and of each {block} keys the largest weight." if block > 1 else ""
    return (
        f"Heads are computed here, from queries and keys in {form}; of {TRIED} rows of each, no weight is off by more "
        f"than {at_most(error, 1)}.{sheet}"
    )


def made_of(maps: AttentionMaps) -> list[Ingredients]:
    """All layers, if they are made of queries, keys, and a rule that a page knows; else none."""
    made = [layer for layer in maps.layers if isinstance(layer, Ingredients) and layer.call.change is None]
    known = [layer for layer in made if layer.call.mask is None or isinstance(layer.call.mask, Spans)]
    known = [layer for layer in known if layer.call.is_finite]
    return known if len(known) == len(maps.layers) else []


def carry(made: Sequence[Ingredients], packed: Packed, levels: int | None) -> tuple[list[dict[str, Any]], float]:
    """What a page is told of how each layer is made, and the largest error of a weight among the rows that were tried.

    Args:
        levels: of 8 bits; None: float16.
    """
    layers, worst = [], 0.0
    for layer in made:
        query, key = (_sent(part[0].float(), levels) for part in (layer.call.query, layer.call.key))
        sent = {name: [_added(packed, part) for part in parts] for name, parts in (("query", query), ("key", key))}
        layers.append({"scale": layer.call.scale, **sent})
        worst = max(worst, _error(layer, query, key))
    return layers, worst


def _rules(made: Sequence[Ingredients], packed: Packed) -> list[int | None]:
    """The number of each head's rule."""
    masks = [(layer.call.mask if isinstance(layer.call.mask, Spans) else None, layer.shape[0]) for layer in made]
    return [packed.rule(mask, head) for mask, heads in masks for head in range(heads)]


def _sent(parts: Tensor, levels: int | None) -> list[tuple[Tensor, Tensor | None]]:
    """Each head's rows as they travel, and the scale of each row."""
    if levels is None:
        return [(part.half(), None) for part in parts.cpu()]
    scale = parts.abs().amax(-1, keepdim=True).clamp_min(1e-30) / levels
    return list(zip((parts / scale).round().to(torch.int8).cpu(), scale.cpu()))


def _back(sent: tuple[Tensor, Tensor | None]) -> Tensor:
    part, scale = sent
    return part.float() if scale is None else part.float() * scale


def _added(packed: Packed, sent: tuple[Tensor, Tensor | None]) -> dict[str, Any]:
    """As `weightOf` of the engine reads it, but deflated."""
    part, scale = sent
    told: dict[str, Any] = {"shape": list(part.shape), "dtype": "float32", "stored": str(part.dtype)[6:]}
    told["at"] = packed.add(_squeezed(part))
    if scale is not None:
        told["scale"] = packed.add(_squeezed(scale))
    return told


def _squeezed(part: Tensor) -> bytes:
    """Numbers without repetitions: only how often each byte comes can make them less."""
    squeeze = zlib.compressobj(6, strategy=zlib.Z_HUFFMAN_ONLY)
    return squeeze.compress(part.contiguous().numpy().tobytes()) + squeeze.flush()


def _error(layer: Ingredients, query: list[Any], key: list[Any]) -> float:
    """The largest error of a weight, of some rows of each head."""
    heads, queries, _ = layer.shape
    rows = slice(None, None, -(-queries // TRIED))
    worst = 0.0
    for head in range(heads):
        sent = layer.with_parts(_back(query[head]), _back(key[head * len(key) // heads]), head)
        worst = max(worst, float((layer[head, rows] - sent[0, rows]).abs().max()))
    return worst


def _block(every: Iterable[Sequence[Ingredients]], most: float) -> int:
    """Cells of a block, so that all heads have so many blocks at most."""
    shapes = [(len(made), *made[0].shape) for made in every]
    block = 1
    while sum(map(math.prod, shapes)) / block**2 > most and block < max(max(shape[2:]) for shape in shapes):
        block *= 2
    return block


def _sketch(made: Sequence[Ingredients], block: int) -> list[bytes]:
    """All heads as the sheet shows them: of each block one row, and of its keys the largest weight."""
    sketches = (layer.sketch(head, block) for layer in made for head in range(layer.shape[0]))
    return [zlib.compress(codes(sketch).numpy().tobytes(), 6) for sketch in sketches]
