"""What is done for showing stands aside: no capture sees it, nothing rounds it, and its tensors are plain ones."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch.utils._python_dispatch import _disable_current_modes

from tfviz.look.running import silent


@contextmanager
def aside() -> Iterator[None]:
    """No capture sees what is done in here, no mode of others counts it (as FLOPs), and autocast does not round it."""
    with ExitStack() as stack:
        stack.enter_context(silent())
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def bare(tensor: Tensor) -> Tensor:
    """Without the wrappers of `torch.vmap` and `torch.func`; what is mapped over becomes the first axis."""
    while is_wrapped(tensor):
        axis = functorch.maybe_get_bdim(tensor) if functorch.is_batchedtensor(tensor) else None
        tensor = functorch.get_unwrapped(tensor)
        tensor = tensor if axis is None else tensor.movedim(axis, 0)
    return tensor


def mapped() -> bool:
    """Whether `torch.vmap` or `torch.func` is under way."""
    return functorch.peek_interpreter_stack() is not None


def is_wrapped(tensor: Tensor) -> bool:
    """Whether `torch.vmap` or `torch.func` is at work on it."""
    return functorch.is_functorch_wrapped_tensor(tensor)
