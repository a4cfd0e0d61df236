"""Tables in panels: numbers over time, such as the gates of a cell, each on its own scale; masks, alone and joined."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.look.words import as_mask
from tfviz.shapes import Bool
from tfviz.view.still.figures import heatmap, label, soft
from tfviz.view.still.formatting import counted, formatted
from tfviz.view.still.numbers import plain_tensor
from tfviz.view.still.palette import diverging, plain, ramp
from tfviz.view.still.picture import Picture, headline
from tfviz.view.still.sides import WORD, caption, colourbar, inches, short


def tables(
    tables: Mapping[str, Tensor],
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    title: str = "",
    x: str = "",
    y: str = "",
    signed: bool = False,
) -> Picture:
    """Tables over time one above the other, such as the gates of an LSTM: a column for each word.

    Args:
        tables: name -> (unit step); units may differ in number.
        rows, cols: words for the units and the steps.
        signed: draw every table from blue through 0 to orange, as one with a negative value is drawn anyway.

    Raises:
        ValueError: there is no table, or their sizes, or the words, do not fit.
    """
    values = _values(tables, rows, cols)
    title, count = title or ", ".join(values), next(iter(values.values())).shape[1]

    def draw() -> Figure:
        wide, ink = inches(count, 7.0, 0.2), matplotlib.rcParams["axes.titlecolor"]
        talls = [inches(len(table), 2.4, 0.02 if rows is None else WORD, 0.7) for table in values.values()]
        figure = Figure(figsize=(wide + 2.0, sum(talls) + 0.12 * len(talls) + 1.0), layout="constrained")
        panels = figure.subplots(len(values), 1, squeeze=False, height_ratios=talls)[:, 0]
        for axes, (name, table), tall in zip(panels, values.items(), talls):
            _table(figure, axes, table, signed or bool((table < 0).any()))
            top = axes is panels[0]
            caption(axes, rows or (), (cols or ()) if top else (), wide, tall, x if top else "", soft())
            if rows is None:
                _numbers(axes.yaxis, 3)
            axes.set_ylabel("" if name == title else short(name), rotation=0, ha="right", va="center", color=ink)
        figure.supylabel(plain(y), fontsize=9, color=soft())
        headline(figure, title)
        return figure

    says = ", ".join(
        f"{name} {formatted(float(table.min()))} to {formatted(float(table.max()))}" for name, table in values.items()
    )
    return Picture(draw, f"{title}\n{counted(count, 'column')}; {says}")


def mask(
    allowed: Bool[Tensor, "... query key"],
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    title: str = "Mask",
) -> Picture:
    """Which key each query may look at: filled where it may, hatched where not. The first of a batch and its heads."""
    allowed = as_mask(plain_tensor(title, allowed))
    if allowed.dim() < 2 or 0 in allowed.shape:
        raise ValueError(
            f"a mask is query key, with at least one of each; this one has the shape {list(allowed.shape)}"
        )
    while allowed.dim() > 2:
        allowed = allowed[0]
    maps = AttentionMaps(allowed[None, None].float(), rows, cols, mask=allowed)

    def draw() -> Figure:
        tall, wide = (min(6.0, max(1.4, 0.27 * n)) + 0.9 for n in allowed.shape)
        figure = Figure(figsize=(wide, tall), layout="constrained")
        axes = figure.subplots()
        heatmap(axes, maps[0, 0] * 0.25, allowed, pixels=1200)
        label(axes, maps.rows, maps.cols)
        headline(figure, title)
        return figure

    return Picture(draw, f"{title}\n{formatted(int(allowed.sum()))} of {counted(allowed.numel(), 'cell')} allowed")


def mask_lab(
    tables: Mapping[str, Tensor | Mapping[Any, Tensor]],
    title: str = "Masks",
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    use: Mapping[str, str] | None = None,
) -> Picture:
    """Which key each query may look at, under each rule alone and under all of them together; forbidden is hatched.

    Args:
        tables: name -> allowed (query key), or name -> {setting: allowed}, of which the first setting is drawn.
        rows, cols: a word for each query and key; numbers where there are none.
        use: which of them are joined in the last picture, and how: "all", "any" or "not".

    Raises:
        ValueError: there is no mask, or their sizes differ.
    """
    masks = _masks(tables)
    joined, together = _joined(dict(zip(tables, masks)), dict.fromkeys(tables, "all") if use is None else use)
    dead = int((~together.any(1)).sum())
    panels = [*masks, ("all together" if use is None else joined, together)]

    def draw() -> Figure:
        down = -(-len(panels) // 4)
        across = -(-len(panels) // down)
        tall, wide = (inches(n, 2.2, WORD + 0.01) for n in together.shape)
        figure = Figure(figsize=((wide + 0.3) * across + 0.3, (tall + 0.6) * down + 0.4), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes, (name, allowed) in zip(grid.flat, panels):
            heatmap(axes, allowed * 0.25, allowed, pixels=1600)
            caption(axes, rows, cols, wide, tall, name)
            if not rows:
                _numbers(axes.xaxis, 5)
                _numbers(axes.yaxis, 5)
        figure.align_xlabels(grid.flat[: len(panels)])
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        headline(figure, title)
        return figure

    by = "all together" if use is None else joined
    says = f"{formatted(int(together.sum()))} of {counted(together.numel(), 'cell')} allowed by {by}"
    left = f"{formatted(dead)} of {counted(len(together), 'row')} {'has' if dead == 1 else 'have'} no key left"
    return Picture(draw, f"{title}\n{says}; {left}")


def _values(tables: Mapping[str, Tensor], rows: Sequence[str] | None, cols: Sequence[str] | None) -> dict[str, Tensor]:
    """The tables as numbers to draw, if they fit one another and the words."""
    values = {str(name): table.detach().cpu().float() for name, table in tables.items()}
    shapes = {name: list(table.shape) for name, table in values.items()}
    if not values or any(len(shape) != 2 or 0 in shape for shape in shapes.values()):
        raise ValueError(f"tables must be unit step, with something in them; got {shapes or 'none'}")
    if len({columns for _, columns in shapes.values()}) > 1:
        raise ValueError(f"tables must have as many steps as one another; got {shapes}")
    for name, words, axis in (("rows", rows, 0), ("cols", cols, 1)):
        if words is not None and {len(words)} != {shape[axis] for shape in shapes.values()}:
            raise ValueError(f"{name} has {len(words)} words, which does not fit tables of {shapes}")
    return values


def _masks(tables: Mapping[str, Tensor | Mapping[Any, Tensor]]) -> list[tuple[str, Tensor]]:
    """Each mask with its name, if they are of one size."""
    masks = []
    for name, table in tables.items():
        if isinstance(table, Mapping):
            if not table:
                raise ValueError(f"{name!r} has no settings")
            setting, table = next(iter(table.items()))
            name = f"{name} = {setting}"
        masks.append((str(name), table.detach().cpu().bool()))
    shapes = [list(mask.shape) for _, mask in masks]
    if not masks or any(len(shape) != 2 or 0 in shape or shape != shapes[0] for shape in shapes):
        raise ValueError(f"masks must be query key, all of one size; got {shapes or 'none'}")
    return masks


def _joined(masks: Mapping[str, tuple[str, Tensor]], use: Mapping[str, str]) -> tuple[str, Tensor]:
    """The rules in use as one, and its formula; the page has the same rule (`js/stages/masklab.js`)."""
    named = {name: (said.replace(" = ", "(") + ")" * (said != name), one) for name, (said, one) in masks.items()}
    used = {role: [named[name] for name, has in use.items() if has == role] for role in ("all", "any", "not")}
    parts = [*used["all"], *((f"~{name}", ~allowed) for name, allowed in used["not"])]
    if used["any"]:
        either = " | ".join(name for name, _ in used["any"])
        brackets = parts and len(used["any"]) > 1
        parts.append((f"({either})" if brackets else either, reduce(torch.logical_or, [one for _, one in used["any"]])))
    everything = torch.ones_like(next(iter(masks.values()))[1])
    formula = " & ".join(name for name, _ in parts) or "everything"
    return formula, reduce(torch.logical_and, [one for _, one in parts], everything)


def _table(figure: Figure, axes: Axes, table: Tensor, signed: bool) -> None:
    """A table with its own scale: 1, or more where a value is larger."""
    finite = table[table.isfinite()].abs()
    limit = max(1.0, float(finite.max()) if finite.numel() else 1.0)
    norm, colours = (Normalize(-limit, limit), diverging()) if signed else (Normalize(0, limit), ramp())
    image = heatmap(axes, table, None, pixels=1600, cmap=colours, norm=norm)
    colourbar(figure, image, axes, (-limit, 0, limit) if signed else (0, limit / 2, limit))


def _numbers(axis: Axis, most: int) -> None:
    axis.set_major_locator(MaxNLocator(most, integer=True))
    axis.set_major_formatter(lambda value, _: formatted(round(value)))
