"""The static picture of a text studio: the shaded text, all heads as small maps, and predictions as bars."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from tfviz.look import AttentionMaps
from tfviz.view.figures.formatting import format_number, percent, shorten
from tfviz.view.figures.heatmap import colormap, draw_cells, norm
from tfviz.view.figures.palette import drawable, muted, negative_colour, prediction_colour, tick_labels
from tfviz.view.figures.static_figure import set_title
from tfviz.view.figures.text import SHADE_PADDING_INCHES, running_text, text_height
from tfviz.view.spec import WEIGHT_SCALE, Heatmap, Scale

MAX_LAYERS, MAX_HEADS = 6, 8  # of which maps are drawn
MAX_NAME_LENGTH = 16  # characters of a bar's name
MIN_EFFECT_LIMIT = 0.5  # log-odds; smallest limit of the shades, so that small effects stay pale
MAX_TEXT_LENGTH = 120  # tokens; of a longer text the last ones are drawn
MAX_LABELS = 24  # of an axis of the selected head below the text; with more tokens, the words' first ones are labelled
# Inches: above panes, between panes, of the text, of the maps, of a bar, of its number, of its row.
TOP, GAP, TEXT_WIDTH, MAPS_HEIGHT, BAR_LENGTH, NUMBER_WIDTH, ROW_HEIGHT = 1.15, 0.35, 3.0, 2.9, 0.9, 0.6, 0.25
NAME_LETTER_WIDTH, MAX_NAME_WIDTH = 0.085, 1.3  # inches of a letter of a bar's name, and of the longest name
MAX_MAP, MIN_OPENED = 0.76, 1.9  # sides of a small map and of the selected head below the text
LABEL_WIDTH, MIN_LABEL_HEIGHT = 0.075, 0.11  # of a letter, and between two labels
SENTENCE_Y, HEADING_Y = 0.48, 0.84  # inches from the top
TITLE_SIZE, BODY_SIZE, LABEL_SIZE = 13.2, 9, 8  # points, in proportion to the page's 22, 15 and 13 pixels


Box = tuple[float, float, float, float]  # left, top or bottom, width, height


@dataclass(frozen=True)
class Prediction:
    """What a model predicts, as tokens or labels with their probabilities.

    Attributes:
        question: the heading, such as "The next letter".
        names: the tokens or labels, most likely first.
        bars: name of a series -> a probability for each name, [name].
        settings: how the probabilities are computed, such as "temperature 0.8".
        unfiltered: the probabilities before top-k and top-p, [name]; None: all tokens are kept.
        effects: the contribution of each token to `subject`, in log-odds, [position]; None: not measured.
        subject: the label that the effects are of; of two labels, the other has the colour of negative effects.
    """

    question: str
    names: Sequence[str]
    bars: Mapping[str, Tensor]
    settings: str = ""
    unfiltered: Tensor | None = None
    effects: Tensor | None = None
    subject: str = ""

    @property
    def opposite(self) -> str:
        """The other one of two labels, which negative effects speak for; empty if there are more, or no effects."""
        others = [name for name in self.names if name != self.subject]
        return others[0] if self.effects is not None and len(others) == len(self.names) - 1 == 1 else ""


@dataclass(frozen=True)
class StudioPicture:
    """The content of a text studio's static picture.

    Attributes:
        title: the title.
        maps: the attention maps of all heads.
        layer: the layer of the selected head.
        head: the index of the selected head.
        row: the query whose weights shade the text; None: the mean over all queries.
        text: the tokens as they appear in the text.
        prediction: what is drawn as bars; its effects shade the text, or the selected head if it has none.
    """

    title: str
    maps: AttentionMaps
    layer: int
    head: int
    row: int | None
    text: Sequence[str]
    prediction: Prediction

    @property
    def effects(self) -> Tensor | None:
        """The contribution of each token to a label, in log-odds, which shades the text."""
        return self.prediction.effects

    @property
    def shading_weights(self) -> Tensor:
        """The weights of the selected head that shade the text, [key]."""
        weights = self.maps[self.layer, self.head]
        return weights.mean(0) if self.row is None else weights[self.row]

    @property
    def has_spaces(self) -> bool:
        """Whether the tokens include the spaces between words."""
        return any(" " in token for token in self.text)

    @property
    def effect_limit(self) -> float:
        """The limit of the shades, in log-odds."""
        return MIN_EFFECT_LIMIT if self.effects is None else max(MIN_EFFECT_LIMIT, float(self.effects.abs().max()))

    @property
    def shading(self) -> str:
        """A description of the shades of the text."""
        if self.effects is not None:
            limit = format_number(self.effect_limit)
            ends = f"blue −{limit}, orange +{limit} log-odds"
            return f"shaded: the effect of each token on “{self.prediction.subject}”\n({ends})"
        where = "on average" if self.row is None else f"from “{shorten(self.maps.query_tokens[self.row].strip(), 20)}”"
        return f"shaded: what layer {self.layer}, head {self.head} looks at, {where}"

    @property
    def finding(self) -> str:
        """A sentence that names the token that changes a label most, or has most weight in the selected head."""
        if self.effects is not None:
            most = int(self.effects.abs().argmax())
            word = f"“{shorten(self.maps.key_tokens[most].strip(), 20)}”"
            effect = float(self.effects[most])
            sign = "+" if effect > 0 else ""
            return f"{word} changes “{self.prediction.subject}” most: by {sign}{format_number(effect)} log-odds."
        weights = self.shading_weights
        most = int(weights.argmax())
        word = "itself" if most == self.row else f"“{shorten(self.maps.key_tokens[most].strip(), 20)}”"
        where = (
            ", on average" if self.row is None else f", from “{shorten(self.maps.query_tokens[self.row].strip(), 20)}”"
        )
        share = percent(float(weights[most]))
        return f"Layer {self.layer}, head {self.head} looks most at {word}{where}: {share} of its attention."

    def draw(self) -> Figure:
        """Draw the text, the maps and the bars side by side, as the page does."""
        prediction = self.prediction
        layers, heads = min(MAX_LAYERS, self.maps.shape[0]), min(MAX_HEADS, self.maps.shape[1])
        side = min(MAX_MAP, MAPS_HEIGHT / heads)
        maps_left = TEXT_WIDTH + GAP + 0.55
        bars_left = maps_left + layers * side + GAP
        width = bars_left + self._name_width + len(prediction.bars) * (BAR_LENGTH + NUMBER_WIDTH)
        settings = ROW_HEIGHT if prediction.settings else 0.0
        height = TOP + max(heads * side + 0.65, len(prediction.names) * ROW_HEIGHT + 0.2 + settings, self._text_height)
        figure = Figure(figsize=(width, height))
        page = figure.add_axes((0, 0, 1, 1))
        page.set(xlim=(-0.08, width - 0.08), ylim=(height, 0))
        page.axis("off")
        self._draw_text(figure, page, width, height)
        for layer in range(layers):
            page.text(maps_left + (layer + 0.5) * side, TOP - 0.06, f"layer {layer}", **_muted_style("center"))
            for head in range(heads):
                box = (maps_left + layer * side, TOP + head * side, side - 0.06, side - 0.06)
                self._draw_map(figure, layer, head, _fractions(box, width, height))
        for head in range(heads):
            page.text(maps_left - 0.14, TOP + (head + 0.5) * side, f"head {head}", va="center", **_muted_style("right"))
        self._draw_legend(figure, page, (maps_left, TOP + heads * side + 0.14), (width, height))
        for column in range(len(prediction.bars)):
            self._draw_bars(page, bars_left, column)
        self._draw_heading(page, maps_left, HEADING_Y, "The model")
        self._draw_heading(page, bars_left, HEADING_Y, prediction.question)
        if prediction.settings:
            below = TOP + (len(prediction.names) + 0.6) * ROW_HEIGHT
            page.text(bars_left, below, prediction.settings, va="center", **_muted_style("left"))
        set_title(figure, self.title)
        figure.texts[-1].set(x=0.08 / width, y=1 - 0.1 / height, fontsize=TITLE_SIZE)
        figure.text(0.08 / width, 1 - SENTENCE_Y / height, drawable(self.finding), va="center", fontsize=BODY_SIZE)
        return figure

    @property
    def _name_width(self) -> float:
        longest = max((len(shorten(name, MAX_NAME_LENGTH)) for name in self.prediction.names), default=0)
        return min(MAX_NAME_WIDTH, 0.15 + NAME_LETTER_WIDTH * longest)

    @property
    def _first(self) -> int:
        """The first token that is drawn."""
        return max(0, len(self.text) - MAX_TEXT_LENGTH)

    @property
    def _padding(self) -> float:
        """The space beside a token, in inches; tokens without spaces would touch."""
        return 0.0 if self.has_spaces else SHADE_PADDING_INCHES

    @property
    def _opened_top(self) -> float:
        """Where the selected head begins below the text and the description of its shades, in inches."""
        text = text_height(self.text, self._first, TEXT_WIDTH, self._padding)
        return TOP - 0.14 + text + 0.5 + 0.14 * self.shading.count("\n")

    @property
    def _text_height(self) -> float:
        """The height of the text and of the selected head below it, from `TOP` on, in inches."""
        ticks = self._ticks()
        labels, side = _label_length(ticks), max(MIN_OPENED, MIN_LABEL_HEIGHT * len(ticks))
        opened = labels + side + 0.22 if labels + side <= TEXT_WIDTH else 0.0
        return self._opened_top + opened - TOP

    def _draw_heading(self, page: Axes, left: float, y: float, text: str) -> None:
        page.text(left, y, text, va="center", weight="bold", **_muted_style("left"))

    def _draw_text(self, figure: Figure, page: Axes, width: float, height: float) -> None:
        self._draw_heading(page, 0, HEADING_Y, "The text")
        numbers, scale = self.shading_weights.numpy(), WEIGHT_SCALE
        if self.effects is not None:
            numbers, scale = self.effects.numpy(), Scale("diverging", self.effect_limit)
        ink = colormap(WEIGHT_SCALE)(1.0)
        style: dict[str, Any] = {"scale": scale, "width_inches": TEXT_WIDTH, "padding": self._padding, "mark": ink}
        end = running_text(page, TOP - 0.14, self.text, self._first, self.row, numbers, **style)
        page.text(0, min(end + 0.08, height - 0.1), self.shading, va="top", **_muted_style("left"))
        self._draw_opened(figure, page, width, height)

    def _draw_opened(self, figure: Figure, page: Axes, width: float, height: float) -> None:
        """Draw the selected head with its name and its words below the text, if there is room."""
        ticks, top = self._ticks(), self._opened_top + 0.1
        length = _label_length(ticks)
        side = round(min(TEXT_WIDTH - length, height - 0.12 - top - length), 3)
        if side < max(MIN_OPENED, MIN_LABEL_HEIGHT * len(ticks)):
            return
        self._draw_heading(page, 0, self._opened_top, f"Layer {self.layer}, head {self.head}")
        axes = figure.add_axes(_fractions((length, top + length, side, side), width, height))
        self._draw_weights(axes, self.layer, self.head)
        axes.set_xticks(list(ticks), list(ticks.values()), rotation=90)
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.xaxis.tick_top()
        axes.tick_params(labelsize=LABEL_SIZE - 0.5, length=0, pad=2)
        if self.row is not None:
            line: dict[str, Any] = {"edgecolor": colormap(WEIGHT_SCALE)(1.0), "linewidth": 1.4}
            keys = self.maps.shape[3]
            axes.add_patch(Rectangle((-0.5, self.row - 0.5), keys, 1, fill=False, clip_on=False, **line))

    def _ticks(self) -> dict[int, str]:
        """Return the labels of the selected head's axes: token index -> token, or -> word, where it begins."""
        if len(self.text) <= MAX_LABELS or not self.has_spaces:  # without spaces the words cannot be told
            return dict(enumerate(tick_labels(self.maps.key_tokens, MAX_NAME_LENGTH)))
        starts = [0, *accumulate(map(len, self.text))]
        words = re.finditer(r"\S+", "".join(self.text))
        first = {bisect_right(starts, word.start()) - 1: word[0] for word in words}
        return dict(zip(first, tick_labels(list(first.values()), MAX_NAME_LENGTH)))

    def _draw_weights(self, axes: Axes, layer: int, head: int) -> None:
        """Draw the weights of a head, masked ones as 0."""
        weights = self.maps[layer, head]
        draw_cells(axes, Heatmap(weights, allowed=torch.ones_like(weights, dtype=torch.bool)))

    def _draw_map(self, figure: Figure, layer: int, head: int, box: Box) -> None:
        axes = figure.add_axes(box)
        self._draw_weights(axes, layer, head)
        axes.set(xticks=[], yticks=[])
        if (layer, head) == (self.layer, self.head):
            axes.spines[:].set(color=colormap(WEIGHT_SCALE)(1.0), linewidth=2.2)

    def _draw_legend(self, figure: Figure, page: Axes, corner: tuple[float, float], size: tuple[float, float]) -> None:
        left, top = corner
        page.text(left, top, "rows look, columns are looked at", va="center", **_muted_style("left"))
        page.text(left + 1.35, top + 0.16, "square-root scale", va="center", **_muted_style("left"))
        box = _fractions((left, top + 0.12, 1.2, 0.08), *size)
        scale = ScalarMappable(norm(WEIGHT_SCALE), colormap(WEIGHT_SCALE))
        bar = figure.colorbar(scale, figure.add_axes(box), orientation="horizontal")
        bar.set_ticks([0, 0.1, 0.25, 0.5, 1], labels=["0", "10", "25", "50", "100%"])
        bar.ax.tick_params(labelsize=7.5, length=0)
        bar.outline.set_color(matplotlib.rcParams["axes.edgecolor"])

    def _draw_bars(self, page: Axes, left: float, column: int) -> None:
        prediction = self.prediction
        name, probabilities = list(prediction.bars.items())[column]
        start, length = left + self._name_width + column * (BAR_LENGTH + NUMBER_WIDTH), BAR_LENGTH
        if len(prediction.bars) > 1:
            page.text(start, TOP - 0.06, name, **_muted_style("left"))
        for row, (word, probability) in enumerate(zip(prediction.names, probabilities.tolist())):
            middle = TOP + (row + 0.5) * ROW_HEIGHT
            colour = negative_colour() if word == prediction.opposite else prediction_colour()
            if not column:
                page.text(left, middle, shorten(drawable(word), MAX_NAME_LENGTH), va="center", fontsize=BODY_SIZE)
            page.barh(middle, length, 0.14, start, color=matplotlib.rcParams["axes.edgecolor"], alpha=0.3)
            if prediction.unfiltered is not None:
                page.barh(middle, length * float(prediction.unfiltered[row]), 0.14, start, color=colour, alpha=0.3)
            page.barh(middle, length * probability, 0.14, start, color=colour)
            page.text(start + length + 0.06, middle, percent(probability), va="center", fontsize=BODY_SIZE)


def _label_length(ticks: Mapping[int, str]) -> float:
    """Return the length of the longest label beside the selected head, in inches."""
    return LABEL_WIDTH * max(map(len, ticks.values()), default=0) + 0.12


def _muted_style(side: str) -> dict[str, Any]:
    """Return the style of secondary text with this horizontal alignment."""
    return {"ha": side, "fontsize": LABEL_SIZE, "color": muted()}


def _fractions(box: Box, width: float, height: float) -> Box:
    """Convert a box in inches from the top left corner to fractions of the figure from the bottom left corner."""
    left, top, across, high = box
    return (left + 0.08) / width, 1 - (top + high) / height, across / width, high / height
