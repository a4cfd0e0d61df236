"""Points with names on planes: coloured by group, joined by paths, named where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from tfviz.view.still.heatmap import soft
from tfviz.view.still.numbers import few
from tfviz.view.still.palette import BOLD, plain
from tfviz.view.still.planes import colour

GROUPS = 6  # colours
TRIED = 1000  # names for which room is looked for
NAMED = 60  # of the points in a still picture, at most
LONGEST = 32  # characters of a name there
ROOM = 4  # pixels of a point's own
LARGE = 2  # points by which a marked one goes farther
RINGS = (1, 3, 5)  # times as far, where a marked one has no room; with a line to its point
BESIDE = ((4, 0, "left", "center"), (-4, 0, "right", "center"))  # points of a shift, and the sides that it goes to
AROUND = (*BESIDE, (0, 5, "center", "bottom"), (0, -5, "center", "top"), (5, 5, "left", "bottom"),
          (-5, 5, "right", "bottom"), (5, -5, "left", "top"), (-5, -5, "right", "top"))  # fmt: skip


def kinds(groups: Sequence[str] | None, count: int) -> list[str]:
    """The groups, by the alphabet, so that two pictures agree; "" is none of them.

    Raises:
        ValueError: not as many as there are points; more than there are colours.
    """
    if groups is None:
        return []
    if len(groups) != count:
        raise ValueError(f"{len(groups)} groups for {count} points; each point has one, '' where it is of none")
    found = list(dict.fromkeys(group for group in groups if group))
    few(len(found), GROUPS, "groups", "put the rarest together, or in '', which is drawn grey")
    return found


def marked(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where these names stand.

    Raises:
        LookupError: there is no such name.
    """
    if unknown := [name for name in wanted if name not in names]:
        raise LookupError(f"marked names {unknown[0]!r}, and no point is called so")
    return [list(names).index(name) for name in wanted]


def dots(axes: Axes, points: numpy.ndarray, groups: Sequence[str] | None, marks: Sequence[int], size: float) -> None:
    """A dot each: grey where it has no group, larger where it is marked."""
    found = kinds(groups, len(points))
    for at, group in enumerate(["", *found] if found else [None]):
        rows = [i for i in range(len(points)) if group is None or groups[i] == group]  # type: ignore[index]
        ink = "C5" if group is None else f"C{colour(at - 1)}" if at else soft()
        sizes = [4 * size if i in set(marks) else size for i in rows]
        alpha = 0.45 if group == "" else 0.85
        axes.scatter(
            points[rows, 0], points[rows, 1], s=sizes, color=ink, alpha=alpha, linewidths=0, zorder=2 + bool(at)
        )


def legend(figure: Figure, groups: Sequence[str] | None, count: int) -> None:
    """What the colours are, in a line below."""
    if not (found := kinds(groups, count)):
        return
    mark: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 5}
    lines = [Line2D([], [], color=f"C{colour(at)}", label=plain(kind), **mark) for at, kind in enumerate(found)]
    if any(not group for group in groups or ()):
        lines.append(Line2D([], [], color=soft(), alpha=0.45, label="others", **mark))
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), handletextpad=0.2, columnspacing=1.4)


def name(
    axes: Axes, points: numpy.ndarray, names: Sequence[str], marks: Sequence[int] = (), only: bool = False
) -> None:
    """Names beside their points, as long as none covers another, or a point, or leaves the plane.

    The marked come first, each on the far side of its point, as seen from the middle, if there is room.

    Args:
        only: no others than the marked.
    """
    figure: Any = axes.figure
    frame = axes.get_window_extent()
    taken: list[Bbox] = []
    places = axes.transData.transform(points)
    own, away = ROOM * figure.dpi / 100, places - places.mean(0)
    others = [] if only else [i for i in range(min(len(points), TRIED)) if i not in set(marks)]
    for at in [*marks, *others]:
        if len(taken) == NAMED:
            return
        far = numpy.abs(places - places[at]).max(1) > 0.5  # what lies in one place has one place for its names
        text = plain(names[at] if len(names[at]) <= LONGEST else names[at][: LONGEST - 1] + "…")
        if box := _written(axes, points[at], text, away[at] if at in marks else None, (frame, taken, places[far], own)):
            taken.append(box)


def _written(
    axes: Axes, point: numpy.ndarray, said: str, away: numpy.ndarray | None, around: tuple[Any, ...]
) -> Bbox | None:
    """Where a name was written, the first place that is free."""
    frame, taken, places, own = around
    spot = (float(point[0]), float(point[1]))
    loud = away is not None
    face: dict[str, Any] = {"weight": "bold", "family": BOLD} if loud else {}
    near: Any = BESIDE if away is None else sorted(AROUND, key=lambda one: -_along(one, away))
    tried = [(ring, place) for ring in (RINGS if loud else RINGS[:1]) for place in near]
    for ring, (right, up, side, level) in tried:
        right, up = (ring * (shift + LARGE * loud * numpy.sign(shift)) for shift in (right, up))
        text = axes.annotate(said, spot, (right, up), textcoords="offset points", ha=side, va=level, size=8, **face)
        text.set_zorder(5)
        box = text.get_window_extent()
        inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
        wide = box.padded(own)
        covers = ((places > wide.min) & (places < wide.max)).all(1).any()
        if inside and not covers and not box.count_overlaps(taken):
            if ring > 1:
                line = {"arrowstyle": "-", "color": soft(), "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
                axes.annotate("", spot, (right, up), textcoords="offset points", arrowprops=line)
            return box
        text.remove()
    return None


def _along(place: tuple[Any, ...], away: numpy.ndarray) -> float:
    """How far one of the places around a point lies that way."""
    shift = numpy.array(place[:2], dtype=float)
    return float(shift @ away / max(float(numpy.linalg.norm(shift)), 1e-9))
