"""What a head does, in numbers: measured, so that nothing need be claimed by eye."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from tfviz.bounds import between, readable
from tfviz.look.maps import AttentionMaps
from tfviz.shapes import Float


def entropy(weights: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query"]:
    """Of each query's weights, in nats: 0 looks at one key, log(n) at n keys alike.

    Raises:
        ValueError: these are no weights: a query's must be 0 or more and sum to 1, or to 0 where all is masked.

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    return torch.special.entr(_weights(weights)).sum(-1)


def distance(weights: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query"]:
    """How far away each query looks on average, in positions; errors as for `entropy`."""
    queries, keys = weights.shape[-2:]
    gaps = torch.arange(queries)[:, None] - torch.arange(keys)
    return (_weights(weights) * gaps.abs().to(weights.device)).sum(-1)


def change(first: AttentionMaps, second: AttentionMaps) -> Float[Tensor, "layer head"]:
    """How far two captures of one text are apart, head by head: the total variation between a query's weights, mean
    over the queries. 0 is the same, 1 nothing in common.

    Raises:
        ValueError: they have different shapes.

    >>> one, other = (AttentionMaps(torch.eye(2)[order].view(1, 1, 2, 2)) for order in ([0, 1], [0, 0]))
    >>> change(one, other)
    tensor([[0.5000]])
    """
    if first.shape != second.shape:
        raise ValueError(f"the shapes differ: {first!r}, and {second!r}; capture both on one text")
    layers, heads, *_ = first.shape
    apart = [(first[at] - second[at]).abs().sum(-1).mean() / 2 for at in product(range(layers), range(heads))]
    return torch.stack(apart).view(layers, heads)


def rollout(weights: Float[Tensor, "layer query key"], kept: float = 0.5) -> Float[Tensor, "layer query key"]:
    """Where each layer's positions get what they are made of, down to the words (Abnar & Zuidema 2020, section 3).

    A layer is taken to keep a share of each position and to fill the rest by attention; layers are multiplied. It
    knows nothing of values, feed-forward networks and norms: a bound on what may flow, not a measure of what does.

    Args:
        weights: square maps, one a layer, such as the mean over heads; rows sum to 1.
        kept: the share that the residual stream keeps, 0 to 1.

    Raises:
        ValueError: a share that is none; maps that are not square, or no weights.

    >>> rollout(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]] * 2))[:, 1]
    tensor([[0.5000, 0.5000],
            [0.7500, 0.2500]])
    """
    between(0, 1, kept=kept)
    if weights.dim() != 3 or not len(weights):
        raise ValueError(f"weights are {list(weights.shape)}; give one map a layer, such as the mean over heads")
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"rollout is defined for square maps, not {tuple(weights.shape[-2:])}")
    layers = kept * torch.eye(weights.shape[-1], device=weights.device) + (1 - kept) * _weights(weights)
    found = [layers[0]]
    for layer in layers[1:]:
        found.append(layer @ found[-1])
    return torch.stack(found)


def relevance(weights: Float[Tensor, "layer head query key"], gradients: Tensor) -> Float[Tensor, "layer query key"]:
    """How much each position of each layer owes to each word, for one output (Chefer et al. 2021, equations 5 and 6).

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
    if weights.shape != gradients.shape:
        raise ValueError(
            f"weights are {list(weights.shape)}, gradients {list(gradients.shape)}; give one for each weight"
        )
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"relevance is defined for square maps, not {tuple(weights.shape[-2:])}")
    found = torch.eye(weights.shape[-1], device=weights.device)
    made = []
    for layer in (weights * gradients).clamp(min=0).mean(1).detach():
        found = found + layer @ found
        made.append(found)
    return torch.stack(made)


def carried(
    weights: Float[Tensor, "*lead head query key"], values: Float[Tensor, "*lead head key dim"]
) -> Float[Tensor, "*lead head query key"]:
    """How long the vectors are that queries really take from keys: weight times value (Kobayashi et al. 2020, 2.2).

    A large weight on a short value moves little. `values` are those of the heads, `...value` in a capture; multiply
    them by each head's part of the output matrix for what arrives in the stream.

    >>> carried(torch.tensor([[[0.9, 0.1]]]), torch.tensor([[[0.0, 1.0], [30.0, 40.0]]]))
    tensor([[[0.9000, 5.0000]]])
    """
    if min(weights.dim(), values.dim()) < 2 or (*weights.shape[:-2], weights.shape[-1]) != values.shape[:-1]:
        raise ValueError(
            f"weights are {list(weights.shape)} and values {list(values.shape)}; they must be ... head query key and "
            "... head key dim, of the same heads and keys"
        )
    return weights * values.norm(dim=-1).unsqueeze(-2)


def _weights(weights: Tensor) -> Tensor:
    """Themselves, if they are weights; kept in 8 bits their sums are off by up to a fifth."""
    readable(weights=weights)
    if not weights.isfinite().all() or (weights.numel() and weights.min() < 0):
        wrong = "NaN or infinity" if not weights.isfinite().all() else f"{weights.min().item():.3g}"
        raise ValueError(f"there is {wrong} among the weights; each must be from 0 to 1: give patterns, not scores")
    sums = weights.float().sum(-1)
    odd = sums[(sums > 0) & ((sums - 1).abs() > 0.25)]
    if len(odd):
        raise ValueError(f"a query's weights sum to {odd[0].item():.3g}, not to 1; give whole rows of a pattern")
    return weights


def _offset(back: int) -> Callable[[Tensor, list[str]], Tensor]:
    return lambda weights, words: weights.diagonal(-back, -2, -1).mean(-1)


def _first(weights: Tensor, words: list[str]) -> Tensor:
    return weights[..., 1:, 0].mean(-1)


def _where(weights: Tensor, cells: Tensor) -> Tensor:
    """Mean weight that queries put on the marked cells, over the queries that have one."""
    queries = cells.any(-1)
    return (weights * cells).sum(-1)[..., queries].mean(-1) if queries.any() else weights.new_zeros(weights.shape[:-2])


def _same(weights: Tensor, words: list[str]) -> Tensor:
    return _where(weights, _equal(words).tril(-1))


def _after_same(weights: Tensor, words: list[str]) -> Tensor:
    """The key one after an earlier occurrence of the query's word: what an induction head looks at."""
    shifted = torch.zeros(len(words), len(words), dtype=torch.bool)
    shifted[:, 1:] = _equal(words).tril(-1)[:, :-1]
    return _where(weights, shifted.tril(-1))


def _equal(words: list[str]) -> Tensor:
    codes = torch.tensor([sorted(set(words)).index(word) for word in words])
    return codes[:, None] == codes


# name -> share of the attention, 0 to 1, that goes where the name says
TYPES: dict[str, Callable[[Tensor, list[str]], Tensor]] = {
    "itself": _offset(0),
    "previous": _offset(1),
    "two back": _offset(2),
    "first": _first,
    "same word": _same,
    "after same word": _after_same,
}


def types(maps: AttentionMaps) -> dict[str, Float[Tensor, "layer head"]]:
    """How much of each head's attention goes to one kind of place: see `TYPES`. For square maps.

    >>> maps = AttentionMaps(torch.eye(3).roll(-1, 1)[None, None], rows=["a", "b", "c"])
    >>> round(types(maps)["previous"].item(), 2), types(maps)["itself"].item()
    (1.0, 0.0)
    """
    if maps.shape[2] != maps.shape[3] or maps.shape[2] < 3:
        raise ValueError(f"head types are defined for square maps of at least 3 words, not {maps.shape[2:]}")
    return {name: torch.stack([of(maps[i], maps.rows) for i in range(maps.shape[0])]) for name, of in TYPES.items()}


def strongest(maps: AttentionMaps, kind: str) -> tuple[int, int]:
    """Layer and head that give most attention to this kind of place.

    Raises:
        LookupError: there is no such kind; lists them.
    """
    if kind not in TYPES:
        raise LookupError(f"no kind of place is called {kind!r}; there are: {', '.join(TYPES)}")
    shares = types(maps)[kind]
    layer, head = divmod(int(shares.argmax()), shares.shape[1])
    return layer, head
