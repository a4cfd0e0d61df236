"""Draw the modules of a model as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from tfviz.view.figures.formatting import percent
from tfviz.view.figures.palette import DPI, drawable, soft
from tfviz.view.figures.picture import Picture, set_title

WIDTH_INCHES, ROW_HEIGHT_INCHES = 9.0, 0.44  # inches
NAME_FONT_SIZES = (8.5, 7.0)  # points; the larger one if it fits
LETTER_INCHES_PER_POINT = 0.0083  # average width of a letter by its font size
UPRIGHT_FONT_SIZE, LINE_INCHES, TALL_INCHES = 7.0, 0.13, 0.37  # of a name written upwards, where only that fits


class Box(NamedTuple):
    """A module with its start and width, in parameters."""

    name: str
    depth: int
    left: int
    size: int


def modules(model: nn.Module, title: str | None = None, depth: int = 5) -> Picture:
    """Draw a model's modules, each below its parent, with widths in proportion to their parameters.

    A numbered part is named by its class, too. A name too long for its box is written upwards, and then no box of its
    row has its share. Parts without parameters are omitted, and so are names that do not fit. A parameter that two
    modules share is drawn in the first.

    Args:
        model: the model.
        title: by default the model's class and the number of its parameters.
        depth: maximum number of levels below the model.

    Raises:
        ValueError: the model has no parameters, or `depth` is below 0.
    """
    if depth < 0:
        raise ValueError(f"depth is {depth}; it is a number of levels below the model, from 0 on")
    name = type(model).__name__
    boxes = list(_boxes(model, name, 0, {}, depth))
    if not boxes:
        raise ValueError(f"{name} has no parameters: there is nothing to draw")
    total = boxes[0].size
    title = title or f"{name}: {total:,} parameters, by module"
    levels = 1 + max(box.depth for box in boxes)

    def draw() -> Figure:
        figure = Figure(figsize=(WIDTH_INCHES, ROW_HEIGHT_INCHES * levels + 0.4), layout="constrained")
        axes = figure.subplots()
        axes.set(xlim=(0, total), ylim=(levels - 0.5, -0.5))
        axes.set_axis_off()
        seen = [box for box in boxes if box.size * WIDTH_INCHES * DPI > total]  # not what is narrower than a dot
        upright = {box.depth for box in seen if _is_upright(box, box.size / total)}
        for box in seen:
            _draw_box(axes, box, box.size / total, counted=box.depth not in upright)
        set_title(figure, title)
        return figure

    parts = ", ".join(f"{box.name} {box.size:,}" for box in boxes if box.depth == 1)
    return Picture(draw, f"{title}\n{total:,} parameters: {parts or 'of its own'}")


def _boxes(module: nn.Module, name: str, level: int, drawn: dict[int, int], depth: int) -> Iterator[Box]:
    """Yield a box for the module and for each of its parts, down to `depth`.

    Args:
        module: the module.
        name: the name of the module.
        level: the level of the module.
        drawn: parameters that are in an earlier box: id -> number of weights.
        depth: the number of levels below it to draw.
    """
    size = sum(p.numel() for p in module.parameters() if id(p) not in drawn)
    if not size:
        return
    yield Box(name, level, sum(drawn.values()), size)
    for child, part in module.named_children() if level < depth else ():
        numbered = f"{type(part).__name__} {child}" if child.isdecimal() else child  # such as "Linear 0"
        yield from _boxes(part, numbered, level + 1, drawn, depth)
    drawn.update({id(p): p.numel() for p in module.parameters()})


def _draw_box(axes: Axes, box: Box, share: float, counted: bool) -> None:
    """Draw a module with its name, as large as it fits, and below it its share, if those of its row are written."""
    page, ink = matplotlib.rcParams["axes.facecolor"], matplotlib.rcParams["text.color"]
    axes.barh(box.depth, box.size, 0.94, box.left, color="C5", alpha=max(0.1, 0.42 - 0.06 * box.depth), linewidth=0)
    axes.barh(box.depth, box.size, 0.94, box.left, fill=False, edgecolor=page, linewidth=1)
    middle = box.left + box.size / 2
    centre: Any = {"ha": "center", "va": "center"}
    if fitting := _fitting(box, share):
        height = box.depth - 0.14 * counted
        axes.text(middle, height, drawable(fitting[0][0]), size=fitting[0][1], color=ink, **centre)
        if counted:
            axes.text(middle, box.depth + 0.23, _count(share), size=7, color=soft(), **centre)
    elif _is_upright(box, share):
        axes.text(middle, box.depth, drawable(box.name), size=UPRIGHT_FONT_SIZE, color=ink, rotation=90, **centre)


def _count(share: float) -> str:
    return percent(share).replace(" %", "%")


def _fitting(box: Box, share: float) -> list[tuple[str, float]]:
    """Return names and font sizes that fit above the share, the best first."""
    names = dict.fromkeys([box.name, box.name.rpartition(" ")[2]])  # the second is a number alone
    longest = len(_count(share))
    return [
        (name, size)
        for name in names
        for size in NAME_FONT_SIZES
        if LETTER_INCHES_PER_POINT * size * max(len(name), longest) < WIDTH_INCHES * share - 0.06
    ]


def _is_upright(box: Box, share: float) -> bool:
    """Return whether a name fits written upwards only, which leaves no room for the share."""
    longest = TALL_INCHES / UPRIGHT_FONT_SIZE / LETTER_INCHES_PER_POINT
    return not _fitting(box, share) and WIDTH_INCHES * share > LINE_INCHES and len(box.name) <= longest
