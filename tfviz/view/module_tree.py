"""Pictures of a model's modules as a tree of boxes, sized by their numbers of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import nn

from tfviz.view.figures.formatting import percent
from tfviz.view.figures.palette import DPI, drawable, muted
from tfviz.view.figures.static_figure import StaticFigure, set_title

WIDTH_INCHES, ROW_HEIGHT_INCHES = 9.0, 0.44  # inches
ALPHA = 0.42  # opacity of the boxes of a kind
NAME_FONT_SIZES = (8.5, 7.0)  # points; the larger one if it fits
LETTER_INCHES_PER_POINT = 0.0083  # average width of a letter by its font size
UPRIGHT_FONT_SIZE, LINE_INCHES, TALL_INCHES = 7.0, 0.13, 0.37  # of a vertical name: font size, width, maximum height


KINDS = {  # kind -> parts of the names of such modules or classes, and the colour of their boxes
    "attention": (("attention", "attn", "multihead"), "C5"),
    "feed-forward": (("feedforward", "mlp"), "C1"),
    "embeddings": (("embedding",), "C3"),
    "norms": (("norm",), "C7"),
}


class Box(NamedTuple):
    """The box of a module; its left edge and its size are numbers of parameters."""

    name: str
    depth: int
    left: int
    size: int
    kind: str = ""  # a key of KINDS; "" for a module of no kind, such as one that holds others


def modules(model: nn.Module, title: str | None = None, depth: int = 5) -> StaticFigure:
    """Draw a model's modules as boxes, each below its parent, with widths in proportion to their parameters.

    The name of a numbered module includes its class, such as `Linear 0`. Below its name, a box states its share of all
    parameters. A name too long for its box is written vertically; then no box of its row states its share. Modules
    without parameters and names that do not fit are omitted. A parameter that several modules share is counted in the
    first. Attention, feed-forward networks, embeddings and norms, as the names of modules and classes tell them, have
    a colour each, and a legend states how many percent of the parameters they have together; all else is grey.

    Args:
        model: the model.
        title: the title; by default the model's class and its number of parameters.
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
    sums = _sums(boxes)

    def draw() -> Figure:
        figure = Figure(
            figsize=(WIDTH_INCHES, ROW_HEIGHT_INCHES * levels + 0.4 + 0.25 * bool(sums)), layout="constrained"
        )
        axes = figure.subplots()
        axes.set(xlim=(0, total), ylim=(levels - 0.5, -0.5))
        axes.set_axis_off()
        seen = [box for box in boxes if box.size * WIDTH_INCHES * DPI > total]  # at least a pixel wide
        upright = {box.depth for box in seen if _is_upright(box, box.size / total)}
        for box in seen:
            _draw_box(axes, box, box.size / total, counted=box.depth not in upright)
        if sums:
            handles = [Rectangle((0, 0), 1, 1, facecolor=KINDS[kind][1], alpha=ALPHA) for kind in sums]
            names = [f"{kind} {percent(size / total)}" for kind, size in sums.items()]
            figure.legend(handles, names, loc="outside lower left", ncols=len(sums), handlelength=1, handleheight=1)
        set_title(figure, title)
        return figure

    parts = ", ".join(f"{box.name} {box.size:,}" for box in boxes if box.depth == 1)
    return StaticFigure(draw, f"{title}\n{total:,} parameters: {parts or 'of its own'}")


def _boxes(
    module: nn.Module, name: str, level: int, drawn: dict[int, int], depth: int, kind: str = ""
) -> Iterator[Box]:
    """Yield the box of a module, then those of its submodules, down to the level `depth`.

    Args:
        module: the module.
        name: the name of the module.
        level: the level of the module, 0 for the model.
        drawn: parameters in earlier boxes: id -> number of elements.
        depth: the lowest level to draw.
        kind: the kind of the module that contains it.
    """
    size = sum(p.numel() for p in module.parameters() if id(p) not in drawn)
    if not size:
        return
    kind = kind or _kind(name, type(module).__name__)
    yield Box(name, level, sum(drawn.values()), size, kind)
    for child, part in module.named_children() if level < depth else ():
        numbered = f"{type(part).__name__} {child}" if child.isdecimal() else child  # such as "Linear 0"
        yield from _boxes(part, numbered, level + 1, drawn, depth, kind)
    drawn.update({id(p): p.numel() for p in module.parameters()})


def _kind(name: str, class_name: str) -> str:
    """Return the kind that the name of a module, or otherwise that of its class, tells; "" if neither does."""
    for text in (name.lower(), class_name.lower()):
        letters = text.replace("_", "")
        kinds = [kind for kind, (parts, _) in KINDS.items() if any(part in letters for part in parts)]
        if kinds:
            return kinds[-1]  # the attention_norm is a norm
    return ""


def _sums(boxes: Sequence[Box]) -> dict[str, int]:
    """Return the number of parameters of each kind, of the boxes that no box of their kind contains."""
    sums = dict.fromkeys(KINDS, 0)
    parents: list[Box] = []
    for box in boxes:
        parents = [*parents[: box.depth], box]
        if box.kind and (box.depth == 0 or parents[box.depth - 1].kind != box.kind):
            sums[box.kind] += box.size
    return {kind: size for kind, size in sums.items() if size}


def _draw_box(axes: Axes, box: Box, share: float, counted: bool) -> None:
    """Draw the box of a module with its name, in the largest font that fits, and its share below if `counted`."""
    page, ink = matplotlib.rcParams["axes.facecolor"], matplotlib.rcParams["text.color"]
    colour, alpha = (KINDS[box.kind][1], ALPHA) if box.kind else (muted(), 0.15)
    axes.barh(box.depth, box.size, 0.94, box.left, color=colour, alpha=alpha, linewidth=0)
    edge = min(1.0, 12 * WIDTH_INCHES * share)  # points; a thicker one would hide a narrow box
    axes.barh(box.depth, box.size, 0.94, box.left, fill=False, edgecolor=page, linewidth=edge)
    middle = box.left + box.size / 2
    centre: Any = {"ha": "center", "va": "center"}
    if fitting := _fitting(box, share):
        height = box.depth - 0.14 * counted
        axes.text(middle, height, drawable(fitting[0][0]), size=fitting[0][1], color=ink, **centre)
        if counted:
            axes.text(middle, box.depth + 0.23, percent(share), size=7, color=muted(), **centre)
    elif _is_upright(box, share):
        axes.text(middle, box.depth, drawable(box.name), size=UPRIGHT_FONT_SIZE, color=ink, rotation=90, **centre)


def _fitting(box: Box, share: float) -> list[tuple[str, float]]:
    """Return the names with font sizes that fit above the share, best first."""
    names = dict.fromkeys([box.name, box.name.rpartition(" ")[2]])  # with its class, then the number alone
    longest = len(percent(share))
    return [
        (name, size)
        for name in names
        for size in NAME_FONT_SIZES
        if LETTER_INCHES_PER_POINT * size * max(len(name), longest) < WIDTH_INCHES * share - 0.06
    ]


def _is_upright(box: Box, share: float) -> bool:
    """Return whether a name fits only when it is written vertically, which leaves no room for the share."""
    longest = TALL_INCHES / UPRIGHT_FONT_SIZE / LETTER_INCHES_PER_POINT
    return not _fitting(box, share) and WIDTH_INCHES * share > LINE_INCHES and len(box.name) <= longest
