"""Results of an instrument drawn in a plane: vectors as arrows, points as dots, and graphs."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from tfviz.view.figures.heatmap import colormap, contrasting_colour, norm
from tfviz.view.figures.palette import drawable, muted, tick_labels
from tfviz.view.result_spec import ResultPanel
from tfviz.view.spec import Scale

HALF_SIDE_POINTS = 80.0  # approximate distance from the middle of a plane to its edge
LETTER_POINTS, NAME_HEIGHT_POINTS = 5.2, 10.0  # width of a letter in a name, and height of a name
POINT_CLEARANCE_POINTS = 3.0  # free space around a point
AMBIGUOUS_RATIO = 1.5  # a name is ambiguous if another point is not this many times as far from it as its own
EDGE_CLEARANCE_POINTS = 4.0  # how far a name may cross the edge
NAME_DISTANCES_POINTS = (5.0, 9.0, 14.0, 20.0)  # between a point and its name
ARROW_STOPS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # shares of an arrow's length that names must not cover
NAME_DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1),
                   (0.5, 1), (-0.5, 1), (0.5, -1), (-0.5, -1))  # from a point to its name  # fmt: skip


def arrows(axes: Axes, panel: ResultPanel) -> None:
    """Draw an arrow from the origin to each vector, [word, 2]."""
    _plane(axes, panel)
    for at, (x, y) in enumerate(panel.numbers):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        arrow = {"arrowstyle": "-|>", "color": _colour_of(panel, at), "shrinkA": 0, "shrinkB": 0, "linewidth": 1.6}
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
    _names(axes, panel, ARROW_STOPS)


def dots(axes: Axes, panel: ResultPanel) -> None:
    _plane(axes, panel)
    for at, (x, y) in enumerate(panel.numbers):
        inside = lowest(panel) <= min(x, y) and max(x, y) <= panel.limit  # False for NaN
        axes.plot([x], [y], "o", color=_colour_of(panel, at), markersize=5, clip_on=not inside)  # uncut at the edge
    _names(axes, panel)


def graph(axes: Axes, panel: ResultPanel) -> None:
    """Draw nodes and an edge for each number in [from, to], thicker for larger ones, vermillion for negative ones.

    Edges below 2% of the limit are omitted. If the drawing is filled, the numbers on the diagonal colour the nodes as
    in a grid; otherwise they are drawn as loops.
    """
    weights, limit = panel.numbers, panel.limit
    count = len(weights)
    points = numpy.array(panel.drawing.positions) if len(panel.drawing.positions) == count else circle(count)
    half_width = 1.25 * max(float(abs(points).max(initial=0.0)), 1e-9)
    axes.set(xlim=(-half_width, half_width), ylim=(-half_width, half_width), xticks=[], yticks=[], aspect="equal")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    for start in range(count):
        for end in range(count):
            share = min(1.0, abs(weights[start, end]) / limit) if math.isfinite(weights[start, end]) else 0.0
            if share < 0.02:
                continue
            ink: dict[str, Any] = {"color": "C6" if weights[start, end] < 0 else "C5", "alpha": 0.2 + 0.8 * share}
            if start == end and panel.drawing.filled:
                continue
            if start == end:
                centre = points[start] + [0, 0.11 * half_width]
                axes.add_patch(Circle(centre, 0.07 * half_width, fill=False, linewidth=3 * share, **ink))
                continue
            arrow: dict[str, Any] = {"arrowstyle": "-|>", "linewidth": 3 * share, "shrinkA": 9, "shrinkB": 9, **ink,
                     "connectionstyle": "arc3,rad=0.12"}  # fmt: skip
            axes.annotate("", points[end], points[start], arrowprops=arrow)
    page = matplotlib.rcParams["figure.facecolor"]
    for node, ((x, y), name) in enumerate(zip(points, tick_labels(panel.row_labels(count)))):
        box = {"facecolor": page, "edgecolor": muted(), "boxstyle": "round,pad=0.25", "linewidth": 0.6}
        own, ink = weights[node, node], matplotlib.rcParams["text.color"]
        if panel.drawing.filled and abs(own) / limit >= 0.02:  # False for NaN
            diverging = Scale("diverging" if own < 0 else "linear", limit)
            face = colormap(diverging)(norm(diverging)(float(own)))
            box, ink = {**box, "facecolor": face}, contrasting_colour(face)
        axes.text(x, y, name, ha="center", va="center", fontsize=8, color=ink, bbox=box)


def circle(count: int) -> numpy.ndarray:
    """Return positions of nodes on the unit circle, [node, 2], clockwise from the top."""
    angle = 2 * numpy.pi * numpy.arange(count) / max(count, 1)
    return numpy.stack([numpy.sin(angle), numpy.cos(angle)], axis=1)


def colour(at: int) -> int:
    """Return the index in the colour cycle of one of the six colours that are legible in both themes."""
    return (5, 6, 3, 7, 1, 2)[at % 6]


def _colour_of(panel: ResultPanel, at: int) -> str:
    """Return the colour of a point: with marked ones, the marked alone have colours, which begin with the first."""
    names = panel.row_labels(len(panel.values))
    if panel.drawing.mark and names[at] not in panel.drawing.mark:
        return muted()
    return f"C{colour(sum(name in panel.drawing.mark for name in names[:at]) if panel.drawing.mark else at)}"


def lowest(panel: ResultPanel) -> float:
    """Return the lowest coordinate of a plane: 0 for dots without negative coordinates, otherwise -limit."""
    numbers = panel.numbers
    return 0.0 if panel.drawing.kind == "dots" and (numbers[numpy.isfinite(numbers)] >= 0).all() else -panel.limit


def _plane(axes: Axes, panel: ResultPanel) -> None:
    limit, low = panel.limit, lowest(panel)
    axes.set(xlim=(low, limit), ylim=(low, limit), aspect="equal")
    axes.set_xticks([low, (low + limit) / 2, limit])
    axes.set_yticks([(low + limit) / 2, limit])  # the corner's number stands below it
    axes.set(xlabel=drawable(panel.drawing.axes[0]), ylabel=drawable(panel.drawing.axes[1]))
    line = {"color": matplotlib.rcParams["axes.edgecolor"], "linewidth": 0.8, "zorder": 0}
    axes.axhline(0, **line)
    axes.axvline(0, **line)
    axes.spines[:].set_visible(False)


def _names(axes: Axes, panel: ResultPanel, stops: tuple[float, ...] = (1.0,)) -> None:
    """Write names beside their points, preferably outwards, without overlap of each other or of the drawing.

    Args:
        axes: the axes to draw on.
        panel: the panel with the names and points.
        stops: points to keep clear, as shares of the way from the origin to each point.
    """
    middle = (lowest(panel) + panel.limit) / 2  # of the plane, on both axes
    positions = HALF_SIDE_POINTS / (panel.limit - middle) * (panel.numbers - middle)  # from here on in points
    zero = positions[:1] * 0 - HALF_SIDE_POINTS * middle / (panel.limit - middle)
    occupied: list[numpy.ndarray] = []
    names = tick_labels(panel.row_labels(len(positions)))
    for at in numpy.argsort(-numpy.linalg.norm(positions, axis=1), kind="stable"):  # the outermost first
        if not numpy.isfinite(positions[at]).all():
            continue
        drawn = positions[numpy.isfinite(positions).all(1) & (numpy.arange(len(positions)) != at)]
        others = numpy.concatenate([zero + stop * (drawn - zero) for stop in stops])
        size = numpy.array([LETTER_POINTS * len(names[at]), NAME_HEIGHT_POINTS])
        candidates = [
            (distance, _name_box(positions[at], size, direction, distance))
            for distance in NAME_DISTANCES_POINTS
            for direction in NAME_DIRECTIONS
        ]
        boxes = [box for _, box in candidates]
        costs = [distance / 5 + _cost(box, positions[at], others, occupied) for distance, box in candidates]
        box = boxes[int(numpy.argmin(costs))]
        occupied.append(box)
        left, level = box[0, 0] - positions[at, 0], box.mean(0)[1] - positions[at, 1]
        axes.annotate(names[at], panel.numbers[at], (left, level), textcoords="offset points", va="center", fontsize=8)


def _name_box(
    point: numpy.ndarray, size: numpy.ndarray, direction: tuple[float, float], distance: float
) -> numpy.ndarray:
    """Return the box of a name placed in a direction from its point, as lower and upper corner, [2, 2]."""
    low = point + numpy.array(direction) * distance - size * (1 - numpy.array(direction)) / 2
    return numpy.stack([low, low + size])


def _cost(box: numpy.ndarray, point: numpy.ndarray, others: numpy.ndarray, occupied: list[numpy.ndarray]) -> float:
    """Return the cost of a candidate: overlaps, ambiguity, distance beyond the edge, and an inward direction."""
    covered = sum(bool((box[0] < other[1]).all() and (other[0] < box[1]).all()) for other in occupied)
    touched = int(
        ((others > box[0] - POINT_CLEARANCE_POINTS) & (others < box[1] + POINT_CLEARANCE_POINTS)).all(1).sum()
    )
    outside = float(numpy.clip(abs(box).max(0) - HALF_SIDE_POINTS - EDGE_CLEARANCE_POINTS, 0, None).sum())
    clearance = numpy.linalg.norm(numpy.clip(others, *box) - others, axis=1).min(initial=math.inf)
    ambiguous = bool(clearance < AMBIGUOUS_RATIO * numpy.linalg.norm(numpy.clip(point, *box) - point))
    shift = box.mean(0) - point
    along = shift @ point / max(float(numpy.linalg.norm(shift) * numpy.linalg.norm(point)), 1e-9)
    return 10 * (covered + touched) + 3 * ambiguous + 0.5 * outside - along
