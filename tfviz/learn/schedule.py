"""Learning rate schedules: functions from (step, steps) to a factor of the maximum learning rate, from 0 to 1."""

import math
from collections.abc import Callable

from tfviz import checks
from tfviz.validation import check_callable

__all__ = ["constant", "cosine", "inverse_square_root", "linear"]

Schedule = Callable[[int, int], float]
FACTOR_TOLERANCE = 1e-6  # for rounding in computed factors


def constant(step: int, steps: int) -> float:
    """Return 1, the maximum rate, at every step."""
    return 1.0


def linear(warmup: int = 100, min_lr_ratio: float = 0.0) -> Schedule:
    """Return a schedule that rises over `warmup` steps, then falls linearly (Bergsma et al. 2025).

    It ends at `min_lr_ratio` times the maximum. The warm-up takes at most a quarter of all steps.

    >>> [round(linear(warmup=2)(step, 10), 2) for step in (0, 1, 6, 9)]
    [0.5, 1.0, 0.5, 0.12]
    """
    return _warmup_then(lambda progress: 1 - progress, warmup, min_lr_ratio)


def cosine(warmup: int = 100, min_lr_ratio: float = 0.0) -> Schedule:
    """Return a schedule that rises over `warmup` steps, then falls as a cosine (Loshchilov & Hutter 2017).

    It ends at `min_lr_ratio` times the maximum. The warm-up takes at most a quarter of all steps.

    >>> [round(cosine(warmup=2)(step, 10), 2) for step in (0, 1, 6, 9)]
    [0.5, 1.0, 0.5, 0.04]
    """
    return _warmup_then(lambda progress: (1 + math.cos(math.pi * progress)) / 2, warmup, min_lr_ratio)


def inverse_square_root(warmup: int = 4000) -> Schedule:
    """Return a schedule that rises over `warmup` steps, then falls as 1 / sqrt(step) (Vaswani et al. 2017, eq. 3)."""
    checks.at_least(1, warmup=warmup)

    def factor(step: int, steps: int) -> float:
        checks.at_least(0, step=step)  # independent of the number of steps
        return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)

    return factor


def lr_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Return a schedule's factor for a step.

    Raises:
        ValueError: the factor is not a number from 0 to 1.
    """
    check_callable("step", "steps", schedule=schedule)
    factor = schedule(step, steps)
    if not (hasattr(factor, "__float__") and 0 <= float(factor) <= 1 + FACTOR_TOLERANCE):
        raise ValueError(
            f"schedule({step}, {steps}) is {factor}; it must be a fraction of the learning rate, from 0 to 1"
        )
    return float(factor)


def _warmup_then(decay: Callable[[float], float], warmup: int, min_lr_ratio: float) -> Schedule:
    checks.at_least(0, warmup=warmup)
    checks.between(0, 1, min_lr_ratio=min_lr_ratio)

    def factor(step: int, steps: int) -> float:
        checks.at_least(1, steps=steps)
        checks.between(0, steps, step=step)
        rise = min(warmup, max(1, steps // 4))
        if step < rise:
            return (step + 1) / rise
        return min_lr_ratio + (1 - min_lr_ratio) * decay((step - rise) / max(1, steps - rise))

    return factor
