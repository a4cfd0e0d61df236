"""A model prepared for training on the available hardware (CPU, GPU, several processes), and a step of it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import InitVar, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.extras import extra
from tfviz.hugging_face import dispatched_device
from tfviz.learn.batch import Batch, map_tensors, row_count, split, tensors
from tfviz.learn.checks import check_loss_output, note_inputs
from tfviz.learn.distributed import full_tensor, is_sharded
from tfviz.learn.losses import Loss

LAUNCH_PRECISIONS = {"no": None, "bf16": "bfloat16", "fp16": "float16"}
# As in GradScaler, for a mean loss; the interval is in steps.
INITIAL_LOSS_SCALE, MIN_LOSS_SCALE, LOSS_SCALE_GROWTH_INTERVAL = 2.0**16, 2.0**-16, 2000


@dataclass
class PreparedModel:
    """A model, its optimizer and its loss, prepared by `accelerate` for the devices and processes there are.

    A step is `compute_gradients`, which changes no weight, then `optimizer_step`. The arguments are those of `fit`.

    Args:
        lrs: the maximum learning rate of each group of the optimizer.
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
        self.accelerator = _create_accelerator(device if dispatched is None else dispatched)
        self.is_main, self.is_distributed = self.accelerator.is_main_process, self.accelerator.num_processes > 1
        self.initial_lrs = [group["lr"] for group in self.unwrapped_optimizer.param_groups]
        precision = precision or _launch_precision() or default_precision(self.accelerator.device)
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
        """Compute and clip the gradients of the mean loss over a batch; return that loss, in nats per token.

        Each process takes its share of the rows. In float16, gradients too large for the loss scale lower it, and
        `optimizer_step` leaves the weights as they are.

        Raises:
            FloatingPointError: the loss or the norm of the gradients is not finite.
            ValueError: gradients are disabled, or the batch contains nothing to predict.
        """
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off here, by torch.no_grad or inference_mode: train outside of it")
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
            raise ValueError("the batch asks for nothing: all its targets are padding")
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
        for number, part in enumerate(split(batch, rank, processes, parts), 1):
            unsynced = self.accelerator.no_sync(self.wrapped) if number < parts else nullcontext()
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


class LossScale:
    """The factor of the loss in float16, so that small gradients do not become 0, as in `torch.amp.GradScaler`.

    It is halved when gradients overflow, and doubled after 2000 steps in which none did (Micikevicius et al. 2018,
    "Mixed precision training", section 3.2).
    """

    def __init__(self) -> None:
        self.value = 0.0  # 0: not yet set
        self.steps = 0  # steps since the last change
        self.overflowed = False

    def start(self, predictions: int) -> None:
        """Set the first value, from about how many predictions the loss is a sum of: their mean is scaled by 65536."""
        self.value = self.value or 2.0 ** math.floor(math.log2(max(1.0, INITIAL_LOSS_SCALE / predictions)))

    def update(self, is_finite: bool) -> bool:
        """Adjust the scale after a step; return whether it is still at least MIN_LOSS_SCALE."""
        self.overflowed, self.steps = not is_finite, self.steps + 1 if is_finite else 0
        if self.overflowed:
            self.value /= 2
        elif self.steps == LOSS_SCALE_GROWTH_INTERVAL:
            self.value, self.steps = self.value * 2, 0
        return self.value >= MIN_LOSS_SCALE


class CheckpointedBlocks(AbstractContextManager[None]):
    """A context in which blocks store only their input and recompute the rest in the backward pass.

    Blocks are the members of a `ModuleList` (Chen et al. 2016, "Training deep nets with sublinear memory cost"). The
    context can be entered again, with the same functions: those of another step would have to be compiled again.

    Raises:
        ValueError: the model has no `ModuleList`.
    """

    def __init__(self, model: nn.Module):
        lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
        self.blocks = [block for blocks in lists for block in blocks]
        if not self.blocks:
            raise ValueError(f"{type(model).__name__} has no nn.ModuleList; there is no block to compute again")
        self.forwards = [partial(checkpoint, block.forward, use_reentrant=False) for block in self.blocks]
        self.config = getattr(model, "config", None)  # models of Hugging Face would fill their cache twice
        self.use_cache: bool | None = None

    def __enter__(self) -> None:
        self.use_cache = getattr(self.config, "use_cache", None)
        if self.use_cache:
            self.config.use_cache = False  # type: ignore[union-attr]
        for block, forward in zip(self.blocks, self.forwards):
            block.forward = forward

    def __exit__(self, *_: Any) -> None:
        for block in self.blocks:
            del block.forward
        if self.use_cache:
            self.config.use_cache = self.use_cache  # type: ignore[union-attr]


def _create_accelerator(device: str | torch.device | None) -> Any:
    """Return an accelerator on a device; None: the GPU if there is one, or each process's own.

    Raises:
        ValueError: a GPU is named, and there are several processes.
    """
    with extra("lessons"):
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState, DistributedType, PartialState
        from accelerate.utils import DistributedDataParallelKwargs

    device = None if device is None else torch.device(device)
    # otherwise accelerate does not join processes on CPUs
    cpu = not torch.accelerator.is_available() if device is None else device.type == "cpu"
    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState(cpu=cpu).num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
        if device is not None:
            PartialState(cpu=cpu)._shared_state["device"] = device
    elif device is not None and device.index is not None:
        raise ValueError(f"device is {str(device)!r}, and each of several processes has one of its own: leave it out")
    # such as BERT's second head in training without sentence pairs
    ddp = DistributedDataParallelKwargs(find_unused_parameters=True)
    # autocast is switched on in `_compute_loss`: accelerate would wrap the model's forward for good
    accelerator = Accelerator(cpu=cpu, mixed_precision="no", kwargs_handlers=[ddp])
    if accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise ValueError("weights can be sharded by version 2 of FSDP only; launch with --fsdp_version 2")
        # the weights are in memory already, and with it accelerate rejects parameters at the top of a model
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
    return accelerator


def _launch_precision() -> str | None:
    """Return the precision of `accelerate launch --mixed_precision`, if one was given.

    Raises:
        ValueError: it was launched with a setting that `fit` does not support.
    """
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if precision not in LAUNCH_PRECISIONS:
        known = ", ".join(LAUNCH_PRECISIONS)
        raise ValueError(f"accelerate was launched with --mixed_precision {precision}; fit can do: {known}")
    return LAUNCH_PRECISIONS[precision]


def default_precision(device: torch.device) -> str:
    """Return bfloat16 for a CUDA GPU that computes in it, float16 for one that would imitate it, float32 elsewhere."""
    if device.type != "cuda":
        return "float32"
    with torch.cuda.device(device):
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
