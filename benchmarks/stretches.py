"""Which two stretches are of one review: what a BERT of `reviews.py` learns beside guessing words."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from tfviz import models, text
from tfviz.text.subwords import CLS

LENGTH = 60  # tokens in a stretch
TEXTS = 48  # in a batch
SHARPNESS = 10.0  # what cosines are multiplied by


class Stretches:
    """Batches of two stretches of each of `TEXTS` texts, one from either half: the first of all, then the second.

    Args:
        rows: ids of the texts, each of two tokens at least.
    """

    def __init__(self, rows: Sequence[Tensor], seed: int):
        self.rows, self.seed = rows, seed

    def __getitem__(self, step: int) -> tuple[Tensor]:
        draw = torch.Generator().manual_seed(text.batches.step_seed(self.seed, step))
        chosen = [self.rows[index] for index in torch.randperm(len(self.rows), generator=draw)[:TEXTS].tolist()]
        halves = [row.tensor_split(2)[half] for half in (0, 1) for row in chosen]
        fractions = torch.rand(len(halves), generator=draw).tolist()
        starts = [int(fraction * max(1, len(half) - LENGTH)) for fraction, half in zip(fractions, halves)]
        cut = [half[start:][:LENGTH] for half, start in zip(halves, starts)]
        return (text.buckets.pad(text.add_special_tokens(cut, CLS, None)),)


class Averaged(models.BERT):
    """A BERT that pools the mean over all words rather than `[CLS]`."""

    def encode(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        return super().encode(ids, segments) * (ids != 0)[..., None]

    def pool(self, x: Tensor) -> Tensor:
        return torch.tanh(self.pooler(x.sum(1) / (x != 0).any(-1).sum(1, keepdim=True)))


def words_and_stretches(model: Averaged, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Cross-entropy of the hidden words, and of which stretch is of the same text (Giorgi et al. 2021, "DeCLUTR").

    The batch is (ids, targets) of `text.MaskedTokens`; the count is that of the words, as in `learn.losses.masked_lm`.
    """
    ids, targets = batch
    hidden = targets != 0
    x = model.encode(ids)
    guessed = model.mlm_norm(functional.gelu(model.mlm_dense(x[hidden])))
    words = functional.linear(guessed, model.tokens.weight, model.mlm_bias)
    first, second = functional.normalize(model.pool(x)).chunk(2)
    alike, own = SHARPNESS * first @ second.T, torch.arange(len(first), device=ids.device)
    same = (functional.cross_entropy(alike, own) + functional.cross_entropy(alike.T, own)) / 2
    count = len(words)
    return functional.cross_entropy(words, targets[hidden], reduction="sum") + count * same, count
