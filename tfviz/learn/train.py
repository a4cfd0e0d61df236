"""Training: one loop, that yields what happens and can be stopped and resumed at any step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tfviz.learn import checkpoint
from tfviz.learn.losses import Loss, next_token
from tfviz.learn.schedule import Schedule, cosine
from tfviz.learn.trainer import Trainer
from tfviz.text.batches import chance
from tfviz.text.buckets import Batches


@dataclass(frozen=True)
class Step:
    """One step of training.

    Attributes:
        step: its number, from 0.
        loss: in nats a token, before the step was taken.
        rate: the learning rate it was taken with.
        speed: tokens a second.
    """

    step: int
    loss: float
    rate: float
    speed: float


def adamw(model: nn.Module, rate: float, decay: float = 0.1) -> torch.optim.Optimizer:
    """AdamW that decays matrices and leaves biases and norms alone (Loshchilov & Hutter 2019)."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True)


def fit(
    model: nn.Module,
    batches: Batches,
    steps: int,
    *,
    rate: float = 3e-3,
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
    model before. All chance (dropout) at a step depends on `seed` and the step alone: with a `folder`, a run that was
    stopped goes on where it was, yields its past steps first, and has the same losses as one that was not stopped.

    Args:
        batches: `batches[step]` is the batch of that step; see `text.Windows` and `text.Buckets`.
        rate: the top learning rate; `schedule` moves it (default: `cosine()`).
        optimizer: default `adamw(model, rate)`.
        loss: from model and batch to a sum and how much it is a sum of; see `learn.losses`.
        clip: the largest norm of the gradient.
        device: `"cpu"` to stay off the GPU.
        precision: `"float32"` or `"bfloat16"` (weights stay in float32); default: bfloat16 on a GPU that has it.
        compile: let `torch.compile` fuse the training step; the model itself stays as it is.
        accumulate: take the batch in so many parts, one after the other, and add up their gradients: the memory of
            a small batch, the step of the large one.
        recompute: keep only the input of each block and compute the rest again in the backward pass: less memory,
            about a third more time.
        folder: for checkpoints, every `every` steps, at the end and when the loop is left. All processes
            must see it; what they hold in shards is stored in full, so that their number may change.

    Raises:
        FloatingPointError: the loss or a gradient is not finite. The step is not taken.
        ValueError: an argument that cannot be; `folder` holds a run with other steps, rate or seed. (Whatever else is
            given anew, batches, loss, schedule or clip, holds from the step on where that run stands.)
    """
    for name, count in {"steps": steps, "every": every, "accumulate": accumulate}.items():
        if count < 1:
            raise ValueError(f"{name} is {count}; it must be at least 1")
    if not clip > 0:
        raise ValueError(f"clip is {clip}; it must be above 0")
    if device not in (None, "cpu"):
        raise ValueError(f"device is {device!r}; it can be 'cpu', or None for the GPU if there is one")
    if precision not in (None, "float32", "bfloat16"):
        raise ValueError(f"precision is {precision!r}; it can be 'float32' or 'bfloat16'")
    optimizer = optimizer or adamw(model, rate)
    trainer = Trainer(model, optimizer, loss, clip, device, precision, compile, accumulate, recompute)
    plan = {"steps": steps, "rate": rate, "seed": seed}
    return _run(trainer, batches, schedule or cosine(), plan, Path(folder) if folder else None, every, progress)


def _run(
    trainer: Trainer,
    batches: Batches,
    schedule: Schedule,
    plan: dict[str, Any],
    folder: Path | None,
    every: int,
    progress: bool,
) -> Iterator[Step]:
    from tqdm import tqdm

    steps, rate, seed = plan["steps"], plan["rate"], plan["seed"]
    history = _resume(trainer, folder, plan) if folder else []
    yield from history
    shown = progress and trainer.is_main
    bar = tqdm(total=steps, initial=len(history), unit="step", disable=not shown, mininterval=0.5)
    kept = len(history)
    try:
        for step in range(len(history), steps):
            started = time.perf_counter()
            torch.manual_seed(chance(seed, step))
            now = rate * schedule(step, steps)
            try:
                value, tokens = trainer.step(batches[step], now)
            except FloatingPointError as error:
                raise FloatingPointError(_refused(error, step, now, folder)) from None
            history.append(Step(step, value, now, tokens / (time.perf_counter() - started)))
            bar.set_postfix_str(f"loss {value:.3f} nats", refresh=False)
            bar.update()
            if folder and ((step + 1) % every == 0 or step + 1 == steps):
                _save(trainer, folder, history, plan)
                kept = step + 1
            yield history[-1]
    except GeneratorExit:  # the loop was left between two steps: nothing of it is lost
        if folder and kept < len(history):
            _save(trainer, folder, history, plan)
        raise
    finally:
        bar.close()


def _refused(error: FloatingPointError, step: int, rate: float, folder: Path | None) -> str:
    last = checkpoint.saved(folder)[-1:] if folder else []
    kept_at = f"the last good checkpoint is {last[0]}" if last else "no checkpoint had been written"
    return (
        f"{error} at step {step}, learning rate {rate:.2g}: the step was not taken, {kept_at}; "
        "take a lower rate, more warm-up or a smaller clip"
    )


def _save(trainer: Trainer, folder: Path, history: list[Step], plan: dict[str, Any]) -> None:
    columns = list(zip(*((s.loss, s.rate, s.speed) for s in history)))
    checkpoint.save(folder, trainer.model, trainer.plain_optimizer, step=len(history), history=columns, plan=plan)
    trainer.accelerator.wait_for_everyone()


def _resume(trainer: Trainer, folder: Path, plan: dict[str, Any]) -> list[Step]:
    if not checkpoint.saved(folder):
        return []
    state = checkpoint.load(folder, trainer.model, trainer.plain_optimizer)
    if state.get("plan") != plan:
        raise ValueError(
            f"{folder} holds a run with {state.get('plan')}, this one asks for {plan}; "
            "give it another folder, or delete that one"
        )
    return [Step(step, *columns) for step, columns in enumerate(zip(*state["history"]))]
