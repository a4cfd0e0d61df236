"""How the learning rate moves: functions from (step, steps) to a share of the top rate."""

import math
from collections.abc import Callable

from tfviz import bounds
from tfviz.doors import takes
from tfviz.learn.checks import makes_no_other

Schedule = Callable[[int, int], float]
SLACK = 1e-6  # of a share that was computed


def constant(step: int, steps: int) -> float:
    """The top rate throughout."""
    return 1.0


def linear(warmup: int = 100, floor: float = 0.0) -> Schedule:
    """Linear up over `warmup` steps, then linear down to `floor` (Bergsma et al. 2025, "Straight to zero").

    It rises for a quarter of all steps at the most.

    >>> [round(linear(warmup=2)(step, 10), 2) for step in (0, 1, 6, 9)]
    [0.5, 1.0, 0.5, 0.12]
    """
    return _up_and_down(warmup, floor, lambda through: 1 - through)


def cosine(warmup: int = 100, floor: float = 0.0) -> Schedule:
    """Linear up over `warmup` steps, then half a cosine down to `floor` (Loshchilov & Hutter 2017).

    It rises for a quarter of all steps at the most.

    >>> [round(cosine(warmup=2)(step, 10), 2) for step in (0, 1, 6, 9)]
    [0.5, 1.0, 0.5, 0.04]
    """
    return _up_and_down(warmup, floor, lambda through: (1 + math.cos(math.pi * through)) / 2)


def _check(step: int, steps: int) -> None:
    bounds.at_least(1, steps=steps)
    bounds.between(0, steps, step=step)


def _up_and_down(warmup: int, floor: float, fall: Callable[[float], float]) -> Schedule:
    bounds.at_least(0, warmup=warmup)
    bounds.between(0, 1, floor=floor)

    def share(step: int, steps: int) -> float:
        _check(step, steps)
        rise = min(warmup, max(1, steps // 4))
        if step < rise:
            return (step + 1) / rise
        return floor + (1 - floor) * fall((step - rise) / max(1, steps - rise))

    return share


def inverse_square_root(warmup: int = 4000) -> Schedule:
    """Linear up over `warmup` steps, then falling as 1 / sqrt(step) (Vaswani et al. 2017, equation 3)."""
    bounds.at_least(1, warmup=warmup)

    def share(step: int, steps: int) -> float:
        bounds.at_least(0, step=step)  # how many there will be makes no difference
        return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)

    return share


def share(schedule: Schedule, step: int, steps: int) -> float:
    """What a schedule says, which is a share.

    Raises:
        ValueError: it is none.
    """
    makes_no_other(schedule=schedule)
    takes("step", "steps", schedule=schedule)
    found = schedule(step, steps)
    if not (hasattr(found, "__float__") and 0 <= float(found) <= 1 + SLACK):
        raise ValueError(f"schedule({step}, {steps}) is {found}; it must be a share of the rate, from 0 to 1")
    return float(found)
