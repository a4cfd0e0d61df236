"""Refuse prompts that are strings, and ids that are no numbers of tokens, before a model runs on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

ID_ARGUMENTS = ("input_ids", "decoder_input_ids", "ids")


def check_no_string(name: str, values: Any) -> None:
    """Raise TypeError if a prompt is, or holds, a string."""
    parts = [values] if isinstance(values, str) else values.values() if isinstance(values, Mapping) else values
    for part in parts:
        first = part[0] if isinstance(part, list | tuple) and part else part
        if isinstance(first, str):
            raise TypeError(
                f"{name} holds the string {first[:40]!r}: tokenize first, as in tokenizer(text, return_tensors='pt')"
            )


def check_ids(name: str, arguments: Mapping[str, Any], model: nn.Module) -> None:
    """Raise an error if ids are floats, or not tokens of the model.

    Args:
        name: of the prompt, for messages.
        arguments: of the model, by name.
        model: the model.

    Raises:
        TypeError: ids are floats.
        ValueError: an id lies outside of the model's table of embeddings.
    """
    for argument in ID_ARGUMENTS:
        ids = arguments.get(argument)
        if not isinstance(ids, Tensor) or not ids.numel():
            continue
        if ids.is_floating_point():
            raise TypeError(f"{name}: {argument} are {ids.dtype}; give whole numbers, as a tokenizer returns them")
        count = _vocab_size(model)
        has_other_parts = any(isinstance(part, Tensor) and part.is_floating_point() for part in arguments.values())
        if count is None or has_other_parts or torch.compiler.is_compiling():
            continue  # ids of pictures may be mere marks of their places
        outside = ids[(ids < 0) | (ids >= count)]
        if len(outside):
            raise ValueError(
                f"{name}: {argument} holds {int(outside[0])}; {type(model).__name__} has {count} tokens, counted from 0"
            )


def _vocab_size(model: nn.Module) -> int | None:
    """Return the number of embeddings that a model has for tokens, as far as it tells."""
    try:
        table = model.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return None
    weight = getattr(table, "weight", None)
    return len(weight) if isinstance(weight, Tensor | torch.nn.Parameter) and weight.dim() == 2 else None
