"""Checks that batches, labels, models, losses and optimizers fit each other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import validation
from tfviz.learn.batch import Batch, tensors


@contextmanager
def note_inputs(model: nn.Module, batch: Batch) -> Iterator[None]:
    """Add a note that describes batch and model to errors that a model or a loss raises inside the context.

    Raises:
        TypeError, ValueError, RuntimeError, IndexError, AttributeError: the model or the loss raised it.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        inputs = f"the batch was ({_shapes(batch)}), the model {validation.describe(model)}"
        error.add_note(f"the loss could not be computed; {inputs}; check that batch, model and loss fit together")
        raise


def _shapes(batch: Batch) -> str:
    """Return dtype and shape of each tensor, with its name in a mapping."""
    shapes = [f"{str(part.dtype).removeprefix('torch.')} {list(part.shape)}" for part in tensors(batch)]
    named = [f"{name}: {shape}" for name, shape in zip(batch, shapes)] if isinstance(batch, Mapping) else shapes
    return ", ".join(named)


def check_labelled(batch: Any) -> Tensor:
    """Return the labels of a batch, after checking that it is a mapping of the model's arguments with `labels`.

    Raises:
        TypeError: the batch is not a mapping, or its labels are not a tensor.
        ValueError: the batch has no labels.
    """
    if not isinstance(batch, Mapping):
        raise TypeError(
            f"the batch is {validation.describe(batch)}; this loss takes a mapping of the model's arguments"
        )
    if "labels" not in batch:
        raise ValueError(
            f"the batch has {', '.join(map(str, batch)) or 'nothing'} but no labels, from which the model computes "
            f"its loss: add labels (-100 where nothing is predicted), or give loss=, a function of model and batch"
        )
    if not isinstance(batch["labels"], Tensor):
        raise TypeError(f"labels are {validation.describe(batch['labels'])}; give a tensor")
    return batch["labels"]


def unpack(batch: Any, *names: str, variadic: bool = False) -> Sequence[Tensor]:
    """Return a batch after checking that it has the named parts; if `variadic`, more may precede the last one.

    Raises:
        TypeError: the batch is not a tuple or list, or a part (if `variadic`, the last one) is not a tensor.
        ValueError: the batch has too few or too many parts.

    >>> unpack((torch.ones(2),), "inputs", "targets")
    Traceback (most recent call last):
    ValueError: the batch has 1 part; this loss takes (inputs, targets)
    """
    expected = f"this loss takes ({', '.join(names)})"
    if not isinstance(batch, list | tuple):
        raise TypeError(f"the batch is {validation.describe(batch)}; {expected}")
    if len(batch) < len(names) or (len(batch) > len(names) and not variadic):
        raise ValueError(f"the batch has {len(batch)} part{'s' * (len(batch) != 1)}; {expected}")
    for part in batch[-1:] if variadic else batch:
        if not isinstance(part, Tensor):
            raise TypeError(f"a part of the batch is {validation.describe(part)}; {expected}, all tensors")
    return batch


def check_labels(labels: Tensor, shape: Sequence[int], classes: int, noun: str = "classes") -> None:
    """Raise ValueError unless labels are integers of this shape, from 0 to `classes - 1`.

    In compiled code, and on a GPU, where reading values would wait for it, only shape and dtype are checked.
    """
    if labels.shape != tuple(shape) or labels.dtype not in (torch.int64, torch.uint8):
        dtype = str(labels.dtype).removeprefix("torch.")
        raise ValueError(f"labels are {dtype} {list(labels.shape)}; give integers (int64) {list(shape)}")
    if labels.device.type != "cpu" or torch.compiler.is_compiling():
        return
    outside = labels[(labels < 0) | (labels >= classes)]
    if len(outside):
        raise ValueError(
            f"label {int(outside[0])} is not one of the model's {classes} {noun}, numbered from 0 to {classes - 1}: "
            "renumber the labels, leave out rows without a label, or build a larger model"
        )


def check_trainable(model: nn.Module) -> None:
    """Raise ValueError for a model without weights that require a gradient."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        none = "has no weights" if next(model.parameters(), None) is None else "has frozen weights only (requires_grad)"
        raise ValueError(f"model, a {type(model).__name__}, {none}: there is nothing to train")


def check_optimizer_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Raise ValueError unless the optimizer updates at least one weight of the model."""
    moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in moved for parameter in model.parameters()):
        raise ValueError("optimizer updates no weight of this model; construct it with model.parameters()")


def check_loss_output(output: Any) -> tuple[Tensor, Any]:
    """Return the sum and the count that a loss returned, after checking them.

    Raises:
        TypeError: the loss did not return a one-element tensor and a number.
        ValueError: the sum depends on no weight, or the count is negative.
    """
    if not (isinstance(output, tuple | list) and len(output) == 2 and isinstance(output[0], Tensor)
            and output[0].numel() == 1 and hasattr(output[1], "__float__")):  # fmt: skip
        members = f" of {' and '.join(map(validation.describe, output))}" if isinstance(output, tuple | list) else ""
        raise TypeError(f"loss returns {validation.describe(output)}{members}; it must return the sum of the loss "
        f"and the number of predictions, such as (total, 12)")  # fmt: skip
    total, count = output
    if not total.requires_grad:
        raise ValueError("the loss does not depend on any trainable weight of the model; is it detached?")
    if not isinstance(count, Tensor) and not count >= 0:
        raise ValueError(f"loss returns a count of {count}; it must be at least 0")
    return total.reshape(()), count
