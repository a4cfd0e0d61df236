"""Batches with randomly replaced tokens: word dropout, and the masked-language-model task."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from tfviz import checks
from tfviz.indexed_batches import Batches
from tfviz.schema import describe
from tfviz.text.batches import EndlessBatches, step_generator
from tfviz.text.subwords import PAD, SPECIAL_TOKENS, UNK
from tfviz.text.tokenizer import BatchTokenizer


class TokenDropout(EndlessBatches):
    """Batches in which random tokens are replaced by the unknown token (Iyyer et al. 2015, section 3.2).

    A model that cannot rely on any single token has to use several. Other parts of a batch are unchanged.

    Args:
        batches: batches whose first part is the ids, `[batch, position]`, of a tokenizer trained by `tfviz.text`.
        p: probability with which a token becomes `[UNK]`; padding is never replaced.
    """

    def __init__(self, batches: Batches, p: float, *, seed: int = 0):
        checks.fraction_below_one(p=p)
        checks.seed(seed)
        self.batches, self.p, self.seed = batches, p, seed

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        ids, *rest = _batch(self.batches, step)
        draws = torch.rand(ids.shape, generator=step_generator(self.seed, step))
        return torch.where((draws < self.p) & (ids != PAD), UNK, ids), *rest


class MaskedTokens(EndlessBatches):
    """Batches of the masked-language-model task: ids with hidden tokens, and the original tokens as targets.

    By default 15% of the tokens are selected for prediction; of these, 80% are replaced by `[MASK]`, 10% by a random
    token, and 10% are unchanged (Devlin et al. 2019, section 3.1). Special tokens are never selected. At least one
    token of each batch is selected, unless all are special.

    `masked[step]` is (ids, targets, ...). The targets are the original ids of the selected tokens, and 0, `[PAD]`,
    elsewhere. Further parts of a batch, such as segments, follow unchanged.

    Args:
        batches: batches whose first part is the ids, `[batch, position]`.
        tokenizer: the tokenizer, which has a `[MASK]` and a `[PAD]` with the id 0; or, if `tfviz.text` trained it, its
            number of tokens.
        mlm_probability: fraction of the tokens that are selected for prediction.

    Raises:
        ValueError: `mlm_probability` is not between 0 and 1; the tokenizer has only special tokens, or a `[PAD]` whose
            id is not 0.
        KeyError: the tokenizer has no `[PAD]` or no `[MASK]`.
    """

    def __init__(
        self, batches: Batches, tokenizer: int | BatchTokenizer, *, mlm_probability: float = 0.15, seed: int = 0
    ):
        if not 0 < mlm_probability < 1:
            raise ValueError(f"mlm_probability is {mlm_probability}; it must lie between 0 and 1")
        checks.seed(seed)
        if isinstance(tokenizer, int):
            specials, tokens = {token: index for index, token in enumerate(SPECIAL_TOKENS)}, torch.arange(tokenizer)
        else:
            specials, tokens = _special_ids(tokenizer), torch.arange(len(tokenizer))
        if len(tokens) <= len(specials):
            raise ValueError(f"tokenizer has {len(tokens)} tokens, all of them special; give one with other tokens too")
        self.mask, self.specials = specials["[MASK]"], torch.tensor(list(specials.values()))
        self.others = tokens[~torch.isin(tokens, self.specials)]
        self.batches, self.mlm_probability, self.seed = batches, mlm_probability, seed

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        ids, *rest = _batch(self.batches, step)
        if ids.numel() and int(ids.max()) > int(self.others[-1]) and int(ids.max()) not in self.specials:
            raise ValueError(f"batches[{step}] holds the id {int(ids.max())}, which the tokenizer does not have")
        generator = step_generator(self.seed, step)
        draws = torch.rand(ids.shape, generator=generator)
        draws = draws.masked_fill(torch.isin(ids, self.specials), 2)  # 2: never chosen
        chosen = draws <= draws.min().clamp(self.mlm_probability, 1)
        kind = torch.rand(ids.shape, generator=generator)
        others = self.others[torch.randint(len(self.others), ids.shape, generator=generator)]
        hidden = torch.where(chosen & (kind < 0.8), self.mask, ids)
        hidden = torch.where(chosen & (kind >= 0.9), others, hidden)
        return hidden, torch.where(chosen, ids, PAD), *rest


def _batch(batches: Batches, step: int) -> tuple[Tensor, ...]:
    """Return a batch after checking that its first part is ids `[batch, position]`."""
    batch: Any = batches[step]
    ids = batch[0] if isinstance(batch, tuple | list) and batch else None
    if not isinstance(ids, Tensor) or ids.dim() < 2:
        raise TypeError(
            f"batches[{step}] is {describe(batch)}; it must be a tuple of tensors, the first of ids, batch position"
        )
    checks.token_ids(ids=ids)
    return tuple(batch)


def _special_ids(tokenizer: BatchTokenizer) -> dict[str, int]:
    """Return the ids of the special tokens that the tokenizer has."""
    if tokenizer["[PAD]"] != PAD:
        raise ValueError(f"[PAD] has the id {tokenizer['[PAD]']}; models and losses take {PAD} for padding")
    ids = {"[MASK]": tokenizer["[MASK]"]}
    for token in SPECIAL_TOKENS:
        with suppress(KeyError):
            ids[token] = tokenizer[token]
    return ids
