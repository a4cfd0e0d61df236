"""What a function returns for some values of its controls: a line of these, and the results in rows of panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.view.still.figures import heatmap, label, soft
from tfviz.view.still.palette import diverging, plain, printable, ramp
from tfviz.view.still.picture import Picture, cut, headline
from tfviz.view.still.planes import arrows, dots, graph, nice

NUMBERED = 100  # cells that show their numbers
ACROSS = 9.0  # inches of a row of panels
SAID = 100  # characters of a line of controls


@dataclass(frozen=True)
class Panel:
    """A result as it is drawn; see `view.draw`."""

    kind: str
    title: str
    values: Tensor
    rows: Sequence[str]
    cols: Sequence[str]
    scale: str = ""
    limit: float | None = None
    least: float = 0.0
    places: Sequence[Sequence[float]] = ()

    @property
    def numbers(self) -> numpy.ndarray:
        return self.values.numpy().astype(float)

    def named(self, side: str, count: int) -> list[str]:
        """A word for each of so many; numbers where there are no words, or not so many."""
        words = getattr(self, side)
        return list(words) if len(words) == count else [str(i) for i in range(count)]

    @property
    def colours(self) -> tuple[str, float]:
        """The scale, and where it ends; the page has the same rule (`js/interact/scales.js`)."""
        values = self.numbers[numpy.isfinite(self.numbers)]
        signed = bool((values < 0).any())
        scale = self.scale or ("signed" if signed else "share")
        top = float(abs(values).max()) if values.size else 1.0
        if self.limit is not None:
            return scale, self.limit
        if self.scale in ("share", "weight") or (scale == "share" and self._shares(values)):
            return scale, 1.0
        return scale, nice(max(top, self.least))

    def _shares(self, values: numpy.ndarray) -> bool:
        """Whether each row adds up to 1, or holds truth values."""
        table = numpy.nan_to_num(self.numbers, neginf=0.0)
        whole = table.size > 0 and table.ndim > 0 and bool((abs(table.sum(-1) - 1) < 1e-3).all())
        truth = not self.values.dtype.is_floating_point and bool(((values == 0) | (values == 1)).all())
        return whole or truth


def interaction(title: str, line: Sequence[str], panels: Sequence[Panel], note: str = "") -> Picture:
    """The panels, and above them what the controls stand at, such as "sharpness = 2.55"; `note` stands below."""
    sizes = [SIZES[panel.kind](panel) for panel in panels]
    rows = _rows([wide for wide, _ in sizes])
    said = _lines(line)

    def draw() -> Figure:
        talls = [max(sizes[i][1] for i in row) for row in rows]
        wides = [sum(sizes[i][0] for i in row) for row in rows]
        wide, above = max(*wides, 3.2), 0.19 * len(said) + 0.05
        below = 0.25 if note else 0.05
        figure = Figure(figsize=(wide, sum(talls) + above + below + 0.35), layout="constrained")
        parts = figure.subfigures(2 + len(rows), 1, height_ratios=[above, *talls, below])
        parts[0].text(0.01, 1.0, "\n".join(map(plain, said)), va="top", color=soft(), fontsize=9)
        for part, row, own in zip(parts[1:-1], rows, wides):
            widths = [sizes[i][0] for i in row] + [wide - own] * (wide - own > 0.05)
            for axes, i in zip(part.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0], [*row, None]):
                if i is None:
                    axes.remove()
                else:
                    DRAWS[panels[i].kind](axes, panels[i])
                    axes.set_title(cut(plain(panels[i].title), max(12, int(13 * sizes[i][0]))), loc="left", pad=4)
        parts[-1].text(0.01, 0.0, plain(note), va="bottom", color=soft(), fontsize=9)
        headline(figure, title)
        return figure

    words = [f"{panel.title or panel.kind}: {_said(panel)}" for panel in panels]
    return Picture(draw, "\n".join([title, "; ".join(line), *words, *([note] if note else [])]))


def two(value: float) -> str:
    """Two significant digits.

    >>> two(0.3141), two(-120.4), two(0.0)
    ('0.31', '−120', '0')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    return f"{float(f'{value:.2g}'):.10g}".replace("-", "−").replace("e−0", "e−")


def _brief(value: float, limit: float) -> str:
    """In a cell: what is nearly nothing on its scale is a dot."""
    return "·" if value != 0 and abs(value) < limit / 200 else two(value)


def _rows(wides: Sequence[float]) -> list[list[int]]:
    """Which panels stand side by side, as many as a row has room for."""
    rows: list[list[int]] = [[]]
    for i, wide in enumerate(wides):
        if rows[-1] and sum(wides[j] for j in rows[-1]) + wide > ACROSS:
            rows.append([])
        rows[-1].append(i)
    return rows


def _lines(parts: Sequence[str]) -> list[str]:
    """What the controls say, in lines of a readable length, each part cut where it alone is too long."""
    lines = [""]
    for part in parts:
        part = cut(part, SAID)
        if lines[-1] and len(lines[-1]) + len(part) > SAID:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + part
    return lines[:6]


def _said(panel: Panel) -> str:
    """A panel in words: all of few numbers, the range of many."""
    values = panel.numbers
    shape = " x ".join(map(str, values.shape))
    if values.ndim == 0:
        return two(float(values))
    finite = values[numpy.isfinite(values)]
    if not finite.size:
        return f"{shape} without a finite number"
    if values.ndim == 1 and values.size <= 12:
        return ", ".join(f"{word!r} {two(value)}" for word, value in zip(panel.named("rows", len(values)), values))
    if panel.kind in ("arrows", "dots") and len(values) <= 12:
        words = panel.named("rows", len(values))
        return ", ".join(f"{word!r} ({two(x)}, {two(y)})" for word, (x, y) in zip(words, values))
    at = numpy.unravel_index(int(numpy.argmax(numpy.where(numpy.isfinite(values), values, -numpy.inf))), values.shape)
    words = [panel.named("rows", values.shape[0])[at[0]]]
    if values.ndim == 2:
        side = "rows" if panel.kind == "graph" else "cols"
        words.append(panel.named(side, values.shape[1])[at[1]])
    return f"{shape}, from {two(finite.min())} to {two(finite.max())} ({' → '.join(map(repr, words))})"


def _grid(axes: Axes, panel: Panel) -> None:
    values, (scale, limit) = panel.values.float(), panel.colours
    norms: dict[str, Callable[[], Normalize]] = {
        "share": lambda: Normalize(0, limit),
        "signed": lambda: Normalize(-limit, limit),
        "weight": lambda: PowerNorm(0.5, 0, limit),
    }
    colours = diverging() if scale == "signed" else ramp()
    open_cells = ~(values.isnan() | (values == -math.inf))
    shown = values.nan_to_num(0.0, posinf=limit, neginf=0.0)
    image = heatmap(axes, shown, open_cells, 1600, colours, norms[scale]())
    rows, cols = (panel.named(side, count) for side, count in zip(("rows", "cols"), values.shape))
    label(axes, rows, cols, (24, 24))
    axes.set(xlabel="", ylabel="")
    if values.numel() > NUMBERED:
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03, aspect=28)
        bar.set_ticks([-limit, 0, limit] if scale == "signed" else [0, limit / 2, limit])
        bar.outline.set_visible(False)
        return
    inks = [matplotlib.rcParams[name] for name in ("text.color", "figure.facecolor")]
    for (row, col), value in numpy.ndenumerate(panel.numbers):
        if open_cells[row, col]:
            behind = image.cmap(image.norm(float(shown[row, col])))
            ink = max(inks, key=lambda ink: _contrast(to_rgb(ink), behind[:3]))
            axes.text(col, row, _brief(value, limit), ha="center", va="center", color=ink, fontsize=8)


def _contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two colours, as WCAG has it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Sequence[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _bars(axes: Axes, panel: Panel) -> None:
    values = numpy.nan_to_num(panel.numbers, posinf=0.0, neginf=0.0)
    _, limit = panel.colours
    signed = bool((values < 0).any())
    places = numpy.arange(len(values))
    axes.barh(places, values, color=["C6" if value < 0 else "C5" for value in values], height=0.72)
    if len(values) <= 40:
        for place, value in enumerate(panel.numbers):
            left = value < 0
            shift = -3 if left else 3
            axes.annotate(two(value), (values[place], place), (shift, 0), textcoords="offset points",
                          va="center", ha="right" if left else "left", fontsize=8)  # fmt: skip
    axes.set(xlim=(-1.3 * limit if signed else 0, 1.3 * limit), xticks=[], ylim=(len(values) - 0.4, -0.6))
    step = max(1, -(-len(values) // 40))
    axes.set_yticks(places[::step], printable(panel.named("rows", len(values))[::step]))
    axes.grid(False)
    axes.spines[["right", "top", "bottom"]].set_visible(False)


def _curves(axes: Axes, panel: Panel) -> None:
    table = numpy.atleast_2d(panel.numbers)
    cols = panel.named("cols", table.shape[1])
    names = panel.named("rows", len(table)) if panel.values.dim() == 2 or panel.rows else [""]
    for at, (name, series) in enumerate(zip(names, table)):
        (line,) = axes.plot(numpy.arange(len(series)), series, color=f"C{(at + 5) % 8}")
        if len(table) <= 8 and name:
            axes.annotate(cut(plain(name), 18), (len(series) - 1, series[-1]), (4, 0), textcoords="offset points",
                          va="center", color=line.get_color(), fontsize=8)  # fmt: skip
    step = max(1, -(-len(cols) // 12))
    axes.set_xticks(range(0, len(cols), step), printable(cols[::step]))


def _words(axes: Axes, panel: Panel) -> None:
    scale, limit = panel.colours
    values = numpy.nan_to_num(panel.numbers, posinf=limit, neginf=0.0)
    colours, norm = (diverging(), Normalize(-limit, limit)) if scale == "signed" else (ramp(), Normalize(0, limit))
    axes.set(xlim=(0, SIZES["words"](panel)[0]), ylim=(-_word_places(panel)[1] - 0.1, 0.5), xticks=[], yticks=[])
    axes.axis("off")
    inks = [matplotlib.rcParams[name] for name in ("text.color", "figure.facecolor")]
    for (x, line, word), value in zip(_word_places(panel)[0], values):
        shade = colours(norm(float(value)))
        ink = max(inks, key=lambda ink: _contrast(to_rgb(ink), shade[:3]))
        box = {"facecolor": shade, "edgecolor": "none", "pad": 2.0}
        axes.text(x, -line, word, color=ink, bbox=box, fontsize=10, va="center", family="DejaVu Sans Mono")


def _word_places(panel: Panel) -> tuple[list[tuple[float, int, str]], int, float]:
    """Where each word stands in lines of at most 5 inches: (x, line, word); how many lines, and how wide."""
    placed, x, line, most = [], 0.0, 0, 0.0
    for word in printable(panel.named("rows", len(panel.values))):
        wide = 0.085 * len(word) + 0.1
        if x and x + wide > 5.0:
            x, line = 0.0, line + 1
        placed.append((x, line, word))
        x += wide
        most = max(most, x)
    return placed, line + 1, most


def _number(axes: Axes, panel: Panel) -> None:
    axes.axis("off")
    axes.text(0.0, 0.5, two(float(panel.numbers)), fontsize=22, va="center", transform=axes.transAxes)


def _grid_size(panel: Panel) -> tuple[float, float]:
    rows, cols = panel.values.shape
    few = rows * cols <= NUMBERED
    cell = 0.42 if few else min(0.25, max(0.02, 4.0 / max(rows, cols)))
    words = 0.075 * max(map(len, printable(panel.named("rows", rows))), default=1)
    above = 0.075 * max(map(len, printable(panel.named("cols", cols))), default=1)
    above = 0.15 if above < 0.12 else above
    wide = min(7.0, max(0.9, cell * cols)) + words + (0.2 if few else 0.7)
    return wide, min(6.0, max(0.5, cell * 0.8 * rows if few else cell * rows)) + above + 0.35


SIZES: dict[str, Callable[[Panel], tuple[float, float]]] = {
    "grid": _grid_size,
    "bars": lambda panel: (2.7, min(6.0, 0.22 * len(panel.values)) + 0.4),
    "lines": lambda panel: (3.6, 2.3),
    "arrows": lambda panel: (2.7, 2.7),
    "dots": lambda panel: (2.7, 2.7),
    "graph": lambda panel: (2.7, 2.7),
    "words": lambda panel: (max(1.2, _word_places(panel)[2] + 0.1), 0.26 * _word_places(panel)[1] + 0.4),
    "number": lambda panel: (max(1.4, 0.1 * len(panel.title)), 0.9),
}  # fmt: skip
DRAWS: dict[str, Callable[[Axes, Panel], Any]] = {
    "grid": _grid, "bars": _bars, "lines": _curves, "arrows": arrows, "dots": dots, "graph": graph, "words": _words,
    "number": _number,
}  # fmt: skip
