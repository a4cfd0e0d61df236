"""Pictures of running text whose tokens are shaded by attention weights or other numbers.

Lines are wrapped, and break at newlines. The query has a vermillion outline.
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
from tfviz.view.figures.formatting import format_count, format_number, shorten
from tfviz.view.figures.heatmap import MARK_COLOUR, colormap, contrasting_colour, norm
from tfviz.view.figures.palette import DPI, drawable, font_families, muted
from tfviz.view.figures.selection import check_index, head_and_mask
from tfviz.view.figures.static_figure import StaticFigure, set_title
from tfviz.view.spec import WEIGHT_SCALE, Scale

MAX_WORDS = 400  # tokens of a text
MAX_WORD_LENGTH = 40  # characters of a token
TOP_INCHES, LINE_INCHES, LINE_WIDTH_INCHES = 0.36, 0.27, 6.8  # space above the text, line spacing, line width
FONT_POINTS = 10
SHADE_PADDING_INCHES = 0.02  # between a token and the edge of its shade


def attended_text(
    maps: AttentionMaps, layer: int = 0, head: int = 0, query: int | None = None, title: str | None = None
) -> StaticFigure:
    """Draw the picture of `view.words`; if the text of the queries is another, it is drawn above, unshaded."""
    weights, allowed = head_and_mask(maps, layer, head)
    check_index("query", query := len(weights) - 1 if query is None else query, len(weights), "queries")
    numbers, allowed_keys = weights[query].numpy(), None if allowed is None else allowed[query].numpy()
    title = title or f"Layer {layer}, head {head}: what “{_truncate(maps.query_tokens[query].strip(' '))}” looks at"
    same = maps.query_tokens == maps.key_tokens
    first = max(0, query - MAX_WORDS + 1)  # if there are too many words, show the last ones up to the chosen one

    def draw() -> Figure:
        axes, top = Figure().add_axes((0, 0, 1, 1)), TOP_INCHES
        if not same:
            top = running_text(axes, top, maps.query_tokens, first, query, name="query")
        start, marked, name = (first, query, "") if same else (0, None, "key")
        height = running_text(axes, top, maps.key_tokens, start, marked, numbers, allowed_keys, name) + 0.45
        return _with_legend(axes, height, title)

    summary = f"query {query} of {len(weights)}, looks most at: {_largest_weights(maps.key_tokens, numbers)}"
    return StaticFigure(draw, f"{title}\n{maps.query_tokens[query]!r}, {summary}")


def shaded_text(tokens: Sequence[str], numbers: numpy.ndarray, scale: Scale, title: str, unit: str) -> StaticFigure:
    """Draw running text, each token shaded by its number.

    Args:
        tokens: the text of each token.
        numbers: the number of each token, [token].
        scale: the scale of the colours.
        title: the title above the text.
        unit: the unit of the numbers.
    """

    def draw() -> Figure:
        axes = Figure().add_axes((0, 0, 1, 1))
        height = running_text(axes, TOP_INCHES, tokens, 0, None, numbers, scale=scale) + 0.45
        return _with_legend(axes, height, title, scale)

    order = numpy.argsort(-numpy.abs(numbers), kind="stable")[:3]
    strongest = ", ".join(f"{tokens[at]!r} {format_number(float(numbers[at]))}" for at in order)
    return StaticFigure(
        draw, f"{title}\n{format_count(len(tokens), 'token')}; strongest: {strongest}{unit and f' {unit}'}"
    )


def _largest_weights(tokens: Sequence[str], numbers: numpy.ndarray) -> str:
    """Return a text that names the three tokens with the largest weights, and these weights."""
    top = numpy.argsort(-numbers, kind="stable")[:3]
    return (
        ", ".join(f"{tokens[key]!r} {format_number(float(numbers[key]))}" for key in top if numbers[key] > 0)
        or "nothing"
    )


def running_text(
    axes: Axes,
    top: float,
    tokens: Sequence[str],
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
    """Draw running text on axes whose units are inches, and return the y-coordinate of its lower end.

    Args:
        axes: the axes, whose origin is the upper left corner.
        top: the y-coordinate at which the text begins.
        tokens: the text of each token.
        first: the index of the first token to draw.
        marked: the index of the token to outline; None: no outline.
        numbers: the number of each token, [token], which shades it; None: no shades.
        allowed: [token], False for masked tokens, which are hatched; None: no mask.
        name: the heading of the text.
        scale: the scale of the numbers.
        width_inches: the maximum width of a line.
        padding: the space between a token and the edge of its shade, in inches.
        mark: the colour of the outline.
    """
    ink = matplotlib.rcParams["text.color"]
    cmap, normalize, line = colormap(scale), norm(scale), 0
    if name:
        axes.text(SHADE_PADDING_INCHES, top + 0.14, name, color=muted())
        top += 0.22
    for index, x, line, width, text in _layout(tokens, first, width_inches, padding):
        box = Rectangle(
            (x + 0.005, top + line * LINE_INCHES), width - 0.01, LINE_INCHES - 0.05, facecolor="none", linewidth=0
        )
        colour = muted() if index is None else ink
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


def text_height(tokens: Sequence[str], first: int, width_inches: float, padding: float) -> float:
    """Return the height that `running_text` takes for these tokens, in inches."""
    line = max((line for _, _, line, _, _ in _layout(tokens, first, width_inches, padding)), default=0)
    return (line + 1) * LINE_INCHES + 0.12


def _layout(
    tokens: Sequence[str], first: int, line_width: float, padding: float
) -> Iterator[tuple[int | None, float, int, float, str]]:
    """Yield token index (None for an omission), x in inches, line, width in inches and text of each piece of text."""
    word_gap = 0.0 if any(" " in word for word in tokens) else 0.05  # tokens may include their own spaces
    space, x, line = _inches("n n") - _inches("nn"), 0.0, 0
    for index, text, ends in _pieces(tokens, first):
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


def _pieces(tokens: Sequence[str], first: int) -> Iterator[tuple[int | None, str, bool]]:
    """Yield the pieces of tokens, split at newlines, and notes of how many tokens are omitted before and after.

    A piece is the index of its token (None for a note), its text, and whether a line ends after it.
    """
    last = min(first + MAX_WORDS, len(tokens))
    if first:
        yield None, f"… {first} before ", False
    for index in range(first, last):
        for part in re.findall(r"[^\n]*\n|[^\n]+", tokens[index]) or [""]:
            yield index, _truncate(part), part.endswith("\n")
    if last < len(tokens):
        yield None, f" … {len(tokens) - last} more", False


def _truncate(word: str) -> str:
    return shorten(drawable(word) or "∅", MAX_WORD_LENGTH)


@lru_cache(4096)
def _inches(text: str) -> float:
    """Return the width of text in a PNG, in inches; hinted glyphs, as in a PNG, are wider than outlines, as in SVG."""
    face = FontProperties(family=list(font_families()), size=FONT_POINTS)
    return RendererAgg(1, 1, DPI).get_text_width_height_descent(text, face, False)[0] / DPI


def _with_legend(axes: Axes, height: float, title: str, scale: Scale = WEIGHT_SCALE) -> Figure:
    """Return the figure of a running text, sized to fit it, with its title and a colour bar."""
    figure: Any = axes.figure
    width = max(2.8, axes.dataLim.x1) + 0.1
    axes.set(xlim=(-0.05, width - 0.05), ylim=(height, 0))
    axes.axis("off")
    figure.set_size_inches(width, height)
    legend_box = (0.07 / width, 0.22 / height, 2.6 / width, 0.1 / height)
    shades = ScalarMappable(norm(scale), colormap(scale))
    bar = figure.colorbar(shades, figure.add_axes(legend_box), orientation="horizontal")
    bar.set_ticks(scale.ticks, labels=[format_number(tick) for tick in scale.ticks])
    bar.outline.set_color(matplotlib.rcParams["axes.edgecolor"])
    set_title(figure, title)
    figure.texts[-1].set(x=0.07 / width, y=1 - 0.05 / height)
    return figure
