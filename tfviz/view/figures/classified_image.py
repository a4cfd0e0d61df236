"""Pictures of an image in patches beside the predictions of an image classifier."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

from tfviz.shapes import Bool, Float
from tfviz.view.figures.formatting import format_count, format_number, percent, shorten
from tfviz.view.figures.palette import drawable, prediction_colour
from tfviz.view.figures.static_figure import StaticFigure, draw_frame, set_title, subtitled
from tfviz.view.patch_grid import PatchGrid

MAX_BARS = 8  # for the most likely labels
MIN_BAR_ROWS = 6  # for which there is room beside the picture
PICTURE_HEIGHT_INCHES = 2.4
MAX_LABEL_LENGTH = 24  # characters


def classified_image(
    image: Image.Image,
    grid: PatchGrid,
    hidden: Bool[Tensor, " patch"],
    labels: Sequence[str],
    probabilities: Float[Tensor, " label"],
    title: str,
) -> StaticFigure:
    """Draw an image in patches, hidden ones in its mean colour, beside the probabilities of the most likely labels.

    Args:
        image: the image.
        grid: its grid of patches.
        hidden: True for each hidden patch, in reading order.
        labels: the names of the classes.
        probabilities: the probability of each class.
        title: the title.
    """
    top = probabilities.topk(min(MAX_BARS, len(labels))).indices.tolist()
    without = f" without {format_count(int(hidden.sum()), 'patch', 'patches')}" if bool(hidden.any()) else ""
    heading = subtitled(title, f"{grid.rows} × {grid.columns} patches{without}")

    def draw() -> Figure:
        width = PICTURE_HEIGHT_INCHES * min(2.0, image.width / image.height)
        figure = Figure(figsize=(width + 3.4, PICTURE_HEIGHT_INCHES + 0.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(width, 3.0))
        pixels = numpy.asarray(image)
        left.imshow(
            pixels,
            extent=(0, grid.columns, grid.rows, 0),
            aspect=grid.columns / width * PICTURE_HEIGHT_INCHES / grid.rows,
        )
        for patch in hidden.nonzero().flatten().tolist():
            row, column = divmod(patch, grid.columns)
            mean = pixels.mean((0, 1)) / 255
            left.add_patch(Rectangle((column, row), 1, 1, facecolor=mean, edgecolor="none"))
        ink = matplotlib.rcParams["figure.facecolor"]
        left.hlines(range(1, grid.rows), 0, grid.columns, color=ink, linewidth=0.4, alpha=0.6)
        left.vlines(range(1, grid.columns), 0, grid.rows, color=ink, linewidth=0.4, alpha=0.6)
        left.set(xticks=[], yticks=[])
        draw_frame(left)
        right.barh(range(len(top)), probabilities[top].numpy(), color=prediction_colour(), height=0.6)
        for row, label in enumerate(top):
            right.text(
                float(probabilities[label]) + 0.02, row, percent(float(probabilities[label])), va="center", fontsize=8
            )
        right.set_yticks(range(len(top)), [shorten(drawable(labels[label]), MAX_LABEL_LENGTH) for label in top])
        right.set(xlim=(0, 1.22), xticks=[])
        right.set_title("probability", loc="left")
        right.set_ylim(max(len(top), MIN_BAR_ROWS) - 0.5, -0.5)  # few bars are not blown up
        right.grid(False)
        right.spines[["right", "top", "bottom"]].set_visible(False)
        right.tick_params(axis="y", length=0)
        set_title(figure, heading)
        return figure

    best = top[0]
    return StaticFigure(
        draw, f"{heading}\nhighest probability: {labels[best]!r} {format_number(float(probabilities[best]), 3)}"
    )
