"""Encode attention maps into bytes for a page, of a limited size: as exact weights, queries and keys, or blocks.

Exact weights are stored as 8-bit codes of their square roots (`AttentionMaps.as_uint8`), only for cells that the mask
allows. Each head is deflated separately, so that the page unpacks only the heads that it shows. If exact weights exceed
`max_bytes`, the page receives the queries and keys from which it computes the heads (`payload_lazy`). If the page
cannot compute them, it receives the largest weight of each block of cells.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.look.map_arguments import memory_view
from tfviz.shapes import UInt8
from tfviz.view.documents.heads import HeadCodes, MapsPart
from tfviz.view.figures.formatting import format_number
from tfviz.view.page import payload_lazy
from tfviz.view.page.blobs import BASE64_RATIO, ZLIB_LEVEL, BlobStore
from tfviz.view.page.maps import maps_part
from tfviz.view.page.payload_topk import encode_top_keys
from tfviz.view.spec import is_numbered

MAX_PAGE_CELLS = 64_000_000  # of all heads that the page unpacks
LARGE_HEAD_CELLS = 4_000_000  # larger heads are deflated at level 1, for speed
MAX_EXACT_VALUE_CELLS = 20_000  # of all heads whose weights are stored beside their codes
SAMPLED_HEADS = 8  # after which the size of all heads is estimated

Payload = tuple[list[MapsPart], BlobStore]  # the parts of a document, and their bytes
HeadKey = tuple[str, int, int]  # part, layer, head


def deflated(codes: UInt8[Tensor, "query key"], allowed: Tensor | None, level: int = ZLIB_LEVEL) -> bytes:
    """Return the codes of a head's allowed cells, row by row, compressed by zlib."""
    cells = codes if allowed is None else codes[allowed]
    level = 1 if cells.numel() > LARGE_HEAD_CELLS else level
    squeeze = zlib.compressobj(level, strategy=zlib.Z_FILTERED)  # weights are noise and zeros, not repeated text
    return squeeze.compress(cells.numpy().tobytes()) + squeeze.flush()


def encode_maps(
    maps: Mapping[str, AttentionMaps], max_bytes: float, first: tuple[int, int] = (0, 0), top_k: int | None = None
) -> tuple[list[MapsPart], BlobStore, str]:
    """Encode attention maps as exactly as `max_bytes` allows.

    Args:
        maps: the attention maps by name.
        max_bytes: maximum size of the result as base64, in bytes.
        first: (layer, head) that is shown first, which stays exact longest if heads are reduced to blocks.
        top_k: number of strongest keys to keep for each query, with the sum of the others; None: all keys.

    Returns:
        The parts of the document, their bytes, and a sentence on how heads are stored (empty if all are exact).

    Raises:
        ValueError: `max_bytes` is too small.
    """
    if not max_bytes > 0:
        raise ValueError(f"max_bytes is {max_bytes}; it is a number of bytes above 0")
    if top_k is not None:
        return encode_top_keys(maps, top_k, max_bytes)
    exact: dict[HeadKey, bytes] = {}  # full heads are deflated only once, however many block sizes are tried
    cells = sum(math.prod(one.shape) for one in maps.values())
    if cells <= MAX_PAGE_CELLS and (found := _packed(maps, 1, first, max_bytes, exact)):
        return *found, ""
    if lazy := payload_lazy.encode_maps(maps, max_bytes):
        return lazy
    exact = {key: piece for key, piece in exact.items() if key[1:] == first}
    sizes = _pool_sizes(maps, max_bytes)
    for pool_size, exact_head in [(size, first) for size in sizes] + [(size, None) for size in sizes]:
        if exact_head and sum(map(len, exact.values())) * BASE64_RATIO > max_bytes:
            continue
        if found := _packed(maps, pool_size, exact_head, max_bytes, exact):
            return *found, _omitted(found[0], pool_size, max_bytes)
    raise ValueError(f"not even blocks of {sizes[-1]} x {sizes[-1]} cells fit into max_bytes={max_bytes:,.0f}")


def _pool_sizes(maps: Mapping[str, AttentionMaps], max_bytes: float) -> list[int]:
    """Return the block sides to try, in cells: powers of 2, from the first that may fit into `max_bytes`."""
    cells = sum(math.prod(one.shape) for one in maps.values())
    longest = max(max(one.shape[2:]) for one in maps.values())
    start = 2
    while cells / start**2 > min(MAX_PAGE_CELLS, 0.6 * max_bytes) and start < longest:
        start *= 2
    return [start << i for i in range(16) if start << i <= max(start, longest // 16)]


def _packed(
    maps: Mapping[str, AttentionMaps],
    pool_size: int,
    exact_head: tuple[int, int] | None,
    max_bytes: float,
    exact: dict[HeadKey, bytes],
) -> Payload | None:
    """Pack all heads in blocks, except `exact_head`; return None if the result exceeds `max_bytes`.

    Args:
        maps: the attention maps by name.
        pool_size: side of a block, in cells; 1: all heads are exact.
        exact_head: (layer, head) that is packed exactly.
        max_bytes: maximum size of the result as base64, in bytes.
        exact: a cache of deflated exact heads, which is extended.
    """
    blobs, parts = BlobStore(), []
    for name, one in maps.items():
        part = _pack_part(name, one, blobs, pool_size, exact_head, max_bytes, exact)
        if part is None:
            return None
        parts.append(part)
    return parts, blobs


def _pack_part(
    name: str,
    maps: AttentionMaps,
    blobs: BlobStore,
    pool_size: int,
    exact_head: tuple[int, int] | None,
    max_bytes: float,
    exact: dict[HeadKey, bytes],
) -> MapsPart | None:
    """Pack one capture into `blobs`; return None as soon as the total size exceeds `max_bytes`."""
    layers, heads, *_ = maps.shape
    head_codes: list[HeadCodes] = []
    masks: list[int | None] = []
    indices: dict[tuple[object, ...], int] = {}
    for layer in range(layers):
        for head in range(heads):
            allowed = maps.allowed(layer, head)
            masks.append(None if allowed is None else _mask_index(blobs, allowed, indices, maps.mask is not None))
            if pool_size > 1 and (layer, head) != exact_head:
                head_codes.append(blobs.add_head(deflated(maps.as_uint8(layer, head, pool_size), None), pool_size))
            else:
                key = (name, layer, head)
                exact[key] = exact.get(key) or deflated(maps.as_uint8(layer, head), allowed)
                head_codes.append(blobs.add_head(exact[key], 1))
            done = len(head_codes) / (layers * heads)
            likely = (
                blobs.size / done if pool_size == 1 and len(head_codes) >= SAMPLED_HEADS else 0
            )  # estimate of all heads
            if blobs.size * BASE64_RATIO > max_bytes or likely * BASE64_RATIO > 2 * max_bytes:
                return None
    forbids = any(number is not None for number in masks)
    part = maps_part(name, maps, head_codes, masks if forbids else None)
    if pool_size == 1 and (values := _numbered_values(maps)) is not None:
        part["values"] = blobs.add(zlib.compress(values.numpy().tobytes(), ZLIB_LEVEL))
    return part


def _numbered_values(maps: AttentionMaps) -> Tensor | None:
    """Return float32 weights of maps so small that cells show numbers: the page's are those of the static picture.

    None for other maps, and for those that are stored as codes anyway.
    """
    layers = [layer for layer in maps.layers if isinstance(layer, Tensor) and layer.is_floating_point()]
    few = is_numbered(*maps.shape[2:]) and math.prod(maps.shape) <= MAX_EXACT_VALUE_CELLS
    return torch.stack([layer.float() for layer in layers]) if few and len(layers) == len(maps.layers) else None


def _mask_index(blobs: BlobStore, allowed: Tensor, indices: dict[tuple[object, ...], int], stays: bool) -> int:
    """Return the index of a mask in `blobs`, without packing it again if the same memory has been indexed.

    Args:
        blobs: where the mask is stored.
        allowed: the mask, [query, key].
        indices: a cache of indices by view of memory, which is extended.
        stays: whether masks stay in memory, so that the cache is valid.
    """
    where = memory_view(allowed)
    if not stays or where not in indices:
        indices[where] = blobs.mask_index(allowed)
    return indices[where]


def _omitted(parts: Sequence[MapsPart], pool_size: int, max_bytes: float) -> str:
    exact = sum(codes["pool_size"] == 1 for part in parts for codes in part["head_codes"])
    total = sum(len(part["head_codes"]) for part in parts)
    return (
        f"{exact} of {total} heads {'is' if exact == 1 else 'are'} stored exactly, the others as the largest weight of "
        f"each {pool_size} × {pool_size} cells: all would take more than the view's limit of "
        f"{format_number(max_bytes / 1e6, 3)} MB."
    )
