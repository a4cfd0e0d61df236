"""Batches in which some tokens are hidden, by chance."""

import torch
from torch import Tensor

from tfviz.text.batches import chance
from tfviz.text.buckets import Batches
from tfviz.text.subwords import PAD, UNK


class Dropped:
    """Word dropout: a share of the tokens, other ones each time, is unknown (Iyyer et al. 2015, section 3.2).

    A model that may not count on any single word has to read several. What else is in a batch stays as it is.

    Args:
        batches: `batches[step][0]` are ids of a vocabulary of `Subwords`.
        share: of the tokens that become `[UNK]`; padding stays.
    """

    def __init__(self, batches: Batches, share: float, *, seed: int = 0):
        if not 0 <= share < 1:
            raise ValueError(f"share is {share}; it must be at least 0 and below 1")
        self.batches, self.share, self.seed = batches, share, seed

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        ids, *rest = self.batches[step]
        lots = torch.rand(ids.shape, generator=torch.Generator().manual_seed(chance(self.seed, step)))
        return torch.where((lots < self.share) & (ids != PAD), UNK, ids), *rest
