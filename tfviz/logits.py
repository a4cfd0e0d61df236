"""Extract the logits from a model's output, and compute the sampling probabilities of the next token."""

from typing import Any

import torch
from torch import Tensor

from tfviz.schema import describe
from tfviz.shapes import Float


def extract_logits(output: Any) -> Tensor:
    """Return the `.logits` of a model's output (of Hugging Face, or `models.BERT`), or the output if it is a tensor.

    Raises:
        ValueError: the output is not a tensor and has no logits.
    """
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        raise ValueError(
            f"the model returns {describe(output)} without logits; give the model with its head, such as "
            f"GPT2LMHeadModel instead of GPT2Model"
        )
    return logits


def sampling_probabilities(
    logits: Float[Tensor, "vocab"], temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Float[Tensor, "vocab"]:
    """Return the probabilities with which the next token is sampled; they sum to 1.

    Args:
        logits: [vocab], the logits of the next token; the largest must be finite.
        temperature: the divisor of the logits; 0: the likeliest token has probability 1.
        top_k: the number of likeliest tokens to keep; tokens as likely as the last of them remain, too. None: all.
        top_p: the total probability above which less likely tokens are dropped; the likeliest token always remains.
            None: all remain.
    """
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    differences = logits.float() - logits.max()
    impossible = differences == -torch.inf  # even at infinite temperature
    scaled = (differences / temperature).masked_fill(impossible, -torch.inf)
    if top_k is not None and top_k < len(scaled):
        scaled = scaled.masked_fill(scaled < scaled.topk(top_k).values[-1], -torch.inf)
    probabilities = scaled.softmax(-1)
    if top_p is not None:
        ordered, order = probabilities.sort(descending=True)
        likelier = ordered.cumsum(-1) - ordered  # total probability of the likelier tokens
        probabilities = probabilities.index_fill(-1, order[1:][likelier[1:] >= top_p], 0.0)
    return probabilities / probabilities.sum()
