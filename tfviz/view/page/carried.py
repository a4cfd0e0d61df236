"""Maps that travel as what they are made of: a page computes each head from its queries and keys when it is opened."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look.ingredients import Ingredients
from tfviz.look.kept import codes
from tfviz.look.maps import AttentionMaps
from tfviz.look.spans import Spans
from tfviz.view.page.named import described
from tfviz.view.page.pieces import Packed

LEVELS = (127, 90, 64, 45)  # steps of 8 bits up to the largest number of a row: fewer are deflated to less
SKETCHED = 2_000_000  # cells of all heads that the sheet shows at most
HARDLY = 0.75  # of what queries and keys take, is what they take deflated, at the least
TRIED = 16  # rows of a head that tell how far its weights are off


def parts(given: Mapping[str, AttentionMaps], budget: float) -> tuple[list[dict[str, Any]], Packed, str] | None:
    """What all heads are made of, as exactly as the budget has room for; None if a page cannot have that.

    Also the bytes, and a sentence on how heads come about.
    """
    layers = {name: made_of(maps) for name, maps in given.items()}
    if not all(layers.values()):
        return None
    numbers = sum(one.call.query.numel() + one.call.key.numel() for some in layers.values() for one in some)
    for levels in (None, *LEVELS):
        if numbers * (1 if levels else 2) * HARDLY > budget * 3 / 4:
            continue
        packed = Packed()
        made = [(name, maps, *carry(layers[name], packed, levels, budget)) for name, maps in given.items()]
        if packed.size * 4 / 3 <= budget:
            told = [{**described(name, maps), **one} for name, maps, one, _ in made]
            worst = max(error for *_, error in made)
            block = max(blob[2] for part in told for blob in part["blobs"])
            return told, packed, _computed(levels, worst, block)
    return None


def _computed(levels: int | None, error: float, block: int) -> str:
    """How heads come about that a page computes, in a sentence."""
    form = "16-bit floats" if levels is None else f"whole numbers from −{levels} to {levels}"
    sheet = f" The sheet shows one row of {block}, and of each {block} keys the largest weight." if block > 1 else ""
    return (
        f"Heads are computed here, from queries and keys in {form}; of {TRIED} rows of each, no weight is off by more "
        f"than {error:.1g}.{sheet}"
    )


def made_of(maps: AttentionMaps) -> list[Ingredients]:
    """All layers, if they are made of queries, keys, and a rule that a page knows; else none."""
    made = [layer for layer in maps.layers if isinstance(layer, Ingredients) and layer.call.change is None]
    known = [layer for layer in made if layer.call.mask is None or isinstance(layer.call.mask, Spans)]
    return known if len(known) == len(maps.layers) else []


def carry(
    made: Sequence[Ingredients], packed: Packed, levels: int | None, budget: float
) -> tuple[dict[str, Any], float]:
    """What a page is told of how each layer is made, and the largest error of a weight among the rows that were tried.

    Args:
        levels: of 8 bits; None: float16.
    """
    layers, rules, worst = [], [], 0.0
    for layer in made:
        call = layer.call
        query, key = (_sent(part[0].float(), levels) for part in (call.query, call.key))
        layers.append(
            {
                "scale": call.scale,
                "query": [_added(packed, part) for part in query],
                "key": [_added(packed, part) for part in key],
            }
        )
        rule = call.mask if isinstance(call.mask, Spans) else None
        rules += [packed.rule(rule, head) for head in range(layer.shape[0])]
        worst = max(worst, _error(layer, query, key))
    sketch = _sketch(made, packed, min(SKETCHED, budget / 16))
    return {**sketch, "made": layers, "masks": None, "rules": rules}, worst


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


def _sketch(made: Sequence[Ingredients], packed: Packed, most: float) -> dict[str, Any]:
    """All heads as the sheet shows them: of each block one row, and of its keys the largest weight."""
    heads, queries, keys = made[0].shape
    block = 1
    while len(made) * heads * queries * keys / block**2 > most and block < max(queries, keys):
        block *= 2
    blobs = []
    for layer in made:
        for head in range(heads):
            sketch = codes(layer.sketch(head, block)).numpy().tobytes()
            blobs.append([*packed.add(zlib.compress(sketch, 6)), block])
    return {"blobs": blobs}
