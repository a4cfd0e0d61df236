"""What is known of a tensor of attention weights on its way from the softmax to the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn


class Stage(Enum):
    """What some numbers are on their way to be weights."""

    WEIGHTS = auto()
    LOG_WEIGHTS = auto()  # a log-softmax's, before `exp`
    GATES = auto()  # a sigmoid's, whose rows need not sum to 1


class Status(Enum):
    """What happened to weights where they met values, which may be several times."""

    NEW = auto()  # they have not met any
    RECORDED = auto()
    EDITED = auto()  # and were overwritten by an edit


@dataclass(eq=False)
class TrackedWeights:
    """What is known of a tensor of attention weights.

    Attributes:
        key_index: the numbers of the keys, in the tensor's shape; only the axis of the keys has a stride.
        scores: the softmax's input, in the tensor's shape; None where it is unknown.
        softmax: the softmax's output and its axis of keys; None: this tensor is it.
        changed: whether the numbers are others than the softmax's, but for dropout.
        undropped: the weights before dropout; None where there was none.
        dropout: its probability.
        times: the weights, what they were multiplied with cell by cell, and the call, if a sum is to follow.
    """

    key_index: Tensor
    scores: Tensor | None = None
    softmax: tuple[Tensor, int] | None = None
    changed: bool = False
    undropped: Tensor | None = None
    dropout: float = 0.0
    stage: Stage = Stage.WEIGHTS
    status: Status = Status.NEW
    times: tuple[Tensor, Tensor, Callable[..., Tensor]] | None = None

    @cached_property
    def key_axes(self) -> list[int]:
        """The axes on which the keys are: one, unless it was joined with another."""
        axes = strided_axes(self.key_index)
        if len(axes) > 1:  # reshaping has copied the index of axes that were joined, and perhaps parted again
            return [axis for axis in axes if bool((self.key_index != self.key_index.narrow(axis, 0, 1)).any())]
        return axes or [self.key_index.dim() - 1]

    @property
    def axis(self) -> int | None:
        """The axis of the keys; None if they are on several."""
        return self.key_axes[0] if len(self.key_axes) == 1 else None

    def softmax_of(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        """Return the softmax's output and axis, where `tensor` is the one that these facts are of."""
        if self.softmax is not None or self.axis is None or self.stage is Stage.LOG_WEIGHTS:
            return self.softmax
        return tensor.detach(), self.axis


def align_axes(index: Tensor, letters: Sequence[Any], output: Sequence[Any]) -> Tensor:
    """Reorder a factor's axes as those of a product's output, with size 1 for axes that it does not have.

    Of an axis that the output does not have the first place is taken.
    """
    for axis in reversed(range(index.dim())):
        if letters[axis] not in output:
            index = index.select(axis, 0)
    remaining = [letter for letter in letters if letter in output]
    index = index.permute(sorted(range(len(remaining)), key=lambda axis: output.index(remaining[axis])))
    for axis, letter in enumerate(output):
        index = index if letter in remaining else index.unsqueeze(axis)
    return index


def index_along(tensor: Tensor, axis: int) -> Tensor:
    """Return the numbers 0, 1, ... along one axis, expanded to the shape of a tensor."""
    numbers = torch.arange(tensor.shape[axis])
    return numbers.reshape([-1 if one == axis else 1 for one in range(tensor.dim())]).expand(tensor.shape)


def strided_axes(index: Tensor) -> list[int]:
    """Return the axes along which the numbers of `index_along` change."""
    return [axis for axis, step in enumerate(index.stride()) if step and index.shape[axis] > 1]


def is_learned(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter, or a view of one: these are no values that attention reads."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)
