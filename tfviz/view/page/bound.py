"""From what a reader writes for an argument to a control, as ipywidgets' `interact` reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import Parameter
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from tfviz.view.page.gears import Bound, Control, Menu, Slider, Switch
from tfviz.view.still.panel import nice

GIVE = "(low, high[, step]), a list, a dict, True or False, a number, or view.points, cells, text, order, angle"
LARGEST = 2**53 - 1  # the whole numbers that a page can tell apart
STEPS = 50  # of a slider of numbers, at least


def bind(name: str, given: Any, default: Any) -> Control:
    """The control that an argument is bound to.

    Args:
        default: of the function's signature, where it has one: where the control starts, if that is on it.

    Raises:
        TypeError: it means no control.
        ValueError: it means one that has nothing to choose.
    """
    if isinstance(given, Bound):
        return given.control
    if isinstance(given, bool):
        return Switch(given)
    if isinstance(given, Mapping | list):
        return _menu(name, given, default)
    if isinstance(given, tuple) and len(given) in (2, 3) and all(map(_number, given)):
        return _slider(name, given, default)
    if _number(given):
        low, high = _around(given)
        return _slider(name, (low, high), given)
    raise TypeError(f"{name} is {_shown(given)}; give {GIVE}")


def _menu(name: str, given: Any, default: Any) -> Menu:
    pairs = list(given.items()) if isinstance(given, Mapping) else [(value, value) for value in given]
    if not pairs:
        raise ValueError(f"{name} is an empty menu; give it at least one value")
    starts = [at for at, (_, value) in enumerate(pairs) if _same(value, default)]
    return Menu([str(label) for label, _ in pairs], [value for _, value in pairs], starts[0] if starts else 0)


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, str | int | float) and type(value) is type(default) and value == default
    )


def _slider(name: str, given: tuple[Any, ...], default: Any) -> Slider:
    whole = all(isinstance(value, Integral) for value in given)
    given = tuple(int(value) if isinstance(value, Integral) else float(value) for value in given)
    low, high, *rest = given
    if whole and max(map(abs, given)) > LARGEST:
        raise ValueError(f"{name} is {_shown(given)}; the whole numbers of a page end at {LARGEST:,}: give floats")
    if not all(math.isfinite(value) for value in given) or not low < high:
        raise ValueError(f"{name} is {given}; a slider goes from a smaller number to a larger one")
    step = rest[0] if rest else 1 if whole else nice((high - low) / STEPS / 2.5, (1, 2, 5))
    if not 0 < step <= high - low:
        raise ValueError(f"{name} is {given}; the step must be above 0, and not larger than the slider")
    middle = low + round((high - low) / 2 / step - (0.25 if whole else 0)) * step  # of two in the middle the lower
    start = float(f"{middle:.10g}")
    if isinstance(default, Tensor) and not default.dim():
        default = default.item()
    if default is not Parameter.empty and _number(default) and low <= default <= high:
        start = float(default)
    if whole:
        start = low + (int(start) - low) // step * step
    return Slider(low, high, step, start, whole)


def _around(value: float) -> tuple[float, float]:
    """As ipywidgets has it: from minus the number to three times it."""
    if value == 0:
        return (0, 1) if isinstance(value, Integral) else (0.0, 1.0)
    return (-value, 3 * value) if value > 0 else (3 * value, -value)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)  # also numpy's


def _shown(value: Any) -> str:
    return repr(value)[:60] if not isinstance(value, Tensor) else f"a tensor of shape {list(value.shape)}"
