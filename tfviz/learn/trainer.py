"""One step of training, on whatever there is: CPU, GPU, several processes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.doors import what
from tfviz.learn import memory, shards, threads
from tfviz.learn.checks import about
from tfviz.learn.losses import Loss


class Measured(NamedTuple):
    """A batch, over all processes: the loss in nats, its tokens, whether a process was asked to stop."""

    loss: float
    tokens: int
    stop: bool


class Trainer:
    """A model on its device with all it takes to do one step; wraps `accelerate`.

    A step is `measure`, which changes no weight, then `take`.

    Args:
        rates: the top learning rate of each group of the optimizer.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        rates: Sequence[float],
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
        self.is_main, self.several = self.accelerator.is_main_process, self.accelerator.num_processes > 1
        if self.device.type == "cpu":
            memory.keep()
            memory.hand_back()
        self.model, self.plain_optimizer, self.loss, self.clip = model, optimizer, loss, clip
        self.accumulate, self.recompute = accumulate, recompute
        self.rates, self.own_rates = rates, [group["lr"] for group in optimizer.param_groups]
        half = precision == "bfloat16" or (precision is None and (_launched_half() or _has_bfloat16(self.device)))
        self.autocast = torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()
        prepare = self.accelerator.prepare
        prepared: Any = (model, prepare(optimizer)) if shards.are_in(model) else prepare(model, optimizer)
        self.wrapped, self.optimizer = prepared
        self.sharded = shards.are_in(model)  # by the caller, with `fully_shard`, or now by accelerate
        self.called: nn.Module = torch.compile(self.wrapped) if compile else self.wrapped  # type: ignore[assignment]
        self.shared = partial(threads.share, fixed=compile)
        stored = model.state_dict().keys()
        self.running = [name for name, _ in model.named_buffers() if name in stored]

    def measure(self, batch: tuple[Tensor, ...], stop: bool = False) -> Measured:
        """Gradients of the joint batch, for `take`."""
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off here, by torch.no_grad or inference_mode: train outside of it")
        self._forget()
        self.wrapped.train()
        with self.shared():
            total, count = self._gradients(batch)
        world = self.accelerator.num_processes
        sums = torch.stack([total, *(torch.as_tensor(one).to(total) for one in (count, stop))])
        total, count, stops = self.accelerator.reduce(sums, "sum")
        for parameter in self.wrapped.parameters():  # from the sum over predictions to their mean
            if parameter.grad is not None:
                parameter.grad.mul_(world / count)
        norm = self.accelerator.clip_grad_norm_(self.wrapped.parameters(), self.clip)
        found = torch.stack([total / count, shards.whole(norm).to(total), count, stops]).tolist()  # one wait
        value, length, predicted, asked = found
        if not predicted:
            raise ValueError("the batch asks for nothing: all its targets are padding")
        if not (math.isfinite(value) and math.isfinite(length)):
            raise FloatingPointError(f"the loss is {value}, the gradient's norm {length}")
        return Measured(value, batch[0].numel(), bool(asked))

    def take(self, share: float) -> None:
        """Move the weights by this share of the rates. Broken off, this leaves a model that is neither of the step
        before nor of this one."""
        for group, rate in zip(self.optimizer.param_groups, self.rates):
            group["lr"] = rate * share
        with self.shared():
            self.optimizer.step()
        self._forget()

    def give_back(self) -> None:
        """The optimizer has its own rates again, for whatever its owner does next."""
        for group, rate in zip(self.plain_optimizer.param_groups, self.own_rates):
            group["lr"] = rate

    def buffers(self) -> dict[str, Tensor]:
        """What a forward pass may change, such as a norm's running means."""
        found = dict(self.model.named_buffers())
        return {name: found[name].clone() for name in self.running}

    def put_back(self, buffers: dict[str, Tensor]) -> None:
        """After a step that was broken off in `measure`: as it was before."""
        self._forget()
        found = dict(self.model.named_buffers())
        for name, buffer in buffers.items():
            found[name].copy_(buffer)

    def _forget(self) -> None:
        self.wrapped.zero_grad()  # whatever the optimizer moves, gradients count in the norm
        self.optimizer.zero_grad()

    def _gradients(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
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
                    on_device = tuple(x.to(self.device, non_blocking=True) for x in part)
                    with about(self.model, on_device):
                        given = self.loss(self.called, on_device)
                    value, found = _pair(given)
                self.accelerator.backward(value * counts)
            total, count = total + value.detach() * counts, count + found * counts
        return total, count


def _pair(found: Any) -> tuple[Tensor, Any]:
    """What a loss gives."""
    pair: Any = found if isinstance(found, tuple | list) and len(found) == 2 else (None, None)
    if not (isinstance(pair[0], Tensor) and pair[0].numel() == 1 and hasattr(pair[1], "__float__")):
        said = f"{what(found)}{' of ' + ' and '.join(map(what, found)) if pair is found else ''}"
        raise TypeError(f"loss gives {said}; it must give a sum and how much it is a sum of, such as (total, 12)")
    if not pair[0].requires_grad:
        raise ValueError("the loss depends on no weight of the model that asks for a gradient; look at its function")
    if not isinstance(pair[1], Tensor) and not pair[1] >= 0:
        raise ValueError(f"loss gives a count of {pair[1]}; it must be at least 0")
    return pair[0].reshape(()), pair[1]


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
    # half precision is ours to switch on, in `measure`: accelerate would wrap the model's forward for good
    accelerator = Accelerator(cpu=cpu, mixed_precision="no", kwargs_handlers=[some_rest])
    if accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise ValueError("weights can be sharded by version 2 of FSDP only; launch with --fsdp_version 2")
        # the weights are in memory already; and with it, accelerate takes no parameter at the top of a model
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
    return accelerator


def _launched_half() -> bool:
    """Whether `accelerate launch --mixed_precision` asks for bfloat16.

    Raises:
        ValueError: it asks for what `fit` does not do.
    """
    asked = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if asked not in ("no", "bf16"):
        raise ValueError(f"accelerate was launched with --mixed_precision {asked}; fit can do bf16, or no")
    return asked == "bf16"


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
