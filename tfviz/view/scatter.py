"""Points with names on a plane: factors of films, vectors of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.page.html import View
from tfviz.view.page.pieces import Packed
from tfviz.view.still.numbers import few, real
from tfviz.view.still.palette import plain
from tfviz.view.still.picture import Picture, headline

MOST = 100_000  # points
TRIED = 1000  # names for which room is looked for
NAMED = 60  # of the points in a still picture, at most
LONGEST = 32  # characters of a name there


def scatter(
    points: Float[Tensor, "point axis"], names: Sequence[str], title: str, axes: tuple[str, str] = ("first", "second")
) -> View:
    """A point for each name. Alive, the nearest point says its name and numbers, and names can be searched.

    Names stand beside their points where there is room, earlier ones first: put the best known ones in front.

    Args:
        axes: what the two numbers of a point are.

    Raises:
        ValueError: no points, points that are not pairs of finite numbers, or not as many names.
    """
    points = real("points", points).float()
    if points.dim() != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"points has the shape {list(points.shape)}; it must be [point, 2], with at least one point")
    few(len(points), MOST, "points", "give fewer, such as points[::10] and names[::10]")
    if len(names) != len(points):
        raise ValueError(f"{len(names)} names for {len(points)} points; each point has one")
    names = [" ".join("".join(c if c.isprintable() else " " for c in name).split()) or "∅" for name in names]
    packed = Packed()
    described = {
        "kind": "points",
        "title": title,
        "names": names,
        "axes": list(axes),
        "data": packed.add(points.contiguous().numpy().tobytes()),
        "range": [[float(points[:, axis].min()), float(points[:, axis].max())] for axis in (0, 1)],
        "limit": float(points.abs().max()) or 1.0,
        "state": {"rows": [], "zoom": 1, "middle": [0.5, 0.5]},
    }
    return View(_still(points.numpy(), names, title, axes), described, packed.data)


def _still(points: numpy.ndarray, names: Sequence[str], title: str, axes: tuple[str, str]) -> Picture:
    def draw() -> Figure:
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        plane = figure.subplots()
        plane.scatter(points[:, 0], points[:, 1], s=9, color="C5", alpha=0.8, linewidths=0)
        plane.margins(0.06)
        plane.set(xlabel=plain(axes[0]), ylabel=plain(axes[1]))
        headline(figure, title)
        figure.draw_without_rendering()  # the layout settles
        _name(figure, points, [plain(_cut(name)) for name in names])
        return figure

    ends = [[names[int(end)] for end in (column.argmin(), column.argmax())] for column in points.T]
    said = [f"{axis}: from {low!r} to {high!r}" for axis, (low, high) in zip(axes, ends)]
    return Picture(draw, f"{title}\n{'; '.join(said)}")


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _name(figure: Figure, points: numpy.ndarray, names: Sequence[str]) -> None:
    """Write names beside their points, as long as none covers another or leaves the plane."""
    plane = figure.axes[0]
    frame = plane.get_window_extent()
    taken: list[Bbox] = []
    for point, name in zip(points[:TRIED], names):
        if len(taken) == NAMED:
            return
        for shift, side in ((4, "left"), (-4, "right")):
            text = plane.annotate(name, point, (shift, 0), textcoords="offset points", ha=side, va="center", size=8)
            box = text.get_window_extent()
            if frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1) and not box.count_overlaps(taken):
                taken.append(box)
                break
            text.remove()
