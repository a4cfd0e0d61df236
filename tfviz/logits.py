"""Logits in a model's output, of tfviz or Hugging Face, and the probabilities with which a token is drawn from them."""

from typing import Any

import torch
from torch import Tensor

from tfviz.shapes import Float
from tfviz.validation import describe


def extract_logits(output: Any) -> Tensor:
    """Return a model's output if it is a tensor, else its `.logits` (of Hugging Face, or of `models.BERT`).

    Raises:
        ValueError: the output is not a tensor and has no logits.
    """
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        raise ValueError(
            f"the model gives {describe(output)} without logits; give the model with its head, such as GPT2LMHeadModel "
            "where this is GPT2Model"
        )
    return logits


def sampling_probabilities(
    logits: Float[Tensor, "vocab"], temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Float[Tensor, "vocab"]:
    """Return the distribution from which the next token is sampled.

    Args:
        logits: of one token; the largest is finite.
        temperature: as for `generate.Sampler`, as are `top_k` and `top_p`.
        top_k: equally likely tokens at the limit all remain.
        top_p: the likeliest token always remains.
    """
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    differences = logits.float() - logits.max()
    impossible = differences == -torch.inf  # also if the temperature is infinite
    scaled = (differences / temperature).masked_fill(impossible, -torch.inf)
    if top_k is not None and top_k < len(scaled):
        scaled = scaled.masked_fill(scaled < scaled.topk(top_k).values[-1], -torch.inf)
    probabilities = scaled.softmax(-1)
    if top_p is not None:
        ordered, order = probabilities.sort(descending=True)
        likelier = ordered.cumsum(-1) - ordered  # the total probability of the tokens before each
        probabilities = probabilities.index_fill(-1, order[1:][likelier[1:] >= top_p], 0.0)
    return probabilities / probabilities.sum()
