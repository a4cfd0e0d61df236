"""Checks that batches, labels, models, losses and optimizers fit each other."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import validation
from tfviz.text.buckets import Batches


@contextmanager
def note_inputs(model: nn.Module, batch: Sequence[Tensor]) -> Iterator[None]:
    """Add a note on batch and model to errors of a model or a loss.

    Raises:
        TypeError, ValueError, RuntimeError, IndexError, AttributeError: the model or the loss raised it.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        shapes = ", ".join(f"{str(part.dtype).removeprefix('torch.')} {list(part.shape)}" for part in batch)
        inputs = f"the batch was ({shapes}), the model {validation.describe(model)}"
        error.add_note(f"the loss could not be computed; {inputs}: do batch, model and loss fit?")
        raise


def unpack(batch: Any, *names: str, variadic: bool = False) -> Sequence[Tensor]:
    """Return a batch after checking that it has these parts; if `variadic`, more may stand before the last.

    Raises:
        TypeError: the batch is not a tuple or list, or a part is not a tensor.
        ValueError: it has too few or too many parts.

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
    """Raise ValueError unless labels have this shape and each is a valid class (or token).

    In compiled code, and on a GPU, to avoid waiting for it, only shape and dtype are checked.
    """
    if labels.shape != tuple(shape) or labels.dtype not in (torch.int64, torch.uint8):
        dtype = str(labels.dtype).removeprefix("torch.")
        raise ValueError(f"labels are {dtype} {list(labels.shape)}; give whole numbers (int64) {list(shape)}")
    if labels.device.type != "cpu" or torch.compiler.is_compiling():
        return
    outside = labels[(labels < 0) | (labels >= classes)]
    if len(outside):
        raise ValueError(
            f"label {int(outside[0])} is none of the model's {classes} {noun}, which count from 0 to {classes - 1}: "
            "number the labels so, leave out rows that have none, or build a larger model"
        )


def check_trainable(model: nn.Module) -> None:
    """Raise ValueError for a model without weights that require a gradient."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        none = "has no weights" if next(model.parameters(), None) is None else "has frozen weights only (requires_grad)"
        raise ValueError(f"model, a {type(model).__name__}, {none}: there is nothing to train")


def check_optimizer_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Raise ValueError unless the optimizer updates a weight of the model."""
    moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in moved for parameter in model.parameters()):
        raise ValueError("optimizer moves no weight of this model; make it of model.parameters()")


def check_loss_output(output: Any) -> tuple[Tensor, Any]:
    """Return the sum and the count that a loss returned, after checking them.

    Raises:
        TypeError: the loss returned something else.
        ValueError: the sum depends on no weight, or the count is negative.
    """
    if not (isinstance(output, tuple | list) and len(output) == 2 and isinstance(output[0], Tensor)
            and output[0].numel() == 1 and hasattr(output[1], "__float__")):  # fmt: skip
        members = f" of {' and '.join(map(validation.describe, output))}" if isinstance(output, tuple | list) else ""
        raise TypeError(f"loss gives {validation.describe(output)}{members}; it must give a sum and how much it is "
                        "a sum of, such as (total, 12)")  # fmt: skip
    total, count = output
    if not total.requires_grad:
        raise ValueError("the loss does not depend on any trainable weight of the model; is it detached?")
    if not isinstance(count, Tensor) and not count >= 0:
        raise ValueError(f"loss gives a count of {count}; it must be at least 0")
    return total.reshape(()), count


def draw_batch(batches: Batches, step: int) -> tuple[Tensor, ...]:
    """Return the batch of a step: a tuple of tensors with the same number of rows.

    Raises:
        LookupError: there is no batch for this step.
        TypeError, ValueError: the batch is not such a tuple.
    """
    try:
        batch: Any = batches[step]
    except (LookupError, StopIteration) as error:
        why = f"{type(error).__name__}: {error}"
        raise LookupError(f"batches[{step}] is not there ({why}); give batches for all steps, or take fewer") from error
    expected = "a tuple of tensors whose first axis is the batch, such as (inputs, targets)"
    if not isinstance(batch, tuple | list) or not batch:
        raise TypeError(f"batches[{step}] is {validation.describe(batch)}; it must be {expected}")
    for part in batch:
        if not isinstance(part, Tensor) or not part.dim():
            raise TypeError(f"batches[{step}] holds {validation.describe(part)}; it must be {expected}")
    rows = [len(part) for part in batch]
    if min(rows) != max(rows) or not rows[0]:
        raise ValueError(f"batches[{step}] has parts of {rows} rows; they must have as many, at least 1")
    return tuple(batch)
