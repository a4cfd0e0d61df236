"""Draw tables in panels: numbers over time, such as the gates of a cell, each on its own scale; masks, also joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import matplotlib
import torch
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from tfviz.look.map_arguments import as_mask
from tfviz.shapes import Bool
from tfviz.view.spec import KEY, QUERY, WEIGHTS, Axis, Heatmap, Scale
from tfviz.view.still.check_numbers import dense_tensor
from tfviz.view.still.formatting import counted, formatted
from tfviz.view.still.heatmap import WORD, caption, cells, colourbar, draw, inches
from tfviz.view.still.palette import MAX_LABEL_LENGTH, drawable, soft
from tfviz.view.still.picture import Picture, set_title, shorten

ALLOWED = 0.25  # how dark an allowed cell is, of a weight of 1: allowed is not much


def tables(heatmaps: Sequence[Heatmap], title: str) -> Picture:
    """Picture tables over time stacked vertically, such as the gates of an LSTM, with a column for each word.

    Args:
        heatmaps: of as many columns as one another; rows may differ in number, and have numbers instead of words.
    """
    first, count = heatmaps[0], heatmaps[0].values.shape[1]

    def draw() -> Figure:
        wide = inches(count, 7.0, 0.2)
        talls = [inches(len(one.values), 2.4, 0.02, 0.7) for one in heatmaps]
        figure = Figure(figsize=(wide + 2.0, sum(talls) + 0.12 * len(talls) + 1.0), layout="constrained")
        panels = figure.subplots(len(heatmaps), 1, squeeze=False, height_ratios=talls)[:, 0]
        for axes, one, tall in zip(panels, heatmaps, talls):
            image, top = cells(axes, one), axes is panels[0]
            colourbar(figure, image, axes, one.scale)
            caption(axes, one, wide, tall, colour=soft())
            axes.set_xlabel(drawable(first.columns.name) if top else "", loc="left")
            if not top:
                axes.set_xticks([])
            _number_axis(axes.yaxis, 3)
            name = "" if one.title == title else shorten(drawable(one.title), MAX_LABEL_LENGTH)
            ink = matplotlib.rcParams["axes.titlecolor"]
            axes.set_ylabel(name, rotation=0, ha="right", va="center", color=ink)
        figure.supylabel(drawable(first.rows.name), fontsize=9, color=soft())
        set_title(figure, title)
        return figure

    ends = [(one.title, float(one.values.min()), float(one.values.max())) for one in heatmaps]
    ranges = ", ".join(f"{name} {formatted(low)} to {formatted(high)}" for name, low, high in ends)
    return Picture(draw, f"{title}\n{counted(count, 'column')}; {ranges}")


def table_scale(table: Tensor) -> Scale:
    """Return the scale of a table: to 1, or to the largest value; diverging if any value is negative."""
    finite = table[table.isfinite()]
    limit = max(1.0, float(finite.abs().max()) if finite.numel() else 1.0)
    return Scale("diverging" if bool((table < 0).any()) else "linear", limit)


def mask(
    allowed: Bool[Tensor, "... query key"],
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    title: str = "Mask",
) -> Picture:
    """Picture which keys each query may look at, for the first of a batch and its heads; masked cells are hatched.

    Raises:
        ValueError: the mask has fewer than two axes, or an empty one.
    """
    allowed = as_mask(dense_tensor(title, allowed))
    if allowed.dim() < 2 or 0 in allowed.shape:
        raise ValueError(
            f"a mask is query key, with at least one of each; this one has the shape {list(allowed.shape)}"
        )
    allowed = allowed.reshape(-1, *allowed.shape[-2:])[0]
    query_axis, key_axis = (
        Axis(axis, [str(i) for i in range(count)] if words is None else words)
        for axis, words, count in zip((QUERY, KEY), (rows, cols), allowed.shape)
    )

    def render() -> Figure:
        tall, wide = (min(6.0, max(1.4, 0.27 * n)) + 0.9 for n in allowed.shape)
        figure = Figure(figsize=(wide, tall), layout="constrained")
        draw(figure.subplots(), Heatmap(allowed * ALLOWED, query_axis, key_axis, WEIGHTS, allowed), 1200)
        set_title(figure, title)
        return figure

    return Picture(render, f"{title}\n{formatted(int(allowed.sum()))} of {counted(allowed.numel(), 'cell')} allowed")


def mask_lab(
    tables: Mapping[str, Tensor | Mapping[Any, Tensor]],
    title: str = "Masks",
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    use: Mapping[str, str] | None = None,
) -> Picture:
    """Picture which keys each query may look at, under each rule alone and under all; masked cells are hatched.

    Args:
        tables: name -> allowed [query, key], or name -> {setting: allowed}, of which the first setting is drawn.
        rows, cols: a word for each query and key; numbers where there are none.
        use: which of them are joined in the last picture, and how: "all", "any" or "not".

    Raises:
        ValueError: there is no mask, or their sizes differ.
    """
    masks = _check_masks(tables)
    formula, joined = join_masks(dict(zip(tables, masks)), dict.fromkeys(tables, "all") if use is None else use)
    name = "all together" if use is None else formula
    axes = Axis(QUERY, rows), Axis(KEY, cols)
    specs = [Heatmap(one * ALLOWED, *axes, WEIGHTS, one, title=title) for title, one in [*masks, (name, joined)]]

    def draw() -> Figure:
        down = -(-len(specs) // 4)
        across = -(-len(specs) // down)
        tall, wide = (inches(n, 2.2, WORD + 0.01) for n in joined.shape)
        figure = Figure(figsize=((wide + 0.3) * across + 0.3, (tall + 0.6) * down + 0.4), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for panel, spec in zip(grid.flat, specs):
            cells(panel, spec)
            caption(panel, spec, wide, tall)
            if not rows:
                _number_axis(panel.xaxis, 5)
                _number_axis(panel.yaxis, 5)
        figure.align_xlabels(grid.flat[: len(specs)])
        for panel in grid.flat[len(specs) :]:
            panel.remove()
        set_title(figure, title)
        return figure

    dead = int((~joined.any(1)).sum())
    allowed = f"{formatted(int(joined.sum()))} of {counted(joined.numel(), 'cell')} allowed by {name}"
    left = f"{formatted(dead)} of {counted(len(joined), 'row')} {'has' if dead == 1 else 'have'} no key left"
    return Picture(draw, f"{title}\n{allowed}; {left}")


def join_masks(masks: Mapping[str, tuple[str, Tensor]], use: Mapping[str, str]) -> tuple[str, Tensor]:
    """Return the formula of the rules in use and their table, as in the page (`js/stages/mask-lab.js`)."""
    named = {key: (name.replace(" = ", "(") + ")" * (name != key), one) for key, (name, one) in masks.items()}
    used = {role: [named[name] for name, has in use.items() if has == role] for role in ("all", "any", "not")}
    parts = [*used["all"], *((f"~{name}", ~allowed) for name, allowed in used["not"])]
    if used["any"]:
        either = " | ".join(name for name, _ in used["any"])
        brackets = parts and len(used["any"]) > 1
        parts.append((f"({either})" if brackets else either, reduce(torch.logical_or, [one for _, one in used["any"]])))
    everything = torch.ones_like(next(iter(masks.values()))[1])
    formula = " & ".join(name for name, _ in parts) or "everything"
    return formula, reduce(torch.logical_and, [one for _, one in parts], everything)


def _check_masks(tables: Mapping[str, Tensor | Mapping[Any, Tensor]]) -> list[tuple[str, Tensor]]:
    """Return each mask with its name, after checking that they have the same size."""
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


def _number_axis(axis: MatplotlibAxis, max_ticks: int) -> None:
    axis.set_major_locator(MaxNLocator(max_ticks, integer=True))
    axis.set_major_formatter(lambda value, _: formatted(round(value)))
