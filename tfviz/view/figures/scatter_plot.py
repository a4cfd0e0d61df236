"""Parts of scatter plots: points coloured by group, the legend, and names where there is room."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from tfviz.view.check_numbers import check_at_most
from tfviz.view.figures.formatting import shorten
from tfviz.view.figures.palette import BOLD_FONT, drawable, muted
from tfviz.view.figures.planes import colour
from tfviz.view.spec import Scatter

MAX_GROUPS = 6  # one for each colour
MAX_NAMES_TRIED, MAX_NAMES_SHOWN = 1000, 60  # names that may be tried, and names that may be shown
MAX_POINTS_NAMED_AROUND = 30  # with more points, unmarked names are placed only to the left or right
MAX_NAME_LENGTH = 32  # characters
POINT_CLEARANCE_PIXELS = 4  # free space around a point, and along the edges of the plot
MAX_MARKED_SIZE = 56.0  # area of a marked point, in square points
MARKED_SHIFT = 2  # additional distance of a marked point's name, in points
PATH_STOPS = 8  # points on each segment of a path that names must not cover
DISTANCE_FACTORS = (1, 3, 5)  # tried for the name of a marked point; beyond the first, a line connects the two
SIDE_SHIFTS = ((4, 0, "left", "center"), (-4, 0, "right", "center"))  # shift in points, alignment of the text
NAME_SHIFTS = (*SIDE_SHIFTS, (0, 5, "center", "bottom"), (0, -5, "center", "top"), (5, 5, "left", "bottom"),
          (-5, 5, "right", "bottom"), (5, -5, "left", "top"), (-5, -5, "right", "top"))  # fmt: skip


def group_labels(groups: Sequence[str] | None, count: int) -> tuple[list[str], list[int]]:
    """Return the names of the groups in order of appearance, and each point's group index, -1 for no group ("").

    Raises:
        ValueError: there are not as many groups as points, or more than six different groups.
    """
    if groups is None:
        return [], []
    if len(groups) != count:
        raise ValueError(f"{len(groups)} groups for {count} points; give one for each point, '' for no group")
    names = list(dict.fromkeys(filter(None, groups)))
    check_at_most(len(names), MAX_GROUPS, "groups", "merge the rarest groups, or put them in '', which is grey")
    return names, [names.index(group) if group else -1 for group in groups] if names else []


def marked_points(names: Sequence[str], marked: Sequence[str]) -> list[int]:
    """Return the index of the point with each marked name.

    Raises:
        LookupError: no point has a marked name.
    """
    if unknown := [name for name in marked if name not in names]:
        raise LookupError(f"marked names {unknown[0]!r}, but no point has this name")
    return [names.index(name) for name in marked]


def draw_points(axes: Axes, scatter: Scatter, size: float) -> None:
    """Draw a dot for each point in the colour of its group, grey without a group, larger if marked."""
    labels = numpy.array(scatter.labels or [0] * len(scatter.points))
    sizes = numpy.full(len(scatter.points), size)
    sizes[list(scatter.marked)] = min(4 * size, MAX_MARKED_SIZE)
    for label in range(-1 if scatter.groups else 0, max(1, len(scatter.groups))):
        members = labels == label
        style: Any = {"alpha": 0.45 if label < 0 else 0.85, "linewidths": 0}
        above = 3 if scatter.groups and label >= 0 else 2
        x, y = scatter.points[members].T
        axes.scatter(x, y, s=sizes[members], color=_ink(label), zorder=above, **style)


def draw_spread(axes: Axes, scatter: Scatter) -> None:
    """Draw a line from the lowest to the highest coordinate of each point, along each axis on which they differ."""
    if scatter.spread is None:
        return
    (x_low, y_low), (x_high, y_high) = (end.T for end in scatter.spread)
    x, y = scatter.points.T
    colours = [_ink(label) for label in scatter.labels or [0] * len(x)]
    style: Any = {"linewidth": 1.2, "alpha": 0.6, "zorder": 1.5}
    axes.hlines(y, x_low, x_high, color=colours, **style)
    axes.vlines(x, y_low, y_high, color=colours, **style)


def draw_zero_lines(axes: Axes, scatter: Scatter) -> None:
    """Draw a line at 0 of each axis on which coordinates have both signs."""
    style: Any = {"color": muted(), "linewidth": 0.8, "zorder": 1}
    for numbers, line in zip(scatter.points.T, (axes.axvline, axes.axhline)):
        if numbers.min() < 0 < numbers.max():
            line(0, **style)


def group_legend(figure: Figure, scatter: Scatter) -> None:
    """Draw the legend of the groups' colours in a row below the figure, if there are groups."""
    mark: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 5}
    lines = [
        Line2D([], [], color=_ink(label), alpha=0.45 if label < 0 else None, label=drawable(name), **mark)
        for label, name in scatter.legend
    ]
    if lines:
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), handletextpad=0.2, columnspacing=1.4)


def _ink(label: int) -> str:
    return muted() if label < 0 else f"C{colour(label)}"


def draw_names(axes: Axes, scatter: Scatter, only_marked: bool = False, paths: Sequence[Sequence[int]] = ()) -> None:
    """Write names beside their points, unless a name would cover another name, a point or a path, or leave the axes.

    Marked points are named first, preferably on the side that faces away from the centre of all points.

    Args:
        axes: the axes to draw on, with a final layout.
        scatter: the points and names.
        only_marked: whether to name only marked points.
        paths: sequences of indices of points that a line connects.
    """
    points, names, marked = scatter.points, scatter.names, scatter.marked
    positions = axes.transData.transform(points)
    outwards, occupied = positions - positions.mean(0), list[Bbox]()
    crossed, spread = _along(positions, paths), _along_spread(axes, scatter)
    others = [] if only_marked else [i for i in range(min(len(points), MAX_NAMES_TRIED)) if i not in set(marked)]
    for at in [*marked, *others]:
        if len(occupied) == MAX_NAMES_SHOWN:
            return
        rest, lines = (  # without points in the same place
            drawn[numpy.abs(drawn - positions[at]).max(1) > 0.5] for drawn in (positions, crossed)
        )
        around = NAME_SHIFTS if len(rest) < MAX_POINTS_NAMED_AROUND else SIDE_SHIFTS
        away = outwards[at] if at in marked else None
        name = drawable(shorten(names[at], MAX_NAME_LENGTH))
        clear = numpy.concatenate([rest, lines])
        box = _write_name(axes, points[at], name, around, away, occupied, numpy.concatenate([clear, spread]))
        if not box and len(spread):  # rather over a line of the spread than nowhere
            box = _write_name(axes, points[at], name, around, away, occupied, clear)
        if box:
            occupied.append(box)


def _write_name(
    axes: Axes,
    point: numpy.ndarray,
    name: str,
    around: Sequence[tuple[float, float, str, str]],
    away: numpy.ndarray | None,
    occupied: list[Bbox],
    positions: numpy.ndarray,
) -> Bbox | None:
    """Write a name at the first free place beside its point, and return its box; None if no place is free.

    Args:
        axes: the axes to draw on.
        point: the coordinates of the point.
        name: the name.
        around: the places of an unmarked point's name.
        away: the preferred direction of a marked point's name; None for other points.
        occupied: the boxes of names written earlier.
        positions: the points to keep clear, [point, 2], in pixels.
    """
    figure: Any = axes.figure
    clearance = POINT_CLEARANCE_PIXELS * figure.dpi / 100
    frame, is_marked = axes.get_window_extent().padded(-clearance / 2), away is not None
    face: dict[str, Any] = {"weight": "bold", "family": BOLD_FONT} if is_marked else {}
    near: Any = around if away is None else sorted(NAME_SHIFTS, key=lambda one: -_cosine(one[:2], away))
    common: Any = {"xy": (float(point[0]), float(point[1])), "textcoords": "offset points"}
    for ring, (right, up, side, level) in (
        (ring, position) for ring in DISTANCE_FACTORS[: 3 if is_marked else 1] for position in near
    ):
        shift: Any = [ring * (part + MARKED_SHIFT * is_marked * numpy.sign(part)) for part in (right, up)]
        text = axes.annotate(name, xytext=shift, ha=side, va=level, size=8, zorder=5, **common, **face)
        box = text.get_window_extent()
        inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
        wider = box.padded(clearance)
        covers = ((positions > wider.min) & (positions < wider.max)).all(1).any()
        if inside and not covers and not box.count_overlaps(occupied):
            if ring > 1:
                line = {"arrowstyle": "-", "color": muted(), "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
                axes.annotate("", xytext=shift, arrowprops=line, **common)
            return box
        text.remove()
    return None


def _along(positions: numpy.ndarray, paths: Sequence[Sequence[int]]) -> numpy.ndarray:
    """Return evenly spaced points on the segments of the paths, [point, 2], without the segments' ends."""
    shares = numpy.linspace(0, 1, PATH_STOPS + 2)[1:-1, None]
    lines = [
        positions[one] + shares * (positions[other] - positions[one])
        for path in paths
        for one, other in itertools.pairwise(path)
    ]
    return numpy.concatenate([positions[:0], *lines])


def _along_spread(axes: Axes, scatter: Scatter) -> numpy.ndarray:
    """Return evenly spaced points on the lines that show the points' spread, [point, 2], in pixels."""
    if scatter.spread is None:
        return numpy.empty((0, 2))
    ends = []
    for axis in (0, 1):  # of the line along this axis
        line = numpy.stack([scatter.points] * 2)
        line[:, :, axis] = scatter.spread[:, :, axis]
        ends.append([axes.transData.transform(end) for end in line])
    shares = numpy.linspace(0, 1, PATH_STOPS + 2)[:, None, None]
    return numpy.concatenate([(low + shares * (high - low)).reshape(-1, 2) for low, high in ends])


def _cosine(shift: Sequence[float], direction: numpy.ndarray) -> float:
    """Return the cosine between a shift and a direction, times the length of the direction."""
    return float(numpy.dot(shift, direction) / numpy.linalg.norm(shift))
