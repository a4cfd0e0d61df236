"""Attention of a recurrent decoder, which asks again at each step: scores by a small network, or by dot products."""

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.layers import sizes
from tfviz.shapes import Bool, Float


class Additive(nn.Module):
    """Attention whose scores are a small network's: v tanh(W q + U k) (Bahdanau, Cho & Bengio 2015, appendix A.1.2).

    A decoder asks again at each step, so its keys are made once, by `of_key`, and given to each call.

    Args:
        query: width of the queries.
        key: width of what keys are made of.
        hidden: width inside the network.
    """

    def __init__(self, query: int, key: int, hidden: int):
        super().__init__()
        bounds.affordable(query=query, hidden=hidden)
        bounds.affordable(key=key, hidden=hidden)
        self.of_query = nn.Linear(query, hidden)
        self.of_key = nn.Linear(key, hidden, bias=False)
        self.to_score = nn.Linear(hidden, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch query dim"],
        key: Float[Tensor, "batch key hidden"],
        value: Float[Tensor, "batch key out"],
        mask: Bool[Tensor, "batch #query key"] | None = None,
    ) -> Float[Tensor, "batch query out"]:
        """The average of the values for each query; zeros for a query that may look nowhere."""
        _fit(self, query, key, value, mask)
        together = self.of_query(query).unsqueeze(2) + key.unsqueeze(1)
        return mix(self.to_score(together.tanh()).squeeze(-1), value, mask)


class Dot(nn.Module):
    """Attention whose scores are dot products of projected queries and keys (Luong et al. 2015, "general"), scaled.

    To be used as `Additive`.
    """

    def __init__(self, query: int, key: int, hidden: int):
        super().__init__()
        bounds.affordable(query=query, hidden=hidden)
        bounds.affordable(key=key, hidden=hidden)
        self.of_query = nn.Linear(query, hidden)
        self.of_key = nn.Linear(key, hidden, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch query dim"],
        key: Float[Tensor, "batch key hidden"],
        value: Float[Tensor, "batch key out"],
        mask: Bool[Tensor, "batch #query key"] | None = None,
    ) -> Float[Tensor, "batch query out"]:
        """The average of the values for each query; zeros for a query that may look nowhere."""
        _fit(self, query, key, value, mask)
        return mix(self.of_query(query) @ key.mT * key.shape[-1] ** -0.5, value, mask)


def _fit(layer: Additive | Dot, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """Queries of the layer's width, keys that its `of_key` has made, as many values."""
    sizes.batch(layer.of_query.in_features, query=query)
    sizes.batch(layer.of_query.out_features, key=key)
    sizes.attention(key, key, value, None)
    if isinstance(mask, Tensor) and (mask.dtype != torch.bool or mask.dim() != 3):
        kind = str(mask.dtype).removeprefix("torch.")
        raise ValueError(f"mask is {kind} {list(mask.shape)}; it must be bool, batch query key: mask[:, None]")


def mix(
    scores: Float[Tensor, "batch query key"],
    value: Float[Tensor, "batch key out"],
    mask: Bool[Tensor, "batch #query key"] | None = None,
) -> Float[Tensor, "batch query out"]:
    """The values weighted by the softmax of the scores; zeros for a query that may look nowhere."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(0.0) @ value
