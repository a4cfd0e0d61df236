"""Scatter plots: points coloured by group, with names where there is room."""

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
from tfviz.view.figures.palette import BOLD_FONT, drawable, shorten, soft
from tfviz.view.figures.planes import colour
from tfviz.view.spec import Scatter

MAX_GROUPS = 6  # one for each colour
MAX_NAMES_TRIED, MAX_NAMES_SHOWN = 1000, 60  # names to place, and names that are shown
MAX_POINTS_NAMED_AROUND = 30  # of more points, names that are not marked stand left or right only
MAX_NAME_LENGTH = 32  # characters
POINT_CLEARANCE_PIXELS = 4  # free space around a point, and along the edges of the plot
MARKED_SHIFT = 2  # additional distance of a marked point's name, in points
PATH_STOPS = 8  # places on a line of a path that names must not cover
DISTANCE_FACTORS = (1, 3, 5)  # tried for a marked point's name; a line connects a distant name
SIDE_SHIFTS = ((4, 0, "left", "center"), (-4, 0, "right", "center"))  # a shift in points, and the text's alignment
NAME_SHIFTS = (*SIDE_SHIFTS, (0, 5, "center", "bottom"), (0, -5, "center", "top"), (5, 5, "left", "bottom"),
          (-5, 5, "right", "bottom"), (5, -5, "left", "top"), (-5, -5, "right", "top"))  # fmt: skip


def group_labels(groups: Sequence[str] | None, count: int) -> tuple[list[str], list[int]]:
    """Return the groups in order of appearance, and each point's group index; -1 for "", which is no group.

    Raises:
        ValueError: groups and points differ in number, or there are more groups than colours.
    """
    if groups is None:
        return [], []
    if len(groups) != count:
        raise ValueError(f"{len(groups)} groups for {count} points; give one for each point, '' for no group")
    names = list(dict.fromkeys(filter(None, groups)))
    check_at_most(len(names), MAX_GROUPS, "groups", "merge the rarest groups, or put them in '', which is grey")
    return names, [names.index(group) if group else -1 for group in groups] if names else []


def marked_points(names: Sequence[str], marked: Sequence[str]) -> list[int]:
    """Return the indices of these names.

    Raises:
        LookupError: there is no such name.
    """
    if unknown := [name for name in marked if name not in names]:
        raise LookupError(f"marked names {unknown[0]!r}, but no point has this name")
    return [names.index(name) for name in marked]


def draw_points(axes: Axes, scatter: Scatter, size: float) -> None:
    """Draw a dot for each point: grey without a group, larger if marked."""
    labels = numpy.array(scatter.labels or [0] * len(scatter.points))
    sizes = numpy.full(len(scatter.points), size)
    sizes[list(scatter.marked)] *= 4
    for label in range(-1 if scatter.groups else 0, max(1, len(scatter.groups))):
        members = labels == label
        style: Any = {"alpha": 0.45 if label < 0 else 0.85, "linewidths": 0}
        above = 3 if scatter.groups and label >= 0 else 2
        x, y = scatter.points[members].T
        axes.scatter(x, y, s=sizes[members], color=_ink(label), zorder=above, **style)


def draw_zero_lines(axes: Axes, scatter: Scatter) -> None:
    """Draw a line at 0 of each coordinate that has both signs."""
    style: Any = {"color": soft(), "linewidth": 0.8, "zorder": 1}
    for numbers, line in zip(scatter.points.T, (axes.axvline, axes.axhline)):
        if numbers.min() < 0 < numbers.max():
            line(0, **style)


def group_legend(figure: Figure, scatter: Scatter) -> None:
    """Write the legend of colours in a line below."""
    mark: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 5}
    lines = [
        Line2D([], [], color=_ink(label), alpha=0.45 if label < 0 else None, label=drawable(name), **mark)
        for label, name in scatter.legend
    ]
    if lines:
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), handletextpad=0.2, columnspacing=1.4)


def _ink(label: int) -> str:
    return soft() if label < 0 else f"C{colour(label)}"


def draw_names(axes: Axes, scatter: Scatter, only_marked: bool = False, paths: Sequence[Sequence[int]] = ()) -> None:
    """Write names beside their points, unless they would cover another, a point or a path, or leave the axes.

    The marked come first, each on the far side of its point as captured from the middle, if there is room.
    """
    points, names, marked = scatter.points, scatter.names, scatter.marked
    positions = axes.transData.transform(points)
    outwards, occupied = positions - positions.mean(0), list[Bbox]()
    crossed = _along(positions, paths)
    others = [] if only_marked else [i for i in range(min(len(points), MAX_NAMES_TRIED)) if i not in set(marked)]
    for at in [*marked, *others]:
        if len(occupied) == MAX_NAMES_SHOWN:
            return
        drawn = numpy.concatenate([positions, crossed])
        elsewhere = drawn[numpy.abs(drawn - positions[at]).max(1) > 0.5]  # points in one place share the names' places
        away = outwards[at] if at in marked else None
        if box := _write_name(
            axes, points[at], drawable(shorten(names[at], MAX_NAME_LENGTH)), away, occupied, elsewhere
        ):
            occupied.append(box)


def _write_name(
    axes: Axes,
    point: numpy.ndarray,
    name: str,
    away: numpy.ndarray | None,
    occupied: list[Bbox],
    positions: numpy.ndarray,
) -> Bbox | None:
    """Write a name at the first free place, if any, and return its box.

    Args:
        axes: the axes to draw on.
        point: the point that it belongs to.
        name: the name.
        away: the preferred direction of a marked point's name; None for other points.
        occupied: the boxes of names.
        positions: the positions of other points, in pixels.
    """
    figure: Any = axes.figure
    clearance = POINT_CLEARANCE_PIXELS * figure.dpi / 100
    frame, is_marked = axes.get_window_extent().padded(-clearance / 2), away is not None
    face: dict[str, Any] = {"weight": "bold", "family": BOLD_FONT} if is_marked else {}
    few = len(positions) < MAX_POINTS_NAMED_AROUND
    around = NAME_SHIFTS if few else SIDE_SHIFTS
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
                line = {"arrowstyle": "-", "color": soft(), "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
                axes.annotate("", xytext=shift, arrowprops=line, **common)
            return box
        text.remove()
    return None


def _along(positions: numpy.ndarray, paths: Sequence[Sequence[int]]) -> numpy.ndarray:
    """Return places on the lines of the paths, [place, 2], close together; no ends of lines."""
    shares = numpy.linspace(0, 1, PATH_STOPS + 2)[1:-1, None]
    lines = [
        positions[one] + shares * (positions[other] - positions[one])
        for path in paths
        for one, other in itertools.pairwise(path)
    ]
    return numpy.concatenate([positions[:0], *lines])


def _cosine(shift: Sequence[float], direction: numpy.ndarray) -> float:
    """Return how far a shift goes in a direction: their cosine times the direction's length."""
    return float(numpy.dot(shift, direction) / numpy.linalg.norm(shift))
