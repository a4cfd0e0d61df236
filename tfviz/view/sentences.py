"""Drawings of attention on the sentence itself: lines between two columns of words, shaded text, gold alignments.

Weights keep the scale of the heatmaps: the square root, from the page (0) to the strongest ink (1). Vermillion marks
what is not a weight: the word that was chosen, the cells that are gold.
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
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.shapes import Float
from tfviz.view.figures import LABELS, TICKS, heatmap, label, one, scale, soft, within
from tfviz.view.palette import families, plain, printable, ramp
from tfviz.view.picture import Picture, headline

LEAST = 0.02  # a weaker weight is no line
STROKES: tuple[Any, ...] = (
    "solid",
    "dashed",
    "dashdot",
    "dotted",
)  # heads 0-7, 8-15, ...: the eight colours come round again
MARK = "C6"  # vermillion: of the eight, the one that reads on both pages and on any shade
MOST = 400  # words of running text
LONGEST = 40  # characters of a word in it
TOP, LINE, WIDE, SIZE = 0.36, 0.27, 6.8, 10  # running text: inches above it, between lines, inches of a line, points
PAD = 0.02  # inches between a word and the edge of its shade


def links(maps: AttentionMaps, layer: int = 0, heads: Sequence[int] = (0,), title: str | None = None) -> Picture:
    """Queries on the left, keys on the right, a line for each weight of at least 0.02: the thicker, the greater.

    Args:
        heads: whose weights; each head in its own colour, in the order of their numbers.

    Raises:
        IndexError: there is no such layer or head.
        ValueError: there is no word, or no head was asked for.
    """
    several = sorted(set(heads))
    if not several:
        raise ValueError("heads is empty: name at least one")
    weights = {head: _seen(maps, layer, head)[:LABELS, :LABELS] for head in several}
    count = sum(int((seen >= LEAST).sum()) for seen in weights.values())
    title = title or f"Layer {layer}, head{'s' * (len(several) > 1)} {', '.join(map(str, several))}"

    def draw() -> Figure:
        tall = min(LABELS + 1, max(len(maps.rows), len(maps.cols)))
        figure = Figure(figsize=(4.6, 0.2 * tall + 0.85 + 0.25 * (len(several) > 1)), layout="constrained")
        axes, apart = figure.subplots(), min(0.08, 0.6 / len(several))
        for place, (head, seen) in enumerate(weights.items()):
            # lines of several heads between the same two words lie side by side, not on each other
            axes.add_collection(_lines(seen, head, (place - (len(several) - 1) / 2) * apart))
        _columns(axes, maps.rows, maps.cols, tall)
        if len(several) > 1:
            handles = [
                Line2D([], [], color=f"C{head % 8}", linestyle=STROKES[head // 8 % len(STROKES)]) for head in several
            ]
            names = [f"head {head}" for head in several]
            figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(several)), handlelength=2.4)
        headline(figure, title)
        return figure

    says = f"{count} weights of at least {LEAST}, a line each"
    if max(len(maps.rows), len(maps.cols)) > LABELS:
        says += f", among the first {LABELS} words"
    return Picture(draw, f"{title}\n{len(maps.rows)} queries x {len(maps.cols)} keys; {says}")


def words(
    maps: AttentionMaps, layer: int = 0, head: int = 0, row: int | None = None, title: str | None = None
) -> Picture:
    """The sentence as running text, each word shaded by how much one of the queries looks at it.

    Where keys are another sentence than queries, the queries' sentence stands above, unshaded.

    Args:
        row: which query, outlined in the picture; default: the last.

    Raises:
        IndexError: there is no such layer, head or row.
        ValueError: there is no word.
    """
    weights, allowed = one(maps, layer, head)
    within("row", row := len(weights) - 1 if row is None else row, len(weights), "queries")
    looks, may = weights[row].numpy(), None if allowed is None else allowed[row].numpy()
    title = title or f"Layer {layer}, head {head}: what “{_cut(maps.rows[row].strip(' '))}” looks at"
    same = maps.rows == maps.cols
    first = max(0, row - MOST + 1)  # of more words than a picture holds, the last ones up to the chosen one

    def draw() -> Figure:
        figure = Figure()
        axes, down = figure.add_axes((0, 0, 1, 1)), TOP
        if not same:
            down = _text(axes, down, maps.rows, first, row, name="query")
        start, marked, name = (first, row, "") if same else (0, None, "key")
        tall = _text(axes, down, maps.cols, start, marked, looks, may, name) + 0.45
        wide = max(2.8, axes.dataLim.x1) + 0.1
        axes.set(xlim=(-0.05, wide - 0.05), ylim=(tall, 0))
        axes.axis("off")
        figure.set_size_inches(wide, tall)
        _below(figure, (0.07 / wide, 0.22 / tall, 2.6 / wide, 0.1 / tall))
        headline(figure, title)
        figure.texts[-1].set(x=0.07 / wide, y=1 - 0.05 / tall)
        return figure

    top = numpy.argsort(-looks, kind="stable")[:3]
    best = ", ".join(f"{maps.cols[key]!r} {looks[key]:.2g}" for key in top if looks[key] > 0)
    return Picture(
        draw, f"{title}\n{maps.rows[row]!r}, query {row} of {len(weights)}, looks most at: {best or 'nothing'}"
    )


def alignment(maps: AttentionMaps, gold: Sequence[tuple[int, int]] = (), title: str | None = None) -> Picture:
    """Layer 0, head 0 of two sentences, with the cells outlined that should be strong.

    Args:
        gold: the words that belong together, as (row, col).

    Raises:
        IndexError: a gold cell lies outside the map.
        ValueError: there is no word.
    """
    weights, allowed = one(maps, 0, 0)
    queries, keys = weights.shape
    cells = sorted({(int(row), int(col)) for row, col in gold})
    for row, col in cells:
        if not (0 <= row < queries and 0 <= col < keys):
            raise IndexError(f"gold cell ({row}, {col}) lies outside a map of {queries} queries x {keys} keys")
    right = sum(bool(weights[row, col] == weights[row].max() > 0) for row, col in cells)
    title = title or "Alignment"

    def draw() -> Figure:
        cell = min(0.3, max(0.125, 6.0 / max(queries, keys)))
        wide, tall = (min(12.0, max(1.6, cell * n)) for n in (keys, queries))
        figure = Figure(figsize=(wide + 1.6, tall + 1.1 + 0.25 * bool(cells)), layout="constrained")
        axes = figure.subplots()
        image = heatmap(axes, weights, allowed, pixels=1600)
        label(axes, maps.rows, maps.cols)
        inset = 0.06 if cell > 0.2 else 0.0
        for row, col in cells:
            corner, side = (col - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset
            axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=MARK, linewidth=1.5))
        scale(figure, image, [axes])
        if cells:
            handle = Rectangle((0, 0), 1, 1, fill=False, edgecolor=MARK, linewidth=1.5)
            figure.legend([handle], ["gold"], loc="outside lower left", handlelength=1, handleheight=1)
        headline(figure, title)
        return figure

    found = f"{right} of {len(cells)} gold cells are the strongest of their row" if cells else "no gold cells given"
    return Picture(draw, f"{title}\n{queries} queries x {keys} keys; {found}")


def _seen(maps: AttentionMaps, layer: int, head: int) -> Float[Tensor, "query key"]:
    """The weights, 0 where forbidden."""
    weights, allowed = one(maps, layer, head)
    return weights if allowed is None else weights * allowed


def _lines(weights: Float[Tensor, "query key"], head: int, shift: float) -> LineCollection:
    """A line for each weight that is not too small, the strongest on top; `shift`, in words, moves them all."""
    values = weights.numpy()
    rows, cols = numpy.nonzero(values >= LEAST)
    order = numpy.argsort(values[rows, cols], kind="stable")
    rows, cols = rows[order], cols[order]
    shown = values[rows, cols]
    colours = numpy.tile(to_rgba(f"C{head % 8}"), (len(shown), 1))
    colours[:, 3] = numpy.sqrt(shown).clip(0, 1)
    ends = [[(0, row + shift), (1, col + shift)] for row, col in zip(rows, cols)]
    stroke = STROKES[head // 8 % len(STROKES)]
    return LineCollection(ends, colors=colours, linewidths=0.5 + 3.5 * shown, linestyles=stroke, clip_on=False)


def _columns(axes: Axes, rows: Sequence[str], cols: Sequence[str], tall: int) -> None:
    """The words left and right, one under the other, and how many are left out."""
    for side, words, name, where, align in (
        (axes, rows, "query", (0, 1), "right"),
        (axes.twinx(), cols, "key", (1, 1), "left"),
    ):
        more = [f"… {len(words) - LABELS} more"] if len(words) > LABELS else []
        shown = [*printable(words[:LABELS]), *more]
        side.set_yticks(range(len(shown)), shown)
        side.set(xticks=[], xlim=(0, 1), ylim=(tall - 0.5, -0.5))
        side.grid(False)
        side.spines[:].set_visible(False)
        offset = (-4 if align == "right" else 4, 2)
        side.annotate(name, where, offset, "axes fraction", "offset points", color=soft(), ha=align)


def _below(figure: Figure, place: tuple[float, float, float, float]) -> None:
    """The shades' meaning, under the text."""
    shades = ScalarMappable(PowerNorm(0.5, 0, 1), ramp())
    bar = figure.colorbar(shades, figure.add_axes(place), orientation="horizontal")
    bar.set_ticks(TICKS, labels=[f"{tick:g}" for tick in TICKS])
    bar.outline.set_color(matplotlib.rcParams["axes.edgecolor"])


def _text(
    axes: Axes,
    down: float,
    words: Sequence[str],
    first: int,
    marked: int | None,
    looks: numpy.ndarray | None = None,
    allowed: numpy.ndarray | None = None,
    name: str = "",
) -> float:
    """Draws running text from `down`, in inches, and says where it ends."""
    ink, page = (matplotlib.rcParams[key] for key in ("text.color", "figure.facecolor"))
    shades, norm, line = ramp(), PowerNorm(0.5, 0, 1), 0
    if name:
        axes.text(PAD, down + 0.14, name, color=soft())
        down += 0.22
    for index, x, line, wide, text in _layout(words, first):
        box = Rectangle((x + 0.005, down + line * LINE), wide - 0.01, LINE - 0.05, facecolor="none", linewidth=0)
        colour = soft() if index is None else ink
        if index is not None and allowed is not None and not allowed[index]:
            box.set(hatch="//////", edgecolor=matplotlib.rcParams["hatch.color"])
        elif index is not None and looks is not None:
            shade = shades(float(norm(looks[index])))
            colour = max((ink, page), key=lambda colour: abs(numpy.log(_light(colour) / _light(shade))))
            box.set_facecolor(shade)
        axes.add_patch(box)
        if index is not None and index == marked:
            axes.add_patch(Rectangle(box.get_xy(), wide - 0.01, LINE - 0.05, fill=False, edgecolor=MARK, linewidth=1.6))
        axes.text(x + wide / 2, down + line * LINE + 0.155, text, color=colour, fontsize=SIZE, ha="center")
    return down + (line + 1) * LINE + 0.12


def _layout(words: Sequence[str], first: int) -> Iterator[tuple[int | None, float, int, float, str]]:
    """For each piece of text: which word (None: a sign), inches from the left, line, inches of width, letters."""
    apart = 0.0 if any(" " in word for word in words) else 0.05  # words may bring their own spaces
    space, x, line = _inches("n n") - _inches("nn"), 0.0, 0
    for index, text, ends in _pieces(words, first):
        letters = text.strip(" ") or text
        before, after = text.split(letters, 1)
        wide = max(0.05, _inches(letters) if letters.strip() else space * len(letters)) + 2 * PAD
        x += space * len(before) + apart * (x > 0)
        if x > 0 and x + wide > WIDE and letters != "␊":
            x, line = 0.0, line + 1
        yield index, x, line, wide, letters
        x += wide + space * len(after)
        if ends:
            x, line = 0.0, line + 1


def _pieces(words: Sequence[str], first: int) -> Iterator[tuple[int | None, str, bool]]:
    """The words from the first one on, each in two where a line ends within, and signs for those left out."""
    last = min(first + MOST, len(words))
    if first:
        yield None, f"… {first} before ", False
    for index in range(first, last):
        for part in re.findall(r"[^\n]*\n|[^\n]+", words[index]) or [""]:
            yield index, _cut(part), part.endswith("\n")
    if last < len(words):
        yield None, f" … {len(words) - last} more", False


def _cut(word: str) -> str:
    shown = plain(word) or "∅"
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _light(colour: Any) -> float:
    """Such that the ratio of two is their contrast, as WCAG measures it."""
    return float(numpy.dot(numpy.array(to_rgb(colour)) ** 2.2, (0.2126, 0.7152, 0.0722))) + 0.05


@lru_cache(4096)
def _inches(text: str) -> float:
    """How wide running text is where it is saved as PNG; hinted letters are wider than drawn ones, as in SVG."""
    face = FontProperties(family=list(families()), size=SIZE)
    return RendererAgg(1, 1, 200).get_text_width_height_descent(text, face, False)[0] / 200
