"""Weights where they meet their values, as they are to be shown."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tfviz.look.aside import bare, is_wrapped
from tfviz.look.axes import Layout
from tfviz.look.call import is_open
from tfviz.look.lineage import Weights
from tfviz.look.recompute import living


@dataclass
class Parts:
    """A tensor of weights, what is known of it, and its axes."""

    given: Tensor
    weights: Weights
    axes: Layout

    @property
    def scores(self) -> Tensor | None:
        """Those of these weights, if there is one for each."""
        scores = self.weights.scores
        return None if scores is None or scores.shape != self.given.shape else scores

    @property
    def plain(self) -> Tensor:
        """Without dropout."""
        return self.given if self.weights.plain is None else self.weights.plain

    @property
    def shown(self) -> Tensor:
        """batch head query key, without NaN in rows that see nothing."""
        weights = self.axes.to(self.plain)
        return weights if self.scores is None else living(weights, self.axes.to(self.scores))

    def allowed(self) -> Tensor | None:
        return None if self.scores is None else one_head(is_open(bare(self.axes.to(self.scores))))


def alike(soft: Tensor, plain: Tensor) -> bool:
    """Whether these are the same numbers, but for rounding to another type."""
    if soft.shape != plain.shape or is_wrapped(soft) or is_wrapped(plain):
        return False
    return torch.equal(soft.to(plain.dtype), plain)


def one_head(allowed: Tensor) -> Tensor | None:
    """One head's mask if all have the same; None if nothing is forbidden."""
    if allowed.all():
        return None
    return allowed[:, :1].clone() if (allowed == allowed[:, :1]).all() else allowed
