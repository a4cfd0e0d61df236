"""`AttentionMaps`: attention weights with the tokens of both axes, for views and measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from tfviz.checks import at_least, integer, materialized, one_of
from tfviz.files import check_safetensors_name
from tfviz.look import capture_checks, map_layers, quantization, serialization
from tfviz.look.attention_call import EVERY_INDEX
from tfviz.look.capture_result import Capture
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_arguments import axis_labels, broadcast_mask, check_layers
from tfviz.look.recorder import Invocation
from tfviz.shapes import Bool, Float, UInt8
from tfviz.validation import validated

T = TypeVar("T")


class AttentionMaps:
    """Attention weights of any model, with the tokens of both axes.

    Args:
        weights: [layer, head, query, key], or a list with a tensor [head, query, key] for each layer; float, or uint8
            as `capture` stores it.
        query_tokens: a token for each query; numbers are converted to strings; default: the numbers of the positions.
        key_tokens: a token for each key; default: `query_tokens` if the map is square, else numbers.
        mask: True where a query may attend; broadcastable to the weights.
        sites: a name for each layer.
        provenance: the origin of the maps, as values that JSON can hold.

    >>> maps = AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), query_tokens=["the", "cat", "sat"])
    >>> maps
    AttentionMaps: 2 layers x 4 heads x 3 queries x 3 keys
    >>> maps[1, 0].diagonal()
    tensor([1., 1., 1.])
    """

    def __init__(
        self,
        weights: Tensor | Sequence[Tensor | LazyAttention | None],
        query_tokens: Sequence[Any] | None = None,
        key_tokens: Sequence[Any] | None = None,
        mask: Tensor | None = None,
        sites: Sequence[str] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ):
        if isinstance(weights, Tensor) and not weights.dim():
            raise ValueError("weights is a scalar; give a tensor [layer, head, query, key]")
        layers: list[Any] = list(weights)
        if not layers:
            raise ValueError("there are no weights; a Hugging Face model returns none under sdpa: use look.capture")
        check_layers(layers)
        self.layers = [layer if isinstance(layer, LazyAttention) else layer.detach().cpu() for layer in layers]
        _, queries, keys = self.layers[0].shape
        self.query_tokens = axis_labels(query_tokens, queries, "query_tokens", "queries")
        self.key_tokens = (
            list(self.query_tokens)
            if key_tokens is None and queries == keys
            else axis_labels(key_tokens, keys, "key_tokens", "keys")
        )
        if mask is not None:
            materialized(mask=mask)
        self.mask = None if mask is None else broadcast_mask(mask.cpu(), self.shape)
        names = [f"layer {i}" for i in range(len(self.layers))] if sites is None else sites
        self.sites = axis_labels(names, len(self.layers), "sites", "layers")
        self.provenance = dict(provenance or {})

    @classmethod
    @validated
    def from_capture(
        cls,
        captured: Capture,
        query_tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
        *,
        sites: str | Sequence[str] = "*",
        batch: int = 0,
        invocations: str | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """Return maps of one batch element, with a layer for each pattern of a capture.

        Windows of a picture (Liu et al. 2021) and chunks of a text (Zaheer et al. 2020) are joined to one map between
        all positions, by the origins of their queries and keys. The weights that windows at the edge give to padding
        are omitted. Capture large maps in uint8.

        Args:
            captured: the capture.
            query_tokens: tokens of the queries; by default numbers.
            key_tokens: tokens of the keys; by default those of the queries if the map is square, else numbers.
            sites: a glob that selects patterns, such as `decoder.*.cross.*`; or their names.
            batch: the index of the batch element.
            invocations: for a site that was computed several times, "last", or "layers" for a layer for each
                invocation; None: the last, with a warning. For a text that is generated token by token, see
                `over_time`.
            provenance: additional information on the origin, such as `{"step": 300}`.

        Raises:
            LookupError: no pattern was captured.
            ValueError: the tokens do not fit; the patterns have different shapes (see `look.groups`); the positions of
                chunks in the text are unknown.
        """
        if invocations is not None:
            one_of(("last", "layers"), invocations=invocations)
        names = map_layers.patterns(captured, sites) if isinstance(sites, str) else list(sites)
        if not names:
            raise ValueError("sites is empty; give a glob or the names of some")
        chosen = map_layers.choose_invocations({site: captured.assembled(site, batch) for site in names}, invocations)
        return cls._from_invocations(captured, chosen, query_tokens, key_tokens, batch, provenance)

    @classmethod
    def _from_invocations(
        cls,
        captured: Capture,
        invocations: Mapping[str, Invocation],
        query_tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
        batch: int = 0,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """Return maps with a layer for each named invocation, for `from_capture` and `look.groups`."""
        weights, mask = map_layers.layers(invocations, batch)
        known = captured.provenance(map_layers.INVOCATION_INDEX.sub("", name) for name in invocations)
        return cls(weights, query_tokens, key_tokens, mask, list(invocations), {**known, **(provenance or {})})

    @classmethod
    @validated
    def over_time(
        cls,
        captured: Capture,
        query_tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
        *,
        sites: str = "*",
        batch: int = 0,
        beam_indices: Tensor | None = None,
        text_index: int | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """Return maps of all invocations of one text, with their queries stacked in order of time.

        Patterns that are computed token by token are joined to one map, like that of a single pass: all queries, and
        the keys of the last invocation. Keys that an earlier invocation did not have get weight 0 and are masked. The
        invocations of one text are matched by their keys. Tokens that were read and then discarded (assisted
        generation, `cache.crop`) have no row. A beam is followed through the rows of the batch. The tokens of the axes
        are

        * for `models.Seq2Seq` with attention, with an invocation for each target token:
          `over_time(captured, target, source)`;
        * for `models.LSTMN`, whose first token attends to nothing: `over_time(captured, tokens[1:], tokens[:-1])`;
        * for a text that is generated with a cache, with the prompt as the first invocation:
          `over_time(captured, tokens_read)`.

        Args:
            captured: the capture.
            query_tokens: tokens of the queries; by default numbers.
            key_tokens: tokens of the keys; by default those of the queries if the map is square, else numbers.
            sites: a glob of the sites.
            batch: the index of the batch element.
            beam_indices: after a beam search, the row of the batch in which each token of each returned text was
                chosen, [text, step], -1 after its end: `out.beam_indices` of Hugging Face's
                `generate(return_dict_in_generate=True, output_scores=True)`. `batch` is then the index of a returned
                text.
            text_index: index of the text, if several were captured one after the other; None: the last, with a warning.
            provenance: as in `from_capture`.

        Raises:
            LookupError: no pattern was captured.
            ValueError: as in `from_capture`; or the invocations of one text cannot be determined: the rows of the batch
                were reordered and `beam_indices` is missing, some keys were computed by none of the invocations, or the
                invocations are layers instead of steps.
        """
        chosen, chunks = map_layers.patterns(captured, sites), captured.chunk_sites
        invocations = {
            site: captured.assembled(site, batch) if site in chunks else captured.stored(site) for site in chosen
        }
        weights, mask = map_layers.layers_over_time(invocations, captured.history, batch, beam_indices, text_index)
        return cls(
            weights,
            query_tokens,
            key_tokens,
            mask,
            list(invocations),
            {**captured.provenance(invocations), **(provenance or {})},
        )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The sizes of [layer, head, query, key]."""
        heads, queries, keys = self.layers[0].shape
        return len(self.layers), heads, queries, keys

    @property
    def weights(self) -> Float[Tensor, "layer head query key"]:
        """All weights in float32; `maps[layer, head]` computes a single head."""
        return torch.stack([self[layer] for layer in range(len(self.layers))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the weights as a NumPy array, as `numpy.asarray(maps)` does."""
        weights = self.weights.detach().cpu().numpy()
        return weights if dtype is None else weights.astype(dtype)

    @validated
    def __getitem__(self, where: int | tuple[int | slice, ...]) -> Tensor:
        """Return `maps[layer]`, [head, query, key], or `maps[layer, head]`, [query, key], in float32.

        Further indices select a part of a head: `maps[layer, head, query]`, a row over keys, or
        `maps[layer, head, 10:20, :30]`.
        """
        indices = where if isinstance(where, tuple) else (where,)
        layer, cells = self._layer(*indices), indices[1:]
        if isinstance(layer, LazyAttention):
            return layer[cells]
        return quantization.dequantize(layer[cells])

    @validated
    def max_pool(
        self, layer: int, head: int, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX, pool_size: int = 1
    ) -> Float[Tensor, "down across"]:
        """Return the largest weight of each `pool_size` x `pool_size` cells of a head, or of a part of it."""
        at_least(1, pool_size=pool_size)
        weights, pool_size = self._layer(layer, head, queries, keys), min(pool_size, max(1, *self.shape[2:]))
        if isinstance(weights, LazyAttention):
            return weights.max_pool(head, queries, keys, pool_size)
        return quantization.dequantize(quantization.max_pool_2d(weights[head, queries, keys], pool_size))

    @validated
    def as_uint8(self, layer: int, head: int, pool_size: int = 1) -> UInt8[Tensor, "down across"]:
        """Return a head as bytes: 255 times the square root of its weights, with an error of at most 0.004.

        Args:
            layer: the index of the layer.
            head: the index of the head.
            pool_size: side of the squares of cells of which only the largest weight is kept.

        Raises:
            ValueError: a weight is not between 0 and 1.
        """
        at_least(1, pool_size=pool_size)
        weights, where = self._layer(layer, head), f"layer {layer}, head {head}"
        if isinstance(weights, LazyAttention):
            return quantization.pool_and_quantize(
                weights.max_pool(head, pool_size=min(pool_size, max(weights.shape))), 1, where
            )
        return quantization.pool_and_quantize(weights[head], pool_size, where)

    @validated
    def allowed(
        self, layer: int, head: int, queries: slice = EVERY_INDEX, keys: slice = EVERY_INDEX
    ) -> Bool[Tensor, "query key"] | None:
        """Return a mask, True where this head's queries may attend; None if nothing is masked."""
        weights = self._layer(layer, head)
        if isinstance(weights, LazyAttention):
            return weights.allowed(head, queries, keys)
        return None if self.mask is None else self.mask[layer, head, queries, keys]

    def _layer(self, *indices: Any) -> Tensor | LazyAttention:
        """Return the layer at these indices (layer, head, query, key), after checking all of them.

        Raises:
            IndexError, TypeError, ValueError: there is no such layer, head, query or key.
        """
        if not 0 < len(indices) <= 4:
            raise IndexError(f"{len(indices)} indices; the maps have four: layer, head, query, key")
        for name, number, count in zip(("layer", "head", "query", "key"), indices, self.shape):
            if isinstance(number, slice):
                ends = {"start": number.start, "stop": number.stop, "step": number.step}
                integer(**{f"{name} {end}": at for end, at in ends.items() if at is not None})
                if number.step is not None and number.step < 1:
                    raise ValueError(f"the step of {name} is {number.step}; it must be 1 or more")
                if name in ("layer", "head"):
                    raise TypeError(f"{name} is a slice; give one number, and take several one by one")
            elif not -count <= number < count:
                raise IndexError(f"{name} is {number}; the maps have {count}, from 0 to {count - 1}")
        return self.layers[indices[0]]

    def __repr__(self) -> str:
        layers, heads, queries, keys = self.shape
        size = f"AttentionMaps: {layers} layers x {heads} heads x {queries} queries x {keys} keys"
        return f"{size}{self.remarks}"

    @property
    def remarks(self) -> str:
        """Text for captions: whether dropout followed the weights, and their caveat."""
        dropout = self.provenance.get("dropout")
        dropped = f", taken in training: before a dropout of {dropout:g}" if isinstance(dropout, float) else ""
        return f"{dropped}; {self.caveat}" if self.caveat else dropped

    @cached_property
    def caveat(self) -> str:
        """Why these may not be attention weights (scores, NaN, unnormalized rows, an inverted mask), or ""."""
        sites = self.provenance.get("unnormalized", [])
        if isinstance(sites, list) and sites:
            return f"rows need not sum to 1 in {', '.join(map(str, sites))}"
        return capture_checks.weights_caveat(self.layers, self.mask)

    @validated
    def save(self, path: str | Path) -> Path:
        """Write the maps to one safetensors file, atomically, and return its path.

        Raises:
            ValueError: the path ends in the suffix of another format, such as ".csv"; JSON cannot hold the provenance;
                the scores of a lazy layer are changed by a `score_mod`, which cannot be stored.
        """
        check_safetensors_name(path, "maps are")
        tokens = {
            "query_tokens": self.query_tokens,
            "key_tokens": self.key_tokens,
            "sites": self.sites,
            "provenance": self.provenance,
        }
        return serialization.write(path, self.layers, self.mask, tokens)

    @classmethod
    @validated
    def load(cls, path: str | Path) -> AttentionMaps:
        """Read a file that `save` wrote, without a model, a GPU, a network or unpickling.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or does not hold attention maps.
        """
        return cls(**serialization.read(path))


def as_maps(attention: T | Capture) -> T | AttentionMaps:
    """Return the maps of a capture of one text; return anything else, such as maps, unchanged.

    Raises:
        ValueError: the capture holds several texts.
    """
    if not isinstance(attention, Capture):
        return attention
    texts = max((attention.shapes[site][0] for site in map_layers.patterns(attention, "*")), default=1)
    if texts > 1:
        raise ValueError(
            f"the capture holds {texts} texts; give one of them, AttentionMaps.from_capture(captured, batch=0)"
        )
    return AttentionMaps.from_capture(attention)
