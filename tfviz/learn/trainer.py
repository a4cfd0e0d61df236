"""One step of training, on whatever there is: CPU, GPU, several processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfviz.learn import memory
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
        self.wrapped, self.optimizer = self.accelerator.prepare(model, optimizer)
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
        value, length, predicted = torch.stack([total / count, _full(norm).to(total), count]).tolist()  # one wait
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
def whole(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[nn.Module]:
    """Something with the names and the full weights of a model of which each process holds a shard only.

    It lasts as long as the context, and so does the optimizer's full state; what is loaded into them is sharded
    again. All processes must enter. A model without shards stands for itself.
    """
    for module in model.modules():
        if callable(reshard := getattr(module, "reshard", None)):  # a forward pass leaves some in full, maybe rounded
            reshard()
    named = model.state_dict(keep_vars=True)
    full = {p: nn.Parameter(_full(p.detach()).cpu()) for p in named.values() if hasattr(p, "full_tensor")}
    _each_state(optimizer, full, lambda value, parameter: _full(value).cpu())
    try:
        yield _bare({name: full.get(tensor, tensor) for name, tensor in named.items()}) if full else model
    finally:
        for parameter, value in full.items():
            parameter.detach().copy_(_shards(value.detach(), parameter))
        _each_state(optimizer, full, _shards)


def _bare(named: dict[str, Tensor]) -> nn.Module:
    """A module that holds these tensors, and does nothing with them."""
    top = nn.Module()
    for name, tensor in named.items():
        owner, parts = top, name.split(".")
        for part in parts[:-1]:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        if isinstance(tensor, nn.Parameter):
            owner.register_parameter(parts[-1], tensor)
        else:
            owner.register_buffer(parts[-1], tensor)
    return top


def _each_state(optimizer: torch.optim.Optimizer, parameters: Iterable[Any], change: Callable) -> None:
    for parameter in parameters:
        state = optimizer.state.get(parameter, {})
        state.update({name: change(value, parameter) for name, value in state.items() if isinstance(value, Tensor)})


def _full(tensor: Any) -> Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _shards(tensor: Tensor, like: Any) -> Tensor:
    """A tensor in the shards of another, if it has its shape."""
    from torch.distributed.tensor import distribute_tensor

    tensor = tensor.to(like.device)
    return distribute_tensor(tensor, like.device_mesh, like.placements) if tensor.shape == like.shape else tensor


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

    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    some_rest = DistributedDataParallelKwargs(find_unused_parameters=True)  # such as BERT's second head, without pairs
    accelerator = Accelerator(cpu=device == "cpu", kwargs_handlers=[some_rest])
    if accelerator.distributed_type == DistributedType.FSDP and not accelerator.is_fsdp2:
        raise ValueError("weights can be sharded by version 2 of FSDP only; launch with --fsdp_version 2")
    return accelerator


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
