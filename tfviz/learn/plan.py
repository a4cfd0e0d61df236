"""What `fit` is asked for: that it can be done, and what another run must share to have the same losses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import takes, what
from tfviz.learn import checkpoint, contents, fingerprint
from tfviz.learn.checks import makes_no_other
from tfviz.learn.losses import Loss
from tfviz.learn.schedule import Schedule, share
from tfviz.text.buckets import Batches

PLACES = 8  # where a schedule is looked at


def check(
    *, steps: int, rate: float | None, clip: float, device: str | None, precision: str | None, seed: int, **counts: int
):
    """The numbers and names are possible ones.

    Raises:
        ValueError: one is not.
    """
    bounds.at_least(1, steps=steps, **counts)
    bounds.between(1, checkpoint.LAST, steps=steps)
    bounds.above(0, **({} if rate is None else {"rate": rate}))
    bounds.seed(seed)
    if not clip > 0:  # infinity switches it off
        raise ValueError(f"clip is {clip}; it must be above 0")
    if device not in (None, "cpu"):
        raise ValueError(f"device is {device!r}; it can be 'cpu', or None for the GPU if there is one")
    if precision not in (None, "float32", "bfloat16"):
        raise ValueError(f"precision is {precision!r}; it can be 'float32' or 'bfloat16'")


def check_parts(
    model: nn.Module, batches: Any, optimizer: torch.optim.Optimizer | None, steps: int, loss: Loss, schedule: Schedule
) -> None:
    """There is something to train, the optimizer moves it, functions take what they will be given, batches suffice.

    Raises:
        TypeError: a function takes something else.
        ValueError: the others are not so.
    """
    check_trainable(model)
    bounds.filled(model)
    half = next((name for name, one in model.named_parameters() if one.dtype == torch.float16), None)
    if half is not None:
        raise ValueError(f'{half} is float16, too coarse to be trained: give model.float(), and precision="bfloat16"')
    if isinstance(loss, nn.modules.loss._Loss):
        raise TypeError(
            f"loss is {what(loss)}, which takes predictions and targets; give a function of model and batch that "
            "returns a sum and of how many, such as learn.losses.label, or one that calls it"
        )
    makes_no_other(loss=loss, schedule=schedule)
    takes("model", "batch", loss=loss)
    takes("step", "steps", schedule=schedule)
    if optimizer is not None:
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("optimizer is an LBFGS, which asks for the loss again and again; take learn.adamw or muon")
        contents.check_moves(optimizer, model)
    if isinstance(batches, list | tuple) and len(batches) < steps:
        raise ValueError(f"batches are {len(batches)} and steps is {steps}; give as many, or steps={len(batches)}")


def rates_of(optimizer: torch.optim.Optimizer, rate: float | None) -> list[float]:
    """The top learning rate of each group: this one, or its own.

    Raises:
        ValueError: a group's own is not above 0, as a schedule may have left it.
    """
    found = [float(group["lr"]) if rate is None else rate for group in optimizer.param_groups]
    for number, one in enumerate(found):
        bounds.above(0, **{f"the rate of the optimizer's group {number}": one})
    return found


def check_trainable(model: nn.Module) -> None:
    if not any(parameter.requires_grad for parameter in model.parameters()):
        none = "has no weights" if next(model.parameters(), None) is None else "has frozen weights only (requires_grad)"
        raise ValueError(f"model, a {type(model).__name__}, {none}: there is nothing to train")


def of(
    model: nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, schedule: Schedule, **plain: Any
) -> fingerprint.Plain:
    """All that changes the losses, by name; the batches are not looked at yet."""
    steps = plain["steps"]
    places = sorted({steps * place // PLACES for place in range(PLACES)} | {steps - 1})
    rates = {f"schedule({step}, {steps})": f"{share(schedule, step, steps):.6g}" for step in places}
    return (
        {name: str(value) if isinstance(value, float) else value for name, value in plain.items()}
        | fingerprint.under("loss", fingerprint.of_function(loss))
        | rates
        | fingerprint.under("optimizer", fingerprint.of_optimizer(optimizer))
        | fingerprint.under("model", fingerprint.of_model(model))
    )


def drawn(batches: Batches, step: int) -> tuple[Tensor, ...]:
    """A batch, and it is one.

    Raises:
        LookupError: there is none of this number.
        TypeError: it is no tuple of tensors.
        ValueError: they have no rows, or unequally many.
    """
    try:
        batch: Any = batches[step]
    except (LookupError, StopIteration) as error:
        why = f"{type(error).__name__}: {error}"
        raise LookupError(f"batches[{step}] is not there ({why}); give batches for all steps, or take fewer") from error
    if not (
        isinstance(batch, tuple | list) and batch and all(isinstance(part, Tensor) and part.dim() for part in batch)
    ):
        inner = f" of {', '.join(map(what, batch))}" if isinstance(batch, tuple | list) else ""
        wanted = "a tuple of tensors whose first axis is the batch, such as (inputs, targets)"
        raise TypeError(f"batches[{step}] is {what(batch)}{inner}; it must be {wanted}")
    rows = [len(part) for part in batch]
    if min(rows) != max(rows) or not rows[0]:
        raise ValueError(f"batches[{step}] has parts of {rows} rows; they must have as many, at least 1")
    return tuple(batch)
