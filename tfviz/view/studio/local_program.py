"""A model that stays in Python behind the interface of a `portable.Program`, for a page with a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, model_device
from tfviz.look import Capture, capture, edits
from tfviz.view.figures.palette import shorten

Edit = Callable[[Tensor], Tensor]
DTYPES = {"float32": torch.float32, "bool": torch.bool}


class LocalProgram:
    """A function of a model's outputs, with the inputs and edits of a `portable.Program`.

    Args:
        function: calls the model; returns tensors by name. It is called in eval mode and without gradients.
        inputs: name -> "float32", "bool", or the number of ids there are, in the function's order.
    """

    def __init__(self, model: nn.Module, function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, str | int]):
        self.model, self.function, self.inputs = model, function, dict(inputs)

    def __call__(self, *inputs: Tensor, off: Iterable[Mapping[str, Any]] = ()) -> dict[str, Tensor]:
        """Return the outputs with these heads switched off: [{site, head}, ...]."""
        changes = _head_edits(off)
        with capture(self.model, list(changes), edit=changes) if changes else nullcontext():
            return self._outputs(inputs)

    def run(self, inputs: Sequence[Tensor], off: Iterable[Mapping[str, Any]] = ()) -> tuple[dict[str, Tensor], Capture]:
        """Return the outputs and the captured patterns of all heads."""
        with capture(self.model, "*.pattern", edit=_head_edits(off)) as captured:
            outputs = self._outputs(inputs)
        return outputs, captured

    def _outputs(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        device = model_device(self.model)
        with eval_mode(self.model):
            outputs = self.function(*(tensor.to(device) for tensor in inputs))
        return {name: torch.as_tensor(value).detach().cpu() for name, value in outputs.items()}

    def decode_inputs(self, message: Any) -> list[Tensor]:
        """Return the inputs that a page sends as [[name, shape, numbers], ...], which may have any content.

        Raises:
            ValueError: they are not this program's.
        """
        try:
            named = {name: (shape, numbers) for name, shape, numbers in message}
            return [_decode_tensor(kind, *named[name]) for name, kind in self.inputs.items()]
        except (TypeError, ValueError, KeyError, RuntimeError) as error:
            wanted = " and ".join(
                f"{name}, {f'numbers from 0 to {kind - 1}' if isinstance(kind, int) else kind}"
                for name, kind in self.inputs.items()
            )
            raise ValueError(
                f"the inputs are {shorten(repr(message), 60)}; give {wanted}, with their shapes"
            ) from error


def max_positions(model: nn.Module) -> int | None:
    """Return the model's maximum number of positions, as stated by ours or by those of Hugging Face."""
    count = getattr(model, "context", None) or getattr(getattr(model, "config", None), "max_position_embeddings", None)
    return None if count is None else int(count)


def _decode_tensor(kind: str | int, shape: Any, numbers: Any) -> Tensor:
    if not isinstance(kind, int):
        return torch.tensor(numbers, dtype=DTYPES[kind]).reshape(shape)
    if not numbers or not all(type(number) is int and 0 <= number < kind for number in numbers):
        raise ValueError("these are not ids")
    return torch.tensor(numbers).reshape(shape)


def _head_edits(off: Iterable[Mapping[str, Any]]) -> dict[str, Edit]:
    """Return edits for `capture` that zero these heads."""
    heads: dict[str, list[int]] = {}
    for entry in off:
        heads.setdefault(entry["site"], []).append(entry["head"])
    return {site: edits.zero(some) for site, some in heads.items()}
