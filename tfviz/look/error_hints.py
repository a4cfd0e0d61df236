"""Clear errors for a model that failed on its inputs: a text too long or empty, a list instead of a tensor."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from traceback import walk_tb
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.schema import describe

UNCLEAR = (AttributeError, IndexError, KeyError, RuntimeError, TypeError)  # what PyTorch raises at such inputs
TOKENIZER_CALL = 'tokenizer(texts, return_tensors="pt", padding=True)'


def explain(model: nn.Module, error: BaseException) -> Exception | None:
    """Return a clear error to replace one that a call of this model raised, if its inputs are the reason; else None.

    Args:
        model: the model that was called.
        error: the error that was raised, with its traceback.
    """
    if not isinstance(error, UNCLEAR) or isinstance(error, torch.OutOfMemoryError):
        return None
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    named = _arguments(model, frames)
    if named is None:
        return None
    first = next(iter(named.items()), None)
    if first is not None and (message := _not_tensors(*first)):
        return TypeError(message)
    ids = {name: value for name, value in named.items() if isinstance(value, Tensor) and not value.is_floating_point()}
    for name, value in ids.items():
        if not value.numel():
            return ValueError(f"{name} is empty, {list(value.shape)}; give a text of one token or more")
    return _out_of_table(model, frames, ids) or _too_long(model, ids)


def _arguments(model: nn.Module, frames: Sequence[FrameType]) -> dict[str, Any] | None:
    """Return the arguments of the model's last call among these frames, by name; None if it was not called."""
    for frame in reversed(frames):
        if frame.f_code.co_name == "_call_impl" and frame.f_locals.get("self") is model:
            args, kwargs = frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {})
            return {**dict(zip(inspect.signature(model.forward).parameters, args)), **kwargs}
    return None


def _not_tensors(name: str, value: Any) -> str:
    """Return a message for a text that is not a tensor; "" if it may be something else, such as a list of pictures."""
    if isinstance(value, str):
        return f"{name} is {describe(value)}; give its ids, as {TOKENIZER_CALL} makes"
    if isinstance(value, Mapping):
        return f"{name} is {describe(value)}; give its parts by name: model(**inputs) with inputs = {TOKENIZER_CALL}"
    inner = value
    while isinstance(inner, list) and inner:
        inner = inner[0]
    if not isinstance(value, list) or not isinstance(inner, int | str | list):
        return ""
    return f"{name} is a list; give a tensor [batch, position], as {TOKENIZER_CALL} makes"


def _out_of_table(model: nn.Module, frames: Sequence[FrameType], ids: Mapping[str, Tensor]) -> ValueError | None:
    """Return an error for a token id or a position that an embedding table does not have; None if there is none."""
    frame = next((each for each in reversed(frames) if isinstance(each.f_locals.get("self"), nn.Embedding)), None)
    index = None if frame is None else frame.f_locals.get("input")
    if frame is None or not isinstance(index, Tensor) or not index.numel():
        return None
    if index.is_cuda:  # a kernel has failed there, and no value can be read any more
        return None
    table, largest, smallest = frame.f_locals["self"], int(index.max()), int(index.min())
    if smallest >= 0 and largest < table.num_embeddings:
        return None
    given = next((name for name, value in ids.items() if value.data_ptr() == index.data_ptr()), None)
    if given is not None and "position" not in given:
        wrong = smallest if smallest < 0 else largest
        return ValueError(
            f"{given} holds {wrong}; {type(model).__name__} has {table.num_embeddings} tokens of that kind, counted "
            "from 0: use the tokenizer of this model"
        )
    return _too_long(model, ids) or ValueError(
        f"position {largest} is looked up in a table of {table.num_embeddings}, {_path(model, table)}: shorten the "
        "text, as tokenizer(texts, truncation=True) does"
    )


def _path(model: nn.Module, part: nn.Module) -> str:
    """Return the path of a submodule; its class name if it is not part of the model."""
    return next((path for path, each in model.named_modules() if each is part), type(part).__name__)


def _too_long(model: nn.Module, ids: Mapping[str, Tensor]) -> ValueError | None:
    """Return an error for a text with more tokens than the model's config has positions; None if it fits."""
    limit = getattr(getattr(model, "config", None), "max_position_embeddings", None)
    for name, part in model.named_modules():
        if isinstance(part, nn.Embedding) and part.num_embeddings == limit and "position" in name:
            limit -= 0 if part.padding_idx is None else part.padding_idx + 1  # RoBERTa counts from there
    lengths = {name: value.shape[-1] for name, value in ids.items() if value.dim()}
    name = max(lengths, key=lambda each: lengths[each], default="")
    if not name or not isinstance(limit, int) or lengths[name] <= limit:
        return None
    return ValueError(
        f"{name} has {lengths[name]} tokens in a text; {type(model).__name__} has {limit} positions: shorten the text, "
        f"as tokenizer(texts, truncation=True, max_length={limit}) does"
    )
