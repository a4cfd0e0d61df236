"""Batches in which some tokens are hidden, by chance."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz import bounds
from tfviz.doors import what
from tfviz.text.batches import Endless, step_seed
from tfviz.text.buckets import Batches
from tfviz.text.subwords import PAD, SPECIALS, UNK


@runtime_checkable
class Vocabulary(Protocol):
    """What hiding tokens asks of a vocabulary; `Subwords` has it."""

    def __len__(self) -> int: ...

    def __getitem__(self, token: str, /) -> int: ...


class WordDropout(Endless):
    """Word dropout: a share of the tokens, other ones each time, is unknown (Iyyer et al. 2015, section 3.2).

    A model that may not count on any single word has to read several. What else is in a batch stays as it is.

    Args:
        batches: `batches[step][0]` are ids of a vocabulary of `Subwords`.
        share: of the tokens that become `[UNK]`; padding stays.
    """

    def __init__(self, batches: Batches, share: float, *, seed: int = 0):
        bounds.share(share=share)
        bounds.seed(seed)
        self.batches, self.share, self.seed = batches, share, seed

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        ids, *rest = _batch(self.batches, step)
        lots = torch.rand(ids.shape, generator=torch.Generator().manual_seed(step_seed(self.seed, step)))
        return torch.where((lots < self.share) & (ids != PAD), UNK, ids), *rest


class MaskedTokens(Endless):
    """The masked-language-model task: batches with hidden tokens, and the tokens that were hidden.

    Of the tokens, 15 % are to be guessed; of these 80 % are replaced by `[MASK]`, 10 % by another token, and 10 % stay
    (Devlin et al. 2019, section 3.1). `masked[step]` is (ids, targets, ...): targets are 0, `[PAD]`, where nothing is
    to be guessed, and what else is in a batch, such as segments, follows as it is. Special tokens are never hidden;
    in a batch of other tokens at least one is to be guessed.

    Args:
        batches: `batches[step][0]` are ids of the vocabulary.
        vocab: the vocabulary, with `[PAD]` at 0 and a `[MASK]`; for one built here the number of its tokens will do.
        share: of the tokens to be guessed.

    Raises:
        ValueError: a share that is none; no tokens but special ones; padding at another id than 0.
        KeyError: the vocabulary has no `[PAD]` or no `[MASK]`.
    """

    def __init__(self, batches: Batches, vocab: int | Vocabulary, *, share: float = 0.15, seed: int = 0):
        if not 0 < share < 1:
            raise ValueError(f"share is {share}; it must lie between 0 and 1")
        bounds.seed(seed)
        if isinstance(vocab, str | Tensor):
            raise TypeError(f"vocab is {what(vocab)}; give how many tokens there are, or a vocabulary with [MASK]")
        specials = dict(zip(SPECIALS, range(len(SPECIALS)))) if isinstance(vocab, int) else _specials(vocab)
        if not callable(getattr(batches, "__getitem__", None)) or isinstance(batches, Tensor):
            raise TypeError(f"batches are {what(batches)}; give batches of ids, such as text.Windows(ids, length)")
        count = vocab if isinstance(vocab, int) else len(vocab)
        if count <= len(specials):
            raise ValueError(f"vocab is {count}; it counts {len(specials)} special tokens, and there must be others")
        self.mask, self.specials = specials["[MASK]"], torch.tensor(list(specials.values()))
        tokens = torch.arange(count)
        self.others = tokens[~torch.isin(tokens, self.specials)]
        self.batches, self.share, self.seed = batches, share, seed

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        ids, *rest = _batch(self.batches, step)
        if ids.numel() and int(ids.max()) > int(self.others[-1]) and int(ids.max()) not in self.specials:
            raise ValueError(f"batches[{step}] holds the id {int(ids.max())}, which the vocabulary does not have")
        draw = torch.Generator().manual_seed(step_seed(self.seed, step))
        lots = torch.rand(ids.shape, generator=draw).masked_fill(torch.isin(ids, self.specials), 2)  # 2: never chosen
        chosen = lots <= lots.min().clamp(self.share, 1)
        how = torch.rand(ids.shape, generator=draw)
        others = self.others[torch.randint(len(self.others), ids.shape, generator=draw)]
        shown = torch.where(chosen & (how < 0.8), self.mask, ids)
        shown = torch.where(chosen & (how >= 0.9), others, shown)
        return shown, torch.where(chosen, ids, PAD), *rest


def _batch(batches: Batches, step: int) -> tuple[Tensor, ...]:
    """A batch whose first part is ids.

    Raises:
        TypeError: it is none.
    """
    batch: Any = batches[step]
    ids = batch[0] if isinstance(batch, tuple | list) and batch else None
    if not isinstance(ids, Tensor) or ids.dim() < 2:
        raise TypeError(
            f"batches[{step}] is {what(batch)}; it must be a tuple of tensors, the first of ids, batch position"
        )
    bounds.token_ids(ids=ids)
    return tuple(batch)


def _specials(vocab: Vocabulary) -> dict[str, int]:
    """The special tokens that there are, and their ids."""
    if vocab["[PAD]"] != PAD:
        raise ValueError(f"[PAD] has the id {vocab['[PAD]']}; models and losses take {PAD} for padding")
    found = {"[MASK]": vocab["[MASK]"]}
    for token in SPECIALS:
        with suppress(KeyError):
            found[token] = vocab[token]
    return found
