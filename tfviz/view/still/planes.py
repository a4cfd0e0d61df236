"""Vectors, points and graphs in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy
from matplotlib.axes import Axes

from tfviz.view.still.figures import soft
from tfviz.view.still.palette import printable

if TYPE_CHECKING:
    from tfviz.view.still.interaction import Panel


def arrows(axes: Axes, panel: Panel) -> None:
    """From 0 to each."""
    _plane(axes, panel.colours[1])
    for at, (name, (x, y)) in enumerate(zip(printable(panel.named("rows", len(panel.values))), panel.numbers)):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        arrow = {"arrowstyle": "-|>", "color": f"C{colour(at)}", "shrinkA": 0, "shrinkB": 0, "linewidth": 1.6}
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
        _name(axes, x, y, name)


def dots(axes: Axes, panel: Panel) -> None:
    _plane(axes, panel.colours[1])
    for at, (name, (x, y)) in enumerate(zip(printable(panel.named("rows", len(panel.values))), panel.numbers)):
        axes.plot([x], [y], "o", color=f"C{colour(at)}", markersize=5)
        _name(axes, x, y, name)


def graph(axes: Axes, panel: Panel) -> None:
    """Nodes, and an edge for each number that is not 0: the thicker, the greater; below 0 in vermillion."""
    weights, limit = panel.numbers, panel.colours[1]
    count = len(weights)
    places = numpy.array(panel.places) if len(panel.places) == count else circle(count)
    far = 1.25 * max(float(abs(places).max(initial=0.0)), 1e-9)
    axes.set(xlim=(-far, far), ylim=(-far, far), xticks=[], yticks=[], aspect="equal")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    for start in range(count):
        for end in range(count):
            share = min(1.0, abs(weights[start, end]) / limit) if math.isfinite(weights[start, end]) else 0.0
            if share < 0.02:
                continue
            ink = {"color": "C6" if weights[start, end] < 0 else "C5", "alpha": 0.2 + 0.8 * share}
            if start == end:
                x, y = places[start]
                axes.plot([x], [y], "o", markersize=14, markerfacecolor="none", markeredgewidth=3 * share, **ink)
                continue
            arrow = {"arrowstyle": "-|>", "linewidth": 3 * share, "shrinkA": 9, "shrinkB": 9, **ink,
                     "connectionstyle": "arc3,rad=0.12"}  # fmt: skip
            axes.annotate("", places[end], places[start], arrowprops=arrow)
    page = matplotlib.rcParams["figure.facecolor"]
    for (x, y), name in zip(places, printable(panel.named("rows", count))):
        box = {"facecolor": page, "edgecolor": soft(), "boxstyle": "round,pad=0.25", "linewidth": 0.6}
        axes.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box)


def circle(count: int) -> numpy.ndarray:
    """Places of nodes on a circle, the first at the top, clockwise."""
    turn = 2 * numpy.pi * numpy.arange(count) / max(count, 1)
    return numpy.stack([numpy.sin(turn), numpy.cos(turn)], axis=1)


def colour(at: int) -> int:
    """Which of the eight colours: blue first, since yellow and black say too little on one of the two pages."""
    return (5, 6, 3, 7, 1, 2)[at % 6]


def nice(value: float, sizes: Sequence[float] = (1, 1.5, 2, 3, 4, 5, 6, 8)) -> float:
    """The next round number that is not less: one of these sizes times a power of ten; 1 for 0.

    >>> nice(0.3), nice(1.01), nice(2.4), nice(0.0)
    (0.3, 1.5, 3.0, 1.0)
    """
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = next(size for size in (*sizes, 10, 20) if size * power >= value * (1 - 1e-6))
    return float(f"{fitting * power:.6g}")


def _plane(axes: Axes, limit: float) -> None:
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.set_xticks([-limit, 0, limit])
    axes.set_yticks([-limit, 0, limit])
    line = {"color": matplotlib.rcParams["axes.edgecolor"], "linewidth": 0.8, "zorder": 0}
    axes.axhline(0, **line)
    axes.axvline(0, **line)
    axes.spines[:].set_visible(False)


def _name(axes: Axes, x: float, y: float, name: str) -> None:
    """Beyond the point, as seen from the middle, but inside the plane."""
    left = x < 0
    shift = (-5 if left else 5, 4 if y >= 0 else -4)
    axes.annotate(name, (x, y), shift, textcoords="offset points", ha="right" if left else "left", fontsize=8,
                  va="bottom" if y >= 0 else "top")  # fmt: skip
