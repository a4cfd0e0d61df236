"""Statistics of maps over positions that are not padding and queries that are not fully masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.checks import materialized
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_arguments import unexpanded
from tfviz.look.map_groups import CROSS_ATTENTION_NAME
from tfviz.look.maps import AttentionMaps
from tfviz.shapes import Bool, Float

MAX_SUM_ERROR = 0.25  # of a row of weights, which may have been stored as bytes
LARGE_LAYER_BYTES = 64 * 2**20  # the heads of a layer with larger float32 weights are processed one by one


class CountedPositions(NamedTuple):
    """The positions of a text that are not padding.

    A key is padding if no query of any layer and head may attend to it. In self-attention, the query at its position is
    then padding, too. Without a mask, a position of self-attention is padding if its row and its column hold no weight.

    Attributes:
        queries, keys: True where a position is not padding.
        sees: True where a query may attend to any key; None without a mask.
    """

    queries: Bool[Tensor, "query"]
    keys: Bool[Tensor, "key"]
    sees: Bool[Tensor, "#layer #head query"] | None

    @classmethod
    def from_maps(cls, *several: AttentionMaps) -> CountedPositions:
        """Return the positions of the text of these maps; padding in one of them is padding in all."""
        queries, keys = (torch.ones(count, dtype=torch.bool) for count in several[0].shape[2:])
        known = [attended for maps in several if (attended := _attended(maps)) is not None]
        for attended in known:
            keys = keys & attended
        if all(map(is_self_attention, several)):
            if not known:
                keys = torch.stack([_in_use(maps) for maps in several]).any(0)
                keys = keys if keys.any() else ~keys
            queries = keys
        only = several[0] if len(several) == 1 else None
        sees = None if only is None or only.mask is None else unexpanded(only.mask, axes=2).any(-1)
        return cls(queries, keys, sees)

    def select(self, weights: Float[Tensor, "head query key"]) -> Float[Tensor, "head row column"]:
        """Return weights without padding."""
        weights = weights if self.queries.all() else weights[:, self.queries]
        return weights if self.keys.all() else weights[:, :, self.keys]

    def counted_mask(
        self, weights: Float[Tensor, "head row column"], layer: int, head: int
    ) -> Bool[Tensor, "head row"]:
        """Return a mask of the remaining queries that are not fully masked, for heads from `head` on."""
        sees_any = weights.sum(-1) != 0  # a query with NaN counts, so that the NaN is visible
        if self.sees is None:
            return sees_any
        sees = self.sees[layer if len(self.sees) > 1 else 0][:, self.queries]
        return sees_any & (sees if len(sees) == 1 else sees[head : head + len(sees_any)])


def is_self_attention(maps: AttentionMaps) -> bool:
    """Return whether queries and keys are the positions of one text."""
    return (
        maps.shape[2] == maps.shape[3]
        and maps.query_tokens == maps.key_tokens
        and not any(map(CROSS_ATTENTION_NAME.search, maps.sites))
    )


def iterate_heads(maps: AttentionMaps, layer: int) -> Iterator[tuple[int, Float[Tensor, "head query key"]]]:
    """Yield (first head, weights) of a layer: all heads at once if they are small, else head by head."""
    _, heads, queries, keys = maps.shape
    normalized = not maps.provenance.get("unnormalized")
    if 4 * heads * queries * keys <= LARGE_LAYER_BYTES:
        yield 0, check_weights(maps[layer], normalized)
    else:
        yield from ((head, check_weights(maps[layer, head][None], normalized)) for head in range(heads))


def check_weights(weights: Tensor, normalized: bool = True) -> Tensor:
    """Validate attention weights and return them unchanged.

    Args:
        weights: the attention weights.
        normalized: whether rows must sum to 1, or to 0 if fully masked, up to `MAX_SUM_ERROR`.

    Raises:
        ValueError: a number is negative, complex, NaN or infinite, or a row has another sum.
    """
    materialized(weights=weights)
    if weights.is_complex():
        raise ValueError(f"weights are {weights.dtype}; give real weights")
    if not weights.isfinite().all() or (weights.numel() and weights.min() < 0):
        number = "NaN or infinity" if not weights.isfinite().all() else f"{weights.min().item():.3g}"
        raise ValueError(f"weights hold {number}; each must be from 0 to 1: give patterns, not scores")
    sums = weights.float().sum(-1)
    odd = sums[(sums > 0) & ((sums - 1).abs() > MAX_SUM_ERROR)]
    if normalized and len(odd):
        raise ValueError(f"a query's weights sum to {odd[0].item():.3g}, not to 1; give whole rows of a pattern")
    return weights


def statistic(
    maps: AttentionMaps, measure: Callable[[Tensor, Tensor], Tensor], positions: CountedPositions | None = None
) -> Float[Tensor, "layer head *kind"]:
    """Apply `measure` to every head; return [layer, head, ...].

    Args:
        maps: the attention maps.
        measure: function from the weights without padding, [head, query, key], and the mask of counted queries,
            [head, query], to [head, ...].
        positions: the positions to count; None: those of `maps` that are not padding.

    Raises:
        ValueError: every position is padding.
    """
    positions = positions or CountedPositions.from_maps(maps)
    if not (positions.queries.any() and positions.keys.any()):
        raise ValueError("every position of these maps is padding, by their mask: there is nothing to measure")
    rows = []
    for layer in range(maps.shape[0]):
        parts = [(head, positions.select(weights)) for head, weights in iterate_heads(maps, layer)]
        rows.append(
            torch.cat([measure(weights, positions.counted_mask(weights, layer, head)) for head, weights in parts])
        )
    return torch.stack(rows)


def mean(values: Float[Tensor, "head query"], counted: Bool[Tensor, "#head query"]) -> Float[Tensor, "head"]:
    """Return the mean over the counted queries; 0 if there are none."""
    return torch.where(counted, values, 0.0).sum(-1) / counted.sum(-1).clamp(min=1)


def _attended(maps: AttentionMaps) -> Bool[Tensor, "key"] | None:
    """Return a mask of the keys to which some query of any layer and head may attend; None if no mask is known."""
    if maps.mask is not None:
        return unexpanded(maps.mask, axes=2).flatten(0, 2).any(0)
    attended = None
    for index, layer in enumerate(maps.layers):
        for head in range(layer.shape[0]) if isinstance(layer, LazyAttention) else ():
            allowed = maps.allowed(index, head)
            seen = torch.ones(maps.shape[3], dtype=torch.bool) if allowed is None else allowed.any(0)
            attended = seen if attended is None else attended | seen
            if attended.all():
                return attended
    return attended


def _in_use(maps: AttentionMaps) -> Bool[Tensor, "position"]:
    """Return a mask of the positions whose row or column holds any weight."""
    used = torch.zeros(maps.shape[2], dtype=torch.bool)
    for layer in maps.layers:
        assert isinstance(layer, Tensor)  # for other maps the mask is known
        used |= (layer.sum(-1) != 0).any(0)
        if not used.all():
            used |= (layer.sum(1) != 0).any(0)
        if used.all():
            break
    return used
