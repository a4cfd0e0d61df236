"""Convert the abbreviation of a control, as in ipywidgets' `interact`, into the control."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import Parameter
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from tfviz.view.check_numbers import MAX_SAFE_INTEGER
from tfviz.view.documents.interact import SliderSpec
from tfviz.view.instrument.controls import Control, Menu, Slider, Switch
from tfviz.view.spec import round_up

CONTROL_VALUES = (
    "(low, high[, step]), a list, a dict, True or False, a number, or view.controls.points, cells, text, order, angle"
)
MIN_SLIDER_STEPS = 50  # of a slider of floats


def bind(name: str, abbreviation: Any, default: Any) -> Control:
    """Return the control for an argument.

    Args:
        name: the name of the argument.
        abbreviation: the value passed to `view.interact`.
        default: the argument's default, if any, which becomes the initial value if the control can have it.

    Raises:
        TypeError: the abbreviation does not denote a control.
        ValueError: a menu has no values, or the range or step of a slider is invalid.
    """
    if isinstance(abbreviation, Control):
        return abbreviation
    if isinstance(abbreviation, bool):
        return Switch({"kind": "switch", "start": abbreviation}, [False, True])
    if isinstance(abbreviation, Mapping | list):
        return _menu(name, abbreviation, default)
    if isinstance(abbreviation, tuple) and len(abbreviation) in (2, 3) and all(map(_is_number, abbreviation)):
        return _slider(name, abbreviation, default)
    if _is_number(abbreviation):
        return _slider(name, _range_around(abbreviation), abbreviation)
    raise TypeError(f"{name} is {_shown(abbreviation)}; give {CONTROL_VALUES}")


def _menu(name: str, choices: Any, default: Any) -> Menu:
    pairs = list(choices.items()) if isinstance(choices, Mapping) else [(value, value) for value in choices]
    if not pairs:
        raise ValueError(f"{name} is an empty menu; give it at least one value")
    start = next((index for index, (_, value) in enumerate(pairs) if _is_same(value, default)), 0)
    names = [str(label) for label, _ in pairs]
    return Menu({"kind": "menu", "names": names, "start": start}, [value for _, value in pairs])


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, str | int | float) and type(value) is type(default) and value == default
    )


def _slider(name: str, ends: tuple[Any, ...], default: Any) -> Slider:
    integer = all(isinstance(value, Integral) for value in ends)
    ends = tuple(int(value) if isinstance(value, Integral) else float(value) for value in ends)
    low, high, *rest = ends
    if integer and max(map(abs, ends)) > MAX_SAFE_INTEGER:
        raise ValueError(f"{name} is {_shown(ends)}; the integers of a page end at {MAX_SAFE_INTEGER:,}: give floats")
    if not all(math.isfinite(value) for value in ends) or not low < high:
        raise ValueError(f"{name} is {ends}; a slider goes from a smaller number to a larger one")
    step = rest[0] if rest else 1 if integer else round_up((high - low) / MIN_SLIDER_STEPS / 2.5, (1, 2, 5))
    if not 0 < step <= high - low:
        raise ValueError(f"{name} is {ends}; the step must be above 0, and not larger than the slider")
    middle = low + round((high - low) / 2 / step - (0.25 if integer else 0)) * step  # the lower of two middle values
    start = float(f"{middle:.10g}")
    if isinstance(default, Tensor) and not default.dim():
        default = default.item()
    if default is not Parameter.empty and _is_number(default) and low <= default <= high:
        start = float(default)
    if integer:
        start = low + (int(start) - low) // step * step
    spec: SliderSpec = {
        "kind": "slider", "low": low, "high": high, "step": step, "start": start, "integer": integer,
    }  # fmt: skip
    return Slider(spec, range(int(low), int(high) + 1, int(step)) if integer else None)


def _range_around(value: float) -> tuple[float, float]:
    """Return the slider range around a number x, from -x to 3x as in ipywidgets; 0 to 1 around 0."""
    if value == 0:
        return (0, 1) if isinstance(value, Integral) else (0.0, 1.0)
    return (-value, 3 * value) if value > 0 else (3 * value, -value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)  # accepts numbers of NumPy


def _shown(value: Any) -> str:
    return repr(value)[:60] if not isinstance(value, Tensor) else f"a tensor of shape {list(value.shape)}"
