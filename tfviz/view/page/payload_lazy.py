"""Pack attention maps as queries and keys, from which the page computes each head when it is opened."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.look import AttentionMaps, LazyAttention
from tfviz.look.key_ranges import KeyRanges
from tfviz.look.quantization import quantize_unchecked
from tfviz.view.documents.heads import MapsPart, QueriesAndKeys, StoredWeight
from tfviz.view.figures.formatting import format_number, format_upper_bound
from tfviz.view.page.blobs import BASE64_RATIO, BlobStore
from tfviz.view.page.maps import maps_part

# int8 steps between 0 and the largest absolute value of a row; fewer steps compress better
QUANTIZATION_STEPS = (127, 90, 64, 45)
MAX_SHEET_CELLS = 2_000_000  # of all heads together on the sheet
MIN_COMPRESSION_RATIO = 0.75  # estimated lower bound of compressed size / size of queries and keys
SAMPLED_ROWS = 16  # rows of a head in which the error of weights is measured
MAX_FLOAT16 = torch.finfo(torch.float16).max

Layers = Sequence[LazyAttention]


class Quantized(NamedTuple):
    """The queries or keys of one head, quantized: float16, or int8 with a scale for each row.

    Attributes:
        numbers: the stored numbers, [position, dim].
        scale: the factor of each row, [position, 1]; None for float16.
    """

    numbers: Tensor
    scale: Tensor | None

    @classmethod
    def from_heads(cls, heads: Tensor, levels: int | None) -> list[Quantized]:
        """Quantize the queries or keys of each head.

        Args:
            heads: queries or keys, [head, position, dim].
            levels: number of int8 steps on either side of 0; None: convert to float16.
        """
        if levels is None:
            return [cls(head.half(), None) for head in heads.cpu()]
        scale = heads.abs().amax(-1, keepdim=True).clamp_min(1e-30) / levels
        return [cls(*pair) for pair in zip((heads / scale).round().to(torch.int8).cpu(), scale.cpu())]

    def restored(self) -> Tensor:
        return self.numbers.float() if self.scale is None else self.numbers.float() * self.scale

    def add_to(self, blobs: BlobStore) -> StoredWeight:
        """Append the compressed numbers to `blobs`, and return their description for the page's engine."""
        document: StoredWeight = {
            "shape": list(self.numbers.shape),
            "dtype": "float32",
            "stored": "float16" if self.scale is None else "int8",
            "byte_range": blobs.add(_huffman(self.numbers)),
        }
        if self.scale is not None:
            document["scale"] = blobs.add(_huffman(self.scale))
        return document


def encode_maps(maps: Mapping[str, AttentionMaps], max_bytes: float) -> tuple[list[MapsPart], BlobStore, str] | None:
    """Encode the queries and keys of all heads, as exactly as `max_bytes` allows, and a downsampled map of each head.

    If queries and keys exceed `max_bytes`, only the downsampled maps are packed.

    Args:
        maps: the attention maps by name.
        max_bytes: maximum size of the result as base64, in bytes.

    Returns:
        The parts of the document, their bytes, and a sentence on how heads are stored; None if a page cannot compute
            the heads, or the downsampled maps exceed `max_bytes`.
    """
    layers = {name: computed_layers(one) for name, one in maps.items()}
    if not all(layers.values()):
        return None
    pool_size = _pool_size(layers.values(), min(MAX_SHEET_CELLS, max_bytes / 16))
    pooled = {name: _downsampled_codes(some, pool_size) for name, some in layers.items()}
    limit = max_bytes / BASE64_RATIO
    for levels in _feasible_levels(layers.values(), limit):
        blobs = BlobStore()
        stored = {name: encode_layers(some, blobs, levels) for name, some in layers.items()}
        computed = {name: documents for name, (documents, _) in stored.items()}
        parts = _parts(maps, blobs, pooled, pool_size, computed)
        if blobs.size <= limit:
            return parts, blobs, _note_computed(levels, max(error for _, error in stored.values()), pool_size)
    blobs = BlobStore()
    parts = _parts(maps, blobs, pooled, pool_size, dict.fromkeys(maps))
    return (parts, blobs, _note_downsampled(pool_size, max_bytes)) if blobs.size <= limit else None


def _feasible_levels(layers: Iterable[Layers], limit: float) -> Iterator[int | None]:
    """Yield the storage formats of queries and keys that may fit into `limit` bytes, the most exact first.

    None is float16; a number is that of the int8 steps on either side of 0.
    """
    tensors = [part for some in layers for one in some for part in (one.call.query, one.call.key)]
    least_bytes = MIN_COMPRESSION_RATIO * sum(part.numel() for part in tensors)  # of int8
    if 2 * least_bytes <= limit and max(float(part.abs().max()) for part in tensors) <= MAX_FLOAT16:
        yield None
    if least_bytes <= limit:
        yield from QUANTIZATION_STEPS


def _parts(
    maps: Mapping[str, AttentionMaps],
    blobs: BlobStore,
    pooled: Mapping[str, Sequence[bytes]],
    pool_size: int,
    computed: Mapping[str, list[QueriesAndKeys] | None],
) -> list[MapsPart]:
    """Return the parts of the document, after storing the downsampled heads `pooled` in `blobs`."""
    parts = []
    for name, one in maps.items():
        head_codes = [blobs.add_head(head, pool_size) for head in pooled[name]]
        heads = itertools.product(range(one.shape[0]), range(one.shape[1]))
        key_ranges = [blobs.key_ranges_index(one, layer, head) for layer, head in heads]
        parts.append(maps_part(name, one, head_codes, key_ranges=key_ranges))
        parts[-1]["computed"] = computed[name]
    return parts


def computed_layers(maps: AttentionMaps) -> list[LazyAttention]:
    """Return all layers if a page can compute each from its queries and keys; otherwise an empty list.

    A page supports key ranges as masks. It supports no score modification and no NaN.
    """
    layers = [layer for layer in maps.layers if isinstance(layer, LazyAttention) and layer.call.score_mod is None]
    layers = [layer for layer in layers if layer.call.mask is None or isinstance(layer.call.mask, KeyRanges)]
    layers = [layer for layer in layers if layer.call.has_no_nan]
    return layers if len(layers) == len(maps.layers) else []


def encode_layers(layers: Layers, blobs: BlobStore, levels: int | None) -> tuple[list[QueriesAndKeys], float]:
    """Store queries and keys; return the description of each layer, and the largest error of a sampled weight.

    Args:
        layers: the layers, with their queries and keys.
        blobs: where the bytes are stored.
        levels: number of int8 steps on either side of 0; None: float16.
    """
    documents, worst = list[QueriesAndKeys](), 0.0
    for layer in layers:
        query, key = (Quantized.from_heads(part[0].float(), levels) for part in (layer.call.query, layer.call.key))
        stored = [[head.add_to(blobs) for head in part] for part in (query, key)]
        documents.append({"scale": layer.call.scale, "query": stored[0], "key": stored[1]})
        worst = max(worst, _error(layer, query, key))
    return documents, worst


def _error(layer: LazyAttention, query: list[Quantized], key: list[Quantized]) -> float:
    """Return the largest absolute error of a weight that quantization causes, over sampled rows of each head."""
    heads, queries, _ = layer.shape
    rows = slice(None, None, -(-queries // SAMPLED_ROWS))
    worst = 0.0
    for head in range(heads):
        encoded = layer.with_query_and_key(query[head].restored(), key[head * len(key) // heads].restored(), head)
        worst = max(worst, float((layer[head, rows] - encoded[0, rows]).abs().max()))
    return worst


def _huffman(part: Tensor) -> bytes:
    """Return numbers compressed by entropy coding only, since they have no repeated sequences."""
    squeeze = zlib.compressobj(6, strategy=zlib.Z_HUFFMAN_ONLY)
    return squeeze.compress(part.contiguous().numpy().tobytes()) + squeeze.flush()


def _pool_size(every: Iterable[Layers], max_cells: float) -> int:
    """Return the smallest power of 2 for the side of blocks of which all heads together have `max_cells` at most."""
    shapes = [(len(layers), *layers[0].shape) for layers in every]
    cells, longest = sum(map(math.prod, shapes)), max(max(shape[2:]) for shape in shapes)
    pool_size = 1
    while cells / pool_size**2 > max_cells and pool_size < longest:
        pool_size *= 2
    return pool_size


def _downsampled_codes(layers: Layers, pool_size: int) -> list[bytes]:
    """Return all heads downsampled, as 8-bit codes: for each block, the largest weight in its first row."""
    heads = (layer.downsampled(head, pool_size) for layer in layers for head in range(layer.shape[0]))
    return [zlib.compress(quantize_unchecked(head).numpy().tobytes(), 6) for head in heads]


def _note_downsampled(pool_size: int, max_bytes: float) -> str:
    return (
        f"Of each head one row of {pool_size} is here, and of each {pool_size} keys the largest weight: what heads are "
        f"made of would take more than the view's limit of {format_number(max_bytes / 1e6, 3)} MB."
    )


def _note_computed(levels: int | None, error: float, pool_size: int) -> str:
    form = "16-bit floats" if levels is None else f"integers from −{levels} to {levels}"
    sheet = (
        f" The sheet shows one row of {pool_size}, and of each {pool_size} keys the largest weight."
        if pool_size > 1
        else ""
    )
    return (
        f"Heads are computed here, from queries and keys in {form}; of {SAMPLED_ROWS} rows of each, no weight is off "
        f"by more than {format_upper_bound(error, 1)}.{sheet}"
    )
