"""A model's programs where the model is: asked as those that travel, by a page whose kernel has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look import edits
from tfviz.look.capture import Seen, capture
from tfviz.portable.function_module import eval_mode
from tfviz.view.still.picture import cut

Edit = Callable[[Tensor], Tensor]
KINDS = {"float32": torch.float32, "bool": torch.bool}


class Here:
    """What a model does with tensors, as a `portable.Program` of the same inputs does it.

    Args:
        function: calls the model; gives tensors by name, in eval mode and without gradients.
        inputs: name -> "float32", "bool", or how many ids there are, in the function's order.
    """

    def __init__(self, model: nn.Module, function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, str | int]):
        self.model, self.function, self.inputs = model, function, dict(inputs)

    def __call__(self, *inputs: Tensor, off: Iterable[Mapping[str, Any]] = ()) -> dict[str, Tensor]:
        """What it gives, with these heads off: [{site, head}, ...]."""
        changes = _changes(off)
        watched = capture(self.model, list(changes), edit=changes) if changes else nullcontext()
        with watched:
            return self._made(inputs)

    def run(self, inputs: Sequence[Tensor], off: Iterable[Mapping[str, Any]] = ()) -> tuple[dict[str, Tensor], Seen]:
        """The same, and every pattern."""
        with capture(self.model, "*.pattern", edit=_changes(off)) as seen:
            made = self._made(inputs)
        return made, seen

    def _made(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        device = next(self.model.parameters()).device
        with eval_mode(self.model), torch.no_grad():
            made = self.function(*(one.to(device) for one in inputs))
        return {name: torch.as_tensor(value).detach().cpu() for name, value in made.items()}

    def tensors(self, given: Any) -> list[Tensor]:
        """The inputs as a page sends them: [[name, shape, numbers], ...]; it may send anything.

        Raises:
            ValueError: they are not this program's.
        """
        try:
            named = {name: (shape, numbers) for name, shape, numbers in given}
            return [_tensor(kind, *named[name]) for name, kind in self.inputs.items()]
        except (TypeError, ValueError, KeyError, RuntimeError) as error:
            wanted = " and ".join(
                f"{name}, {f'numbers from 0 to {kind - 1}' if isinstance(kind, int) else kind}"
                for name, kind in self.inputs.items()
            )
            raise ValueError(f"the inputs are {cut(repr(given), 60)}; give {wanted}, with their shapes") from error


def positions(model: nn.Module) -> int | None:
    """How many positions a model says it has: as ours do, or as those of Hugging Face."""
    said = getattr(model, "context", None) or getattr(getattr(model, "config", None), "max_position_embeddings", None)
    return None if said is None else int(said)


def _tensor(kind: str | int, shape: Any, numbers: Any) -> Tensor:
    if not isinstance(kind, int):
        return torch.tensor(numbers, dtype=KINDS[kind]).reshape(shape)
    if not numbers or not all(type(one) is int and 0 <= one < kind for one in numbers):
        raise ValueError("these are no ids")
    return torch.tensor(numbers).reshape(shape)


def _changes(off: Iterable[Mapping[str, Any]]) -> dict[str, Edit]:
    """The heads that are off, as `capture` takes edits."""
    heads: dict[str, list[int]] = {}
    for edit in off:
        heads.setdefault(edit["site"], []).append(edit["head"])
    return {site: _without(some) for site, some in heads.items()}


def _without(heads: Sequence[int]) -> Edit:
    def change(weights: Tensor) -> Tensor:
        for head in heads:
            weights = edits.zero(head)(weights)
        return weights

    return change
