"""Index batches by training step, and derive a seed for each step, so that a run can be resumed at any of them."""

from typing import Protocol, runtime_checkable

import numpy
from torch import Tensor

from tfviz.checks import as_integer, at_least


@runtime_checkable
class Batches(Protocol):
    """Batches by number: tuples of tensors whose first axis is the batch."""

    def __getitem__(self, step: int, /) -> tuple[Tensor, ...]: ...


def step_seed(seed: int, step: int) -> int:
    """Return a seed for a step of a run; neighbouring seeds and steps are independent."""
    step = as_integer("step", step)
    at_least(0, seed=seed, step=step)
    return int(numpy.random.SeedSequence((seed, step)).generate_state(1)[0])
