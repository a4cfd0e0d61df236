"""The steps of a training, and the columns of numbers that a checkpoint keeps of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step of training.

    Attributes:
        step: its number, from 0.
        loss: in nats a token, before the step was taken.
        rate: the learning rate it was taken with.
        speed: tokens a second.
    """

    step: int
    loss: float
    rate: float
    speed: float


COLUMNS = ("loss", "rate", "speed")


def columns(steps: Sequence[Step]) -> list[tuple[float, ...]]:
    """A column for each number of a step; none before the first step."""
    return [tuple(getattr(step, name) for step in steps) for name in COLUMNS] if steps else []


def of(columns: Sequence[Sequence[float]]) -> list[Step]:
    """The steps that were kept."""
    return [Step(number, *row) for number, row in enumerate(zip(*columns))]


def is_whole(lengths: Sequence[int], steps: int) -> bool:
    """Whether columns of these lengths are all there is of so many steps."""
    return list(lengths) == [steps] * len(COLUMNS) or not (steps or any(lengths))
