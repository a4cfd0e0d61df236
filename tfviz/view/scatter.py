"""Scatter plots of named points, such as word embeddings projected to two dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.check_numbers import check_at_most, check_finite
from tfviz.view.documents.charts import PointsDocument
from tfviz.view.figures.formatting import format_count, shorten
from tfviz.view.figures.log_axis import set_log_ticks
from tfviz.view.figures.palette import drawable, muted
from tfviz.view.figures.scatter_plot import (
    draw_names,
    draw_points,
    draw_spread,
    draw_zero_lines,
    group_labels,
    group_legend,
    marked_points,
)
from tfviz.view.figures.static_figure import StaticFigure, panel_grid, set_title
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.spec import Scatter

MAX_POINTS = 100_000
MAX_PLANES = 12
FEW_POINTS = 60  # at most so many are drawn larger, in the colours of their groups
AxisScale = Literal["linear", "log"]


def scatter(
    points: Float[Tensor, "*training point axis"],
    names: Sequence[str],
    title: str,
    axes: tuple[str, str] = ("first", "second"),
    *,
    groups: Sequence[str] | None = None,
    mark: Sequence[str] = (),
    axis_starts: tuple[float | None, float | None] = (None, None),
    scales: tuple[AxisScale, AxisScale] = ("linear", "linear"),
) -> View:
    """Show a scatter plot of named points; the page shows the name and coordinates of the nearest point.

    Names are written beside their points where there is room, in the order of `names`, so pass important names first.
    The reader can search for names.

    Args:
        points: the coordinates, [point, 2] or [training, point, 2]. For several training runs, points are the mean,
            with a line from minimum to maximum along each axis.
        names: the names of the points.
        title: the title.
        axes: names of the two coordinates.
        groups: the group of each point, which sets its colour: at most six groups; "" is no group, drawn in grey.
        mark: names of points to draw larger and to label first, in bold.
        axis_starts: the start of each axis, such as (0, None), unless a point lies below it; None: the smallest
            coordinate.
        scales: "linear" or "log" for each axis.

    Raises:
        ValueError: there are no points; points are not [point, 2] or [training, point, 2], or not finite; there are not
            as many names or groups as points; there are more than six groups; a coordinate or the start of a log axis
            is not above 0.
        LookupError: `mark` names a point that does not exist.
    """
    table, ends = _mean_and_ends(points)
    names = _names(names, len(table))
    shown = Scatter(table, names, axes, *group_labels(groups, len(table)), marked_points(names, _cleaned(mark)), ends)
    extent = (table, table) if ends is None else ends
    lows = [
        float(column.min()) if low is None else min(low, float(column.min()))
        for column, low in zip(extent[0].T, axis_starts)
    ]
    for axis, scale, low in zip(axes, scales, lows):
        if scale == "log" and low <= 0:
            raise ValueError(f"the axis {axis!r} is logarithmic and has numbers that are not above 0")
    blobs = BlobStore()
    document: PointsDocument = {
        "kind": "points",
        "title": title,
        "names": names,
        "axes": list(axes),
        "data": blobs.add(table.tobytes()),
        "range": [[low, float(column.max())] for low, column in zip(lows, extent[1].T)],
        "scales": list(scales),
        "limit": float(abs(table).max()) or 1.0,
        "labels": list(shown.labels),
        "legend": shown.legend,
        "marked": list(shown.marked),
        "state": {"locked_rows": [], "zoom": 1, "middle": [0.5, 0.5]},
    }
    if ends is not None:
        document["spread"] = blobs.add(ends.tobytes())

    def draw() -> Figure:
        figure = Figure(figsize=(7.2, 4.6 + 0.3 * bool(groups)), layout="constrained")
        plane = figure.subplots()
        plane.set(xscale=scales[0], yscale=scales[1])
        draw_points(plane, shown, 9 if groups is None else 24 if len(names) <= FEW_POINTS else 14)
        draw_spread(plane, shown)
        plane.margins(0.06)
        plane.update_datalim([lows])
        plane.autoscale_view()
        draw_zero_lines(plane, shown)
        for axis, scale in zip((plane.xaxis, plane.yaxis), scales):
            if scale == "log":
                set_log_ticks(axis)
        plane.set(xlabel=drawable(axes[0]), ylabel=drawable(axes[1]))
        group_legend(figure, shown)
        set_title(figure, title)
        figure.draw_without_rendering()  # the layout settles
        draw_names(plane, shown)
        return figure

    outermost = [(names[int(column.argmin())], names[int(column.argmax())]) for column in table.T]
    ranges = "; ".join(f"{axis}: from {low!r} to {high!r}" for axis, (low, high) in zip(axes, outermost))
    return View(StaticFigure(draw, f"{title}\n{ranges}"), document, blobs.data)


def planes(
    panels: Mapping[str, Float[Tensor, "point axis"]],
    names: Sequence[str],
    title: str,
    *,
    groups: Sequence[str] | None = None,
    mark: Sequence[str] = (),
    paths: Sequence[Sequence[int]] = (),
    axes: Mapping[str, tuple[str, str]] | None = None,
) -> StaticFigure:
    """Draw the same named points in several square scatter plots side by side, each on its own scale.

    Args:
        panels: title of a panel -> coordinates, [point, 2].
        names: the names of the points.
        title: the title.
        groups: the group of each point, which sets its colour: at most six groups; "" is no group, drawn in grey.
        mark: names of points to draw larger and to label; other points have no label.
        paths: sequences of indices of points to connect by a thin line.
        axes: title of a panel -> names of its two coordinates.

    Raises:
        ValueError: there are no panels, or more than 12; points are not [point, 2]; there are not as many names or
            groups as points; there are more than six groups.
        LookupError: `mark` or a path refers to a point that does not exist, or `axes` to a panel that does not exist.
    """
    if not panels:
        raise ValueError("there is nothing to draw: give planes by name")
    check_at_most(len(panels), MAX_PLANES, "planes", "give fewer of them")
    tables = {str(panel): _plane(panel, points).numpy() for panel, points in panels.items()}
    names = _names(names, len(next(iter(tables.values()))))
    if wrong := [panel for panel, table in tables.items() if len(table) != len(names)]:
        raise ValueError(f"{wrong[0]!r} has {len(tables[wrong[0]])} points, for {len(names)} names")
    if any(not 0 <= point < len(names) for path in paths for point in path):
        raise LookupError(f"a path has a point that does not exist; points are numbered 0 to {len(names) - 1}")
    if unknown := [panel for panel in axes or () if panel not in tables]:
        raise LookupError(f"axes names {unknown[0]!r}, which is not one of the panels {', '.join(tables)}")
    coloured, marked = group_labels(groups, len(names)), marked_points(names, _cleaned(mark))
    shown = {
        panel: Scatter(table, names, (axes or {}).get(panel, ("", "")), *coloured, marked)
        for panel, table in tables.items()
    }

    def draw() -> Figure:
        ncols = min(len(tables), 3)
        nrows = -(-len(tables) // ncols)
        figure = Figure(figsize=(2.9 * ncols + 0.2, 2.9 * nrows + 0.4 + 0.3 * bool(groups)), layout="constrained")
        grid = panel_grid(figure, nrows, ncols, len(tables))
        for plane, (panel, scatter) in zip(grid, shown.items()):
            _draw_plane(plane, scatter, paths)
            plane.set_title(shorten(drawable(panel), 40), loc="left")
        group_legend(figure, scatter)
        set_title(figure, title)
        figure.draw_without_rendering()  # the layout settles
        for plane, scatter in zip(grid, shown.values()):
            draw_names(plane, scatter, only_marked=True, paths=paths)
        return figure

    size = f"{format_count(len(names), 'point')} in {format_count(len(tables), 'plane')}"
    return StaticFigure(draw, f"{title}\n{size}: {', '.join(tables)}")


def _draw_plane(plane: Axes, scatter: Scatter, paths: Sequence[Sequence[int]]) -> None:
    """Draw points and paths in a square plane centred at the origin."""
    for path in paths:
        plane.plot(*scatter.points[list(path)].T, color=muted(), linewidth=0.7, alpha=0.5, zorder=1)
    draw_points(plane, scatter, 14)
    limit = 1.55 * max(float(abs(scatter.points).max()), 1e-9)  # with room for names
    plane.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[0], yticks=[0], aspect="equal")
    plane.tick_params(labelbottom=False, labelleft=False)
    plane.set(xlabel=drawable(scatter.axes[0]), ylabel=drawable(scatter.axes[1]))


def _mean_and_ends(points: Tensor) -> tuple[numpy.ndarray, numpy.ndarray | None]:
    """Return the mean coordinates, [point, 2], and the lowest and the highest, [end, point, 2], over training runs."""
    if points.dim() != 3 or not len(points):
        return _plane("points", points).numpy(), None
    ends = torch.stack([_plane("points", end) for end in (points.amin(0), points.amax(0))])
    return _plane("points", points.mean(0)).numpy(), ends.numpy()


def _plane(name: str, points: Tensor) -> Tensor:
    points = check_finite(name, points).float()
    if points.dim() != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"{name} has the shape {list(points.shape)}; it must be [point, 2], with at least one point")
    check_at_most(len(points), MAX_POINTS, "points", "give fewer, such as points[::10] and names[::10]")
    return points


def _names(names: Sequence[str], count: int) -> list[str]:
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} points; give one for each point")
    return _cleaned(names)


def _cleaned(names: Sequence[str]) -> list[str]:
    """Return names in one line, with unprintable characters and runs of whitespace replaced by spaces."""
    return [" ".join("".join(c if c.isprintable() else " " for c in name).split()) or "∅" for name in names]
