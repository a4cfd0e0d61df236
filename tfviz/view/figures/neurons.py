"""Pictures of how one query's attention weights are computed: query, keys, products per dimension, and weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.figures.formatting import format_count, format_number
from tfviz.view.figures.heatmap import axis_inches, draw_cells, draw_colourbar, label_axes
from tfviz.view.figures.palette import drawable, muted
from tfviz.view.figures.static_figure import StaticFigure, set_title
from tfviz.view.spec import Axis, Heatmap, Scale

DIMENSION = "dimension"


def neurons(
    query: Float[Tensor, " dim"],
    key: Float[Tensor, "key dim"],
    weights: Float[Tensor, " key"],
    word: str,
    tokens: Sequence[str],
    title: str,
) -> StaticFigure:
    """Draw the query above the keys, their products in each dimension, and bars of the weights.

    Args:
        query: the query vector as the model multiplies it, after any rotary embedding.
        key: the key vectors, likewise.
        weights: the attention weight of each key.
        word: the token of the query.
        tokens: the token of each key.
        title: the title.
    """
    products = query * key
    axes = Axis("key", tokens), Axis(DIMENSION)
    vectors = _scale(torch.cat([query[None], key]))
    strips = {
        "query": Heatmap(query[None], Axis("", [word]), axes[1], vectors),
        "key": Heatmap(key, *axes, vectors),
        "query × key": Heatmap(products, *axes, _scale(products)),
    }

    def draw() -> Figure:
        tall = axis_inches(len(tokens), 4.5, 0.2, 0.6)
        figure = Figure(figsize=(9.0, tall + 1.7), layout="constrained")
        grid = figure.add_gridspec(2, 3, height_ratios=[0.25, tall], width_ratios=[3, 3, 1.4])
        cells = {"query": grid[0, 0], "key": grid[1, 0], "query × key": grid[1, 1]}
        for name, heatmap in strips.items():
            panel = figure.add_subplot(cells[name])
            image = draw_cells(panel, heatmap)
            label_axes(panel, heatmap.rows.labels if name != "query × key" else [], [])
            panel.set_xlabel(f"{drawable(name)} · {DIMENSION} →", loc="left")
            if name != "query":  # which has the colours of the keys
                draw_colourbar(figure, image, [panel], heatmap.scale)
        bars = figure.add_subplot(grid[1, 2])
        bars.barh(range(len(tokens)), weights.numpy(), color="C5", height=0.72)
        for at, weight in enumerate(weights.tolist()):
            bars.annotate(
                format_number(weight), (weight, at), (3, 0), textcoords="offset points", va="center", fontsize=8
            )
        bars.set(xlim=(0, 1.35 * float(weights.max()) or 1.0), ylim=(len(tokens) - 0.5, -0.5), xticks=[], yticks=[])
        bars.set_title("weight", loc="left", color=muted(), fontsize=9)
        bars.grid(False)
        bars.spines[["right", "top", "bottom"]].set_visible(False)
        set_title(figure, title)
        return figure

    best = int(weights.argmax())
    dimension = int(products[best].abs().argmax())
    summary = (
        f"{title}\n{word!r} looks most at {tokens[best]!r}, with {format_number(weights[best].item())}: of "
        f"{format_count(len(query), DIMENSION)}, dimension {dimension} gives most"
    )
    return StaticFigure(draw, summary)


def _scale(values: Tensor) -> Scale:
    return Scale("diverging", float(values.abs().max()) or 1.0)
