"""The next-token probabilities of a language model after temperature, top-k and top-p, for a static picture."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tfviz.logits import sampling_probabilities
from tfviz.shapes import Float
from tfviz.view.studio.static_studio import Prediction

MAX_STATIC_TOKENS = 9  # in the static picture


def predict_next(
    tokenizer: Any, logits: Float[Tensor, " vocab"], temperature: float, top_k: int | None, top_p: float | None
) -> Prediction:
    """Return the likeliest next tokens, with their probabilities before and after top-k and top-p.

    Args:
        tokenizer: gives a label for each id.
        logits: the logits of the next token.
        temperature: the temperature of sampling.
        top_k: number of tokens to keep; None: all.
        top_p: probability mass to keep; None: all.

    Raises:
        ValueError: the logits are not finite.
    """
    if not logits.max().isfinite():
        raise ValueError("the model's logits are not finite; check its weights")
    unfiltered = sampling_probabilities(logits, temperature)
    filtered = sampling_probabilities(logits, temperature, top_k, top_p)
    top = logits.sort(descending=True, stable=True).indices[:MAX_STATIC_TOKENS]
    filters = {"top-k": top_k, "top-p": top_p}
    names = [
        f"temperature {temperature:g}",
        *(f"{name} {value:g}" for name, value in filters.items() if value is not None),
    ]
    before = unfiltered[top] if len(names) > 1 else None
    return Prediction("What comes next", tokenizer.tokens(top), {"": filtered[top]}, ", ".join(names), before)
