"""Legends below pictures, which state the meanings of a scale's ends once for all results that share it.

The page makes the same legends for results that it computes (`js/interact/legend-panel.js`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from tfviz.view.figures.formatting import format_number
from tfviz.view.result_spec import ResultPanel, is_binary
from tfviz.view.spec import NO_NAMES, Scale


@dataclass(frozen=True)
class ScaleLegend:
    """The legend of a scale.

    Attributes:
        scale: the scale.
        ends: the value and the text of each end; the texts for results of zeros and ones omit the numbers.
        is_ramp: whether results have values between the ends, so that the legend is a strip of colours.
        hatched: the meaning of a hatched cell; empty if none is hatched.
    """

    scale: Scale
    ends: tuple[tuple[float, str], ...]
    is_ramp: bool
    hatched: str


def scale_legends(panels: Sequence[ResultPanel]) -> list[ScaleLegend]:
    """Return a legend for each scale whose ends or hatched cells have a meaning."""
    groups: dict[tuple[Scale, tuple[str, str], str], list[ResultPanel]] = {}
    for panel in panels:
        drawing = panel.drawing
        if drawing.kind != "bars" and (drawing.ends != NO_NAMES or drawing.hatched):  # those of bars stand above them
            groups.setdefault((panel.scale, drawing.ends, drawing.hatched), []).append(panel)
    return [_key(*group, members) for group, members in groups.items()]


def _key(scale: Scale, ends: tuple[str, str], hatched: str, panels: Sequence[ResultPanel]) -> ScaleLegend:
    values = numpy.concatenate([panel.numbers.ravel() for panel in panels])
    low = -scale.limit if scale.rule.diverging else 0.0
    is_ramp = ends == NO_NAMES or not is_binary(values)
    if not is_ramp:
        texts = [(0.0, ends[0]), (1.0, ends[1])]
        texts = [(value, text) for value, text in texts if text]
    else:
        numbered = zip((low, scale.limit), ends)
        texts = [
            (value, f"{format_number(value)}: {text}" if text else format_number(value)) for value, text in numbered
        ]
    return ScaleLegend(scale, tuple(texts), is_ramp, hatched if bool((values == -numpy.inf).any()) else "")
