"""The likeliest next tokens of a language model, still."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tfviz.view.still.barred import rows
from tfviz.view.still.picture import Picture

SHOWN = 12


def likeliest(vocab: Any, logits: Tensor, title: str, prompt: str) -> Picture:
    """The next tokens after a text, by their probability.

    Args:
        logits: of the next token, one for each of the vocabulary.

    Raises:
        ValueError: the logits are not finite.
    """
    if not logits.max().isfinite():
        raise ValueError("the model's logits are not finite: it has nothing to write with")
    shares = logits.float().softmax(-1)
    top = shares.topk(min(SHOWN, len(shares)))
    last = prompt if len(prompt) <= 40 else f"…{prompt[-39:]}"
    return rows(
        vocab.words(top.indices), {"probability": top.values}, f"{title}: the next token after {last!r}", top=1.0
    )
