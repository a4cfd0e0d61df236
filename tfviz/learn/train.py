"""Training: one loop, that yields what happens and can be stopped and resumed at any step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from tfviz.learn import checkpoint, evaluate
from tfviz.learn.schedule import Schedule, cosine
from tfviz.text.batches import chance

Loss = Callable[[nn.Module, Any], Tensor]


@runtime_checkable
class Batches(Protocol):
    """Batches by number: tuples of tensors whose first axis is the batch."""

    def __getitem__(self, step: int, /) -> tuple[Tensor, ...]: ...


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
    loss: Loss = evaluate.next_token,
    clip: float = 1.0,
    device: str | None = None,
    precision: str | None = None,
    compile: bool = False,
    folder: str | Path | None = None,
    every: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Iterator[Step]:
    """Train `model`; yields a `Step` after each step.

    Run as it is, it uses the GPU if there is one; under `accelerate launch` or `torchrun` it uses all processes, each
    of which takes its share of every batch. All chance (dropout) at a step depends on `seed` and the step alone: with
    a `folder`, a run that was stopped goes on where it was, yields its past steps first, and has the same losses as
    one that was not stopped.

    Args:
        batches: `batches[step]` is the batch of that step; see `text.Windows`.
        rate: the top learning rate; `schedule` moves it (default: `cosine()`).
        optimizer: default `adamw(model, rate)`.
        loss: from model and batch to a scalar.
        clip: the largest norm of the gradient.
        device: `"cpu"` to stay off the GPU.
        precision: `"float32"` or `"bfloat16"` (weights stay in float32); default: bfloat16 on a GPU that has it.
        compile: let `torch.compile` fuse the training step; the model itself stays as it is.
        folder: for checkpoints, every `every` steps, at the end and when the loop is left.

    Raises:
        FloatingPointError: the loss or a gradient is not finite. The step is not taken.
        ValueError: `folder` holds a run with other arguments.
    """
    if steps < 1 or every < 1:
        raise ValueError(f"steps is {steps} and every is {every}; both must be at least 1")
    if precision not in (None, "float32", "bfloat16"):
        raise ValueError(f"precision is {precision!r}; it can be 'float32' or 'bfloat16'")
    trainer = _Trainer(model, optimizer or adamw(model, rate), loss, clip, device, precision, compile)
    plan = {"steps": steps, "rate": rate, "seed": seed}
    return _run(trainer, batches, schedule or cosine(), plan, Path(folder) if folder else None, every, progress)


def _run(
    trainer: _Trainer,
    batches: Batches,
    schedule: Schedule,
    plan: dict[str, Any],
    folder: Path | None,
    every: int,
    progress: bool,
) -> Iterator[Step]:
    from tqdm import tqdm

    steps, rate, seed = plan["steps"], plan["rate"], plan["seed"]
    history = trainer.resume(folder, plan) if folder else []
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
                last = checkpoint.saved(folder)[-1:] if folder else []
                kept_at = f"the last good checkpoint is {last[0]}" if last else "no checkpoint had been written"
                raise FloatingPointError(
                    f"{error} at step {step}, learning rate {now:.2g}: the step was not taken, {kept_at}; "
                    "take a lower rate, more warm-up or a smaller clip"
                ) from None
            history.append(Step(step, value, now, tokens / (time.perf_counter() - started)))
            bar.set_postfix_str(f"loss {value:.3f} nats", refresh=False)
            bar.update()
            if folder and ((step + 1) % every == 0 or step + 1 == steps):
                trainer.save(folder, history, plan)
                kept = step + 1
            yield history[-1]
    except GeneratorExit:  # the loop was left between two steps: nothing of it is lost
        if folder and kept < len(history):
            trainer.save(folder, history, plan)
        raise
    finally:
        bar.close()


class _Trainer:
    """A model on its device with all it takes to do one step; wraps `accelerate`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        clip: float,
        device: str | None,
        precision: str | None,
        compile: bool,
    ):
        self.accelerator = _accelerator(device)
        self.device = self.accelerator.device
        self.is_main = self.accelerator.is_main_process
        self.model, self.loss, self.clip = model, loss, clip
        half = precision == "bfloat16" or (precision is None and _has_bfloat16(self.device))
        self.autocast = torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()
        self.wrapped, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.called: nn.Module = torch.compile(self.wrapped) if compile else self.wrapped  # type: ignore[assignment]

    def step(self, batch: tuple[Tensor, ...], rate: float) -> tuple[float, int]:
        """One step; returns the loss in nats and the number of tokens in the joint batch."""
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        if len(batch[0]) % world:
            raise ValueError(f"a batch of {len(batch[0])} rows cannot be shared evenly by {world} processes")
        share = tuple(part[rank::world].to(self.device, non_blocking=True) for part in batch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.wrapped.train()
        with self.autocast:
            loss = self.loss(self.called, share)
        self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(self.wrapped.parameters(), self.clip)
        mean = self.accelerator.reduce(loss.detach(), "mean")
        value, length = torch.stack([mean, norm.to(mean)]).tolist()  # both at once: one wait for the GPU
        if not (math.isfinite(value) and math.isfinite(length)):
            self.optimizer.zero_grad()
            raise FloatingPointError(f"the loss is {value}, the gradient's norm {length}")
        self.optimizer.step()
        self.optimizer.zero_grad()
        return value, batch[0].numel()

    def save(self, folder: Path, history: list[Step], plan: dict[str, Any]) -> None:
        if self.is_main:
            columns = list(zip(*((s.loss, s.rate, s.speed) for s in history)))
            optimizer = self.optimizer.optimizer  # accelerate's wrapper around it
            checkpoint.save(folder, self.model, optimizer, step=len(history), history=columns, plan=plan)
        self.accelerator.wait_for_everyone()

    def resume(self, folder: Path, plan: dict[str, Any]) -> list[Step]:
        if not checkpoint.saved(folder):
            return []
        state = checkpoint.load(folder, self.model, self.optimizer.optimizer)
        if state.get("plan") != plan:
            raise ValueError(
                f"{folder} holds a run with {state.get('plan')}, this one asks for {plan}; "
                "give it another folder, or delete that one"
            )
        return [Step(step, *columns) for step, columns in enumerate(zip(*state["history"]))]


def _accelerator(device: str | None) -> Any:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState

    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(cpu=device == "cpu")


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
