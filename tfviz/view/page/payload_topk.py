"""Pack attention maps as the strongest keys of each query, and the sum of the other weights."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy
import torch
from torch import Tensor

from tfviz.checks import at_least
from tfviz.look import AttentionMaps
from tfviz.look.quantization import is_quantizable, quantize_unchecked
from tfviz.view.documents.heads import HeadCodes, MapsPart
from tfviz.view.figures.formatting import format_count, format_number, format_upper_bound, percent
from tfviz.view.page.blobs import BASE64_RATIO, ZLIB_LEVEL, BlobStore
from tfviz.view.page.maps import maps_part

CHUNK_CELLS = 16_000_000  # cells of a head that are processed at a time


class TopKeys(NamedTuple):
    """The strongest keys of each query of one head.

    Attributes:
        data: for all queries, the indices of the keys, then the 8-bit codes of their weights, then the code of the sum
            of the other weights; compressed by zlib.
        largest_other: the largest omitted weight.
        share: the fraction of the total weight on the strongest keys.
    """

    data: bytes
    largest_other: float
    share: float


def encode_top_keys(
    maps: Mapping[str, AttentionMaps], top_k: int, max_bytes: float
) -> tuple[list[MapsPart], BlobStore, str]:
    """Pack the strongest keys of each query, with the sum of the other weights.

    Args:
        maps: the attention maps by name.
        top_k: number of keys for each query, at least 1.
        max_bytes: maximum size of the result as base64, in bytes.

    Returns:
        The parts of the document, their bytes, and a sentence on omitted weights.

    Raises:
        ValueError: `top_k` is below 1, a weight is not between 0 and 1, or the result exceeds `max_bytes`.
    """
    at_least(1, top_k=top_k)
    blobs, parts, found = BlobStore(), list[MapsPart](), list[TopKeys]()
    for name, one in maps.items():
        layers, heads, _, keys = one.shape
        head_codes, key_ranges = list[HeadCodes](), list[int | None]()
        for layer in range(layers):
            for head in range(heads):
                found.append(_top_keys(one, layer, head, min(top_k, keys)))
                head_codes.append(blobs.add_head(found[-1].data, 1))
                key_ranges.append(blobs.key_ranges_index(one, layer, head))
                if blobs.size * BASE64_RATIO > max_bytes:
                    raise ValueError(
                        f"the {format_count(top_k, 'strongest key')} of all queries take more than the limit of "
                        f"{format_number(max_bytes / 1e6, 3)} MB: take fewer with top_k=, or give a larger max_bytes="
                    )
        parts.append(maps_part(name, one, head_codes, key_ranges=key_ranges))
        parts[-1]["top"] = min(top_k, keys)
    count = min(top_k, max(one.shape[3] for one in maps.values()))
    some = "strongest key is" if count == 1 else f"{count} strongest keys are"
    share = percent(sum(head.share for head in found) / len(found))
    bound = format_upper_bound(max(head.largest_other for head in found))
    note = (
        f"Of each query the {some} here, {share} of its weight on average; no weight that is left out is above {bound}."
    )
    return parts, blobs, note


def _top_keys(maps: AttentionMaps, layer: int, head: int, top_k: int) -> TopKeys:
    *_, queries, keys = maps.shape
    chunk = max(1, CHUNK_CELLS // keys)
    found: list[list[Tensor]] = []
    largest_other = shown = total = 0.0
    for start in range(0, queries, chunk):
        rows = maps.max_pool(layer, head, slice(start, start + chunk))
        if not is_quantizable(rows):
            raise ValueError(
                f"layer {layer}, head {head} holds numbers below 0, above 1, or NaN: give weights of attention"
            )
        rows = rows.clamp(0, 1)
        values, indices = rows.topk(min(top_k + 1, keys))
        if keys > top_k:
            largest_other = max(largest_other, float(values[:, top_k].max()))
        values, indices, sums = values[:, :top_k], indices[:, :top_k], rows.sum(-1)
        found.append([indices, quantize_unchecked(values), quantize_unchecked((sums - values.sum(-1)).clamp(0, 1))])
        shown, total = shown + float(values.sum()), total + float(sums.sum())
    index, value, rest = (torch.cat(part).cpu().numpy() for part in zip(*found))
    numbers = index.astype(numpy.uint16 if keys <= 2**16 else numpy.uint32)
    data = zlib.compress(numbers.tobytes() + value.tobytes() + rest.tobytes(), ZLIB_LEVEL)
    return TopKeys(data, largest_other, shown / (total or 1.0))
