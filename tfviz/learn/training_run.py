"""A training run: all steps from first to last, across interruptions, with checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import schema
from tfviz.indexed_batches import Batches, step_seed
from tfviz.learn import checkpoint
from tfviz.learn.batch import Batch, Epochs, draw_batch, tensors
from tfviz.learn.prepared_model import PreparedModel
from tfviz.learn.run_description import Config, first_difference
from tfviz.learn.schedule import Schedule, lr_factor


@dataclass(frozen=True)
class Step:
    """One step of training.

    Attributes:
        step: the number of the step, from 0.
        loss: the mean loss before the update; for language models, in nats per token.
        lr: the learning rate of the update; the largest one if groups differ.
        tokens_per_second: elements of the batch's first tensor, which are its tokens, divided by the step's time.
    """

    step: int
    loss: float
    lr: float
    tokens_per_second: float


@dataclass
class TrainingRun:
    """The steps of a training run, past and future.

    Unless `optimizer_step_interrupted`, the model can always be restored to its state after the last complete step, so
    that a checkpoint can be written however the run ends.

    Args:
        config: the settings that another run must share to have the same losses; `steps` and `seed` are read from it.
        checkpoint_dir: folder for checkpoints, which are written every `checkpoint_every` steps; None: no checkpoints.
    """

    prepared: PreparedModel
    batches: Batches | Epochs
    schedule: Schedule
    config: Config
    checkpoint_dir: Path | None
    checkpoint_every: int

    def __post_init__(self) -> None:
        self.history: list[Step] = []
        self.saved_steps = 0  # steps that the newest checkpoint holds
        self.optimizer_step_interrupted = False
        self.buffers_before: dict[str, Tensor] | None = None  # buffers before the current step, until it is complete

    def steps(self, progress: bool) -> Generator[Step]:
        """Yield past steps, then take new ones; however the run ends, save the model after the last complete step."""
        from tqdm import tqdm

        with ExitStack() as stack:
            stack.callback(_restore_modes, {module: module.training for module in self.prepared.model.modules()})
            stack.callback(self.prepared.restore_lrs)
            self._resume()
            yield from list(self.history)
            total, hidden = self.config["steps"], not (progress and self.prepared.is_main)
            bar = stack.enter_context(
                tqdm(total=total, initial=len(self.history), unit="step", disable=hidden, mininterval=0.5)
            )
            try:
                while len(self.history) < total:
                    step = self._take_step()
                    bar.set_postfix_str(f"loss {step.loss:.3f} nats", refresh=False)
                    bar.update()
                    if self.checkpoint_dir and (
                        len(self.history) % self.checkpoint_every == 0 or len(self.history) == total
                    ):
                        self._save()
                        self.prepared.accelerator.wait_for_everyone()
                    yield step
            except GeneratorExit:  # the caller left the loop between two steps
                if problem := self._save_last_step():
                    warnings.warn(problem, stacklevel=1)
                raise
            except BaseException as error:
                # the other processes may be elsewhere and cannot help to gather shards
                problem = "" if self.prepared.is_sharded else self._save_last_step()
                error.add_note(problem or self._resume_hint())
                raise

    def _take_step(self) -> Step:
        """Take the next step, with random numbers that depend only on seed and step; the caller's are unchanged."""
        with _forked_rng(self.prepared.accelerator.device):
            number, started = len(self.history), time.perf_counter()
            torch.manual_seed(step_seed(self.config["seed"], number))
            factor = lr_factor(self.schedule, number, self.config["steps"])
            lr = factor * max(self.prepared.lrs)
            batch = draw_batch(self.batches, number)
            self.buffers_before = self.prepared.clone_buffers()
            try:
                loss = self.prepared.compute_gradients(batch)
            except FloatingPointError as error:
                self._save_last_step()
                raise FloatingPointError(self._not_finite_message(error, batch, number, lr)) from None
            self.optimizer_step_interrupted = True
            self.prepared.optimizer_step(factor)
            speed = tensors(batch)[0].numel() / (time.perf_counter() - started)
            self.history.append(Step(number, loss, lr, speed))
            self.optimizer_step_interrupted, self.buffers_before = False, None
        return self.history[-1]

    def _resume(self) -> None:
        """Resume from the newest checkpoint, if there is one.

        Raises:
            ValueError: the checkpoint belongs to another run, or is damaged.
        """
        if self.checkpoint_dir and self.prepared.is_distributed:  # the first process may still be writing
            self.prepared.accelerator.wait_for_everyone()
        if not self.checkpoint_dir or not checkpoint.list_checkpoints(self.checkpoint_dir):
            return
        newest = checkpoint.read(self.checkpoint_dir, self.prepared.model, self.prepared.unwrapped_optimizer)
        stored = newest.state.get("config")
        if not isinstance(stored, dict):
            raise ValueError(f"{newest.path} was written by `checkpoint.save`, not by a run; give another folder")
        if difference := first_difference(stored, self.config):
            name, stored_value, value = difference
            raise ValueError(
                f"{self.checkpoint_dir} holds a run with {name} {stored_value}, but this run has {value}; give this "
                f"run another folder, or delete that one"
            )
        step, row = newest.state["step"], schema.list_of(schema.number, 3, 3)
        with schema.prefix_errors(newest.path):
            schema.list_of(row, step, step)(newest.state.get("history"), "history")
        if self.prepared.loss_scale is not None and "loss_scale" in newest.state:
            with schema.prefix_errors(newest.path):
                schema.number(newest.state["loss_scale"], "loss_scale")
            self.prepared.loss_scale.value = newest.state["loss_scale"]
        newest.restore(self.prepared.model, self.prepared.unwrapped_optimizer)
        self.history = [Step(index, *row) for index, row in enumerate(newest.state["history"])]
        self.saved_steps = len(self.history)

    def _save(self) -> None:
        assert self.checkpoint_dir is not None
        history = [list(astuple(step)[1:]) for step in self.history]
        model, optimizer, steps = self.prepared.model, self.prepared.unwrapped_optimizer, len(self.history)
        scale: dict[str, Any] = {}
        if self.prepared.loss_scale is not None:
            scale["loss_scale"] = self.prepared.loss_scale.value
        checkpoint.save(self.checkpoint_dir, model, optimizer, step=steps, history=history, config=self.config, **scale)
        self.saved_steps = steps

    def _save_last_step(self) -> str:
        """Save the model as it was after the last complete step; return an error message, or an empty string."""
        if self.buffers_before is not None and not self.optimizer_step_interrupted:
            self.prepared.restore_buffers(self.buffers_before)
            self.buffers_before = None
        if self.checkpoint_dir and not self.optimizer_step_interrupted and self.saved_steps < len(self.history):
            try:
                self._save()
            except (OSError, RuntimeError, FloatingPointError) as error:
                return f"steps {self.saved_steps} to {len(self.history) - 1} could not be saved: {error}"
        return ""

    def _resume_hint(self) -> str:
        """Return a hint on how to resume a run that ended early."""
        newest = checkpoint.list_checkpoints(self.checkpoint_dir)[-1:] if self.checkpoint_dir else []
        hint = f"the same call goes on from {newest[0]}" if newest else "no checkpoint was written"
        in_step = f"the model is in the middle of step {len(self.history)}; "
        return f"{in_step}{hint}" if self.optimizer_step_interrupted else hint

    def _not_finite_message(self, error: FloatingPointError, batch: Batch, step: int, lr: float) -> str:
        finite = all(part.isfinite().all() for part in tensors(batch))
        advice = (
            "take a lower lr, more warm-up or a smaller max_grad_norm"
            if finite
            else f"batches[{step}] holds NaN or infinity"
        )
        return (
            f"{error} at step {step}, learning rate {lr:.2g}: the step was not taken, {self._resume_hint()}; {advice}"
        )


def _restore_modes(modes: dict[nn.Module, bool]) -> None:
    """Restore the mode of each module, training or eval."""
    for module, training in modes.items():
        module.training = training


@contextmanager
def _forked_rng(device: torch.device) -> Iterator[None]:
    """Restore PyTorch's random generators after the context: those of the CPU, of a device, and of the current GPU."""
    if device.type == "mps":  # these devices have a single generator
        state = torch.mps.get_rng_state()
    module = getattr(torch, device.type, None)
    kind = device.type if device.type != "mps" and hasattr(module, "get_rng_state") else "cuda"
    module = getattr(torch, kind)
    numbers = {module.current_device()} if module.is_available() else set()
    if device.type == kind and device.index is not None:
        numbers.add(device.index)
    with torch.random.fork_rng(sorted(numbers), device_type=kind):
        try:
            yield
        finally:
            if device.type == "mps":
                torch.mps.set_rng_state(state)
