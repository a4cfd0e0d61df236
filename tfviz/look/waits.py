"""Reading a number of a tensor: on a CPU it costs nothing; a GPU has to finish all that it was given before.

A capture reads few numbers, so that it does not hold up the model: where a number would only save work, it is not read
on another device than a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def reads_at_once(tensor: Tensor) -> bool:
    """Return whether numbers of a tensor can be read without waiting."""
    return tensor.device.type == "cpu"


def may_hold(mask: Tensor) -> bool:
    """Return whether any element of a mask is True; True unread where one would have to wait."""
    return not reads_at_once(mask) or bool(mask.any())


def read_facts(facts: Sequence[Callable[[], Tensor]], like: Tensor) -> list[bool]:
    """Return facts about a tensor, in one wait; on a CPU the others are not asked for where the first is True.

    Args:
        facts: functions that return a boolean tensor without axes.
        like: the tensor that they are about.
    """
    if not reads_at_once(like):
        return torch.stack([fact() for fact in facts]).tolist()  # type: ignore[no-any-return]
    first = bool(facts[0]())
    return [first, *(not first and bool(fact()) for fact in facts[1:])]
