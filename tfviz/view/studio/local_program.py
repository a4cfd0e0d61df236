"""A model that runs in Python with the interface of a `portable.Program`, for a page with a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, model_device
from tfviz.look import Capture, capture, edits
from tfviz.view.figures.formatting import shorten

Edit = Callable[[Tensor], Tensor]
DTYPES = {"float32": torch.float32, "bool": torch.bool}


class LocalProgram:
    """A function that runs a model in Python, with the inputs and edits of a `portable.Program`.

    Args:
        model: the model.
        function: runs the model and returns tensors by name. It is called in eval mode and without gradients.
        inputs: name -> "float32", "bool", or for ids their number, in the order of the function's arguments.
    """

    def __init__(self, model: nn.Module, function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, str | int]):
        self.model, self.function, self.inputs = model, function, dict(inputs)

    def __call__(self, *inputs: Tensor, ablated_heads: Iterable[Mapping[str, Any]] = ()) -> dict[str, Tensor]:
        """Return the outputs by name, with the weights of `ablated_heads`, [{site, head}, ...], set to 0."""
        changes = _head_edits(ablated_heads)
        with capture(self.model, list(changes), edit=changes) if changes else nullcontext():
            return self._outputs(inputs)

    def run(
        self, inputs: Sequence[Tensor], ablated_heads: Iterable[Mapping[str, Any]] = ()
    ) -> tuple[dict[str, Tensor], Capture]:
        """Return the outputs by name, and a capture of the patterns of all heads."""
        with capture(self.model, "*.pattern", edit=_head_edits(ablated_heads)) as captured:
            outputs = self._outputs(inputs)
        return outputs, captured

    def _outputs(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        device = model_device(self.model)
        with eval_mode(self.model):
            outputs = self.function(*(tensor.to(device) for tensor in inputs))
        return {name: torch.as_tensor(value).detach().cpu() for name, value in outputs.items()}

    def decode_inputs(self, message: Any) -> list[Tensor]:
        """Return the inputs in a message of the page, [[name, shape, numbers], ...], as tensors.

        Raises:
            ValueError: the message has another form, lacks an input, or has an id out of range.
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


def _decode_tensor(kind: str | int, shape: Any, numbers: Any) -> Tensor:
    if not isinstance(kind, int):
        return torch.tensor(numbers, dtype=DTYPES[kind]).reshape(shape)
    if not numbers or not all(type(number) is int and 0 <= number < kind for number in numbers):
        raise ValueError("these are not ids")
    return torch.tensor(numbers).reshape(shape)


def _head_edits(ablated_heads: Iterable[Mapping[str, Any]]) -> dict[str, Edit]:
    """Return edits for `capture` that zero these heads."""
    heads: dict[str, list[int]] = {}
    for entry in ablated_heads:
        heads.setdefault(entry["site"], []).append(entry["head"])
    return {site: edits.zero(some) for site, some in heads.items()}
