"""Cells that show their numbers, where these are few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage

from tfviz.view.still.formatting import in_cell

NUMBERED = 100  # cells that show their numbers
CELL = 0.42  # inches of such a cell


def number(axes: Axes, image: AxesImage, values: numpy.ndarray, limit: float = 1.0) -> None:
    """The numbers of a heatmap's cells, in the ink that reads best there; none where it is hatched."""
    shades: Any = image
    for row, col in numpy.ndindex(values.shape):
        value = shades.get_array()[row, col]
        if value is not numpy.ma.masked:
            ink = readable(shades.cmap(shades.norm(float(value))))
            axes.text(
                col, row, in_cell(float(values[row, col]), limit), ha="center", va="center", color=ink, fontsize=8
            )


def readable(shade: Sequence[float]) -> Any:
    """The ink or the page's own colour, whichever stands out more from a shade, by the contrast of WCAG."""
    inks = [matplotlib.rcParams[name] for name in ("text.color", "figure.facecolor")]
    return max(inks, key=lambda ink: _contrast(to_rgb(ink), shade[:3]))


def _contrast(one: Sequence[float], other: Sequence[float]) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Sequence[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
