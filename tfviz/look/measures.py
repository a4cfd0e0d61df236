"""Measures of attention: entropy, distance, total variation, head scores, rollout, relevance, value-weighted norms.

For `AttentionMaps`, or the `Capture` of one text, a measure is the mean over the queries that are not fully masked.
Padding is removed as if the text did not contain it: keys to which no query may attend (if the mask is known), and in
self-attention the queries at their positions. The first key is therefore the first that is not padding, and distances
do not count padding.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tfviz.checks import between
from tfviz.look.capture_result import Capture
from tfviz.look.head_scores import SCORE_KINDS, head_scores
from tfviz.look.map_arguments import are_numbers
from tfviz.look.map_statistics import CountedPositions, check_weights, iterate_heads, mean, statistic
from tfviz.look.maps import AttentionMaps, as_maps
from tfviz.shapes import Float

__all__ = [
    "SCORE_KINDS", "entropy", "head_scores", "mean_distance", "relevance", "rollout", "total_variation",
    "value_weighted_norms",
]  # fmt: skip


def entropy(weights: Float[Tensor, "*lead query key"] | AttentionMaps | Capture) -> Float[Tensor, "*lead query"]:
    """Return the entropy of each query's weights, in nats: 0 for a single key, log(n) for n keys of equal weight.

    For maps or a capture, return the mean of each head, [layer, head]; for a tensor, a number for each query. A fully
    masked row of zeros has entropy 0 and should be excluded from a mean.

    Raises:
        ValueError: a row has negative weights, or does not sum to 1 (or to 0 if fully masked).

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    return _per_query(as_maps(weights), lambda checked: torch.special.entr(checked).sum(-1))


def mean_distance(weights: Float[Tensor, "*lead query key"] | AttentionMaps | Capture) -> Float[Tensor, "*lead query"]:
    """Return the mean distance of each query to its keys, in positions; for maps the mean of each head, [layer, head].

    Raises:
        ValueError: as for `entropy`; or a tensor is not square, or maps are not square and their queries are not the
            last keys, so that distances are undefined.
    """
    return _distances(as_maps(weights))


def _distances(weights: Tensor | AttentionMaps) -> Tensor:
    if isinstance(weights, AttentionMaps):
        queries, keys = weights.shape[2:]
        offset = keys - queries  # the queries may be the last of the keys' text, as in a step of generation
        if offset < 0 or (offset and weights.query_tokens != weights.key_tokens[offset:]):
            raise ValueError(f"distance is not defined where {queries} queries attend to {keys} keys of another text")
        return _per_query(weights, lambda checked: _mean_distances(checked, offset))
    if weights.dim() < 2:
        raise ValueError(f"weights are {list(weights.shape)}; give queries and keys, [..., query, key]")
    weights = check_weights(weights)
    _check_square("distance", weights)
    return _mean_distances(weights, 0)


def _mean_distances(weights: Tensor, offset: int) -> Tensor:
    """Return the mean distance of each query to its keys; the first query is at the position of the key `offset`."""
    queries, keys = (torch.arange(count, device=weights.device) for count in weights.shape[-2:])
    return (weights * (offset + queries[:, None] - keys).abs()).sum(-1)


def _check_square(name: str, weights: Tensor) -> None:
    """Raise ValueError unless there are as many queries as keys."""
    if weights.shape[-2] != weights.shape[-1]:
        raise ValueError(f"{name} is defined for square maps, not {tuple(weights.shape[-2:])}")


def _per_query(weights: Tensor | AttentionMaps, measure: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a number for each row of weights; for maps, the mean over each head's rows."""
    if isinstance(weights, AttentionMaps):
        return statistic(weights, lambda head_weights, counted_queries: mean(measure(head_weights), counted_queries))
    return measure(check_weights(weights))


def total_variation(first: AttentionMaps | Capture, second: AttentionMaps | Capture) -> Float[Tensor, "layer head"]:
    """Return the difference of each head between two captures of one text, from 0 (equal) to 1 (disjoint).

    It is the total variation distance between each query's weights, averaged over the queries that are not fully masked
    in at least one of the captures.

    Raises:
        ValueError: the maps have different shapes or tokens.

    >>> one, other = (AttentionMaps(torch.eye(2)[order].view(1, 1, 2, 2)) for order in ([0, 1], [0, 0]))
    >>> total_variation(one, other)
    tensor([[0.5000]])
    """
    first, second = as_maps(first), as_maps(second)
    if first.shape != second.shape:
        raise ValueError(f"the shapes differ: {first!r}, and {second!r}; capture both on one text")
    for tokens, others in ((first.query_tokens, second.query_tokens), (first.key_tokens, second.key_tokens)):
        if tokens != others and not (are_numbers(tokens) or are_numbers(others)):
            raise ValueError(f"the tokens differ: {tokens[:5]} and {others[:5]}; capture both on one text")
    positions, changes = CountedPositions.from_maps(first, second), []
    for layer in range(first.shape[0]):
        for (head, before), (_, after) in zip(iterate_heads(first, layer), iterate_heads(second, layer)):
            before, after = positions.select(before), positions.select(after)
            counted = positions.counted_mask(before, layer, head) | positions.counted_mask(after, layer, head)
            changes.append(mean((before - after).abs().sum(-1) / 2, counted))
    return torch.cat(changes).view(first.shape[:2])


def rollout(weights: Float[Tensor, "layer query key"], residual: float = 0.5) -> Float[Tensor, "layer query key"]:
    """Return the share of each input token in each position of each layer (Abnar & Zuidema 2020, section 3).

    Each layer is assumed to keep a share of each position and to take the rest by attention; the matrices of the layers
    are multiplied. Values, feed-forward networks and norms are ignored, so the result is a bound on the flow of
    information, not a measure of it. A position that is fully masked in a layer is kept unchanged, and nothing flows
    out of padding.

    Args:
        weights: a square map for each layer, such as the mean over heads; rows sum to 1, or to 0 if fully masked.
        residual: the share of the residual stream, from 0 to 1.

    Raises:
        ValueError: `residual` is not from 0 to 1; the maps are not square, or are not weights.

    >>> rollout(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]] * 2))[:, 1]
    tensor([[0.5000, 0.5000],
            [0.7500, 0.2500]])
    """
    between(0, 1, residual=residual)
    if weights.dim() != 3 or not len(weights):
        raise ValueError(f"weights are {list(weights.shape)}; give one map a layer, such as the mean over heads")
    _check_square("rollout", weights)
    stays, weights = torch.eye(weights.shape[-1], device=weights.device), check_weights(weights)
    blind = weights.sum(-1, keepdim=True) == 0
    layers = torch.where(blind, stays, residual * stays + (1 - residual) * weights)
    flows = [layers[0]]
    for layer in layers[1:]:
        flows.append(layer @ flows[-1])
    return torch.stack(flows)


def relevance(weights: Float[Tensor, "layer head query key"], gradients: Tensor) -> Float[Tensor, "layer query key"]:
    """Return the relevance of each token to each position of each layer for an output (Chefer et al. 2021, eq. 5, 6).

    Starting from the identity, each layer adds the mean over heads of the positive part of gradient times weight:
    `R = R + mean(max(gradient * weight, 0)) R`. The result for an output is the last layer's row at the position from
    which the output is computed.

    Args:
        weights: self-attention of one text, [layer, head, query, key], first layer first.
        gradients: [layer, head, query, key], of the output with respect to the weights; see `capture(grad=True)`.

    Raises:
        ValueError: the maps are not square, the gradients have another shape, or numbers are not finite.

    >>> found = relevance(torch.full((1, 1, 2, 2), 0.5), torch.tensor([[[[0.0, 0.0], [4.0, -4.0]]]]))
    >>> found[-1]
    tensor([[1., 0.],
            [2., 1.]])
    """
    if weights.dim() != 4:
        raise ValueError(f"weights are {list(weights.shape)}; give layer head query key, of one text")
    if weights.shape != gradients.shape:
        raise ValueError(
            f"weights are {list(weights.shape)}, gradients {list(gradients.shape)}; they must have one shape"
        )
    _check_square("relevance", weights)
    check_weights(weights, normalized=False)
    if not gradients.isfinite().all():
        raise ValueError("gradients hold NaN or infinity; leave out rows in which every key is masked")
    total = torch.eye(weights.shape[-1], device=weights.device)
    layers = []
    for layer in (weights * gradients).clamp(min=0).mean(1).detach():
        total = total + layer @ total
        layers.append(total)
    return torch.stack(layers)


def value_weighted_norms(
    weights: Float[Tensor, "*lead head query key"], values: Float[Tensor, "*lead kv_head key dim"]
) -> Float[Tensor, "*lead head query key"]:
    """Return the norm of weight times value for each query and key (Kobayashi et al. 2020, section 2.2).

    A large weight on a short value contributes little. `values` are the value vectors of the heads, the site `.value`
    of a capture. For the contributions to the residual stream, first multiply them by each head's part of the output
    matrix. If there are fewer heads of values, each is shared by the same number of consecutive heads (grouped-query
    attention, Ainslie et al. 2023).

    Raises:
        ValueError: the shapes do not fit each other.

    >>> value_weighted_norms(torch.tensor([[[0.9, 0.1]]]), torch.tensor([[[0.0, 1.0], [30.0, 40.0]]]))
    tensor([[[0.9000, 5.0000]]])
    """
    lead, fit = weights.shape[:-3], min(weights.dim(), values.dim()) > 2
    if (
        not fit
        or (*lead, weights.shape[-1]) != (*values.shape[:-3], values.shape[-2])
        or not values.shape[-3]
        or weights.shape[-3] % values.shape[-3]
    ):
        raise ValueError(
            f"weights are {list(weights.shape)} and values {list(values.shape)}; they must be ... head query key and "
            "... head key dim, of the same keys, with one value head for each head, or for each group of consecutive "
            "heads"
        )
    check_weights(weights, normalized=False)
    lengths = values.norm(dim=-1).unsqueeze(-2).repeat_interleave(weights.shape[-3] // values.shape[-3], dim=-3)
    return torch.where(weights == 0, 0.0, weights * lengths)  # the values at padding are ignored
