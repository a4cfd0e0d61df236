"""`Inputs`: the arguments of a model's call, as a batch that can be repeated and cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.logits import extract_logits
from tfviz.shapes import Bool, Int
from tfviz.validation import describe

MASK_ARGUMENTS = ("attention_mask", "padding_mask")  # arguments that are 0 at padding
Prompt = Tensor | Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class Inputs:
    """Positional and named arguments of a model; tensors whose first axis is the batch.

    Attributes:
        size: texts in the batch.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    size: int

    @classmethod
    def of(cls, name: str, prompt: Prompt, model: nn.Module) -> Inputs:
        """Return the inputs that a prompt stands for, on the model's device.

        Args:
            name: of the argument, for messages.
            prompt: ids [batch, position]; the arguments of the model in a tuple; or, by name, what a tokenizer returns.
            model: the model that takes them.

        Raises:
            ValueError: there is no tensor, or tensors disagree about the batch.
        """
        checks.has_weights(model)
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        args = () if isinstance(prompt, Mapping) else (prompt,) if isinstance(prompt, Tensor) else tuple(prompt)
        kwargs = dict(prompt) if isinstance(prompt, Mapping) else {}
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        sizes = {tensor.shape[0] if tensor.dim() > 1 else 0 for tensor in tensors}
        if len(sizes) != 1 or 0 in sizes:
            shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors) or f"no tensor, but {describe(prompt)}"
            raise ValueError(f"{name}: {shapes}; give ids [batch, position], or tensors that share their first axis")
        if _takes(model, "use_cache") and not args[1:]:
            kwargs.setdefault("use_cache", False)  # a cache, which a single pass over a text does not need
        moved = cls(args, kwargs, sizes.pop())
        return moved.map(lambda tensor: tensor.to(device))

    def with_last_logits(self, model: nn.Module) -> Inputs:
        """Return inputs for which a Hugging Face model computes only the last position's logits, if it supports this.

        With a large vocabulary, logits take a third of a small model's time and most of its memory.
        """
        if not _takes(model, "logits_to_keep") or "labels" in self.kwargs:
            return self
        return replace(self, kwargs={"logits_to_keep": 1, **self.kwargs})

    def map(self, change: Callable[[Tensor], Tensor]) -> Inputs:
        """Apply a function to each tensor."""
        args = tuple(change(value) if isinstance(value, Tensor) else value for value in self.args)
        kwargs = {name: change(value) if isinstance(value, Tensor) else value for name, value in self.kwargs.items()}
        changed = Inputs(args, kwargs, 0)
        return replace(changed, size=changed.tensors[0].shape[0])

    def repeat(self, times: int) -> Inputs:
        """Return the batch repeated as a whole: all texts, then all texts again."""
        return self if times == 1 else self.map(lambda tensor: repeat_batch(tensor, times))

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, Tensor)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the tensors."""
        return [tuple(tensor.shape) for tensor in self.tensors]

    def run(self, model: nn.Module) -> Any:
        """Run the model; return its output."""
        return model(*self.args, **self.kwargs)

    def logits(self, model: nn.Module) -> Tensor:
        """Run the model; return its logits, converted to float32 if they are in half precision."""
        output = self.run(model)
        logits = extract_logits(output[0] if isinstance(output, tuple) and output else output)
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def repeat_batch(tensor: Tensor, times: int) -> Tensor:
    """Return a tensor repeated along its first axis, the batch."""
    return tensor.repeat(times, *[1] * (tensor.dim() - 1))


def word_mask(inputs: Inputs, ids: Int[Tensor, "text position"]) -> Bool[Tensor, "text position"]:
    """Return a mask, False at padding: the attention mask if there is one, else True everywhere."""
    mask = next((inputs.kwargs[name] for name in MASK_ARGUMENTS if isinstance(inputs.kwargs.get(name), Tensor)), None)
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    if mask.shape != ids.shape:
        raise ValueError(
            f"the attention mask is {list(mask.shape)}, and the ids {list(ids.shape)}; give one for each id"
        )
    return mask.to(ids.device) != 0


def uncompiled(model: nn.Module) -> nn.Module:
    """Return the original of a model compiled by `torch.compile`, since hooks do not work in compiled code."""
    return getattr(model, "_orig_mod", model)


def _takes(model: nn.Module, name: str) -> bool:
    try:
        return name in signature(model.forward).parameters
    except (TypeError, ValueError):
        return False
