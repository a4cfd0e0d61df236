"""Batches indexed by training step, and a seed for each step, so that a training can be resumed at any step."""

from typing import Protocol, runtime_checkable

import numpy
from torch import Tensor

from tfviz.checks import as_integer, at_least


@runtime_checkable
class Batches(Protocol):
    """A protocol of batches indexed by step: tuples of tensors whose first axis is the batch."""

    def __getitem__(self, step: int, /) -> tuple[Tensor, ...]: ...


def step_seed(seed: int, step: int) -> int:
    """Return a random seed for a step of a training; those of neighbouring seeds and steps are independent.

    Raises:
        TypeError: `step` is not an integer.
        ValueError: `seed` or `step` is negative.
    """
    step = as_integer("step", step)
    at_least(0, seed=seed, step=step)
    return int(numpy.random.SeedSequence((seed, step)).generate_state(1)[0])
