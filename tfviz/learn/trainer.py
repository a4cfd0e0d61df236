"""A single training step on the available hardware: CPU, GPU, or several processes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import InitVar, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.learn.checks import check_loss_output, note_inputs
from tfviz.learn.distributed import full_tensor, is_sharded
from tfviz.learn.losses import Loss


@dataclass
class Trainer:
    """A model on its device with everything that a training step needs; wraps `accelerate`.

    A step is `compute_gradients`, which changes no weight, then `optimizer_step`. The arguments are those of `fit`.

    Args:
        lrs: the maximum learning rate of each group of the optimizer.
    """

    model: nn.Module
    unwrapped_optimizer: torch.optim.Optimizer
    lrs: Sequence[float]
    loss: Loss
    max_grad_norm: float
    device: InitVar[str | None]
    precision: InitVar[str | None]
    compile: InitVar[bool]
    gradient_accumulation_steps: int
    gradient_checkpointing: bool

    def __post_init__(self, device: str | None, precision: str | None, compile: bool) -> None:
        self.accelerator = _create_accelerator(device)
        self.is_main, self.is_distributed = self.accelerator.is_main_process, self.accelerator.num_processes > 1
        self.initial_lrs = [group["lr"] for group in self.unwrapped_optimizer.param_groups]
        kind = self.accelerator.device.type
        if precision is None:
            precision = "bfloat16" if _launched_with_bfloat16() or _supports_bfloat16(kind) else "float32"
        self.autocast = torch.autocast(kind, torch.bfloat16) if precision == "bfloat16" else nullcontext()
        model, optimizer, prepare = self.model, self.unwrapped_optimizer, self.accelerator.prepare
        prepared: Any = (model, prepare(optimizer)) if is_sharded(model) else prepare(model, optimizer)
        self.wrapped, self.optimizer = prepared
        self.is_sharded = is_sharded(model)  # by the caller, with `fully_shard`, or now by accelerate
        self.compiled: nn.Module = torch.compile(self.wrapped) if compile else self.wrapped  # type: ignore[assignment]
        stored = model.state_dict().keys()
        self.stored_buffers = [name for name, _ in model.named_buffers() if name in stored]

    def compute_gradients(self, batch: tuple[Tensor, ...]) -> float:
        """Compute and clip the gradients of the mean loss over a batch; return that loss, in nats per token.

        Each process takes its share of the rows.

        Raises:
            FloatingPointError: the loss or the norm of the gradients is not finite.
            ValueError: gradients are disabled, or the batch contains nothing to predict.
        """
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off here, by torch.no_grad or inference_mode: train outside of it")
        self.zero_grad()
        self.wrapped.train()
        total, count = self._accumulate_gradients(batch)
        sums = torch.stack([total, torch.as_tensor(count).to(total)])
        total, count = self.accelerator.reduce(sums, "sum")
        for parameter in self.wrapped.parameters():  # from the sum over predictions to their mean
            if parameter.grad is not None:
                parameter.grad.mul_(self.accelerator.num_processes / count)
        norm = self.accelerator.clip_grad_norm_(self.wrapped.parameters(), self.max_grad_norm)
        loss, norm, predictions = torch.stack([total / count, full_tensor(norm).to(total), count]).tolist()
        if not predictions:
            raise ValueError("the batch asks for nothing: all its targets are padding")
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(f"the loss is {loss}, the gradient's norm {norm}")
        return loss

    def optimizer_step(self, factor: float) -> None:
        """Update the weights with the maximum learning rates times `factor`; an interrupt leaves a partial update."""
        for group, lr in zip(self.optimizer.param_groups, self.lrs):
            group["lr"] = lr * factor
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

    def _accumulate_gradients(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
        """Accumulate the gradients of this process's rows, part by part; return the sum of the loss and its count."""
        rank, processes, rows = self.accelerator.process_index, self.accelerator.num_processes, len(batch[0])
        parts = max(1, min(self.gradient_accumulation_steps, rows // processes))  # the same number in all processes
        counts = rank < rows  # a process without a row of its own repeats one, with weight 0
        total, count = torch.zeros((), device=self.accelerator.device), 0
        split = zip(*(tensor[rank % rows :: processes].tensor_split(parts) for tensor in batch))
        for number, part in enumerate(split, 1):
            unsynced = self.accelerator.no_sync(self.wrapped) if number < parts else nullcontext()
            with unsynced, checkpointed_blocks(self.model) if self.gradient_checkpointing else nullcontext():
                part_total, part_count = self._compute_loss(part)
                self.accelerator.backward(part_total * counts)
            total, count = total + part_total.detach() * counts, count + part_count * counts
        return total, count

    def _compute_loss(self, part: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
        with self.autocast:
            part = tuple(tensor.to(self.accelerator.device, non_blocking=True) for tensor in part)
            with note_inputs(self.model, part):
                output = self.loss(self.compiled, part)
            return check_loss_output(output)


@contextmanager
def checkpointed_blocks(model: nn.Module) -> Iterator[None]:
    """Let blocks store only their input and recompute the rest in the backward pass, inside the context.

    Blocks are the members of a `ModuleList` (Chen et al. 2016, "Training deep nets with sublinear memory cost").

    Raises:
        ValueError: the model has no `ModuleList`.
    """
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    blocks = [block for blocks in lists for block in blocks]
    if not blocks:
        raise ValueError(f"{type(model).__name__} has no nn.ModuleList; there is no block to compute again")
    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward


def _create_accelerator(device: str | None) -> Any:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, DistributedType, PartialState
    from accelerate.utils import DistributedDataParallelKwargs

    cpu = device == "cpu" or not torch.accelerator.is_available()  # or else accelerate joins no processes on CPUs
    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState(cpu=cpu).num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    ddp = DistributedDataParallelKwargs(find_unused_parameters=True)  # such as BERT's second head, without pairs
    # autocast is switched on in `_compute_loss`: accelerate would wrap the model's forward for good
    accelerator = Accelerator(cpu=cpu, mixed_precision="no", kwargs_handlers=[ddp])
    if accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise ValueError("weights can be sharded by version 2 of FSDP only; launch with --fsdp_version 2")
        # the weights are in memory already; and with it, accelerate takes no parameter at the top of a model
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
    return accelerator


def _launched_with_bfloat16() -> bool:
    """Return whether the process was launched by `accelerate launch --mixed_precision bf16`.

    Raises:
        ValueError: it was launched with a setting that `fit` does not support.
    """
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if precision not in ("no", "bf16"):
        raise ValueError(f"accelerate was launched with --mixed_precision {precision}; fit can do bf16, or no")
    return precision == "bf16"


def _supports_bfloat16(kind: str) -> bool:
    return kind == "cuda" and torch.cuda.is_bf16_supported()
