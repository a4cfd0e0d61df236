"""Export an encoder-decoder as two programs: `encode` for a source, `decode` for the logits of targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, model_device
from tfviz.portable.export import export
from tfviz.portable.program import Program

MEMORY_FIELDS = ("states", "attention_mask")  # of the named tuple that the encoder returns
ADVICE = "use a model such as models.Transformer, or look at maps of this one with view.groups or view.live"


def export_encoder_decoder(model: nn.Module, dtype: str = "float16") -> dict[str, Program]:
    """Export an encoder-decoder as two programs, `encode` and `decode`.

    `encode` returns the memory of one source; `decode` returns the logits at every token of several targets.

    Args:
        model: a model with the methods `encode(source)`, which returns a named tuple of `states` and `attention_mask`,
            and `decode(target, memory)`, which returns logits, such as `models.Transformer`.
        dtype: the storage format of the weights; see `export`.

    Raises:
        ValueError: the model lacks these methods, or loops over the tokens of a text, as recurrent models do; otherwise
            as for `export`.
    """
    encode, decode, memory = encode_and_decode(model)
    device = model_device(model)
    source, target = (torch.ones(shape, dtype=torch.long, device=device) for shape in ((1, 5), (2, 3)))
    lengths = {"target": {0: "texts", 1: "target"}, "states": {1: "source"}, "attention_mask": {1: "source"}}
    try:
        reading = export(encode, source, lengths={"source": {1: "source"}}, dtype=dtype)
        return {"encode": reading, "decode": export(decode, target, *memory, lengths=lengths, dtype=dtype)}
    except ValueError as error:
        if "cannot change" in str(error):
            raise _loop_error(model) from error
        raise


def encode_and_decode(model: nn.Module) -> tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]], Any]:
    """Return the functions `encode(source)` and `decode(target, states, attention_mask)`, and an example memory.

    The memory is that of a source of 5 tokens.

    Raises:
        ValueError: the model has no such methods, or `encode` returns another memory.
    """
    if not (callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))):
        raise ValueError(f"{type(model).__name__} has no encode and decode; {ADVICE}")
    memory_class, memory = _example_memory(model, torch.ones(1, 5, dtype=torch.long, device=model_device(model)))

    def encode(source: Tensor) -> dict[str, Any]:
        return dict(zip(MEMORY_FIELDS, model.encode(source)))  # type: ignore[operator]

    def decode(target: Tensor, states: Tensor, attention_mask: Tensor) -> dict[str, Any]:
        many = target.shape[0]
        memory = memory_class(states.expand(many, -1, -1), attention_mask.expand(many, -1))
        return {"logits": model.decode(target, memory)}  # type: ignore[operator]

    return encode, decode, memory


def _example_memory(model: Any, source: Tensor) -> tuple[Any, Any]:
    """Return the class of the memory that the encoder returns, and the memory of a source.

    Raises:
        ValueError: the memory is not a named tuple of `states` and `attention_mask`.
    """
    with eval_mode(model):
        memory = model.encode(source)
    if getattr(memory, "_fields", None) == MEMORY_FIELDS:
        return type(memory), memory
    if "summary" in getattr(memory, "_fields", ()):
        raise _loop_error(model)
    raise ValueError(
        f"encode of {type(model).__name__} does not return a named tuple of states and attention_mask; {ADVICE}"
    )


def _loop_error(model: nn.Module) -> ValueError:
    return ValueError(
        f"{type(model).__name__} reads and writes token by token in a loop, but a program has no loops; {ADVICE}"
    )
