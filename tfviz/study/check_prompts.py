"""Checks of prompts before a model runs: strings, ids outside the vocabulary and malformed masks raise errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look.attention_call import is_unmasked
from tfviz.look.error_hints import TOKENIZER_CALL

MASK_ARGUMENTS = ("attention_mask", "padding_mask")  # 1 at tokens, 0 at padding
CACHE_ARGUMENT = re.compile("past|cache")  # in the names of arguments that hold cached keys and values
POSITIONAL_ADVICE = "a {} holds the model's positional arguments; of (ids, targets), give ids alone, batch[0]"
ID_ARGUMENTS = ("input_ids", "decoder_input_ids", "ids")


def check_no_string(name: str, values: Any) -> None:
    """Raise TypeError if a prompt is a string or contains one."""
    parts = [values] if isinstance(values, str) else values.values() if isinstance(values, Mapping) else values
    for part in parts:
        first = part[0] if isinstance(part, list | tuple) and part else part
        if isinstance(first, str):
            raise TypeError(
                f"{name} holds the string {first[:40]!r}: tokenize first, as in tokenizer(text, return_tensors='pt')"
            )


def check_ids(name: str, arguments: Mapping[str, Any], model: nn.Module) -> None:
    """Check the dtype of token ids, and that they are in the model's vocabulary.

    Args:
        name: the name of the prompt, for messages.
        arguments: the model's arguments, by name.
        model: the model.

    Raises:
        TypeError: the dtype of ids is neither int64 nor int32.
        ValueError: an id is not a row of the model's input embedding.
    """
    for argument in ID_ARGUMENTS:
        ids = arguments.get(argument)
        if not isinstance(ids, Tensor) or not ids.numel():
            continue
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(
                f"{name}: {argument} are {ids.dtype}; give whole numbers, int64, as a tokenizer returns them"
            )
        count = _vocab_size(model)
        has_other_parts = any(isinstance(part, Tensor) and part.is_floating_point() for part in arguments.values())
        if count is None or has_other_parts or torch.compiler.is_compiling():
            continue  # ids may be placeholders for images
        outside = ids[(ids < 0) | (ids >= count)]
        if len(outside):
            raise ValueError(
                f"{name}: {argument} holds {int(outside[0])}; {type(model).__name__} has {count} tokens, counted from 0"
            )


def _vocab_size(model: nn.Module) -> int | None:
    """Return the number of rows of a model's input embedding; None if it is unknown."""
    try:
        table = model.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return None
    weight = getattr(table, "weight", None)
    return len(weight) if isinstance(weight, Tensor | torch.nn.Parameter) and weight.dim() == 2 else None


def check_positional(name: str, prompt: Any, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError if a positional argument, such as targets, is passed as the model's mask or cache.

    Args:
        name: the name of the prompt, for messages.
        prompt: the prompt; only a tuple or list of positional arguments is checked.
        arguments: the arguments whose names are known, by name, in order.
    """
    if not isinstance(prompt, tuple | list):
        return
    tensors = [(argument, value) for argument, value in arguments.items() if isinstance(value, Tensor)]
    for argument, value in tensors[1:]:
        is_no_mask = argument in MASK_ARGUMENTS and not _has_mask_values(value).all()
        if is_no_mask or CACHE_ARGUMENT.search(argument):
            advice = f"{POSITIONAL_ADVICE.format(type(prompt).__name__)}; here the second is {argument}"
            raise ValueError(f"{name}: {advice}")


def shape_advice(prompt: Any, arguments: Mapping[str, Any]) -> str:
    """Return advice for a prompt whose tensors have no batch axis, or batch axes of different sizes."""
    flat = [argument for argument, value in arguments.items() if isinstance(value, Tensor) and value.dim() < 2]
    tensors = [value for value in arguments.values() if isinstance(value, Tensor)]
    if len(tensors) == 1 and tensors[0].dim() == 1:
        return "give ids [batch, position], such as ids[None] for one text"
    if isinstance(prompt, tuple | list) and flat:
        return POSITIONAL_ADVICE.format(type(prompt).__name__)
    leave_out = f"leave {' and '.join(flat)} out, or " if flat else ""
    return f"{leave_out}give ids [batch, position], or tensors that share their first axis, as {TOKENIZER_CALL} makes"


def check_masks(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError if an attention mask has other values than a mask, or another length than the ids.

    Args:
        name: the name of the prompt, for messages.
        arguments: the model's arguments, by name.
    """
    has_past = any(CACHE_ARGUMENT.search(key) and value is not None for key, value in arguments.items())
    for argument in (*MASK_ARGUMENTS, "decoder_attention_mask"):
        mask = arguments.get(argument)
        if not isinstance(mask, Tensor):
            continue
        wrong = mask[~_has_mask_values(mask)]
        if len(wrong):
            kind = (
                "0, or the lowest number where no query may attend"
                if _is_additive(mask)
                else "1 for a token, 0 for padding"
            )
            raise ValueError(f"{name}: {argument} holds {wrong[0].item():.6g}; give {kind}")
        ids_name = "decoder_input_ids" if argument.startswith("decoder") else "input_ids"
        ids = arguments.get(ids_name)
        if isinstance(ids, Tensor) and ids.dim() == 2 and mask.shape[-1] != ids.shape[1] and not has_past:
            raise ValueError(
                f"{name}: {argument} is {list(mask.shape)}, and {ids_name} {list(ids.shape)}; they must have one length"
            )


def _is_additive(mask: Tensor) -> bool:
    """Return whether a mask is additive: floats [batch, head, query, key], added to the scores."""
    return mask.dim() == 4 and mask.is_floating_point()


def _has_mask_values(mask: Tensor) -> Tensor:
    """Return, for each element of a mask, whether it is a valid value."""
    return (mask == 0) | (~is_unmasked(mask) if _is_additive(mask) else mask == 1)
