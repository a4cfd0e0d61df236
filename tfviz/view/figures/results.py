"""Result panels of an instrument in matplotlib: a drawing function and a size for each kind of `view.draw`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tfviz.view.figures.formatting import format_aligned, format_number, percent, shorten, unit_suffix
from tfviz.view.figures.heatmap import (
    NUMBER_CELL_INCHES,
    colormap,
    contrasting_colour,
    draw_colourbar,
    draw_heatmap,
    norm,
)
from tfviz.view.figures.palette import drawable, muted, negative_colour, prediction_colour, tick_labels
from tfviz.view.figures.planes import arrows, dots, graph
from tfviz.view.figures.sentences import stack_answer
from tfviz.view.figures.ticks import ticks
from tfviz.view.result_spec import STACK_COLOURS, ResultPanel, is_binary, stack_end
from tfviz.view.spec import NO_NAMES, Axis, Heatmap, is_numbered

MAX_NAMED_STEPS_INCHES = 4.8  # a line plot whose labels are wider together labels only some of its steps
ENDS_ROW = -1  # of the bars, where the meanings of both sides of 0 stand
BAR_HEIGHT = 0.72  # of a row
MAX_NAMED_BARS = 40  # if there are more bars, only some have names, and none has a number
LINE_NAME_HEIGHT = 0.1  # of a line's name, as a share of the plot's height
COINCIDING_SHARE = 0.015  # of the largest number: lines that are nowhere further apart lie on each other
MAX_LEVEL_LENGTH = 5  # characters of a label that fits above a cell without rotation
STACK_INCHES = 5.0  # width of a stack
NUMBER_POINTS = 16  # of a single number
MAX_SHADES_WITHOUT_COLOUR_BAR = 2  # two shades, such as yes and no, are explained by the title


def draw_result(axes: Axes, panel: ResultPanel, width: float, stated: tuple[int, int] | None = None) -> None:
    """Draw a result at the upper left of its subplot, in the aspect ratio of its kind.

    Args:
        axes: the axes to draw on.
        panel: the result.
        width: the width of the panel, in inches.
        stated: row and column of the number to mark, because the sentence about the results names it.
    """
    RENDERERS[panel.drawing.kind](axes, panel)
    if stated is not None:
        _mark(axes, panel, *stated)
    axes.set_title(shorten(drawable(panel.drawing.title), max(12, int(13 * width))), loc="left", pad=4)
    if aspect_ratio := ASPECT_RATIOS.get(panel.drawing.kind):
        axes.set_box_aspect(aspect_ratio(panel))
    axes.set_anchor("NW")


def _mark(axes: Axes, panel: ResultPanel, row: int, column: int) -> None:
    """Mark a number: outline its cell, set its bar's name and number in bold, or put a dot on its line."""
    if panel.drawing.kind == "grid" and min(panel.values.shape) > 1:
        outline: dict[str, Any] = {
            "fill": False,
            "clip_on": False,
            "edgecolor": matplotlib.rcParams["text.color"],
            "linewidth": 1.5,
        }
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **outline))
    elif panel.drawing.kind == "bars" and len(panel.values) <= MAX_NAMED_BARS:
        for text in (axes.get_yticklabels()[row], axes.texts[row]):
            text.set_fontweight("bold")
    elif panel.drawing.kind == "lines":
        height = float(numpy.atleast_2d(panel.numbers)[row, column])
        axes.plot([column], [height], "o", markersize=5, color=f"C{(row + 5) % 8}")


def _draw_grid(axes: Axes, panel: ResultPanel) -> None:
    """Draw a heatmap, hatched where a number is -inf or NaN, with numbers if there are few cells."""
    values, (rows, columns) = panel.values.float(), panel.values.shape
    spec = Heatmap(
        values.nan_to_num(0.0, posinf=math.inf, neginf=0.0),
        Axis(panel.drawing.axes[0], panel.row_labels(rows)),
        Axis(panel.drawing.axes[1], panel.column_labels(columns)),
        panel.scale,
        allowed=~(values.isnan() | (values == -math.inf)),
        numbered=is_numbered(rows, columns) and not (panel.drawing.ends != NO_NAMES and is_binary(panel.numbers)),
    )
    image = draw_heatmap(axes, spec, labels=(24, 24))
    if is_numbered(rows, columns) and not spec.numbered:  # lines separate neighbours of the same shade
        edges: dict[str, Any] = {"color": matplotlib.rcParams["axes.edgecolor"], "linewidth": 0.6}
        axes.hlines(numpy.arange(1, rows) - 0.5, -0.5, columns - 0.5, **edges)
        axes.vlines(numpy.arange(1, columns) - 0.5, -0.5, rows - 0.5, **edges)
    if max(map(len, tick_labels(spec.columns.labels)), default=0) <= MAX_LEVEL_LENGTH and spec.numbered:
        axes.tick_params(axis="x", labelrotation=0)
    shades = len(values[values.isfinite()].unique())
    if panel.drawing.ends == NO_NAMES and not spec.numbered and shades > MAX_SHADES_WITHOUT_COLOUR_BAR:
        draw_colourbar(axes.figure, image, axes, panel.scale)  # type: ignore[arg-type]


def _draw_bars(axes: Axes, panel: ResultPanel) -> None:
    """Draw a bar for each number; one that does not point to its expected side is hollow and has a ✗."""
    values = numpy.nan_to_num(panel.numbers, posinf=0.0, neginf=0.0)
    as_expected = values * numpy.array(panel.drawing.expected or numpy.sign(values)) > 0
    colours = [negative_colour() if value < 0 else prediction_colour() for value in values]
    fills = [colour if filled else "none" for colour, filled in zip(colours, as_expected)]
    edges = ["none" if filled else colour for colour, filled in zip(colours, as_expected)]
    rows = numpy.arange(len(values))
    axes.barh(rows, values, height=BAR_HEIGHT, linewidth=1, edgecolor=edges, color=fills)
    if panel.drawing.expected:
        sides = panel.limit * numpy.sign(panel.drawing.expected)
        axes.barh(rows, sides, height=BAR_HEIGHT, color=matplotlib.rcParams["grid.color"], zorder=-1)
    if len(values) <= MAX_NAMED_BARS:
        _write_bar_numbers(axes, panel, values, as_expected)
    for end, side in zip(panel.drawing.ends, (-1, 1)):
        text = f"← {end}" if side < 0 else f"{end} →"
        look: Any = {"fontsize": 8, "color": muted(), "ha": "left" if side > 0 else "right", "va": "center"}
        axes.annotate(text if end else "", (0, ENDS_ROW), (4 * side, 0), textcoords="offset points", **look)
    _style_bar_axes(axes, panel, signed=bool((values < 0).any() or panel.drawing.expected))


def _write_bar_numbers(axes: Axes, panel: ResultPanel, values: numpy.ndarray, as_expected: numpy.ndarray) -> None:
    """Write the number of each bar beyond its end, with a sign if a side is expected."""
    for row, text in enumerate(format_aligned(panel.numbers.tolist())):
        verdict = (" ✓" if as_expected[row] else " ✗") if panel.drawing.expected else ""
        is_left = panel.numbers[row] < 0
        axes.annotate(
            text + unit_suffix(panel.drawing.unit) + verdict, (values[row], row), (-3 if is_left else 3, 0),
            textcoords="offset points", va="center", ha="right" if is_left else "left", fontsize=8,
        )  # fmt: skip


def _style_bar_axes(axes: Axes, panel: ResultPanel, signed: bool) -> None:
    """Set the limits and the names of bars, which begin at 0: in the middle if some are below it, else at the left."""
    count, limit = len(panel.numbers), 1.3 * panel.limit
    rows = (count - 0.4, count - _bar_rows(panel) - 0.6)
    axes.set(xlim=(-limit if signed else 0, limit), xticks=[], ylim=rows)
    step = max(1, -(-count // MAX_NAMED_BARS))
    axes.set_yticks(range(0, count, step), tick_labels(panel.row_labels(count)[::step]))
    axes.grid(False)
    axes.spines[["right", "top", "bottom"]].set_visible(False)
    if signed:
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=matplotlib.rcParams["axes.edgecolor"], linewidth=1, zorder=0)
        axes.tick_params(axis="y", length=0)


def _draw_lines(axes: Axes, panel: ResultPanel) -> None:
    table = numpy.atleast_2d(panel.numbers)
    columns = panel.column_labels(table.shape[1])
    names = panel.row_labels(len(table)) if panel.values.dim() == 2 or panel.drawing.rows else [""]
    for at, series in enumerate(table):
        covers = any(_coincide(series, earlier, numpy.nanmax(numpy.abs(table), initial=0.0)) for earlier in table[:at])
        style: Any = {"linestyle": (0, (4, 4))} if covers else {}  # the line below shows in the gaps
        axes.plot(numpy.arange(len(series)), series, color=f"C{(at + 5) % 8}", **style)
    if not (table < 0).any():  # as in the page
        axes.set_ylim(bottom=0)
    if len(table) <= 8 and any(names):
        _write_line_names(axes, [shorten(drawable(name), 18) for name in names], table)
    names = tick_labels(columns)
    most = len(columns) if _steps_width(panel) <= MAX_NAMED_STEPS_INCHES else max(2, 40 / (1.5 + max(map(len, names))))
    shown = ticks(names, most)
    axes.set_xticks(list(shown), list(shown.values()))
    vertical, horizontal = panel.drawing.axes
    axes.set(ylabel=drawable(" in ".join(filter(None, (vertical, panel.drawing.unit)))), xlabel=drawable(horizontal))


def _coincide(series: numpy.ndarray, other: numpy.ndarray, largest: float) -> bool:
    """Return whether two lines lie on each other wherever both are drawn, compared with the largest number."""
    apart = numpy.abs(series - other)
    apart = apart[numpy.isfinite(apart)]
    return bool(apart.size and apart.max() < COINCIDING_SHARE * largest)


def _write_line_names(axes: Axes, names: Sequence[str], table: numpy.ndarray) -> None:
    """Write the names of lines at their right ends, without overlap."""
    low, high = axes.get_ylim()
    height = (high - low) * LINE_NAME_HEIGHT
    ends = table[:, -1]
    known = [int(at) for at in numpy.argsort(ends) if numpy.isfinite(ends[at])]
    levels: list[float] = []
    for at in known:
        levels.append(max(float(ends[at]), levels[-1] + height if levels else low))
    for back in range(len(levels) - 1, -1, -1):
        levels[back] = min(levels[back], levels[back + 1] - height if back + 1 < len(levels) else high)
    for at, level in zip(known, levels):
        axes.annotate(names[at], (table.shape[1] - 1, level), (4, 0), textcoords="offset points", va="center",
                      color=f"C{(at + 5) % 8}", fontsize=8)  # fmt: skip


def _draw_stack(axes: Axes, panel: ResultPanel) -> None:
    """Draw a stacked bar of all parts, above it the sum and whether it fits, below it the parts' names and numbers."""
    values = numpy.nan_to_num(panel.numbers, posinf=0.0, neginf=0.0).clip(0)
    names = [shorten(drawable(name), 24) for name in panel.row_labels(len(values))]
    total = float(values.sum())
    end = stack_end(total, panel.drawing.budget)
    rows = len(values)
    axes.set(xlim=(0, end), ylim=(rows + 1.2, -1.9))
    axes.axis("off")
    left = 0.0
    for at, (name, value) in enumerate(zip(names, values)):
        colour = f"C{STACK_COLOURS[at % len(STACK_COLOURS)]}"
        axes.barh(0, value, left=left, height=1.0, color=colour, edgecolor=axes.get_facecolor(), linewidth=1)
        axes.barh(at + 1.3, 0.02 * end, height=0.6, color=colour)
        share = f" ({percent(value / total)})" if total else ""
        axes.text(0.035 * end, at + 1.3, f"{name}  {_with_unit(value, panel)}{share}", va="center", fontsize=9)
        left += value
    axes.text(0, -1.75, stack_answer(panel), fontsize=14, fontweight="bold", va="top")
    if (budget := panel.drawing.budget) is not None:
        axes.plot([budget] * 2, [-0.75, 0.75], color=matplotlib.rcParams["text.color"], linewidth=1.5)
        axes.annotate(_with_unit(budget, panel), (budget, -0.6), (4, 0), textcoords="offset points",
                      fontsize=8, va="center", color=muted())  # fmt: skip


def _with_unit(value: float, panel: ResultPanel) -> str:
    return format_number(value) + unit_suffix(panel.drawing.unit)


def _draw_words(axes: Axes, panel: ResultPanel) -> None:
    values = numpy.nan_to_num(panel.numbers, posinf=panel.limit, neginf=0.0)
    colours, normalize = colormap(panel.scale), norm(panel.scale)
    axes.set(
        xlim=(0, PANEL_SIZES["words"](panel)[0]), ylim=(0.5 - _word_positions(panel)[1], 0.5), xticks=[], yticks=[]
    )
    axes.axis("off")
    for (x, line, word), value in zip(_word_positions(panel)[0], values):
        shade = colours(normalize(float(value)))
        box = {"facecolor": shade, "edgecolor": "none", "pad": 2.0}
        font: dict[str, Any] = {"fontsize": 10, "family": "DejaVu Sans Mono", "color": contrasting_colour(shade)}
        axes.text(x, -line, word, bbox=box, va="center", **font)


def _word_positions(panel: ResultPanel) -> tuple[list[tuple[float, int, str]], int, float]:
    """Return (x, line, word) of each word in lines of up to 5 inches, the number of lines, and the width."""
    placed, x, line, width = [], 0.0, 0, 0.0
    for word in tick_labels(panel.row_labels(len(panel.values))):
        word_width = 0.085 * len(word) + 0.1
        if x and x + word_width > 5.0:
            x, line = 0.0, line + 1
        placed.append((x, line, word))
        x += word_width
        width = max(width, x)
    return placed, line + 1, width


def _draw_number(axes: Axes, panel: ResultPanel) -> None:
    axes.axis("off")
    axes.text(
        0.0, 1.0, _with_unit(float(panel.numbers), panel), fontsize=NUMBER_POINTS, va="top", transform=axes.transAxes
    )


def _grid_size(panel: ResultPanel) -> tuple[float, float]:
    rows, columns = panel.values.shape
    named = [0.16 * bool(name) for name in panel.drawing.axes]
    is_small = is_numbered(rows, columns)
    cell = NUMBER_CELL_INCHES if is_small else min(0.25, max(0.02, 4.0 / max(rows, columns)))
    labels = 0.075 * max(map(len, tick_labels(panel.row_labels(rows))), default=1)
    above = 0.075 * max(map(len, tick_labels(panel.column_labels(columns))), default=1)
    above = 0.15 if above < 0.12 or (is_small and above <= 0.075 * MAX_LEVEL_LENGTH) else above
    width = min(7.0, max(0.9, cell * columns)) + labels + (0.2 if is_small or panel.drawing.ends != NO_NAMES else 0.7)
    height = min(6.0, max(0.5, cell * NUMBER_CELL_ASPECT * rows if is_small else cell * rows)) + above + 0.35
    return width + named[0], height + named[1]


def _lines_width(panel: ResultPanel) -> float:
    """Return the width of a line plot, in inches: 3.5, or up to 4.8 if that makes room for all step labels."""
    width = _steps_width(panel)
    return max(3.5, width) if width <= MAX_NAMED_STEPS_INCHES else 3.5


def _steps_width(panel: ResultPanel) -> float:
    """Return the width of all step labels side by side, in inches."""
    return 0.5 + sum(0.07 * len(word) + 0.14 for word in tick_labels(panel.column_labels(panel.values.shape[-1])))


def _names_width(panel: ResultPanel) -> float:
    """Return the width of line names beside the lines, in inches."""
    names = panel.drawing.rows if len(panel.drawing.rows) <= 8 else ()
    return 0.075 * max((len(shorten(drawable(name), 18)) for name in names), default=0)


def _bar_rows(panel: ResultPanel) -> int:
    """Return the number of bars, and one more if a row above them states what the sides of 0 mean."""
    return len(panel.values) + (panel.drawing.ends != NO_NAMES)


def _bars_width(panel: ResultPanel) -> float:
    """Return the width of a panel of bars, in inches, with room for the longest label."""
    return max(2.7, 2.0 + 0.075 * max(map(len, tick_labels(panel.row_labels(len(panel.values)))), default=1))


def _grid_aspect_ratio(panel: ResultPanel) -> float:
    rows, columns = panel.values.shape
    return min(6.0, max(0.15, rows / columns * (NUMBER_CELL_ASPECT if is_numbered(rows, columns) else 1)))


NUMBER_CELL_ASPECT = 0.8  # height divided by width of a cell with its number
ASPECT_RATIOS: dict[str, Callable[[ResultPanel], float]] = {  # height divided by width of the area inside the axes
    "grid": _grid_aspect_ratio,
    "bars": lambda panel: min(6.0, 0.22 * _bar_rows(panel)) / 2.0,
    "lines": lambda panel: 0.55,
    "words": lambda panel: 0.26 * _word_positions(panel)[1] / max(1.1, _word_positions(panel)[2]),
    "number": lambda panel: 0.4,
    "stack": lambda panel: (0.22 * len(panel.values) + 0.7) / STACK_INCHES,
}
PANEL_SIZES: dict[str, Callable[[ResultPanel], tuple[float, float]]] = {
    "grid": _grid_size,
    "bars": lambda panel: (_bars_width(panel), min(6.0, 0.22 * _bar_rows(panel)) + 0.4),
    "lines": lambda panel: (
        _lines_width(panel) + _names_width(panel), 0.6 * _lines_width(panel) + 0.16 * bool(panel.drawing.axes[1])
    ),
    "arrows": lambda panel: (2.7, 2.7),
    "dots": lambda panel: (2.7, 2.7),
    "graph": lambda panel: (2.7, 2.7),
    "words": lambda panel: (max(1.2, _word_positions(panel)[2] + 0.1), 0.26 * _word_positions(panel)[1] + 0.4),
    "number": lambda panel: (max(1.4, 0.1 * len(panel.drawing.title)), 0.7),
    "stack": lambda panel: (STACK_INCHES + 0.2, 0.22 * len(panel.values) + 1.1),
}  # fmt: skip
RENDERERS: dict[str, Callable[[Axes, ResultPanel], Any]] = {
    "grid": _draw_grid, "bars": _draw_bars, "lines": _draw_lines, "arrows": arrows, "dots": dots, "graph": graph,
    "words": _draw_words, "number": _draw_number, "stack": _draw_stack,
}  # fmt: skip
