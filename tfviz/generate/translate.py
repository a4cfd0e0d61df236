"""Whole texts through an encoder-decoder."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.bounds import at_least
from tfviz.generate.beam import EncoderDecoder, search
from tfviz.generate.sample import check_vocabulary


@runtime_checkable
class Vocabulary(Protocol):
    """What translation asks of a vocabulary; `text.Subwords` has it."""

    def __getitem__(self, token: str) -> int: ...

    def encode_all(self, texts: Sequence[str]) -> list[Tensor]: ...

    def decode(self, ids: Tensor) -> str: ...


def translate(
    model: EncoderDecoder,
    texts: Sequence[str],
    source: Vocabulary,
    target: Vocabulary | None = None,
    *,
    width: int = 5,
    alpha: float = 1.0,
    length: int = 100,
    after: str | None = "[EOS]",
    tokens: int = 2000,
    progress: bool = False,
) -> list[str]:
    """What the model makes of each text, in the order of the texts.

    An empty text has a translation too: what the model makes of a source with nothing but an end.

    Args:
        source: the vocabulary of the texts.
        target: that of the translations, which begin with `[BOS]`; None for the same one.
        width, alpha, length: of the search, see `beam.steps`.
        after: the token at the end of each text, as in training; None for no such token.
        tokens: the most source tokens translated at a time, padding included.

    Raises:
        ValueError: an empty text, with nothing after it.
    """
    from tqdm import tqdm

    at_least(1, tokens=tokens, width=width, length=length)

    target = target or source
    check_vocabulary(getattr(model, "source", None), source, "source ")
    check_vocabulary(getattr(model, "target", None), target, "target ")
    end = torch.tensor([] if after is None else [source[after]], dtype=torch.long)
    rows = [torch.cat((ids, end)) for ids in source.encode_all(texts)]
    if not all(map(len, rows)):
        raise ValueError("one of the texts is empty, and with after=None there is nothing to read; leave it out")
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))  # alike in length: little padding
    found = [""] * len(rows)
    how = {"bos": target["[BOS]"], "eos": target["[EOS]"], "width": width, "alpha": alpha, "length": length}
    with tqdm(total=len(rows), unit="text", disable=not progress) as bar:
        while order:
            longest = len(rows[order[-1]])
            batch, order = order[-max(1, tokens // longest) :], order[: -max(1, tokens // longest)]
            padded = torch.nn.utils.rnn.pad_sequence([rows[row] for row in batch], batch_first=True)
            best = search(model, padded, **how)
            for place, row in enumerate(batch):
                found[row] = target.decode(best.ids(place))
            bar.update(len(batch))
    return found
