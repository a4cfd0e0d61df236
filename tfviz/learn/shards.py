"""Tensors of which each process holds a part (`torch.distributed.tensor`): put together, and cut again."""

from typing import Any

import torch
from torch import Tensor, nn


def are_in(model: nn.Module) -> bool:
    """Whether processes share the weights out among them."""
    return any(hasattr(parameter, "full_tensor") for parameter in model.parameters())


def whole(tensor: Any) -> Tensor:
    """A tensor in full; all processes that hold a part must call."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def put_together(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors in the first process; the others do not keep them."""
    found = {}
    for name, tensor in tensors.items():
        full = whole(tensor.detach())
        if is_first():
            found[name] = full.cpu().contiguous()
    return found


def cut(value: Any, like: Any) -> Any:
    """A value in the shards of a tensor, if that has any and it has its shape."""
    if not hasattr(like, "full_tensor") or getattr(value, "shape", None) != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)


def is_first() -> bool:
    """Whether this is the process that writes."""
    group = torch.distributed
    return not (group.is_available() and group.is_initialized()) or group.get_rank() == 0
