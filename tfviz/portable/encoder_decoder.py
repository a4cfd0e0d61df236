"""Export an encoder-decoder as two programs: one reads a source, one gives the logits of its translations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.portable.export import export
from tfviz.portable.function_module import eval_mode
from tfviz.portable.program import Program

FIELDS = ("states", "words")  # of the memory that the encoder leaves for the decoder
ADVICE = "use a model such as models.Transformer, or look at maps of this one with view.sources or view.live"


def export_encoder_decoder(model: nn.Module, weights: str = "float16") -> dict[str, Program]:
    """Export `encode`, the memory of one source, and `decode`, the logits after every token of several targets.

    Args:
        model: `encode(source)` gives a named tuple of states and words, `decode(target, memory)` gives logits, as
            `models.Transformer` has them.

    Raises:
        ValueError: it has other parts, or goes through its texts word by word in a loop, as recurrent models do;
            otherwise as `export`.
    """
    encode, decode, memory = encode_and_decode(model)
    device = next(model.parameters()).device
    source, target = (torch.ones(shape, dtype=torch.long, device=device) for shape in ((1, 5), (2, 3)))
    lengths = {"target": {0: "texts", 1: "target"}, "states": {1: "source"}, "words": {1: "source"}}
    try:
        reading = export(encode, source, lengths={"source": {1: "source"}}, weights=weights)
        return {"encode": reading, "decode": export(decode, target, *memory, lengths=lengths, weights=weights)}
    except ValueError as error:
        if "cannot change" in str(error):
            raise _loops(model) from error
        raise


def encode_and_decode(model: nn.Module) -> tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]], Any]:
    """Return `encode(source)`, `decode(target, states, words)`, and the memory of five words.

    Raises:
        ValueError: the model has other parts.
    """
    if not (callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))):
        raise ValueError(f"{type(model).__name__} has no encode and decode; {ADVICE}")
    memory_class, memory = _memory(model, torch.ones(1, 5, dtype=torch.long, device=next(model.parameters()).device))

    def encode(source: Tensor) -> dict[str, Any]:
        return dict(zip(FIELDS, model.encode(source)))  # type: ignore[operator]

    def decode(target: Tensor, states: Tensor, words: Tensor) -> dict[str, Any]:
        many = target.shape[0]
        memory = memory_class(states.expand(many, -1, -1), words.expand(many, -1))
        return {"logits": model.decode(target, memory)}  # type: ignore[operator]

    return encode, decode, memory


def _memory(model: Any, source: Tensor) -> tuple[Any, Any]:
    """Return the class of the memory that the encoder gives, and one memory."""
    with eval_mode(model), torch.no_grad():
        memory = model.encode(source)
    if getattr(memory, "_fields", None) == FIELDS:
        return type(memory), memory
    if "summary" in getattr(memory, "_fields", ()):
        raise _loops(model)
    raise ValueError(f"encode of {type(model).__name__} gives no named tuple of states and words; {ADVICE}")


def _loops(model: nn.Module) -> ValueError:
    return ValueError(
        f"{type(model).__name__} reads and writes word by word in a loop, and a program has no loops; {ADVICE}"
    )
