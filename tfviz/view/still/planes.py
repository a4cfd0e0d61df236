"""Vectors, points and graphs in a plane."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle

from tfviz.view.still.figures import soft
from tfviz.view.still.palette import printable
from tfviz.view.still.panel import Panel

HALF = 80.0  # points from the middle of a plane to its edge, about


def arrows(axes: Axes, panel: Panel) -> None:
    """From 0 to each."""
    _plane(axes, panel.limit)
    for at, (x, y) in enumerate(panel.numbers):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        arrow = {"arrowstyle": "-|>", "color": f"C{colour(at)}", "shrinkA": 0, "shrinkB": 0, "linewidth": 1.6}
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
    _names(axes, panel)


def dots(axes: Axes, panel: Panel) -> None:
    _plane(axes, panel.limit)
    for at, (x, y) in enumerate(panel.numbers):
        axes.plot([x], [y], "o", color=f"C{colour(at)}", markersize=5)
    _names(axes, panel)


def graph(axes: Axes, panel: Panel) -> None:
    """Nodes, and an edge for each number that is not 0: the thicker, the greater; below 0 in vermillion.

    Where the panel is filled, the diagonal tints the nodes in the same two colours.
    """
    weights, limit = panel.numbers, panel.limit
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
            ink: dict[str, Any] = {"color": "C6" if weights[start, end] < 0 else "C5", "alpha": 0.2 + 0.8 * share}
            if start == end and panel.filled:
                continue
            if start == end:
                ring = Circle(places[start] + [0, 0.11 * far], 0.07 * far, fill=False, linewidth=3 * share, **ink)
                axes.add_patch(ring)
                continue
            arrow: dict[str, Any] = {"arrowstyle": "-|>", "linewidth": 3 * share, "shrinkA": 9, "shrinkB": 9, **ink,
                     "connectionstyle": "arc3,rad=0.12"}  # fmt: skip
            axes.annotate("", places[end], places[start], arrowprops=arrow)
    page = matplotlib.rcParams["figure.facecolor"]
    for node, ((x, y), name) in enumerate(zip(places, printable(panel.named("rows", count)))):
        box = {"facecolor": page, "edgecolor": soft(), "boxstyle": "round,pad=0.25", "linewidth": 0.6}
        share = min(1.0, abs(weights[node, node]) / limit) if panel.filled else 0.0
        if share >= 0.02:  # False for NaN
            edge = "C6" if weights[node, node] < 0 else "C5"
            tint = tuple(0.5 * share * a + (1 - 0.5 * share) * b for a, b in zip(to_rgb(edge), to_rgb(page)))
            box |= {"facecolor": tint, "edgecolor": edge, "linewidth": 1.2}
        axes.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box)


def circle(count: int) -> numpy.ndarray:
    """Places of nodes on a circle, the first at the top, clockwise."""
    turn = 2 * numpy.pi * numpy.arange(count) / max(count, 1)
    return numpy.stack([numpy.sin(turn), numpy.cos(turn)], axis=1)


def colour(at: int) -> int:
    """Which of the eight colours: blue first, since yellow and black say too little on one of the two pages."""
    return (5, 6, 3, 7, 1, 2)[at % 6]


def _plane(axes: Axes, limit: float) -> None:
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.set_xticks([-limit, 0, limit])
    axes.set_yticks([-limit, 0, limit])
    line = {"color": matplotlib.rcParams["axes.edgecolor"], "linewidth": 0.8, "zorder": 0}
    axes.axhline(0, **line)
    axes.axvline(0, **line)
    axes.spines[:].set_visible(False)


def _names(axes: Axes, panel: Panel) -> None:
    """Beyond their points, as seen from the middle; one above another where they would meet."""
    taken: list[tuple[float, float, float, float]] = []
    for name, (x, y) in zip(printable(panel.named("rows", len(panel.values))), panel.numbers):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        wide, way = 5.2 * len(name), -10.0 if y < 0 else 10.0  # in points, as all that follows
        right, up = (HALF * at / panel.limit for at in (x, y))
        left, up = (right - 5 - wide if x < 0 else right + 5), up + way / 2
        while any(left < c and a < left + wide and up - 4 < d and b < up + 4 for a, b, c, d in taken):
            up += way
        taken.append((left, up - 4, left + wide, up + 4))
        shift = (left - right, up - HALF * y / panel.limit)
        axes.annotate(name, (x, y), shift, textcoords="offset points", va="center", fontsize=8)
