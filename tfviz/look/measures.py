"""Measures of attention: entropy, distance, change, head scores, rollout, relevance, value-weighted norms.

What is measured of `AttentionMaps` is a mean over the queries of a text that see something. Padding is left out as if
the text did not contain it: a key that no query may look at (where the mask is known), and in self-attention the
query at its position. So the first key is the first that is not padding, and distances are counted without it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tfviz.checks import between
from tfviz.look.head_scores import SCORES, head_scores
from tfviz.look.map_arguments import are_numbers
from tfviz.look.maps import AttentionMaps
from tfviz.look.padding import Positions, check_weights, head_weights, mean, statistic
from tfviz.shapes import Float

__all__ = [
    "SCORES", "change", "distance", "entropy", "head_scores", "relevance", "rollout", "value_weighted_norms",
]  # fmt: skip


def entropy(weights: Float[Tensor, "*lead query key"] | AttentionMaps) -> Float[Tensor, "*lead query"]:
    """Return the entropy of each query's weights, in nats: 0 looks at one key, log(n) at n keys alike.

    Of `AttentionMaps` the mean of each head, [layer, head]. Of a tensor a number for each query; a row of zeros, which
    sees nothing, has 0 and is to be left out of a mean.

    Raises:
        ValueError: these are not weights: each row must be nonnegative and sum to 1, or to 0 if fully masked.

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    return _per_query(weights, lambda checked: torch.special.entr(checked).sum(-1))


def distance(weights: Float[Tensor, "*lead query key"] | AttentionMaps) -> Float[Tensor, "*lead query"]:
    """Return how far away each query looks on average, in positions; for `AttentionMaps`, the mean of each head.

    Raises:
        ValueError: as for `entropy`; or maps in a tensor that are not square, where no distance is known.
    """
    if isinstance(weights, Tensor) and weights.dim() < 2:
        raise ValueError(f"weights are {list(weights.shape)}; give queries and keys, [..., query, key]")

    are_last = False  # whether queries are the last of the keys' text, as in a step of generation

    def far(weights: Tensor) -> Tensor:
        queries, keys = (torch.arange(count, device=weights.device) for count in weights.shape[-2:])
        queries = queries + (len(keys) - len(queries) if are_last else 0)
        return (weights * (queries[:, None] - keys).abs()).sum(-1)

    if isinstance(weights, AttentionMaps):
        queries, keys = weights.shape[2:]
        are_last = queries < keys and weights.rows == weights.cols[keys - queries :]
        if queries != keys and not are_last:
            raise ValueError(f"no distance is known where {queries} queries look at {keys} keys of another text")
    distances = _per_query(weights, far)
    if isinstance(weights, Tensor) and weights.shape[-2] != weights.shape[-1]:
        raise ValueError(f"distance is defined for square maps, not {tuple(weights.shape[-2:])}")
    return distances


def _per_query(weights: Tensor | AttentionMaps, measure: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a number for each row of weights; for maps, the mean over each head's rows."""
    if isinstance(weights, AttentionMaps):
        return statistic(weights, lambda some, counts: mean(measure(some), counts))
    return measure(check_weights(weights))


def change(first: AttentionMaps, second: AttentionMaps) -> Float[Tensor, "layer head"]:
    """Return, per head, how much two captures of one text differ: 0 the same, 1 nothing in common.

    It is the total variation distance between a query's weights, mean over the queries that see something in either.

    Raises:
        ValueError: they have different shapes.

    >>> one, other = (AttentionMaps(torch.eye(2)[order].view(1, 1, 2, 2)) for order in ([0, 1], [0, 0]))
    >>> change(one, other)
    tensor([[0.5000]])
    """
    if first.shape != second.shape:
        raise ValueError(f"the shapes differ: {first!r}, and {second!r}; capture both on one text")
    for words, others in ((first.rows, second.rows), (first.cols, second.cols)):
        if words != others and not (are_numbers(words) or are_numbers(others)):
            raise ValueError(f"the words differ: {words[:5]} and {others[:5]}; capture both on one text")
    positions, changes = Positions.of(first, second), []
    for layer in range(first.shape[0]):
        for (head, before), (_, after) in zip(head_weights(first, layer), head_weights(second, layer)):
            before, after = positions.select(before), positions.select(after)
            counts = positions.counts(before, layer, head) | positions.counts(after, layer, head)
            changes.append(mean((before - after).abs().sum(-1) / 2, counts))
    return torch.cat(changes).view(first.shape[:2])


def rollout(weights: Float[Tensor, "layer query key"], residual: float = 0.5) -> Float[Tensor, "layer query key"]:
    """Return where each layer's positions get their content from, down to the words (Abnar & Zuidema 2020, section 3).

    A layer is taken to keep a share of each position and to fill the rest by attention; layers are multiplied. It
    knows nothing of values, feed-forward networks and norms: a bound on what may flow, not a measure of what does.

    A position that sees nothing in a layer is kept whole, and nothing flows out of padding, which nobody looks at.

    Args:
        weights: square maps, one a layer, such as the mean over heads; rows sum to 1, or to 0 where all is masked.
        residual: the share of the residual stream, 0 to 1.

    Raises:
        ValueError: `residual` is not from 0 to 1; maps that are not square, or no weights.

    >>> rollout(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]] * 2))[:, 1]
    tensor([[0.5000, 0.5000],
            [0.7500, 0.2500]])
    """
    between(0, 1, residual=residual)
    if weights.dim() != 3 or not len(weights):
        raise ValueError(f"weights are {list(weights.shape)}; give one map a layer, such as the mean over heads")
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"rollout is defined for square maps, not {tuple(weights.shape[-2:])}")
    stays, weights = torch.eye(weights.shape[-1], device=weights.device), check_weights(weights)
    blind = weights.sum(-1, keepdim=True) == 0
    layers = torch.where(blind, stays, residual * stays + (1 - residual) * weights)
    flows = [layers[0]]
    for layer in layers[1:]:
        flows.append(layer @ flows[-1])
    return torch.stack(flows)


def relevance(weights: Float[Tensor, "layer head query key"], gradients: Tensor) -> Float[Tensor, "layer query key"]:
    """Return how much each position of each layer owes to each word for an output (Chefer et al. 2021, eq. 5 and 6).

    Of weights times their gradients the positive part is taken and averaged over heads; it is added to what stands
    there, layer by layer: R = R + mean(gradient x weight, where above 0) R. The last row of the last layer, or the row
    that the output is read from, is what is looked at.

    Args:
        weights: of self-attention, of one text, first layer first.
        gradients: layer head query key, of the output with respect to the weights; see `capture(grad=True)`.

    Raises:
        ValueError: maps that are not square; not a gradient for each weight.

    >>> found = relevance(torch.full((1, 1, 2, 2), 0.5), torch.tensor([[[[0.0, 0.0], [4.0, -4.0]]]]))
    >>> found[-1]
    tensor([[1., 0.],
            [2., 1.]])
    """
    if weights.dim() != 4:
        raise ValueError(f"weights are {list(weights.shape)}; give layer head query key, of one text")
    if weights.shape != gradients.shape:
        raise ValueError(
            f"weights are {list(weights.shape)}, gradients {list(gradients.shape)}; give one for each weight"
        )
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"relevance is defined for square maps, not {tuple(weights.shape[-2:])}")
    check_weights(weights, normalized=False)
    if not gradients.isfinite().all():
        raise ValueError("there is NaN or infinity among the gradients; of a row that sees nothing, take it out")
    total = torch.eye(weights.shape[-1], device=weights.device)
    layers = []
    for layer in (weights * gradients).clamp(min=0).mean(1).detach():
        total = total + layer @ total
        layers.append(total)
    return torch.stack(layers)


def value_weighted_norms(
    weights: Float[Tensor, "*lead head query key"], values: Float[Tensor, "*lead head key dim"]
) -> Float[Tensor, "*lead head query key"]:
    """Return the norm of what each query takes from each key: weight times value (Kobayashi et al. 2020, section 2.2).

    A large weight on a short value moves little. `values` are those of the heads, `...value` in a capture; multiply
    them by each head's part of the output matrix for what arrives in the stream.

    Raises:
        ValueError: the shapes do not fit each other.

    >>> value_weighted_norms(torch.tensor([[[0.9, 0.1]]]), torch.tensor([[[0.0, 1.0], [30.0, 40.0]]]))
    tensor([[[0.9000, 5.0000]]])
    """
    if min(weights.dim(), values.dim()) < 2 or (*weights.shape[:-2], weights.shape[-1]) != values.shape[:-1]:
        raise ValueError(
            f"weights are {list(weights.shape)} and values {list(values.shape)}; they must be ... head query key and "
            "... head key dim, of the same heads and keys"
        )
    check_weights(weights, normalized=False)
    lengths = values.norm(dim=-1).unsqueeze(-2)
    return torch.where(weights == 0, 0.0, weights * lengths)  # whatever stands at padding, nothing is taken of it
