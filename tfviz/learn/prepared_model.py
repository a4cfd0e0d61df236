"""A model prepared for training on the available hardware (CPU, GPU, several processes), and its training step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.hugging_face import dispatched_device
from tfviz.learn.accelerator import create_accelerator
from tfviz.learn.batch import Batch, map_tensors, row_count, split, tensors
from tfviz.learn.batch_checks import check_loss_output, note_inputs
from tfviz.learn.distributed import full_tensor, is_sharded
from tfviz.learn.gradient_checkpointing import CheckpointedBlocks
from tfviz.learn.losses import Loss
from tfviz.learn.mixed_precision import LossScale, default_precision, launch_precision


@dataclass
class PreparedModel:
    """A model, its optimizer and its loss, prepared by `accelerate` for the available devices and processes.

    A step is `compute_gradients`, which changes no weight, then `optimizer_step`. Other arguments are those of `fit`.

    Args:
        lrs: the maximum learning rate of each parameter group of the optimizer.
    """

    model: nn.Module
    unwrapped_optimizer: torch.optim.Optimizer
    lrs: Sequence[float]
    loss: Loss
    max_grad_norm: float
    device: InitVar[str | torch.device | None]
    precision: InitVar[str | None]
    compile: InitVar[bool]
    gradient_accumulation_steps: int
    gradient_checkpointing: bool

    def __post_init__(self, device: str | torch.device | None, precision: str | None, compile: bool) -> None:
        dispatched = dispatched_device(self.model)
        self.accelerator = create_accelerator(device if dispatched is None else dispatched)
        self.is_main, self.is_distributed = self.accelerator.is_main_process, self.accelerator.num_processes > 1
        self.initial_lrs = [group["lr"] for group in self.unwrapped_optimizer.param_groups]
        precision = precision or launch_precision() or default_precision(self.accelerator.device)
        dtype = getattr(torch, precision)
        self.autocast = nullcontext() if precision == "float32" else torch.autocast(self.accelerator.device.type, dtype)
        self.loss_scale = LossScale() if precision == "float16" else None
        self.checkpointing = CheckpointedBlocks(self.model) if self.gradient_checkpointing else nullcontext()
        model, optimizer, prepare = self.model, self.unwrapped_optimizer, self.accelerator.prepare
        is_placed = is_sharded(model) or dispatched is not None
        prepared: Any = (model, prepare(optimizer)) if is_placed else prepare(model, optimizer)
        self.wrapped, self.optimizer = prepared
        self.is_sharded = is_sharded(model)  # sharded by the caller with `fully_shard`, or just now by accelerate
        self.compiled: nn.Module = torch.compile(self.wrapped) if compile else self.wrapped  # type: ignore[assignment]
        stored = model.state_dict().keys()
        self.stored_buffers = [name for name, _ in model.named_buffers() if name in stored]

    def compute_gradients(self, batch: Batch) -> float:
        """Compute and clip the gradients of the mean loss over a batch; return the mean loss.

        Each process computes its share of the rows. In float16, gradients that overflow lower the loss scale, and
        `optimizer_step` then leaves the weights unchanged.

        Raises:
            FloatingPointError: the loss or the norm of the gradients is not finite.
            ValueError: gradients are disabled, or the batch contains nothing to predict.
        """
        if not torch.is_grad_enabled():
            raise ValueError(
                "gradients are disabled by torch.no_grad or torch.inference_mode; train outside that context"
            )
        self.zero_grad()
        self.wrapped.train()
        if self.loss_scale is not None:
            self.loss_scale.start(tensors(batch)[0].numel())
        total, count = self._accumulate_gradients(batch)
        sums = torch.stack([total, torch.as_tensor(count).to(total)])
        total, count = self.accelerator.reduce(sums, "sum")
        factor = self.accelerator.num_processes / count / (1.0 if self.loss_scale is None else self.loss_scale.value)
        for parameter in self.wrapped.parameters():  # from the sum over predictions to their mean
            if parameter.grad is not None:
                parameter.grad.mul_(factor.to(parameter.grad.device))
        norm = self.accelerator.clip_grad_norm_(self.wrapped.parameters(), self.max_grad_norm)
        loss, norm, predictions = torch.stack([total / count, full_tensor(norm).to(total), count]).tolist()
        if not predictions:
            raise ValueError("the batch has no targets: all are padding")
        is_scaled = self.loss_scale is not None and math.isfinite(loss) and self.loss_scale.update(math.isfinite(norm))
        if not (math.isfinite(loss) and (math.isfinite(norm) or is_scaled)):
            raise FloatingPointError(f"the loss is {loss}, the gradient's norm {norm}")
        return loss

    def optimizer_step(self, factor: float) -> None:
        """Update the weights with the maximum learning rates times `factor`; an interrupt leaves a partial update."""
        for group, lr in zip(self.optimizer.param_groups, self.lrs):
            group["lr"] = lr * factor
        if self.loss_scale is None or not self.loss_scale.overflowed:
            self.optimizer.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Clear all gradients, including those of weights outside the optimizer, which count in the norm."""
        self.wrapped.zero_grad()
        self.optimizer.zero_grad()

    def restore_lrs(self) -> None:
        """Restore the optimizer's original learning rates."""
        for group, lr in zip(self.unwrapped_optimizer.param_groups, self.initial_lrs):
            group["lr"] = lr

    def clone_buffers(self) -> dict[str, Tensor]:
        """Return a copy of the stored buffers that a forward pass may change, such as a norm's running means."""
        current = dict(self.model.named_buffers())
        return {name: current[name].clone() for name in self.stored_buffers}

    def restore_buffers(self, buffers: dict[str, Tensor]) -> None:
        """Restore buffers and gradients after an interrupted `compute_gradients`."""
        self.zero_grad()
        current = dict(self.model.named_buffers())
        for name, buffer in buffers.items():
            current[name].copy_(buffer)

    def _accumulate_gradients(self, batch: Batch) -> tuple[Tensor, Any]:
        """Accumulate the gradients of this process's rows, part by part; return the sum of the loss and its count."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        rows = row_count(batch)
        parts = max(1, min(self.gradient_accumulation_steps, rows // processes))  # the same number in all processes
        has_own_rows = rank < rows  # a process without a row of its own repeats one, with weight 0
        weight = has_own_rows * (1.0 if self.loss_scale is None else self.loss_scale.value)
        total, count = torch.zeros((), device=self.accelerator.device), 0
        for index, part in enumerate(split(batch, rank, processes, parts), 1):
            unsynced = self.accelerator.no_sync(self.wrapped) if index < parts else nullcontext()
            with unsynced, self.checkpointing:
                part_total, part_count = self._compute_loss(part)
                self.accelerator.backward(part_total * weight)
            total, count = (
                total + part_total.detach().to(self.accelerator.device) * has_own_rows,
                count + part_count * has_own_rows,
            )
        return total, count

    def _compute_loss(self, part: Batch) -> tuple[Tensor, Any]:
        with self.autocast:
            part = map_tensors(part, lambda tensor: tensor.to(self.accelerator.device, non_blocking=True))
            with note_inputs(self.model, part):
                output = self.loss(self.compiled, part)
            return check_loss_output(output)
