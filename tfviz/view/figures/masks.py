"""Pictures of attention masks: a single mask, or a panel for each rule and for their combination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.shapes import Bool
from tfviz.view.figures.formatting import format_count, format_number
from tfviz.view.figures.heatmap import (
    WORD_INCHES,
    axis_inches,
    caption_panel,
    draw_cells,
    draw_heatmap,
    use_integer_ticks,
)
from tfviz.view.figures.palette import BOLD_FONT, muted
from tfviz.view.figures.static_figure import StaticFigure, panel_grid, set_title
from tfviz.view.spec import KEY, QUERY, WEIGHT_SCALE, Axis, Heatmap

ALLOWED_SHADE = 0.25  # shade of an allowed cell, as a weight from 0 to 1
UNUSED_SHADE = 0.03  # likewise, in the mask of a rule that is not in use


def mask(
    allowed: Bool[Tensor, "query key"], query_tokens: Sequence[str], key_tokens: Sequence[str], title: str
) -> StaticFigure:
    """Draw a mask as a heatmap: cells where a query may attend to a key are filled, masked cells are hatched."""
    axes = Axis(QUERY, query_tokens), Axis(KEY, key_tokens)

    def render() -> Figure:
        height, width = (min(6.0, max(1.4, 0.27 * n)) + 0.9 for n in allowed.shape)
        figure = Figure(figsize=(width, height), layout="constrained")
        draw_heatmap(figure.subplots(), Heatmap(allowed * ALLOWED_SHADE, *axes, WEIGHT_SCALE, allowed), 1200)
        set_title(figure, title)
        return figure

    return StaticFigure(
        render, f"{title}\n{format_number(int(allowed.sum()))} of {format_count(allowed.numel(), 'cell')} allowed"
    )


def mask_panels(
    masks: Mapping[str, tuple[str, Bool[Tensor, "query key"]]],
    title: str = "Masks",
    query_tokens: Sequence[str] = (),
    key_tokens: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> StaticFigure:
    """Draw each mask, and last their combination; allowed cells are filled, masked cells are hatched.

    Args:
        masks: key -> (its name with its size, such as "window = 2"; its mask, [query, key]).
        title: the title.
        query_tokens: a label for each query; by default numbers.
        key_tokens: a label for each key; by default numbers.
        roles: the role of each mask in the combination: "all", "any", "not" or "off"; None: all must hold.
    """
    formula, joined = join_masks(masks, dict.fromkeys(masks, "all") if roles is None else roles)
    name = "all together" if roles is None else formula
    axes = Axis(QUERY, query_tokens), Axis(KEY, key_tokens)
    used = [roles is None or roles.get(key, "off") != "off" for key in masks] + [True]
    specs = [
        Heatmap(one * (ALLOWED_SHADE if on else UNUSED_SHADE), *axes, WEIGHT_SCALE, one, title=title)
        for on, (title, one) in zip(used, [*masks.values(), (name, joined)])
    ]

    def draw() -> Figure:
        nrows = -(-len(specs) // 4)
        ncols = -(-len(specs) // nrows)
        height, width = (axis_inches(n, 2.2, WORD_INCHES + 0.01) for n in joined.shape)
        figure = Figure(figsize=((width + 0.3) * ncols + 0.3, (height + 0.6) * nrows + 0.4), layout="constrained")
        grid = panel_grid(figure, nrows, ncols, len(specs))
        for panel, spec, on in zip(grid, specs, used):
            draw_cells(panel, spec)
            caption_panel(panel, spec, width, height)
            if roles is not None:
                _mark_use(panel, spec is specs[-1], on)
            if not query_tokens:
                use_integer_ticks(panel.xaxis, 5)
                use_integer_ticks(panel.yaxis, 5)
        figure.align_xlabels(grid)
        set_title(figure, title)
        return figure

    empty = int((~joined.any(1)).sum())
    allowed = f"{format_number(int(joined.sum()))} of {format_count(joined.numel(), 'cell')} allowed by {name}"
    left = f"{format_number(empty)} of {format_count(len(joined), 'row')} {'has' if empty == 1 else 'have'} no key left"
    return StaticFigure(draw, f"{title}\n{allowed}; {left}")


def _mark_use(panel: Axes, combined: bool, used: bool) -> None:
    """Frame the panel of the combination, and label the panel of an unused mask as off."""
    if combined:
        panel.xaxis.label.set(weight="bold", family=BOLD_FONT)
        panel.spines[:].set(visible=True, linewidth=2, color=matplotlib.rcParams["text.color"], zorder=5)
    elif not used:
        panel.set_xlabel(f"{panel.get_xlabel()} (off)", loc="left", color=muted())


def join_masks(masks: Mapping[str, tuple[str, Tensor]], roles: Mapping[str, str]) -> tuple[str, Tensor]:
    """Return the formula that combines the masks in use, and the resulting mask [query, key].

    The page combines masks in the same way (`js/views/mask-lab.js`).
    """
    named = {key: (name.replace(" = ", "(") + ")" * (name != key), one) for key, (name, one) in masks.items()}
    used = {role: [named[name] for name, has in roles.items() if has == role] for role in ("all", "any", "not")}
    parts = [*used["all"], *((f"~{name}", ~allowed) for name, allowed in used["not"])]
    if used["any"]:
        either = " | ".join(name for name, _ in used["any"])
        brackets = parts and len(used["any"]) > 1
        parts.append((f"({either})" if brackets else either, reduce(torch.logical_or, [one for _, one in used["any"]])))
    everything = torch.ones_like(next(iter(masks.values()))[1])
    formula = " & ".join(name for name, _ in parts) or "everything"
    return formula, reduce(torch.logical_and, [one for _, one in parts], everything)
