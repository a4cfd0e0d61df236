"""One step of training, on whatever there is: CPU, GPU, several processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.learn import memory
from tfviz.learn.checkpoint import whole
from tfviz.learn.losses import Loss


class Trainer:
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
        accumulate: int,
        recompute: bool,
    ):
        self.accelerator = _accelerator(device)
        self.device = self.accelerator.device
        self.is_main = self.accelerator.is_main_process
        if self.device.type == "cpu":
            memory.keep()
        self.model, self.plain_optimizer, self.loss, self.clip = model, optimizer, loss, clip
        self.accumulate, self.recompute = accumulate, recompute
        half = precision == "bfloat16" or (precision is None and _has_bfloat16(self.device))
        self.autocast = torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()
        prepare = self.accelerator.prepare
        sharded = any(hasattr(p, "full_tensor") for p in model.parameters())  # by the caller, with `fully_shard`
        prepared: Any = (model, prepare(optimizer)) if sharded else prepare(model, optimizer)
        self.wrapped, self.optimizer = prepared
        self.called: nn.Module = torch.compile(self.wrapped) if compile else self.wrapped  # type: ignore[assignment]

    def step(self, batch: tuple[Tensor, ...], rate: float) -> tuple[float, int]:
        """One step; returns the loss in nats and the number of tokens in the joint batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.wrapped.train()
        total, count = self._gradients(batch)
        world = self.accelerator.num_processes
        total, count = self.accelerator.reduce(torch.stack([total, total.new_tensor(count)]), "sum")
        for parameter in self.wrapped.parameters():  # from the sum over predictions to their mean
            if parameter.grad is not None:
                parameter.grad.mul_(world / count)
        norm = self.accelerator.clip_grad_norm_(self.wrapped.parameters(), self.clip)
        value, length, predicted = torch.stack([total / count, whole(norm).to(total), count]).tolist()  # one wait
        if not predicted:
            self.optimizer.zero_grad()
            raise ValueError("the batch asks for nothing: all its targets are padding")
        if not (math.isfinite(value) and math.isfinite(length)):
            self.optimizer.zero_grad()
            raise FloatingPointError(f"the loss is {value}, the gradient's norm {length}")
        self.optimizer.step()
        self.optimizer.zero_grad()
        return value, batch[0].numel()

    def _gradients(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, int]:
        """Add up the gradients of this process's rows, part by part; returns the sum of the loss and its count."""
        rank, world, rows = self.accelerator.process_index, self.accelerator.num_processes, len(batch[0])
        number = max(1, min(self.accumulate, rows // world))  # the same in all processes, which wait for each other
        counts = rank < rows  # a process without a row repeats one, for nothing
        parts = zip(*(part[rank % rows :: world].tensor_split(number) for part in batch))
        total, count = torch.zeros((), device=self.device), 0
        for place, part in enumerate(parts, 1):
            alone = self.accelerator.no_sync(self.wrapped) if place < number else nullcontext()
            with alone, recomputing(self.model) if self.recompute else nullcontext():
                with self.autocast:
                    value, found = self.loss(self.called, tuple(x.to(self.device, non_blocking=True) for x in part))
                self.accelerator.backward(value * counts)
            total, count = total + value.detach() * counts, count + found * counts
        return total, count


@contextmanager
def recomputing(model: nn.Module) -> Iterator[None]:
    """While this lasts, blocks keep only their input and compute the rest again in the backward pass.

    Blocks are the members of a `ModuleList` (Chen et al. 2016, "Training deep nets with sublinear memory cost").
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


def _accelerator(device: str | None) -> Any:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, DistributedType, PartialState
    from accelerate.utils import DistributedDataParallelKwargs

    cpu = device == "cpu" or not torch.accelerator.is_available()  # unless told, accelerate joins no processes on CPUs
    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState(cpu=cpu).num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    some_rest = DistributedDataParallelKwargs(find_unused_parameters=True)  # such as BERT's second head, without pairs
    accelerator = Accelerator(cpu=cpu, kwargs_handlers=[some_rest])
    if accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise ValueError("weights can be sharded by version 2 of FSDP only; launch with --fsdp_version 2")
        # the weights are in memory already; and with it, accelerate takes no parameter at the top of a model
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
    return accelerator


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
