"""The training loop, which yields each step and can be stopped and resumed at any step."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tfviz import checks
from tfviz.indexed_batches import Batches
from tfviz.learn import checkpoint
from tfviz.learn.batch import Batch, Epochs, length
from tfviz.learn.batch_checks import check_optimizer_of, check_trainable
from tfviz.learn.losses import Loss, default_loss
from tfviz.learn.optimizers import muon
from tfviz.learn.prepared_model import PreparedModel
from tfviz.learn.run_description import describe_run
from tfviz.learn.schedule import Schedule, linear
from tfviz.learn.state_tensors import unwrap
from tfviz.learn.training_run import Step, TrainingRun
from tfviz.schema import describe
from tfviz.validation import check_callable

__all__ = ["Step", "fit"]

DEFAULT_LR = 3e-3


class Training(Iterator[Step]):
    """An iterator that executes the steps of a training run; warns if it is discarded before the first step."""

    def __init__(self, steps: Generator[Step]):
        self.steps, self.started = steps, False

    def __next__(self) -> Step:
        self.started = True
        return next(self.steps)

    def close(self) -> None:
        self.started = True
        self.steps.close()

    def __del__(self) -> None:
        if not getattr(self, "started", True):
            warnings.warn(
                "learn.fit(...) was called but trained nothing: it trains while its steps are iterated, so write for "
                "step in learn.fit(...): ..., or list(learn.fit(...))",
                stacklevel=2,
            )


def fit(
    model: nn.Module,
    batches: Batches | Iterable[Batch],
    steps: int | None = None,
    *,
    lr: float | None = None,
    schedule: Schedule | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    loss: Loss = default_loss,
    max_grad_norm: float = 1.0,
    device: str | torch.device | None = None,
    precision: str | None = None,
    compile: bool = False,
    gradient_accumulation_steps: int = 1,
    gradient_checkpointing: bool = False,
    checkpoint_dir: str | Path | None = None,
    checkpoint_every: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Iterator[Step]:
    """Train `model`; yield a `Step` after each update.

    Training uses the GPU if there is one. Under `accelerate launch` or `torchrun` it uses all processes, each of which
    computes its share of every batch. With `accelerate launch --use_fsdp --fsdp_version 2` each process also holds only
    a shard of the weights; on CPUs, where accelerate does not shard, call `torch.distributed.fsdp.fully_shard` on the
    model first. All random numbers of a step, such as those of dropout, depend only on `seed` and the step; PyTorch's
    own generators are unchanged. With a `checkpoint_dir`, a run that was stopped is resumed: it first yields its past
    steps, and has the same losses as an uninterrupted run.

    Args:
        model: the model to train.
        batches: `batches[step]` is the batch of that step, as in `text.Windows` and `text.Buckets`; or any iterable of
            batches, such as a `torch.utils.data.DataLoader`, whose epochs follow one another. A batch is a tuple of
            tensors, or a mapping of the model's arguments, as made by Hugging Face's data collators. A resumed run
            draws the batches of past steps again, so pass an iterable in its initial state, with its generator seeded
            anew. With several processes, pass the same batches to each, not its share.
        steps: number of steps in the whole run; None: the number of batches, which is one epoch of a loader.
        lr: the maximum learning rate. None: 3e-3, or, if an `optimizer` is passed, the learning rate of each of its
            groups, which is restored after the run.
        schedule: function from (step, steps) to a factor of the learning rate; default: `learn.schedule.linear()`.
        optimizer: the optimizer; default: `muon(model, lr)`, which applies AdamW to a model without blocks.
        loss: function from model and batch to the sum of a loss and the number of its terms; see `learn.losses`.
            Default: `losses.next_token` for tuples, and for mappings `losses.model_loss`, the model's own loss.
        max_grad_norm: gradients with a larger norm are scaled down to this norm.
        device: any device of PyTorch, such as "cpu", "cuda:1" or "mps"; None: the GPU if there is one. A model that was
            placed by Hugging Face's `device_map` is not moved.
        precision: "float32", "bfloat16" or "float16" (weights remain float32); default: bfloat16 on a CUDA GPU that
            computes in it, float16 on an older one (T4, V100), float32 elsewhere. In float16 the loss is scaled, and a
            step whose gradients overflow changes no weight, as with `torch.amp.GradScaler`.
        compile: whether to compile the model with `torch.compile`; the module itself is not changed.
        gradient_accumulation_steps: number of parts into which each batch is split, whose gradients are accumulated to
            save memory.
        gradient_checkpointing: whether to store only the input of each block and recompute the rest in the backward
            pass, which takes less memory and about a third more time.
        checkpoint_dir: a folder for checkpoints, which are written every `checkpoint_every` steps, at the end, and
            after the last complete step when the loop is left, also by Ctrl-C or an error. All processes must have
            access to it. Sharded weights are stored in full, so that the number of processes may change.
        checkpoint_every: the number of steps between two checkpoints.
        seed: the seed of the random numbers in training.
        progress: whether to show a progress bar.

    Raises:
        FloatingPointError: the loss or a gradient is not finite; the weights are not updated.
        OSError: `checkpoint_dir` cannot be written.
        ValueError: an argument is invalid, or `checkpoint_dir` holds another run; the message names the first
            difference.
    """
    checks.at_least(1, checkpoint_every=checkpoint_every, gradient_accumulation_steps=gradient_accumulation_steps)
    steps = _epoch(batches) if steps is None else steps
    checks.between(1, checkpoint.MAX_STEP, steps=steps)
    _check_settings(lr, max_grad_norm, seed, device, precision)
    schedule = schedule or linear()
    _check_inputs(model, batches, optimizer, steps, loss, schedule)
    folder = None if checkpoint_dir is None else checkpoint.as_folder(checkpoint_dir)
    lrs = _group_lrs(optimizer := optimizer or muon(model, lr or DEFAULT_LR), lr)
    config = describe_run(unwrap(model), batches, optimizer, loss, schedule, steps=steps,
                          lr=str(lrs if len({*lrs}) > 1 else lrs[0]), seed=seed, max_grad_norm=str(max_grad_norm),
                          gradient_accumulation_steps=gradient_accumulation_steps, precision=precision)  # fmt: skip
    prepared = PreparedModel(model, optimizer, lrs, loss, max_grad_norm=max_grad_norm, device=device,
                             precision=precision, compile=compile, gradient_checkpointing=gradient_checkpointing,
                             gradient_accumulation_steps=gradient_accumulation_steps)  # fmt: skip
    numbered = batches if isinstance(batches, Batches) else Epochs(batches, seed)
    return Training(TrainingRun(prepared, numbered, schedule, config, folder, checkpoint_every).steps(progress))


def _check_settings(
    lr: float | None, max_grad_norm: float, seed: int, device: str | torch.device | None, precision: str | None
) -> None:
    if lr is not None:
        checks.above(0, lr=lr)
    if not max_grad_norm > 0:  # infinity disables clipping
        raise ValueError(f"max_grad_norm is {max_grad_norm}; it must be above 0")
    checks.seed(seed)
    if device is not None:
        checks.device(device=device)
    if precision is not None:
        checks.one_of(("float32", "bfloat16", "float16"), precision=precision)


def _epoch(batches: Any) -> int:
    """Return the number of batches in an epoch.

    Raises:
        ValueError: the number is unknown.
    """
    count = length(batches)
    if count is None:
        raise ValueError(f"batches is {describe(batches)}, whose length is unknown; give steps, such as steps=2000")
    return count


def _check_inputs(model: nn.Module, batches: Any, optimizer: torch.optim.Optimizer | None, steps: int, loss: Loss,
                 schedule: Schedule) -> None:  # fmt: skip
    """Check that the model is trainable, functions take their arguments, and there are enough batches."""
    check_trainable(model)
    checks.require_weights(model)
    float16 = next((name for name, weight in model.named_parameters() if weight.dtype == torch.float16), None)
    if float16 is not None:
        raise ValueError(
            f'{float16} is float16, too coarse for training; give model.float(), and precision="float16" or "bfloat16"'
        )
    if isinstance(loss, nn.modules.loss._Loss):
        raise TypeError(
            f"loss is {describe(loss)}, which takes predictions and targets; give a function of model and batch that "
            f"returns (sum of the loss, number of predictions), such as learn.losses.classification, or one that "
            f"calls it"
        )
    check_callable("model", "batch", loss=loss)
    check_callable("step", "steps", schedule=schedule)
    if optimizer is not None:
        check_optimizer_of(model, optimizer)
    if isinstance(batches, list | tuple) and len(batches) < steps:
        raise ValueError(f"batches are {len(batches)} and steps is {steps}; give as many, or steps={len(batches)}")


def _group_lrs(optimizer: torch.optim.Optimizer, lr: float | None) -> list[float]:
    """Return the maximum learning rate of each parameter group: `lr`, or the group's own.

    Raises:
        ValueError: the learning rate of a group is not above 0, as it may be after a schedule.
    """
    lrs = [float(group["lr"]) if lr is None else lr for group in optimizer.param_groups]
    for index, group_lr in enumerate(lrs):
        checks.above(0, **{f"the lr of the optimizer's group {index}": group_lr})
    return lrs
