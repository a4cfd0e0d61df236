"""The data flow of a function, drawn from its own lines and its own run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from tfviz.view.followed import Value, follow
from tfviz.view.still.heatmap import soft
from tfviz.view.still.layered import Box, Layout, laid
from tfviz.view.still.numbers import few
from tfviz.view.still.palette import BOLD, plain
from tfviz.view.still.picture import Picture, headline

VALUES = 60  # boxes in a picture, at most
NAME, CODE = 9.0, 7.5  # points of a name and of an expression
LINE, ROOM = 11.5, 7.0  # points: from line to line, and from a box's edge to its text
LETTERS = 36  # of an expression in a line
WIDTHS = {NAME: 0.68, CODE: 0.66}  # of a letter for each point of its size


def flow(
    function: Callable[..., Any],
    /,
    *given: Any,
    title: str = "",
    axes: Mapping[int, str] | None = None,
    **named: Any,
) -> Picture:
    """What becomes of what in a function: each variable with its shape and the line that made it, from top to bottom.

    The function, or the `forward` of a module, is run once, statement by statement, on what is given: what is drawn is
    the code and the shapes of that run. A loop is one statement; of it those values are shown that later lines look at.

    Args:
        title: default: the function's name.
        axes: size -> what an axis of that size is: `{6: "word", 8: "d"}`.

    Raises:
        ValueError: the source is not at hand, or there are more values than a picture has room for.
        Whatever the function raises.
    """
    values = follow(function, given, named)
    if not values:
        raise ValueError("no line of the function makes a tensor: there is nothing to draw")
    few(len(values), VALUES, "values", "draw a part of it, a function of its own")
    title = title or getattr(function, "__name__", type(function).__name__)
    texts = [_texts(value, axes or {}) for value in values]
    layout = laid([Box(*_size(name, shape, code)) for name, shape, code in texts], [value.parents for value in values])

    def draw() -> Figure:
        figure = Figure(figsize=(layout.width / 72, layout.height / 72 + 0.35), layout="constrained")
        board = figure.subplots()
        board.set(xlim=(0, layout.width), ylim=(layout.height, 0), aspect="equal")
        board.set_axis_off()
        for way in layout.ways:
            _arrow(board, way)
        for number, (value, text) in enumerate(zip(values, texts)):
            _box(board, layout, number, value, text)
        headline(figure, title)
        return figure

    return Picture(draw, "\n".join([title, *(_told(value, text) for value, text in zip(values, texts))]))


def _texts(value: Value, axes: Mapping[int, str]) -> tuple[str, str, list[str]]:
    sizes = [f"{axes[size]} {size}" if size in axes else str(size) for size in value.shape]
    lines = [line.replace("    ", "\u00a0\u00a0") for line in value.code.splitlines()]  # a loop's body stays indented
    wrapper = textwrap.TextWrapper(LETTERS, break_long_words=False, break_on_hyphens=False)
    code = [piece for line in lines for piece in wrapper.wrap(line)]
    return plain(value.name), " × ".join(sizes) or "a number", [plain(line) for line in code]


def _told(value: Value, text: tuple[str, str, list[str]]) -> str:
    name, shape, _ = text
    return f"{name} [{shape}]" + (f" = {value.code}" if value.code else ", learned" if value.learned else ", given")


def _size(name: str, shape: str, code: list[str]) -> tuple[float, float]:
    head = WIDTHS[NAME] * NAME * len(name) + 10 + WIDTHS[CODE] * CODE * len(shape)
    widest = max([head, *(WIDTHS[CODE] * CODE * len(line) for line in code)])
    return widest + 2 * ROOM, LINE * (1 + len(code)) + 1.3 * ROOM


def _box(board: Axes, layout: Layout, number: int, value: Value, text: tuple[str, str, list[str]]) -> None:
    name, shape, code = text
    (x, y), (width, height) = layout.places[number], layout.sizes[number]
    colour = "C1" if value.learned else "C5" if value.code else matplotlib.rcParams["axes.edgecolor"]
    page = matplotlib.rcParams["axes.facecolor"]
    style: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=4", "linewidth": 1.8 if value.output else 0.9}
    corner = (x - width / 2, y)
    board.add_patch(FancyBboxPatch(corner, width, height, facecolor=page, edgecolor=page, zorder=2, **style))
    tint = 0.12 if value.code or value.learned else 0.0
    board.add_patch(
        FancyBboxPatch(corner, width, height, facecolor=(colour, tint), edgecolor=colour, zorder=3, **style)
    )
    top, left = y + ROOM + 0.35 * LINE, x - width / 2 + ROOM
    board.text(left, top, name, size=NAME, family=BOLD, weight="bold", va="center", zorder=4)
    right: dict[str, Any] = {"ha": "right", "va": "center", "color": soft(), "zorder": 4}
    board.text(x + width / 2 - ROOM, top, shape, size=CODE, **right)
    for row, line in enumerate(code, 1):
        board.text(left, top + row * LINE, line, size=CODE, family="monospace", va="center", zorder=4)


def _arrow(board: Axes, way: list[tuple[float, float]]) -> None:
    """A line from the lower edge of one box to the upper edge of another, by the places between."""
    points, codes = [way[0]], [Path.MOVETO]
    for (x, y), (u, v) in pairwise(way):
        middle = (y + v) / 2
        points += [(x, middle), (u, middle), (u, v)]
        codes += 3 * [Path.CURVE4]
    ink = matplotlib.rcParams["axes.edgecolor"]
    board.add_patch(PathPatch(Path(points, codes), fill=False, edgecolor=ink, linewidth=1.1, zorder=1))
    (x, y) = way[-1]
    board.fill([x - 3, x + 3, x], [y - 5.5, y - 5.5, y], color=ink, linewidth=0, zorder=1)
