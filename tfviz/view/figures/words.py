"""Draw a sentence as running text: each word shaded by its weight, on the scale of the heatmaps.

Lines break where one is full, and at a newline. Vermillion outlines the query.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle

from tfviz.look import AttentionMaps
from tfviz.view.figures.formatting import counted, formatted
from tfviz.view.figures.heatmap import MARK_COLOUR, colormap, contrasting_colour, norm
from tfviz.view.figures.palette import DPI, drawable, font_families, shorten, soft
from tfviz.view.figures.picture import Picture, set_title
from tfviz.view.figures.selection import check_index, head_and_mask
from tfviz.view.spec import WEIGHT_SCALE, Scale

MAX_WORDS = 400  # of a text
MAX_WORD_LENGTH = 40  # characters
TOP_INCHES, LINE_INCHES, LINE_WIDTH_INCHES = 0.36, 0.27, 6.8  # above the text, between lines, of a line
FONT_POINTS = 10
SHADE_PADDING_INCHES = 0.02  # between a word and the edge of its shade


def words(
    maps: AttentionMaps, layer: int = 0, head: int = 0, row: int | None = None, title: str | None = None
) -> Picture:
    """Draw the sentence as running text, each word shaded by its attention from one of the queries.

    If queries and keys are different sentences, the queries' sentence is above, unshaded.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        head: the index of the head.
        row: which query, outlined in the picture; default: the last.
        title: the title.

    Raises:
        IndexError: there is no such layer, head or row.
        ValueError: there is no word.
    """
    weights, allowed = head_and_mask(maps, layer, head)
    check_index("row", row := len(weights) - 1 if row is None else row, len(weights), "queries")
    numbers, allowed_keys = weights[row].numpy(), None if allowed is None else allowed[row].numpy()
    title = title or f"Layer {layer}, head {head}: what “{_truncate(maps.query_tokens[row].strip(' '))}” looks at"
    same = maps.query_tokens == maps.key_tokens
    first = max(0, row - MAX_WORDS + 1)  # if there are too many words, show the last ones up to the chosen one

    def draw() -> Figure:
        axes, top = Figure().add_axes((0, 0, 1, 1)), TOP_INCHES
        if not same:
            top = running_text(axes, top, maps.query_tokens, first, row, name="query")
        start, marked, name = (first, row, "") if same else (0, None, "key")
        height = running_text(axes, top, maps.key_tokens, start, marked, numbers, allowed_keys, name) + 0.45
        return _with_legend(axes, height, title)

    summary = f"query {row} of {len(weights)}, looks most at: {_largest_weights(maps.key_tokens, numbers)}"
    return Picture(draw, f"{title}\n{maps.query_tokens[row]!r}, {summary}")


def tokens(words: Sequence[str], numbers: numpy.ndarray, scale: Scale, title: str, unit: str) -> Picture:
    """Draw running text, each token shaded by its number.

    Args:
        words: a word for each number.
        numbers: [token].
        scale: the scale of the colours.
        title: the title above the text.
        unit: the unit of the numbers.
    """

    def draw() -> Figure:
        axes = Figure().add_axes((0, 0, 1, 1))
        height = running_text(axes, TOP_INCHES, words, 0, None, numbers, scale=scale) + 0.45
        return _with_legend(axes, height, title, scale)

    order = numpy.argsort(-numpy.abs(numbers), kind="stable")[:3]
    strongest = ", ".join(f"{words[at]!r} {formatted(float(numbers[at]))}" for at in order)
    return Picture(draw, f"{title}\n{counted(len(words), 'token')}; strongest: {strongest}{unit and f' {unit}'}")


def _largest_weights(words: Sequence[str], numbers: numpy.ndarray) -> str:
    """Return the three words with the greatest weights, and these weights."""
    top = numpy.argsort(-numbers, kind="stable")[:3]
    return ", ".join(f"{words[key]!r} {formatted(float(numbers[key]))}" for key in top if numbers[key] > 0) or "nothing"


def running_text(
    axes: Axes,
    top: float,
    words: Sequence[str],
    first: int,
    marked: int | None,
    numbers: numpy.ndarray | None = None,
    allowed: numpy.ndarray | None = None,
    name: str = "",
    scale: Scale = WEIGHT_SCALE,
    width_inches: float = LINE_WIDTH_INCHES,
    padding: float = SHADE_PADDING_INCHES,
    mark: Any = MARK_COLOUR,
) -> float:
    """Draw running text on axes whose units are inches, and return where it ends.

    Args:
        axes: the axes, whose origin is the upper left corner.
        top: where the text begins.
        words: the words.
        first: the first word that is drawn.
        marked: the word that is outlined.
        numbers: a number for each word, which shades it.
        allowed: which words may be looked at; others are hatched.
        name: what stands above the text.
        scale: the scale of the numbers.
        width_inches: the length of a line.
        padding: inches between a word and the edge of its shade.
        mark: the colour of the outline.
    """
    ink = matplotlib.rcParams["text.color"]
    cmap, normalize, line = colormap(scale), norm(scale), 0
    if name:
        axes.text(SHADE_PADDING_INCHES, top + 0.14, name, color=soft())
        top += 0.22
    for index, x, line, width, text in _layout(words, first, width_inches, padding):
        box = Rectangle(
            (x + 0.005, top + line * LINE_INCHES), width - 0.01, LINE_INCHES - 0.05, facecolor="none", linewidth=0
        )
        colour = soft() if index is None else ink
        if index is not None and allowed is not None and not allowed[index]:
            box.set(hatch="//////", edgecolor=matplotlib.rcParams["hatch.color"])
        elif index is not None and numbers is not None:
            shade = cmap(float(normalize(numbers[index])))
            colour = contrasting_colour(shade)
            box.set_facecolor(shade)
        axes.add_patch(box)
        if index is not None and index == marked:
            axes.add_patch(
                Rectangle(box.get_xy(), width - 0.01, LINE_INCHES - 0.05, fill=False, edgecolor=mark, linewidth=1.6)
            )
        axes.text(
            x + width / 2, top + line * LINE_INCHES + 0.155, text, color=colour, fontsize=FONT_POINTS, ha="center"
        )
    return top + (line + 1) * LINE_INCHES + 0.12


def _layout(
    words: Sequence[str], first: int, line_width: float, padding: float
) -> Iterator[tuple[int | None, float, int, float, str]]:
    """Yield for each piece of text: word (None for a mark), inches from the left, line, width in inches, text."""
    word_gap = 0.0 if any(" " in word for word in words) else 0.05  # words may bring their own spaces
    space, x, line = _inches("n n") - _inches("nn"), 0.0, 0
    for index, text, ends in _pieces(words, first):
        stripped = text.strip(" ") or text
        before, after = text.split(stripped, 1)
        width = max(0.05, _inches(stripped) if stripped.strip() else space * len(stripped)) + 2 * padding
        x += space * len(before) + word_gap * (x > 0)
        if x > 0 and x + width > line_width and stripped != drawable("\n"):
            x, line = 0.0, line + 1
        yield index, x, line, width, stripped
        x += width + space * len(after)
        if ends:
            x, line = 0.0, line + 1


def _pieces(words: Sequence[str], first: int) -> Iterator[tuple[int | None, str, bool]]:
    """Yield the words from the first on, split at line breaks, with marks for those left out."""
    last = min(first + MAX_WORDS, len(words))
    if first:
        yield None, f"… {first} before ", False
    for index in range(first, last):
        for part in re.findall(r"[^\n]*\n|[^\n]+", words[index]) or [""]:
            yield index, _truncate(part), part.endswith("\n")
    if last < len(words):
        yield None, f" … {len(words) - last} more", False


def _truncate(word: str) -> str:
    return shorten(drawable(word) or "∅", MAX_WORD_LENGTH)


@lru_cache(4096)
def _inches(text: str) -> float:
    """Return the width of running text in a PNG, in inches; hinted letters are wider than drawn ones, as in SVG."""
    face = FontProperties(family=list(font_families()), size=FONT_POINTS)
    return RendererAgg(1, 1, DPI).get_text_width_height_descent(text, face, False)[0] / DPI


def _with_legend(axes: Axes, height: float, title: str, scale: Scale = WEIGHT_SCALE) -> Figure:
    """Return the figure of a running text, in its size, with a title and the legend of the shades."""
    figure: Any = axes.figure
    width = max(2.8, axes.dataLim.x1) + 0.1
    axes.set(xlim=(-0.05, width - 0.05), ylim=(height, 0))
    axes.axis("off")
    figure.set_size_inches(width, height)
    legend_box = (0.07 / width, 0.22 / height, 2.6 / width, 0.1 / height)
    shades = ScalarMappable(norm(scale), colormap(scale))
    bar = figure.colorbar(shades, figure.add_axes(legend_box), orientation="horizontal")
    bar.set_ticks(scale.ticks, labels=[formatted(tick) for tick in scale.ticks])
    bar.outline.set_color(matplotlib.rcParams["axes.edgecolor"])
    set_title(figure, title)
    figure.texts[-1].set(x=0.07 / width, y=1 - 0.05 / height)
    return figure
