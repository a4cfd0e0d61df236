"""Attention of recurrent decoders: additive scores (Bahdanau) and dot-product scores (Luong)."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.shapes import Bool, Float


class Seq2SeqAttention(nn.Module):
    """Base class of single-head attention with learned projections; subclasses define the scores.

    A decoder attends to the same source at each step. Compute the keys once, with `of_key`, and pass them to each call.

    Args:
        query: width of the states from which queries are computed.
        key: width of the states from which keys are computed.
        hidden: width of the projected queries and keys.
        bias: whether the projection of the queries has a bias.
    """

    def __init__(self, query: int, key: int, hidden: int, bias: bool = True):
        super().__init__()
        checks.fits_memory(query=query, hidden=hidden)
        checks.fits_memory(key=key, hidden=hidden)
        self.of_query = nn.Linear(query, hidden, bias=bias)
        self.of_key = nn.Linear(key, hidden, bias=False)

    @abstractmethod
    def scores(
        self, query: Float[Tensor, "batch query hidden"], key: Float[Tensor, "batch key hidden"]
    ) -> Float[Tensor, "batch query key"]:
        """Return the score of each projected query with each key."""

    def forward(
        self,
        query: Float[Tensor, "batch query dim"],
        key: Float[Tensor, "batch key hidden"],
        value: Float[Tensor, "batch key out"],
        mask: Bool[Tensor, "batch #query key"] | None = None,
    ) -> Float[Tensor, "batch query out"]:
        """Return the average of the values for each query, weighted by attention; zeros for a fully masked query."""
        return weighted_average(self.scores(self.of_query(query), key), value, mask)


class AdditiveAttention(Seq2SeqAttention):
    """Attention with the scores v tanh(W q + U k) (Bahdanau, Cho & Bengio 2015, appendix A.1.2)."""

    def __init__(self, query: int, key: int, hidden: int, bias: bool = True):
        super().__init__(query, key, hidden, bias)
        self.to_score = nn.Linear(hidden, 1, bias=False)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        summed = query.unsqueeze(2) + key.unsqueeze(1)  # [batch, query, key, hidden]
        return self.to_score(summed.tanh()).squeeze(-1)


class DotAttention(Seq2SeqAttention):
    """Attention with scaled dot products of projected queries and keys (Luong et al. 2015, "general")."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT * key.shape[-1] ** -0.5


def weighted_average(
    scores: Float[Tensor, "batch query key"],
    value: Float[Tensor, "batch key out"],
    mask: Bool[Tensor, "batch #query key"] | None = None,
) -> Float[Tensor, "batch query out"]:
    """Return the average of the values, weighted by the softmax of the scores; zeros for a fully masked query.

    Raises:
        ValueError: the mask does not have three axes.
    """
    if mask is not None:
        if mask.dim() != 3:
            raise ValueError(
                f"mask is {list(mask.shape)}; it must be [batch, query, key]; for one mask per text, mask[:, None]"
            )
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(0.0) @ value
