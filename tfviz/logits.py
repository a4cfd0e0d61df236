"""Find the logits in a model's output: a tensor, or an output object of tfviz or Hugging Face."""

from typing import Any

from torch import Tensor

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
