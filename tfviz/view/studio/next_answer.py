"""What a language model writes next, after temperature, top-k and top-p."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tfviz.shapes import Float
from tfviz.view.studio.still_heads import Answer

MAX_STATIC_TOKENS = 9  # in the static picture


def next_answer(
    tokenizer: Any, logits: Float[Tensor, " vocab"], temperature: float, top_k: int | None, top_p: float | None
) -> Answer:
    """Return the likeliest next tokens, with their probabilities before and after top-k and top-p.

    Raises:
        ValueError: the logits are not finite.
    """
    if not logits.max().isfinite():
        raise ValueError("the model's logits are not finite: it has nothing to write with")
    if temperature == 0:
        shares = nn.functional.one_hot(logits.argmax(), len(logits)).float()
    else:
        shares = ((logits.float() - logits.max()) / temperature).nan_to_num(nan=-torch.inf).softmax(-1)
    ordered, order = shares.sort(descending=True, stable=True)
    top = order[:MAX_STATIC_TOKENS]
    kept = ordered[:top_k] / ordered[:top_k].sum()
    if top_p is not None:
        kept = kept[kept.cumsum(-1) - kept < top_p]
    filtered = nn.functional.pad(kept / kept.sum(), (0, len(ordered) - len(kept)))[: len(top)]
    filters = {"top-k": top_k, "top-p": top_p}
    names = [
        f"temperature {temperature:g}",
        *(f"{name} {value:g}" for name, value in filters.items() if value is not None),
    ]
    unfiltered = shares[top] if len(names) > 1 else None
    return Answer("What comes next", tokenizer.words(top), {"": filtered}, ", ".join(names), unfiltered)
