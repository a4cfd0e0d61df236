"""`Inputs`: the arguments of a model's call, a batch of texts that can be repeated or indexed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.eval_mode import model_device
from tfviz.logits import extract_logits
from tfviz.look.attention_call import is_unmasked
from tfviz.look.error_hints import explain
from tfviz.schema import describe
from tfviz.shapes import Bool, Int
from tfviz.study.check_prompts import (
    MASK_ARGUMENTS,
    check_ids,
    check_masks,
    check_no_string,
    check_positional,
    shape_advice,
)

DECODER_TEXT_ARGUMENTS = ("decoder_input_ids", "target")  # arguments with a decoder's text
Prompt = Tensor | Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class Inputs:
    """The positional and keyword arguments of a model's call.

    The first axis of a tensor is the batch, or has size 1 if the tensor is for all texts.

    Attributes:
        args: the positional arguments.
        kwargs: the keyword arguments, by name.
        size: the number of texts in the batch.
        names: the names of the positional arguments, if the signature of the model's `forward` has them.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    size: int
    names: tuple[str, ...] = ()

    @classmethod
    def from_prompt(cls, name: str, prompt: Prompt, model: nn.Module) -> Inputs:
        """Return the inputs for a prompt, checked and on the model's device.

        Args:
            name: the name of the argument, for messages.
            prompt: ids [batch, position]; the model's positional arguments in a tuple or list; or its arguments by
                name, as a tokenizer returns them.
            model: the model.

        Raises:
            TypeError: the prompt is not a tensor, mapping, tuple or list, or contains a string; the dtype of ids is
                neither int64 nor int32.
            ValueError: the prompt has no tensor, or tensors with different batch sizes; an id is not in the model's
                vocabulary; an attention mask has other values than a mask, or does not fit the ids.
        """
        checks.require_weights(model)
        if not isinstance(prompt, Tensor | Mapping | Sequence):
            raise TypeError(f"{name} is {describe(prompt)}; give a tensor of ids, [batch, position]")
        if not isinstance(prompt, Tensor):
            check_no_string(name, prompt)
        device = model_device(model)
        args = () if isinstance(prompt, Mapping) else (prompt,) if isinstance(prompt, Tensor) else tuple(prompt)
        kwargs = dict(prompt) if isinstance(prompt, Mapping) else {}
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        sizes = {tensor.shape[0] if tensor.dim() > 1 else 0 for tensor in tensors}
        given = cls(args, kwargs, max(sizes, default=0), _parameters(model)[: len(args)])
        if 0 in sizes or len(sizes - {1}) > 1 or not sizes:  # 1: for all texts, as position_ids may be
            shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors) or f"no tensor, but {describe(prompt)}"
            raise ValueError(f"{name}: {shapes}; {shape_advice(prompt, given.named)}")
        check_positional(name, prompt, given.named)
        check_ids(name, given.named, model)
        check_masks(name, given.named)
        if _takes(model, "use_cache") and not args[1:]:
            kwargs.setdefault("use_cache", False)  # a single pass needs no key/value cache
        return given.map(lambda tensor: tensor.to(device))

    def with_last_logits(self, model: nn.Module) -> Inputs:
        """Return inputs with which a Hugging Face model computes only the logits of the last position, if it can.

        With a large vocabulary, the logits of all positions take a third of a small model's time and most of its
        memory.
        """
        if not _takes(model, "logits_to_keep") or "labels" in self.kwargs:
            return self
        return replace(self, kwargs={"logits_to_keep": 1, **self.kwargs})

    def map(self, change: Callable[[Tensor], Tensor]) -> Inputs:
        """Return the inputs with a function applied to each tensor."""
        args = tuple(change(value) if isinstance(value, Tensor) else value for value in self.args)
        kwargs = {name: change(value) if isinstance(value, Tensor) else value for name, value in self.kwargs.items()}
        changed = replace(self, args=args, kwargs=kwargs)
        return replace(changed, size=max(tensor.shape[0] for tensor in changed.tensors))

    def repeat(self, times: int) -> Inputs:
        """Return the inputs with the whole batch repeated; tensors for all texts are unchanged."""
        return self.map(lambda tensor: repeat_batch(tensor, times) if len(tensor) == self.size else tensor)

    def text(self, index: int) -> Inputs:
        """Return the inputs of one text of the batch."""
        return self.map(lambda tensor: tensor[index : index + 1] if len(tensor) == self.size else tensor)

    @property
    def named(self) -> dict[str, Any]:
        """The arguments whose names are known, by name."""
        return {**dict(zip(self.names, self.args)), **self.kwargs}

    @property
    def ids(self) -> Int[Tensor, "batch position"]:
        """The token ids of the texts, [batch, position]; of an encoder-decoder, those of the encoder.

        Raises:
            ValueError: the inputs have no ids.
        """
        return ids_at(self, "")

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, Tensor)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the tensors."""
        return [tuple(tensor.shape) for tensor in self.tensors]

    def run(self, model: nn.Module) -> Any:
        """Run the model; return its output.

        Raises:
            ValueError: a text is empty, or longer than the model's maximum.
        """
        try:
            return model(*self.args, **self.kwargs)
        except Exception as error:
            if clear := explain(model, error):
                raise clear from error
            raise

    def logits(self, model: nn.Module) -> Tensor:
        """Run the model; return its logits, converted to float32 if they are in half precision."""
        output = self.run(model)
        logits = extract_logits(output[0] if isinstance(output, tuple) and output else output)
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def repeat_batch(tensor: Tensor, times: int) -> Tensor:
    """Return a tensor repeated along its first axis, the batch."""
    return tensor.repeat(times, *[1] * (tensor.dim() - 1))


def ids_at(inputs: Inputs, site: str) -> Int[Tensor, "batch position"]:
    """Return the token ids of the texts at a site: the decoder's ids in a decoder, else the input ids.

    Raises:
        ValueError: the inputs have no ids [batch, position].
    """
    named = inputs.named
    names = DECODER_TEXT_ARGUMENTS if _is_in_decoder(inputs, site) else ("input_ids",)
    chosen = [named[name] for name in names if name in named]
    tensors = [value for value in chosen or inputs.tensors if isinstance(value, Tensor) and len(value) == inputs.size]
    ids = next((tensor for tensor in tensors if not tensor.is_floating_point() and tensor.dim() == 2), None)
    if ids is None:
        raise ValueError("the batch has no ids [batch, position], by which tokens are compared")
    return ids


def attention_mask_at(inputs: Inputs, site: str, positions: int) -> Bool[Tensor, "batch position"]:
    """Return a mask that is True at tokens and False at padding; all True if the attention mask does not fit.

    Args:
        inputs: the model's arguments.
        site: the site that the mask is for; in a decoder, the decoder's mask is taken.
        positions: the number of positions of the mask.
    """
    like = torch.zeros(inputs.size, positions, dtype=torch.long, device=inputs.tensors[0].device)
    try:
        return attention_mask_of(inputs, like, site)
    except ValueError:
        return like == 0


def marked_like(activation: Tensor, tokens: Bool[Tensor, "batch position"]) -> Bool[Tensor, "batch *head position dim"]:
    """Return a mask of tokens that broadcasts to an activation, [batch, (1,) position, 1]."""
    tokens = tokens.to(activation.device)
    return tokens[:, None, :, None] if activation.dim() == 4 else tokens[:, :, None]


def _is_in_decoder(inputs: Inputs, site: str) -> bool:
    """Return whether a site is in a decoder and the inputs have ids for the decoder."""
    return "decoder" in site.split(".") and any(name in inputs.named for name in DECODER_TEXT_ARGUMENTS)


def attention_mask_of(
    inputs: Inputs, ids: Int[Tensor, "batch position"], site: str = ""
) -> Bool[Tensor, "batch position"]:
    """Return a mask that is True at tokens and False at padding; all True without an attention mask.

    A mask [batch, head, query, key] may be 1 and 0, True and False, or 0 and the dtype's lowest number (as Hugging Face
    adds it to scores). It has a token at each key to which any query may attend.

    Args:
        inputs: the model's arguments.
        ids: the token ids of the texts.
        site: the site that the mask is for; in a decoder, the decoder's mask is taken.

    Raises:
        ValueError: the attention mask has another shape than the ids.
    """
    names = ("decoder_attention_mask",) if _is_in_decoder(inputs, site) else MASK_ARGUMENTS
    mask = next((mask for name in names if isinstance(mask := inputs.named.get(name), Tensor)), None)
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    if mask.dim() == 4:
        mask = (is_unmasked(mask) if mask.is_floating_point() else mask != 0).any(dim=(1, 2))
    if mask.dim() == 2 and len(mask) == 1:
        mask = mask.expand(len(ids), -1)
    if mask.shape != ids.shape:
        raise ValueError(
            f"the attention mask is {list(mask.shape)}, and the ids {list(ids.shape)}; they must have one length"
        )
    return mask.to(ids.device) != 0


def _takes(model: nn.Module, name: str) -> bool:
    return name in _parameters(model)


def _parameters(model: nn.Module) -> tuple[str, ...]:
    """Return the names of the arguments of a model's `forward`; empty if it has no signature."""
    try:
        return tuple(signature(model.forward).parameters)
    except (TypeError, ValueError):
        return ()
