"""How the learning rate moves: functions from (step, steps) to a share of the top rate."""

import math
from collections.abc import Callable

Schedule = Callable[[int, int], float]


def constant(step: int, steps: int) -> float:
    """The top rate throughout."""
    return 1.0


def cosine(warmup: int = 100, floor: float = 0.0) -> Schedule:
    """Linear up over `warmup` steps, then half a cosine down to `floor` (Loshchilov & Hutter 2017).

    >>> [round(cosine(warmup=2)(step, 10), 2) for step in (0, 1, 6, 9)]
    [0.5, 1.0, 0.5, 0.04]
    """

    def share(step: int, steps: int) -> float:
        rise = min(warmup, max(1, steps // 4))
        if step < rise:
            return (step + 1) / rise
        through = (step - rise) / max(1, steps - rise)
        return floor + (1 - floor) * (1 + math.cos(math.pi * through)) / 2

    return share


def inverse_square_root(warmup: int = 4000) -> Schedule:
    """Linear up over `warmup` steps, then falling as 1 / sqrt(step) (Vaswani et al. 2017, equation 3)."""
    if warmup < 1:
        raise ValueError(f"warmup is {warmup}; it must be at least 1 step")

    def share(step: int, steps: int) -> float:
        return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)

    return share
