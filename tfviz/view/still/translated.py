"""A translation, still: each word that was written, where the decoder looked before, and how sure it was."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.spec import Axis, Heatmap, Scale, is_numbered
from tfviz.view.still.formatting import formatted
from tfviz.view.still.heatmap import CELL, colourbar, draw
from tfviz.view.still.picture import Picture, headline

BAR = 1.5  # inches


def translated(
    words: Sequence[str],
    shares: Sequence[float],
    read: Sequence[str],
    weights: Float[Tensor, "written read"],
    title: str,
) -> Picture:
    """The weights beside bars of the probability of each written word."""

    def render() -> Figure:
        few = is_numbered(*weights.shape)
        wide, tall = (CELL if few else 0.28) * len(read), (CELL if few else 0.24) * len(words)
        figure = Figure(figsize=(wide + BAR + 2.4, tall + 1.5), layout="constrained")
        cells, bars = figure.subplots(1, 2, sharey=True, width_ratios=[wide, BAR])
        rows, columns = Axis("written", words), Axis("read; mean of all heads", read)
        heatmap = Heatmap(weights, rows, columns, Scale("linear" if few else "sqrt"), numbered=few)
        image = draw(cells, heatmap)
        if not few:
            colourbar(figure, image, [cells], heatmap.scale)
        bars.barh(range(len(words)), shares, color="C5", height=0.72)
        for row, share in enumerate(shares):
            bars.annotate(formatted(share), (share, row), (3, 0), textcoords="offset points", va="center", fontsize=8)
        bars.set(xlim=(0, 1.3), xticks=[])
        bars.set_title("probability", loc="left")
        bars.grid(False)
        bars.spines[["right", "top", "bottom"]].set_visible(False)
        bars.tick_params(axis="y", length=0, labelleft=False)
        headline(figure, title)
        return figure

    most = [read[int(at)] for at in weights.argmax(-1)]
    said = ", ".join(f"{word!r} {formatted(share)} ({key!r})" for word, share, key in zip(words, shares, most))
    return Picture(render, f"{title}\nwritten, its probability, and where it looked most: {said}")
