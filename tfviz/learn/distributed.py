"""Gathering and sharding of tensors (`DTensor`, as FSDP creates them), and the main process."""

from typing import Any

import torch
from torch import Tensor, nn


def is_sharded(model: nn.Module) -> bool:
    """Return whether each process holds only a shard of the weights."""
    return any(hasattr(parameter, "full_tensor") for parameter in model.parameters())


def full_tensor(tensor: Any) -> Tensor:
    """Return the full tensor of a shard, and any other tensor unchanged; all processes with a shard must call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def gather(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the full tensors on the CPU in the main process, and an empty dict in the other processes."""
    gathered = {}
    for name, tensor in tensors.items():
        full = full_tensor(tensor.detach())
        if is_main_process():
            gathered[name] = full.cpu().contiguous()
    return gathered


def shard_like(value: Any, like: Any) -> Any:
    """Shard a tensor as `like` is; return it unchanged if `like` is not sharded or has another shape."""
    if not hasattr(like, "full_tensor") or getattr(value, "shape", None) != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)


def is_main_process() -> bool:
    """Return whether this is the process that writes files: the only one, or the one of rank 0."""
    group = torch.distributed
    return not (group.is_available() and group.is_initialized()) or group.get_rank() == 0
