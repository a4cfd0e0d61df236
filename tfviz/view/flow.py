"""Pictures of the data flow of a function as a graph, from its source code and one call."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from tfviz.view.check_numbers import check_at_most
from tfviz.view.dataflow import Value, trace
from tfviz.view.figures.graph_layout import Box, Point, layered_layout
from tfviz.view.figures.palette import BOLD_FONT, drawable, muted
from tfviz.view.figures.static_figure import StaticFigure, set_title

MAX_VALUES = 60
NAME_POINTS, CODE_POINTS, LINE_POINTS, PADDING_POINTS = 9.0, 7.5, 11.5, 7.0  # points
LETTER_WIDTH_RATIO = 0.67  # of the font size
MAX_LINE_LENGTH = 36  # characters of an expression


def flow(
    function: Callable[..., Any],
    /,
    *args: Any,
    title: str = "",
    axes: Mapping[int, str] | None = None,
    mark: Sequence[str] = (),
    omit: Sequence[str] = (),
    **kwargs: Any,
) -> StaticFigure:
    """Draw the data-flow graph of a function: each tensor with its shape and the expression that computes it.

    The function, or the `forward` of a module, is called once with the arguments. The picture shows the shapes of that
    call. A loop counts as one statement; of its tensors, only those used later are drawn.

    Args:
        function: the function or module to trace.
        *args: positional arguments of the function.
        title: the title; by default the name of the function, or of the module's class.
        axes: names for axes by their size, such as `{6: "word", 8: "d"}`.
        mark: names of the tensors to draw in colour, all others in grey; by default all are in colour.
        omit: names of tensors to leave out, such as weights; the code that uses them stays.
        **kwargs: keyword arguments of the function.

    Raises:
        LookupError: `mark` or `omit` names a tensor that does not exist.
        ValueError: the source is not available, the function computes no tensor, or there are too many tensors.
        Exception: the function raises an exception.
    """
    values = trace(function, args, kwargs)
    if not values:
        raise ValueError("no line of the function makes a tensor: there is nothing to draw")
    check_at_most(len(values), MAX_VALUES, "values", "draw a part of it, a function of its own")
    names = [value.name for value in values]
    for argument, named in (("mark", mark), ("omit", omit)):
        if unknown := [name for name in named if name not in names]:
            raise LookupError(f"{argument} names {unknown[0]!r}; the values are {', '.join(names)}")
    values = _without(values, omit)
    title = title or getattr(function, "__name__", type(function).__name__)
    labels = [_label(value, axes or {}) for value in values]
    boxes = [_box(label) for label in labels]
    layout = layered_layout(boxes, [value.parents for value in values])

    def draw() -> Figure:
        figure = Figure(figsize=(layout.width / 72, layout.height / 72 + 0.35), layout="constrained")
        panel = figure.subplots()
        panel.set(xlim=(0, layout.width), ylim=(layout.height, 0), aspect="equal")
        panel.set_axis_off()
        for edge in layout.edges:
            _draw_arrow(panel, edge)
        for value, label, box, top in zip(values, labels, boxes, layout.tops):
            _draw_box(panel, value, label, box, top, not mark or value.name in mark)
        set_title(figure, title)
        return figure

    return StaticFigure(draw, "\n".join([title, *(_summary(value, label) for value, label in zip(values, labels))]))


def _without(values: Sequence[Value], omit: Collection[str]) -> list[Value]:
    """Return the values other than those named, without the lines from those."""
    kept = [index for index, value in enumerate(values) if value.name not in omit]
    indices = {old: new for new, old in enumerate(kept)}
    return [
        replace(values[index], parents=tuple(indices[parent] for parent in values[index].parents if parent in indices))
        for index in kept
    ]


class Label(NamedTuple):
    """The text in a box: the name and the shape of a tensor, and lines of code."""

    name: str
    shape: str
    code: list[str]


def _label(value: Value, axes: Mapping[int, str]) -> Label:
    sizes = [f"{axes[size]} {size}" if size in axes else str(size) for size in value.shape]
    lines = [line.replace("    ", "\u00a0\u00a0") for line in value.code.splitlines()]  # a loop's body stays indented
    code = [drawable(piece) for line in lines for piece in _wrapped(line)]
    return Label(drawable(value.name), " × ".join(sizes) or "a number", code)


def _wrapped(line: str) -> Iterator[str]:
    """Break a long line of code before a method call or at a space, where the fewest brackets are open."""
    while len(line) > MAX_LINE_LENGTH:
        depth, depths = 0, dict[int, int]()  # possible break -> number of open brackets
        for at, letter in enumerate(line):
            depth += (letter in "([{") - (letter in ")]}")
            if at and (letter == " " or (letter == "." and line[at - 1] in ")]")):
                depths[at] = depth
        within = {at: depth for at, depth in depths.items() if 8 <= at <= MAX_LINE_LENGTH}
        if not within:
            break
        least = min(within.values())
        cut = max(at for at, depth in within.items() if depth == least)
        yield line[:cut].rstrip()
        line = line[cut:].lstrip(" ")
    yield from textwrap.TextWrapper(MAX_LINE_LENGTH, break_long_words=False, break_on_hyphens=False).wrap(line)


def _summary(value: Value, label: Label) -> str:
    origin = f" = {value.code}" if value.code else ", learned" if value.learned else ", given"
    return f"{label.name} [{label.shape}]{origin}"


def _box(label: Label) -> Box:
    head = NAME_POINTS * len(label.name) + CODE_POINTS * len(label.shape)
    widest = max(
        [LETTER_WIDTH_RATIO * head + 10, *(LETTER_WIDTH_RATIO * CODE_POINTS * len(line) for line in label.code)]
    )
    return Box(widest + 2 * PADDING_POINTS, LINE_POINTS * (1 + len(label.code)) + 1.3 * PADDING_POINTS)


def _draw_box(panel: Axes, value: Value, label: Label, box: Box, top: Point, coloured: bool) -> None:
    """Draw a box: learned values orange, computed ones blue, inputs grey; outputs have a thick outline."""
    colour = (
        "C1"
        if value.learned and coloured
        else "C5"
        if value.code and coloured
        else matplotlib.rcParams["axes.edgecolor"]
    )
    background = matplotlib.rcParams["axes.facecolor"]
    left, right, y = top[0] - box.width / 2, top[0] + box.width / 2, top[1]
    tint = 0.12 if coloured and (value.code or value.learned) else 0.0
    shades = ((background, background, 2), (to_rgba(colour, tint), colour, 3))  # the first hides the edges
    for face, edge, order in shades:
        style: Any = {"boxstyle": "round,pad=0,rounding_size=4", "linewidth": 1.8 if value.output else 0.9}
        panel.add_patch(FancyBboxPatch((left, y), *box, facecolor=face, edgecolor=edge, zorder=order, **style))
    left, right, y = left + PADDING_POINTS, right - PADDING_POINTS, y + PADDING_POINTS + 0.35 * LINE_POINTS
    common: Any = {"va": "center", "zorder": 4}
    panel.text(left, y, label.name, size=NAME_POINTS, family=BOLD_FONT, weight="bold", **common)
    panel.text(right, y, label.shape, size=CODE_POINTS, ha="right", color=muted(), **common)
    for row, line in enumerate(label.code, 1):
        panel.text(left, y + row * LINE_POINTS, line, size=CODE_POINTS, family="monospace", **common)


def _draw_arrow(panel: Axes, points: list[Point]) -> None:
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (end_x, end_y) in pairwise(points):
        middle = (y + end_y) / 2
        vertices += [(x, middle), (end_x, middle), (end_x, end_y)]
        codes += 3 * [Path.CURVE4]
    ink = muted()  # of a frame's colour, arrows would hardly be seen
    panel.add_patch(PathPatch(Path(vertices, codes), fill=False, edgecolor=ink, linewidth=0.9, zorder=1))
    x, y = points[-1]
    panel.fill([x - 3, x + 3, x], [y - 5.5, y - 5.5, y], color=ink, linewidth=0, zorder=1)
