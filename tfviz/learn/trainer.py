"""One step of training, on whatever there is: CPU, GPU, several processes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.learn.evaluate import Loss


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
    ):
        self.accelerator = _accelerator(device)
        self.device = self.accelerator.device
        self.is_main = self.accelerator.is_main_process
        self.model, self.plain_optimizer, self.loss, self.clip = model, optimizer, loss, clip
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


def _accelerator(device: str | None) -> Any:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState

    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(cpu=device == "cpu")


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
