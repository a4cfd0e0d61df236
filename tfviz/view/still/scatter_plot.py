"""Scatter plots: points coloured by group, with names where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from tfviz.view.still.heatmap import soft
from tfviz.view.still.numbers import check_at_most
from tfviz.view.still.palette import BOLD, drawable
from tfviz.view.still.picture import shorten
from tfviz.view.still.planes import colour

MAX_GROUPS = 6  # colours
MAX_TRIED, MAX_NAMED = 1000, 60  # names for which room is looked for, and found
LONGEST = 32  # characters of a name
CLEARANCE = 4  # pixels around a point
MARKED_SHIFT = 2  # points by which the name of a marked one goes farther
RINGS = (1, 3, 5)  # times as far, where the name of a marked one has no room; with a line to its point
BESIDE = ((4, 0, "left", "center"), (-4, 0, "right", "center"))  # a shift in points, and the text's alignment
AROUND = (*BESIDE, (0, 5, "center", "bottom"), (0, -5, "center", "top"), (5, 5, "left", "bottom"),
          (-5, 5, "right", "bottom"), (5, -5, "left", "top"), (-5, -5, "right", "top"))  # fmt: skip


def group_names(groups: Sequence[str] | None, count: int) -> list[str]:
    """Return the groups in the order in which they come; "" is none.

    Raises:
        ValueError: not as many as there are points; more than there are colours.
    """
    if groups is None:
        return []
    if len(groups) != count:
        raise ValueError(f"{len(groups)} groups for {count} points; each point has one, '' where it is of none")
    found = list(dict.fromkeys(filter(None, groups)))
    check_at_most(len(found), MAX_GROUPS, "groups", "put the rarest together, or in '', which is drawn grey")
    return found


def marked_points(names: Sequence[str], marked: Sequence[str]) -> list[int]:
    """Return the indices of these names.

    Raises:
        LookupError: there is no such name.
    """
    if unknown := [name for name in marked if name not in names]:
        raise LookupError(f"marked names {unknown[0]!r}, and no point is called so")
    return [names.index(name) for name in marked]


def draw_points(
    axes: Axes, points: numpy.ndarray, groups: Sequence[str] | None, marked: Sequence[int], size: float
) -> None:
    """Draw a dot for each point: grey where it has no group, larger where it is marked."""
    found = group_names(groups, len(points))
    for at, group in enumerate(["", *found] if found else [None]):
        members = [i for i in range(len(points)) if group is None or groups[i] == group]  # type: ignore[index]
        ink = "C5" if group is None else f"C{colour(at - 1)}" if at else soft()
        sizes = [4 * size if i in set(marked) else size for i in members]
        style: Any = {"alpha": 0.45 if group == "" else 0.85, "linewidths": 0, "zorder": 2 + bool(at)}
        axes.scatter(points[members, 0], points[members, 1], s=sizes, color=ink, **style)


def group_legend(figure: Figure, groups: Sequence[str] | None, count: int) -> None:
    """Say what the colours are, in a line below."""
    if not (found := group_names(groups, count)):
        return
    mark: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 5}
    lines = [Line2D([], [], color=f"C{colour(at)}", label=drawable(kind), **mark) for at, kind in enumerate(found)]
    if not all(groups or ()):
        lines.append(Line2D([], [], color=soft(), alpha=0.45, label="others", **mark))
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), handletextpad=0.2, columnspacing=1.4)


def draw_names(
    axes: Axes, points: numpy.ndarray, names: Sequence[str], marked: Sequence[int] = (), only_marked: bool = False
) -> None:
    """Write names beside their points, as long as none covers another, or a point, or leaves the axes.

    The marked come first, each on the far side of its point as seen from the middle, if there is room.
    """
    places = axes.transData.transform(points)
    outwards, occupied = places - places.mean(0), list[Bbox]()
    others = [] if only_marked else [i for i in range(min(len(points), MAX_TRIED)) if i not in set(marked)]
    for at in [*marked, *others]:
        if len(occupied) == MAX_NAMED:
            return
        elsewhere = places[numpy.abs(places - places[at]).max(1) > 0.5]  # points in one place share the names' places
        away = outwards[at] if at in marked else None
        if box := _write(axes, points[at], drawable(shorten(names[at], LONGEST)), away, occupied, elsewhere):
            occupied.append(box)


def _write(
    axes: Axes, point: numpy.ndarray, name: str, away: numpy.ndarray | None, occupied: list[Bbox], places: numpy.ndarray
) -> Bbox | None:
    """Write a name in the first place that is free, if any, and return its box.

    Args:
        away: of a marked point the direction that its name prefers.
        occupied: the boxes of names.
        places: those of other points, in pixels.
    """
    figure: Any = axes.figure
    frame, is_marked = axes.get_window_extent(), away is not None
    face: dict[str, Any] = {"weight": "bold", "family": BOLD} if is_marked else {}
    near: Any = BESIDE if away is None else sorted(AROUND, key=lambda one: -_cosine(one[:2], away))
    common: Any = {"xy": (float(point[0]), float(point[1])), "textcoords": "offset points"}
    for ring, (right, up, side, level) in ((ring, place) for ring in RINGS[: 3 if is_marked else 1] for place in near):
        shift: Any = [ring * (part + MARKED_SHIFT * is_marked * numpy.sign(part)) for part in (right, up)]
        text = axes.annotate(name, xytext=shift, ha=side, va=level, size=8, zorder=5, **common, **face)
        box = text.get_window_extent()
        inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
        wide = box.padded(CLEARANCE * figure.dpi / 100)
        covers = ((places > wide.min) & (places < wide.max)).all(1).any()
        if inside and not covers and not box.count_overlaps(occupied):
            if ring > 1:
                line = {"arrowstyle": "-", "color": soft(), "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
                axes.annotate("", xytext=shift, arrowprops=line, **common)
            return box
        text.remove()
    return None


def _cosine(shift: Sequence[float], direction: numpy.ndarray) -> float:
    """Return how far a shift goes in a direction: their cosine times the direction's length."""
    return float(numpy.dot(shift, direction) / numpy.linalg.norm(shift))
