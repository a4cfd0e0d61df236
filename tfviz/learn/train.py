"""Training: one loop, that yields what happens and can be stopped and resumed at any step."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from tfviz.learn import checkpoint, contents, plan
from tfviz.learn.history import Step
from tfviz.learn.losses import Loss, next_token
from tfviz.learn.optimizers import muon
from tfviz.learn.run import Run
from tfviz.learn.schedule import Schedule, linear
from tfviz.learn.trainer import Trainer
from tfviz.text.buckets import Batches

__all__ = ["Step", "fit"]


class Training(Generator[Step, None, None]):
    """The steps of a training, which trains as they are taken; warns if it is dropped before the first."""

    def __init__(self, steps: Generator[Step]):
        self.steps, self.begun = steps, False

    def send(self, value: None) -> Step:
        self.begun = True
        return self.steps.send(value)

    def throw(self, *error: Any) -> Step:
        self.begun = True
        return self.steps.throw(*error)

    def close(self) -> None:
        self.begun = True
        self.steps.close()

    def __del__(self) -> None:
        if not getattr(self, "begun", True):
            warnings.warn(
                "learn.fit(...) was called and nothing was trained: it trains as its steps are taken, so write "
                "for step in learn.fit(...): ..., or list(learn.fit(...))",
                stacklevel=2,
            )


RATE = 3e-3
OPEN: WeakSet[Generator[Step]] = WeakSet()  # trainings whose loop has not been left


def fit(
    model: nn.Module,
    batches: Batches,
    steps: int,
    *,
    rate: float | None = None,
    schedule: Schedule | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    loss: Loss = next_token,
    clip: float = 1.0,
    device: str | None = None,
    precision: str | None = None,
    compile: bool = False,
    accumulate: int = 1,
    recompute: bool = False,
    folder: str | Path | None = None,
    every: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Iterator[Step]:
    """Train `model`; yields a `Step` after each step.

    Run as it is, it uses the GPU if there is one; under `accelerate launch` or `torchrun` it uses all processes, each
    of which takes its share of every batch. With `accelerate launch --use_fsdp --fsdp_version 2` each also keeps but a
    shard of the weights; on CPUs, where accelerate does not shard, call `torch.distributed.fsdp.fully_shard` on the
    model before. All chance (dropout) at a step depends on `seed` and the step alone, and PyTorch's own generator goes
    on as if there had been none: with a `folder`, a run that was stopped goes on where it was, yields its past steps
    first, and has the same losses as one that was not stopped.

    Args:
        batches: `batches[step]` is the batch of that step; see `text.Windows` and `text.Buckets`.
        rate: the top learning rate; `schedule` moves it (default: `linear()`). None: 3e-3, or the rate that each group
            of an `optimizer` of yours has; it has them again after the run.
        optimizer: default `muon(model, rate)`, which is `adamw` for a model without blocks.
        loss: from model and batch to a sum and how much it is a sum of; see `learn.losses`.
        clip: the largest norm of the gradient.
        device: `"cpu"` to stay off the GPU.
        precision: `"float32"` or `"bfloat16"` (weights stay in float32); default: bfloat16 on a GPU that has it.
        compile: let `torch.compile` fuse the training step; the model itself stays as it is.
        accumulate: take the batch in so many parts, one after the other, and add up their gradients: the memory of
            a small batch, the step of the large one.
        recompute: keep only the input of each block and compute the rest again in the backward pass: less memory,
            about a third more time.
        folder: for checkpoints, every `every` steps, at the end, and of the last whole step whatever ends the loop:
            it is left, interrupted, terminated, an error. All processes must see it; what they hold in shards is stored
            in full, so that their number may change.

    Raises:
        FloatingPointError: the loss or a gradient is not finite. The step is not taken.
        OSError: another training holds `folder`, or it cannot be written.
        ValueError: an argument that cannot be; `folder` holds another run: other steps, rate or seed, another model,
            other batches, another loss, schedule, optimizer or clip, or one that was altered.
    """
    plan.check(steps=steps, rate=rate, clip=clip, device=device, precision=precision, seed=seed,
               every=every, accumulate=accumulate)  # fmt: skip
    schedule = schedule or linear()
    plan.check_parts(model, batches, optimizer, steps, loss, schedule)
    place = None if folder is None else checkpoint.as_folder(folder)
    rates = plan.rates_of(optimizer := optimizer or muon(model, rate or RATE), rate)
    top: Any = rates if len({*rates}) > 1 else rates[0]
    asked = plan.of(contents.unwrapped(model), optimizer, loss, schedule, steps=steps, rate=top, seed=seed, clip=clip,
                    accumulate=accumulate, precision=precision)  # fmt: skip
    trainer = Trainer(model, optimizer, rates, loss, clip, device, precision, compile, accumulate, recompute)
    run = Run(trainer, batches, schedule, asked, place, every)
    OPEN.add(training := Training(run.steps(progress)))
    return training


@atexit.register
def _close() -> None:
    """A program that ends leaves the loops that a variable still holds."""
    for training in list(OPEN):
        with suppress(ValueError):  # it runs, in another thread
            training.close()
