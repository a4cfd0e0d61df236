"""Ticks of a line chart's x-axis, chosen by the same rule as in pages (`js/interact/ticks.js`)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tfviz.view.spec import TICK_FACTORS, round_up


def ticks(names: Sequence[str], most: float) -> dict[int, str]:
    """Return the positions that have a tick, with their labels.

    If the names are evenly spaced numbers, ticks are at round numbers, without decimals if all of them are integers.
    Otherwise every n-th position has a tick.

    Args:
        names: the names of all positions.
        most: the number of labels that fit side by side.

    >>> ticks([f"{step / 2}" for step in range(41)], 8)
    {0: '0', 10: '5', 20: '10', 30: '15', 40: '20'}
    """
    every = int(round_up(max(1, math.ceil((len(names) - 1) / most)), TICK_FACTORS))
    numbers = _even_numbers(names)
    if not numbers:
        return {position: names[position] for position in range(0, len(names), every)}
    spacing = round_up(every * (numbers[-1] - numbers[0]) / (len(names) - 1), TICK_FACTORS)
    positions = [at for at, number in enumerate(numbers) if abs(number / spacing - round(number / spacing)) < 1e-6]
    whole = all(numbers[position].is_integer() for position in positions)
    return {position: re.sub(r"\.0+$", "", names[position]) if whole else names[position] for position in positions}


def _even_numbers(names: Sequence[str]) -> list[float]:
    """Return the names as numbers if they are evenly spaced, increasing numbers; otherwise an empty list."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return []
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)) or numbers[-1] <= numbers[0]:
        return []
    gap = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    return numbers if all(abs(n - numbers[0] - at * gap) < 1e-6 * gap for at, n in enumerate(numbers)) else []
