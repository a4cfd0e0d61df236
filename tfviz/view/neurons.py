"""A view of how the attention weights of one query are computed from the vectors of the query and the keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tfviz.look import AttentionMaps, LazyAttention
from tfviz.look.key_ranges import KeyRanges
from tfviz.shapes import Bool, Float
from tfviz.view.documents.neurons import NeuronsDocument, NeuronsLayer
from tfviz.view.figures import neurons as figures
from tfviz.view.figures.selection import nonnegative_index
from tfviz.view.page.blobs import BASE64_RATIO, BlobStore
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View


@dataclass(frozen=True)
class HeadParts:
    """The terms of one head's attention scores: (query @ key.T) * scale + bias.

    Attributes:
        query: the query vectors, [query, dim], as the model multiplies them: after rotary embedding and normalization.
        key: the key vectors, [key, dim], likewise; in grouped-query attention, several heads have the same ones.
        scale: the factor of the dot products.
        bias: the bias added to the scaled dot products, [query, key], such as ALiBi; None: no bias.
        allowed: the mask, [query, key], True where a query may attend; None: no mask.
    """

    query: Float[Tensor, "query dim"]
    key: Float[Tensor, "key dim"]
    scale: float
    bias: Float[Tensor, "query key"] | None
    allowed: Bool[Tensor, "query key"] | None

    @classmethod
    def from_layer(cls, layer: LazyAttention, head: int) -> HeadParts:
        """Return the terms of one head's scores from a lazily captured layer, which keeps its queries and keys."""
        call = layer.head_call(head)
        query, key, allowed = call.query[0, 0].cpu(), call.key[0, 0].cpu(), layer.allowed(head)
        bias = None
        if call.score_mod is not None or not (isinstance(call.mask, KeyRanges | None) or call.mask.dtype == torch.bool):
            added = call.scores()[0, 0].cpu() - query @ key.T * call.scale
            bias = added if allowed is None else added.masked_fill(~allowed, 0.0)
        bias = bias if bias is not None and bool(bias.any()) else None
        return cls(query, key, call.scale, bias, None if allowed is None or bool(allowed.all()) else allowed)

    def scores(self, row: int) -> Float[Tensor, " key"]:
        """Return the scores of one query; -inf for masked keys."""
        scores = (self.query[row] * self.key).sum(-1) * self.scale
        if self.bias is not None:
            scores = scores + self.bias[row]
        return scores if self.allowed is None else scores.masked_fill(~self.allowed[row], -torch.inf)

    def weights(self, row: int) -> Float[Tensor, " key"]:
        """Return the attention weights of one query: the softmax of its scores; all 0 if every key is masked."""
        return self.scores(row).softmax(-1).nan_to_num(0.0)


def neurons(
    maps: AttentionMaps,
    layer: int = 0,
    head: int = 0,
    query: int = -1,
    title: str | None = None,
    *,
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show how one query's weights are computed: query, keys, their products in each dimension, scores, weights.

    The score of a key is the sum of the products over all dimensions, times the scale, plus a bias such as ALiBi. The
    weights are the softmax of the scores. Queries and keys are shown as the model multiplied them, after rotary
    embedding and normalization. The reader can choose any query, layer and head.

    Args:
        maps: maps of a lazy capture, which keeps queries and keys: `AttentionMaps.from_capture(captured, words)` with
            `look.capture(model, lazy=True)`.
        layer: index of the layer shown first.
        head: index of the head shown first.
        query: index of the query shown first; negative indices count from the end.
        title: the title; None: layer and head.
        max_bytes: maximum size of the data in the page, in bytes.

    Raises:
        IndexError: there is no such layer, head or query.
        ValueError: a layer has only weights, because the capture was not lazy or the model computes attention without a
            fused kernel; or queries and keys exceed `max_bytes`.
    """
    layers = _lazy_layers(maps)
    _, heads, queries, _ = maps.shape
    layer = nonnegative_index("layer", layer, len(layers), "layers")
    head = nonnegative_index("head", head, heads, "heads")
    query = nonnegative_index("query", query, queries, "queries")
    takes = 4 * BASE64_RATIO * sum(one.call.query.numel() + one.call.key.numel() for one in layers)
    if takes > max_bytes:
        raise ValueError(
            f"queries and keys take {takes:,.0f} bytes in a page, max_bytes is {max_bytes:,.0f}: give maps of fewer "
            "layers, AttentionMaps.from_capture(captured, words, sites='*.1.*'), a shorter text, or a larger max_bytes"
        )
    rows, columns = ([str(word) for word in tokens] for tokens in (maps.query_tokens, maps.key_tokens))
    blobs = BlobStore()
    document: NeuronsDocument = {
        "kind": "neurons", "title": title or "", "rows": rows, "columns": columns,
        "layers": [_layer_document(one, blobs) for one in layers], "masks": blobs.masks,
        "state": {"layer": layer, "head": head, "query": query},
    }  # fmt: skip
    parts = HeadParts.from_layer(layers[layer], head)
    named = title or f"Layer {layer}, head {head}"
    static_figure = figures.neurons(parts.query[query], parts.key, parts.weights(query), rows[query], columns, named)
    return View(static_figure, document, blobs.data)


def _lazy_layers(maps: AttentionMaps) -> list[LazyAttention]:
    """Return the layers of maps, after checking that all keep their queries and keys.

    Raises:
        ValueError: a layer has only weights.
    """
    layers = [layer for layer in maps.layers if isinstance(layer, LazyAttention)]
    if len(layers) < len(maps.layers):
        number = next(i for i, layer in enumerate(maps.layers) if not isinstance(layer, LazyAttention))
        raise ValueError(
            f"layer {number} of maps has weights without their queries and keys: capture those with "
            f"look.capture(model, lazy=True); for a model that computes eager attention, choose the fused one, "
            'attn_implementation="sdpa"'
        )
    return layers


def _layer_document(layer: LazyAttention, blobs: BlobStore) -> NeuronsLayer:
    heads, groups = layer.shape[0], layer.call.key.shape[1]
    parts = [HeadParts.from_layer(layer, head) for head in range(heads)]
    shared = parts[:: heads // groups]
    return {
        "dim": parts[0].query.shape[1],
        "scale": float(parts[0].scale),
        "queries": [blobs.add(_bytes(one.query)) for one in parts],
        "keys": [blobs.add(_bytes(one.key)) for one in shared],
        "biases": [None if one.bias is None else blobs.add(_bytes(one.bias)) for one in parts],
        "masks": [None if one.allowed is None else blobs.mask_index(one.allowed) for one in parts],
    }


def _bytes(tensor: Tensor) -> bytes:
    return tensor.float().contiguous().numpy().tobytes()
