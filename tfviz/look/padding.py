"""What of some maps counts in a statistic: padding does not, nor a query that sees nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.bounds import readable
from tfviz.look.grouping import CROSS
from tfviz.look.ingredients import Ingredients
from tfviz.look.maps import AttentionMaps
from tfviz.shapes import Bool, Float

LARGE = 64 * 2**20  # bytes of a layer's weights in float32, from which on its heads are taken one by one


class Text(NamedTuple):
    """The positions of a text without its padding.

    A key is padding if no query of any layer and head may look at it; in self-attention the query at its position is
    padding with it. Where no mask is known, a position of self-attention is padding if it gives and gets no weight.

    Attributes:
        queries, keys: True where a position is none of padding.
        sees: True where a query may look at a key at all; None where no mask says so.
    """

    queries: Bool[Tensor, "query"]
    keys: Bool[Tensor, "key"]
    sees: Bool[Tensor, "#layer #head query"] | None

    @classmethod
    def of(cls, *several: AttentionMaps) -> Text:
        """Those of a text whose maps these are; what one of them knows to be padding is padding in all."""
        queries, keys = (torch.ones(count, dtype=torch.bool) for count in several[0].shape[2:])
        known = [looked for maps in several if (looked := _looked_at(maps)) is not None]
        for looked in known:
            keys = keys & looked
        if all(map(is_self_attention, several)):
            if not known:
                keys = torch.stack([_in_use(maps) for maps in several]).any(0)
                keys = keys if keys.any() else ~keys
            queries = keys
        only = several[0] if len(several) == 1 else None
        sees = None if only is None or only.mask is None else narrow(only.mask).any(-1)
        return cls(queries, keys, sees)

    def cut(self, weights: Float[Tensor, "head query key"]) -> Float[Tensor, "head row column"]:
        """Weights without padding."""
        weights = weights if self.queries.all() else weights[:, self.queries]
        return weights if self.keys.all() else weights[:, :, self.keys]

    def counts(self, weights: Float[Tensor, "head row column"], layer: int, head: int) -> Bool[Tensor, "head row"]:
        """Which of the queries that are left see anything; these are heads from `head` on."""
        found = weights.sum(-1) != 0  # NaN counts, and shows
        if self.sees is None:
            return found
        sees = self.sees[layer if len(self.sees) > 1 else 0][:, self.queries]
        return found & (sees if len(sees) == 1 else sees[head : head + len(found)])


def is_self_attention(maps: AttentionMaps) -> bool:
    """Whether queries and keys are the positions of one text."""
    return maps.shape[2] == maps.shape[3] and maps.rows == maps.cols and not any(map(CROSS.search, maps.sites))


def narrow(mask: Tensor) -> Tensor:
    """A mask without the axes that an expansion made."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride()[:2])]


def of_heads(maps: AttentionMaps, layer: int) -> Iterator[tuple[int, Float[Tensor, "head query key"]]]:
    """The weights of a layer, of all heads at once where they are small, else head by head, after its first head."""
    _, heads, queries, keys = maps.shape
    whole = not maps.provenance.get("unnormalized")
    if 4 * heads * queries * keys <= LARGE:
        yield 0, of_rows(maps[layer], whole)
    else:
        yield from ((head, of_rows(maps[layer, head][None], whole)) for head in range(heads))


def of_rows(weights: Tensor, whole: bool = True, name: str = "weights") -> Tensor:
    """Themselves, if they are weights; kept in 8 bits their sums are off by up to a fifth.

    Args:
        whole: rows add up to 1, or to 0 where all is masked.

    Raises:
        ValueError: they are none.
    """
    readable(**{name: weights})
    if weights.is_complex():
        raise ValueError(f"{name} are {weights.dtype}; give real weights")
    if not weights.isfinite().all() or (weights.numel() and weights.min() < 0):
        wrong = "NaN or infinity" if not weights.isfinite().all() else f"{weights.min().item():.3g}"
        raise ValueError(f"there is {wrong} among the {name}; each must be from 0 to 1: give patterns, not scores")
    sums = weights.float().sum(-1)
    odd = sums[(sums > 0) & ((sums - 1).abs() > 0.25)]
    if whole and len(odd):
        raise ValueError(f"a query's {name} sum to {odd[0].item():.3g}, not to 1; give whole rows of a pattern")
    return weights


def statistic(
    maps: AttentionMaps, of: Callable[[Tensor, Tensor], Tensor], text: Text | None = None
) -> Float[Tensor, "layer head *kind"]:
    """A number for each head, or several, by `of` of its weights without padding and of which queries count."""
    text = text or Text.of(maps)
    if not (text.queries.any() and text.keys.any()):
        raise ValueError("every position of these maps is padding, by their mask: there is nothing to measure")
    rows = []
    for layer in range(maps.shape[0]):
        parts = [(head, text.cut(weights)) for head, weights in of_heads(maps, layer)]
        rows.append(torch.cat([of(weights, text.counts(weights, layer, head)) for head, weights in parts]))
    return torch.stack(rows)


def mean(values: Float[Tensor, "head query"], counts: Bool[Tensor, "#head query"]) -> Float[Tensor, "head"]:
    """Over the queries that count; 0 where none does."""
    return torch.where(counts, values, 0.0).sum(-1) / counts.sum(-1).clamp(min=1)


def _looked_at(maps: AttentionMaps) -> Bool[Tensor, "key"] | None:
    """The keys that a query of some layer and head may look at; None where no mask is known."""
    if maps.mask is not None:
        return narrow(maps.mask).flatten(0, 2).any(0)
    found = None
    for layer, made in enumerate(maps.layers):
        for head in range(made.shape[0]) if isinstance(made, Ingredients) else ():
            allowed = maps.allowed(layer, head)
            seen = torch.ones(maps.shape[3], dtype=torch.bool) if allowed is None else allowed.any(0)
            found = seen if found is None else found | seen
            if found.all():
                return found
    return found


def _in_use(maps: AttentionMaps) -> Bool[Tensor, "position"]:
    """Positions that give some weight, or are given some."""
    used = torch.zeros(maps.shape[2], dtype=torch.bool)
    for layer in maps.layers:
        assert isinstance(layer, Tensor)  # of others a mask is known
        used |= (layer.sum(-1) != 0).any(0)
        if not used.all():
            used |= (layer.sum(1) != 0).any(0)
        if used.all():
            break
    return used
