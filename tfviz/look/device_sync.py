"""Reading values of tensors with few device synchronizations.

Reading a value of a GPU tensor blocks until all work queued before it is done. A value that would only save work is
therefore read on the CPU only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def is_host_readable(tensor: Tensor) -> bool:
    """Return whether the values of a tensor can be read without a synchronization."""
    return tensor.device.type == "cpu"


def may_be_true(mask: Tensor) -> bool:
    """Return whether any element of a mask is True; for a mask outside the CPU return True without reading it."""
    return not is_host_readable(mask) or bool(mask.any())


def read_flags(flags: Sequence[Callable[[], Tensor]], like: Tensor) -> list[bool]:
    """Evaluate boolean checks of a tensor with one synchronization; on a CPU, skip the others if the first is True.

    Args:
        flags: functions that return a boolean tensor without axes.
        like: the tensor that the functions check.

    Returns:
        the result of each check; False for a skipped one.
    """
    if not is_host_readable(like):
        return torch.stack([flag() for flag in flags]).tolist()  # type: ignore[no-any-return]
    first = bool(flags[0]())
    return [first, *(not first and bool(flag()) for flag in flags[1:])]
