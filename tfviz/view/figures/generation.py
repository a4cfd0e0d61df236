"""Pictures of generated text: the most likely next tokens, and a translation with its cross-attention."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from tfviz.shapes import Float
from tfviz.view.check_numbers import Spread
from tfviz.view.figures.bar_chart import bar_table, format_column
from tfviz.view.figures.formatting import format_number
from tfviz.view.figures.heatmap import NUMBER_CELL_INCHES, draw_colourbar, draw_heatmap
from tfviz.view.figures.palette import prediction_colour
from tfviz.view.figures.static_figure import StaticFigure, set_title, subtitled
from tfviz.view.spec import LINEAR_WEIGHT_SCALE, WEIGHT_SCALE, Axis, Heatmap, is_numbered

BAR_WIDTH_INCHES = 1.5


def next_tokens(tokens: Sequence[str], probabilities: Float[Tensor, " word"], title: str, prompt: str) -> StaticFigure:
    """Draw bars of the probabilities of the most likely next tokens of a text.

    Args:
        tokens: the tokens.
        probabilities: the probability of each token.
        title: the title.
        prompt: the text before the token, whose end completes the title.
    """
    end = prompt if len(prompt) <= 40 else f"…{prompt[-39:]}"
    return bar_table(
        tokens, {"probability": probabilities}, subtitled(title, f"the next token after {end!r}"), limit=1.0
    )


def translation_steps(
    tokens: Sequence[str],
    probabilities: Sequence[float],
    read: Sequence[str],
    weights: Float[Tensor, "written read"],
    title: str,
    heading: str = "",
) -> StaticFigure:
    """Draw the cross-attention of each generated token, beside bars of the tokens' probabilities.

    Args:
        tokens: the generated tokens.
        probabilities: the probability of each generated token.
        read: the source tokens.
        weights: the attention weights, averaged over layers and heads.
        title: the title.
        heading: the first line of the summary, if it differs from the title.
    """

    def draw() -> Figure:
        few = is_numbered(*weights.shape)
        width, height = (
            (NUMBER_CELL_INCHES if few else 0.28) * len(read),
            (NUMBER_CELL_INCHES if few else 0.24) * len(tokens),
        )
        figure = Figure(figsize=(width + BAR_WIDTH_INCHES + 2.6, height + 1.5))
        figure.set_layout_engine("constrained", wspace=0.06)
        cells, bars = figure.subplots(1, 2, sharey=True, width_ratios=[width, BAR_WIDTH_INCHES])
        axes = Axis("written", tokens), Axis("read; mean of all layers and heads", read)
        heatmap = Heatmap(weights, *axes, LINEAR_WEIGHT_SCALE if few else WEIGHT_SCALE, numbered=few)
        image = draw_heatmap(cells, heatmap)
        if not few:
            draw_colourbar(figure, image, [cells], heatmap.scale)
        bars.barh(range(len(tokens)), probabilities, color=prediction_colour(), height=0.6)
        for row, (probability, number) in enumerate(
            zip(probabilities, format_column(Spread.from_values("probability", probabilities), 1.0))
        ):
            bars.annotate(number, (probability, row), (3, 0), textcoords="offset points", va="center", fontsize=8)
        bars.set(xlim=(0, 1.3), xticks=[])
        bars.set_title("probability", loc="left")
        bars.grid(False)
        bars.spines[["right", "top", "bottom"]].set_visible(False)
        bars.tick_params(axis="y", length=0, labelleft=False)
        set_title(figure, title)
        return figure

    targets = [read[int(at)] for at in weights.argmax(-1)]
    steps = ", ".join(
        f"{word!r} {format_number(probability)} ({key!r})"
        for word, probability, key in zip(tokens, probabilities, targets)
    )
    return StaticFigure(draw, f"{heading or title}\nwritten, its probability, and where it looked most: {steps}")
