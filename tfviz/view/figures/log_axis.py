"""Ticks of logarithmic axes: at few, round numbers that are written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from tfviz.view.figures.formatting import format_number

MAX_LOG_TICKS = 7  # a log axis labels up to so many points
MIN_WRITTEN_OUT = 1e-5  # a log axis that goes below is labelled with powers of ten
RAISED = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")


def end_at_ticks(axes: Axes) -> None:
    """Extend a log y-axis of less than two decades to 1, 2 or 5 times powers of ten, so that its ends have labels."""
    low, high = axes.get_ylim()
    if axes.get_autoscaley_on() and high < 100 * low:
        steps = [step * 10.0**power for power in range(-30, 30) for step in (1, 2, 5)]
        axes.set_ylim(max(step for step in steps if step <= low), min(step for step in steps if step >= high))


def set_log_ticks(axis: Axis, points: Sequence[float] = ()) -> None:
    """Label a log axis at requested ticks, at its points if they are few and apart, or at 1, 2 and 5 if it is short.

    Numbers are written out, because matplotlib would typeset powers of ten as formulas. If the axis goes below 1e-5,
    powers of ten are written with superscripts.
    """
    low, high = axis.get_view_interval()
    spread_out = all(after > 1.4 * before for before, after in itertools.pairwise(points))
    if isinstance(axis.get_major_locator(), FixedLocator):
        pass
    elif 1 < len(points) <= MAX_LOG_TICKS and spread_out:
        axis.set_major_locator(FixedLocator(points))
        axis.set_minor_locator(NullLocator())
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    as_powers = low < MIN_WRITTEN_OUT
    axis.set_major_formatter(lambda value, _: _power(float(value)) if as_powers else _tick(float(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    return f"{int(value):,}" if value >= 1000 and value.is_integer() else format_number(value, 6)


def _power(value: float) -> str:
    """Format a power of ten with a superscript; other numbers and 1 are written out."""
    exponent = math.log10(value) if value > 0 else 0.0
    if not exponent or abs(exponent - round(exponent)) > 1e-6:
        return _tick(value)
    return f"10{str(round(exponent)).translate(RAISED)}"
