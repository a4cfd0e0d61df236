"""Bar charts of named numbers: vertical bars, or a table with a horizontal bar in each cell."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.look.map_arguments import as_strings
from tfviz.view.check_numbers import Spread, check_at_most, check_positive, check_references
from tfviz.view.figures.formatting import format_fixed, format_in_column, format_number, shorten
from tfviz.view.figures.palette import drawable, muted, tick_labels
from tfviz.view.figures.static_figure import StaticFigure, reference_line, set_title

MAX_BARS, MAX_ROWS, MAX_SERIES = 400, 200, 24
LETTER_WIDTH_INCHES = 0.075  # on average
DIGIT_WIDTH_INCHES = 0.066  # of a number beside its bar
NUMBER_GAP = 0.03  # between a bar and its number, relative to the panel's width
MIN_AXIS_LENGTH = 1.22  # length of a panel's axis, relative to its scale
PLACEMENT_ROUNDS = 4  # after which numbers and axis fit each other
MIN_BAR_SHARE = 0.35  # minimum share of a panel's width for its bars, beside long numbers
MAX_NAME_LENGTH = 42  # characters of a row's name
CROWDED_WIDTH = 14.0  # inches; panels that would be at least this wide side by side have two columns
GREY_OPACITY = 0.45  # opacity of a bar that is a base rate or a control
BASELINE_OPACITY = 0.16  # of the range of the row that others are compared with
GROUP_GAP = 0.6  # between groups of rows, relative to the distance of two rows
COLUMN_INCHES, ONLY_COLUMN_INCHES = 2.6, 4.2  # width of a column of bars and numbers; of the only one
TITLE_LETTER_INCHES = 0.08  # on average
REFERENCE_LETTER_INCHES = 0.05  # of the name of a reference line, on average


def bars(
    labels: Sequence[Any],
    heights: Mapping[str, Tensor | Sequence[float]],
    title: str,
    y: str = "probability",
    references: Mapping[str, float] | None = None,
    *,
    x: str = "",
    grey: Collection[Any] | Mapping[str, Collection[Any]] = (),
) -> StaticFigure:
    """Draw vertical bars: a panel for each series with a bar for each word, all on one scale.

    Args:
        labels: the labels of the bars; numbers are converted to strings.
        heights: name of a series -> heights, [word] or [training, word]. For several training runs, bars are the mean,
            with a line from minimum to maximum.
        title: the title.
        y: the name of the y-axis.
        references: horizontal dashed lines, name -> height, such as chance level.
        x: the name of the x-axis.
        grey: words whose bars are grey, such as controls, in all panels or by name of a series.

    Raises:
        ValueError: there is nothing to draw, or too much; a series does not have a value for each word, or has NaN or
            infinity.
        LookupError: `grey` has a word that has no bar, or a series that does not exist.
    """
    if unknown := [name for name in grey if isinstance(grey, Mapping) and name not in heights]:
        raise LookupError(f"grey is given for {unknown[0]!r}; the series are {list(heights)}")
    are_grey = {
        name: _are_among(labels, grey.get(name, ()) if isinstance(grey, Mapping) else grey, "grey") for name in heights
    }
    labels, series = _check_series(labels, heights, MAX_BARS)
    levels = check_references(references)

    def draw() -> Figure:
        length = max(2.4, _bar_step(labels) * len(labels) + 0.6)  # of a panel
        crowded = 1 if len(series) == 3 else min(2, len(series))  # panels in a row, where all would be too wide
        across = len(series) if len(series) * length < CROWDED_WIDTH else crowded
        down = math.ceil(len(series) / across)
        width = min(9.0, length * across + 0.4)
        figure = Figure(figsize=(width, 0.5 + (2.0 if across > 1 or down == 1 else 1.5) * down), layout="constrained")
        grid = figure.subplots(down, across, sharey=True, sharex=across == 1, squeeze=False)
        panels = grid.flatten().tolist()
        for axes in panels[len(series) :]:
            axes.set_visible(False)
        for axes, (name, values) in zip(panels, series.items()):
            axes.bar(range(len(labels)), values.mean, color=_bar_colours(are_grey[name]), width=0.75)
            if values.several:
                ink = matplotlib.rcParams["text.color"]
                axes.vlines(range(len(labels)), values.low, values.high, color=ink, linewidth=1.5)
            for label, level in levels.items():
                reference_line(axes, label if axes is panels[len(series) - 1] else "", level)
            axes.set_xticks(range(len(labels)), tick_labels(labels))
            axes.grid(axis="x", visible=False)
            axes.set_title(_panel_title(name, width / across))
        for axes in grid[:, 0]:
            axes.set_ylabel(shorten(drawable(y), 32))
        if x:
            figure.supxlabel(shorten(drawable(x), 64), fontsize="medium")
        set_title(figure, title)
        return figure

    return StaticFigure(draw, f"{title}\nhighest {y}: {_highest(labels, series)}")


def bar_table(
    names: Sequence[Any],
    columns: Mapping[str, Tensor | Sequence[float]],
    title: str,
    limit: float | None = None,
    *,
    references: Mapping[str, float | Mapping[str, float]] | None = None,
    grey: Collection[Any] = (),
    gap_before: Collection[Any] = (),
    baseline: Any = None,
) -> StaticFigure:
    """Draw a table of horizontal bars: a row for each name, a column for each measure, every bar with its number.

    Args:
        names: the labels of the rows; numbers are converted to strings.
        columns: name of a measure -> values, [name] or [training, name]. For several training runs, bars are the mean,
            with a line and numbers from minimum to maximum.
        title: the title.
        limit: the end of the scale of all measures, such as 1 for shares; None: each measure has its own scale.
        references: vertical dashed lines, name -> value, such as chance level; the value is a number for all columns,
            or a mapping from column to number.
        grey: names whose bars are grey, such as base rates and controls.
        gap_before: names with a gap above their rows, such as the first of each group.
        baseline: the name of a row with several training runs, whose range is shaded across all rows: a range that
            overlaps it shows no difference.

    Raises:
        ValueError: there is nothing to draw, or too much; a measure does not have a value for each name, or has a value
            above `limit`, NaN or infinity.
        LookupError: `grey`, `gap_before` or `baseline` has a name without a row, or `references` a column that does not
            exist.
    """
    are_grey = _are_among(names, grey, "grey")
    base = None if baseline is None else _are_among(names, [baseline], "a shade").index(True)
    gaps_above = accumulate(_are_among(names, gap_before, "a group of its own"))
    heights = [row + GROUP_GAP * gaps for row, gaps in enumerate(gaps_above)]
    row_names, series = _check_series(names, columns, MAX_ROWS)
    check_positive("limit", limit)
    levels = {name: _levels(references or {}, name) for name in series}
    _check_reference_columns(references or {}, series)
    _check_limit(series, limit)
    largest = None if limit is None else max(float(column.high.max()) for column in series.values())
    measures = [
        _Measure(name, column, levels[name], format_column(column, largest), limit) for name, column in series.items()
    ]
    table = _BarTable(title, row_names, heights, are_grey, measures, base)
    return StaticFigure(table.draw, f"{title}\nhighest {_highest(row_names, series)}")


@dataclass(frozen=True)
class _Measure:
    """A column of a table of bars.

    Attributes:
        name: its name.
        column: its values.
        levels: reference lines, name -> value.
        numbers: the text beside each bar.
        limit: the end of the scale that all columns share; None: the column has its own.
    """

    name: str
    column: Spread
    levels: Mapping[str, float]
    numbers: list[str]
    limit: float | None

    @property
    def scale(self) -> tuple[float, float]:
        """The start and the length of the scale."""
        return _scale(self.column, self.levels.values(), self.limit)

    def number_widths(self, panel_width: float) -> list[float]:
        """Return the width of each number, as a share of the panel's width in inches."""
        return [DIGIT_WIDTH_INCHES * len(number) / panel_width for number in self.numbers]

    def axis_length(self, panel_width: float) -> float:
        """Return the length of the axis that leaves room for the numbers in a panel of this width in inches."""
        return _axis_length(self.column, self.levels.values(), *self.scale, self.number_widths(panel_width))

    def number_positions(self, panel_width: float, axis_length: float) -> list[float]:
        """Return where each number begins."""
        return _number_positions(self.column, self.levels.values(), self.number_widths(panel_width), axis_length)


@dataclass(frozen=True)
class _BarTable:
    """A table of bars, which `draw` draws.

    Attributes:
        title: its title.
        names: of the rows.
        heights: the y-coordinates of the rows, downwards.
        are_grey: for each row, whether its bars are grey.
        measures: the columns.
        baseline: the row whose range is shaded across all rows.
    """

    title: str
    names: list[str]
    heights: list[float]
    are_grey: list[bool]
    measures: list[_Measure]
    baseline: int | None

    def draw(self) -> Figure:
        width, panel_width = _table_width(self.names, len(self.measures), self.title)
        lengths = self._axis_lengths(panel_width)
        reference_rows = [
            _reference_rows(measure.levels, length / panel_width) for measure, length in zip(self.measures, lengths)
        ]
        lines = max(row + 1 for rows in ({"": -1}, *reference_rows) for row in rows.values())
        figure = Figure(figsize=(width, 0.27 * (self.heights[-1] + 1) + 0.8 + 0.17 * lines), layout="constrained")
        panels = figure.subplots(1, len(self.measures), sharey=True, squeeze=False)[0]
        for axes, measure, length, rows in zip(panels, self.measures, lengths, reference_rows):
            self._draw_column(axes, measure, panel_width, length)
            _draw_references(axes, measure.levels, rows, self.heights[-1] + 0.7)
        panels[0].set_yticks(self.heights, [shorten(drawable(name), MAX_NAME_LENGTH) for name in self.names])
        panels[0].set_ylim(self.heights[-1] + 0.6, -0.6)
        set_title(figure, self.title)
        return figure

    def _axis_lengths(self, panel_width: float) -> list[float]:
        """Return the length of each axis; of measures that share a scale it is that of the longest."""
        lengths = [measure.axis_length(panel_width) for measure in self.measures]
        return [own if measure.limit is None else max(lengths) for own, measure in zip(lengths, self.measures)]

    def _draw_column(self, axes: Axes, measure: _Measure, panel_width: float, length: float) -> None:
        positions = measure.number_positions(panel_width, length)
        start, _ = measure.scale
        colours = _bar_colours(self.are_grey)
        _draw_column(axes, measure.column, self.heights, measure.numbers, positions, colours, start, length)
        if self.baseline is not None:
            low, high = (float(end[self.baseline]) for end in (measure.column.low, measure.column.high))
            axes.axvspan(low, high, color=muted(), alpha=BASELINE_OPACITY, linewidth=0, zorder=0)
        axes.set_title(_panel_title(measure.name, panel_width, 3), loc="left")


def _check_reference_columns(
    references: Mapping[str, float | Mapping[str, float]], series: Mapping[str, Spread]
) -> None:
    """Raise LookupError if a reference line is for a column that does not exist."""
    for name, of_columns in references.items():
        if isinstance(of_columns, Mapping) and not of_columns.keys() <= series.keys():
            raise LookupError(f"the reference {name!r} is for {list(of_columns)}; the columns are {list(series)}")


def _check_limit(series: Mapping[str, Spread], limit: float | None) -> None:
    """Raise ValueError if a value lies past the end of the scale."""
    for name, column in series.items():
        if limit is not None and column.high.max() > 1.001 * limit:
            raise ValueError(
                f"{name!r} goes up to {column.high.max():.3g}, past the end of the scale: limit is {limit:g}"
            )


def _bar_step(labels: Sequence[str]) -> float:
    """Return the distance between bars, in inches, that leaves room for the longest label, from 0.2 to 0.3."""
    return min(0.3, max(0.2, LETTER_WIDTH_INCHES * max(map(len, labels)) + 0.05))


def _draw_column(
    axes: Axes,
    column: Spread,
    heights: Sequence[float],
    numbers: Sequence[str],
    positions: Sequence[float],
    colours: Sequence[Any],
    start: float,
    axis_length: float,
) -> None:
    """Draw the bars of one measure, each with its number.

    Args:
        axes: the axes to draw on.
        column: the measure.
        heights: the y-coordinate of each bar, downwards.
        numbers: the text of each bar's number.
        positions: the x-coordinate at which each number begins.
        colours: the colour of each bar.
        start: the start of the scale.
        axis_length: the length of the axis.
    """
    axes.barh(heights, column.mean, color=colours, height=0.72)
    if column.several:
        ink = matplotlib.rcParams["text.color"]
        axes.hlines(heights, column.low, column.high, color=ink, linewidth=1.5)
    for row_height, number, position in zip(heights, numbers, positions):
        axes.text(position, row_height, number, va="center", fontsize=8)
    axes.set(xlim=(start, start + axis_length), xticks=[])
    if start < 0:
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=matplotlib.rcParams["axes.edgecolor"], linewidth=1)
    axes.grid(False)
    axes.spines[["right", "top", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _are_among(names: Sequence[Any], some: Collection[Any], colour: str) -> list[bool]:
    """Return, for each name, whether it is in `some`; `colour` describes the style in the error message.

    Raises:
        LookupError: an element of `some` is not among the names.
    """
    labels, chosen = as_strings(names), as_strings(list(some))
    if missing := [name for name in chosen if name not in labels]:
        raise LookupError(f"there is nothing called {missing[0]!r} to draw in {colour}; there are {', '.join(labels)}")
    return [word in chosen for word in labels]


def _bar_colours(grey: Sequence[bool]) -> list[Any]:
    """Return the colour of each bar in the current theme."""
    return [to_rgba(muted(), GREY_OPACITY) if is_grey else to_rgba("C5") for is_grey in grey]


def _levels(references: Mapping[str, float | Mapping[str, float]], column: str) -> dict[str, float]:
    """Return the name and the value of each reference line of a column."""
    levels = {name: value.get(column) if isinstance(value, Mapping) else value for name, value in references.items()}
    return check_references({name: float(value) for name, value in levels.items() if value is not None})


def _table_width(names: Sequence[str], columns: int, title: str) -> tuple[float, float]:
    """Return the width of a table of bars, at least its title's, and of each of its columns, in inches."""
    beside = min(3.2, LETTER_WIDTH_INCHES * min(MAX_NAME_LENGTH, max(map(len, names))) + 0.2)
    column = ONLY_COLUMN_INCHES if columns == 1 else COLUMN_INCHES
    width = min(9.0, max(column * columns + beside, TITLE_LETTER_INCHES * len(title) + 0.2))
    return width, (width - beside) / columns


def _scale(column: Spread, levels: Iterable[float], limit: float | None) -> tuple[float, float]:
    """Return the start and the length of a column's scale, which includes 0 and all reference lines."""
    levels = list(levels)
    end = max([float(column.high.max()), *levels]) if limit is None else limit
    start = min(0.0, float(column.low.min()), *levels)
    return start, max(end, 0.0) - start or 1.0


def _number_positions(
    column: Spread, levels: Iterable[float], widths: Sequence[float], axis_length: float
) -> list[float]:
    """Return where each bar's number begins: behind the bar and its range, or behind a line that it would cover."""
    gap, positions = NUMBER_GAP * axis_length, []
    for high, width in zip(column.high.tolist(), widths):
        position = max(0.0, high) + gap
        for level in sorted(levels):
            if position - gap < level < position + width * axis_length:
                position = level + gap
        positions.append(position)
    return positions


def _axis_length(
    column: Spread, levels: Iterable[float], start: float, length: float, widths: Sequence[float]
) -> float:
    """Return the length of a panel's axis that leaves room for the numbers beside its bars.

    Args:
        column: the lengths of the bars.
        levels: the positions of the reference lines.
        start: the start of the scale.
        length: the length of the scale.
        widths: the width of each number, as a share of the panel's.
    """
    axis_length = MIN_AXIS_LENGTH * length
    for _ in range(PLACEMENT_ROUNDS):  # a longer axis makes the bars shorter, and numbers may then cover a line
        positions = _number_positions(column, levels, widths, axis_length)
        ends = [(position - start) / max(MIN_BAR_SHARE, 1 - width) for position, width in zip(positions, widths)]
        axis_length = max(axis_length, *ends)
    return axis_length


def _reference_rows(levels: Mapping[str, float], units_per_inch: float) -> dict[str, int]:
    """Return, for each reference line, the row of its name, so that it meets no other name, and no line to its right.

    A line goes down as far as its name. So the rightmost name is in the first row, and others are in the first row that
    is free, from right to left.
    """
    starts, rows = list[float](), dict[str, int]()  # of the leftmost name in each row
    for name, value in sorted(levels.items(), key=lambda level: -level[1]):
        end = value + (len(shorten(drawable(name), 40)) + 2) * REFERENCE_LETTER_INCHES * units_per_inch
        rows[name] = next((row for row, start in enumerate(starts) if end < start), len(starts))
        starts[rows[name] : rows[name] + 1] = [value]
    return rows


def _draw_references(axes: Axes, levels: Mapping[str, float], rows: Mapping[str, int], top: float) -> None:
    """Draw vertical dashed lines down to their names, which stand in rows below the bars, from `top` down."""
    line: Any = {"color": muted(), "linewidth": 1, "zorder": 3, "linestyle": (0, (5, 3)), "clip_on": False}
    line |= {"scalex": False, "scaley": False}
    style: Any = {"fontsize": 7.5, "color": muted(), "va": "top", "ha": "left", "annotation_clip": False}
    for name, value in levels.items():
        point = (value, top + 0.6 * rows[name])
        axes.plot([value, value], [-0.6, point[1] + 0.45], **line)
        axes.annotate(shorten(drawable(name), 40), point, xytext=(2.5, 0), textcoords="offset points", **style)


def _check_series(
    names: Sequence[Any], series: Mapping[str, Tensor | Sequence[float]], max_names: int
) -> tuple[list[str], dict[str, Spread]]:
    """Return the names as strings and the spread of each series.

    Raises:
        ValueError: there are no names or series, or too many; a series does not have a number for each name.
    """
    if not names or not series:
        raise ValueError("there is nothing to draw: give names, and numbers for each")
    check_at_most(len(names), max_names, "names", "give those you mean, such as the 20 highest")
    check_at_most(len(series), MAX_SERIES, "series", "give fewer of them")
    spreads = {name: Spread.from_values(name, values) for name, values in series.items()}
    for name, spread in spreads.items():
        if spread.mean.shape != (len(names),):
            raise ValueError(f"{name!r} must be {len(names)} numbers, one for each name; got {series[name]}")
    return as_strings(names), spreads


def _highest(names: Sequence[str], series: Mapping[str, Spread]) -> str:
    tops = [(name, int(values.mean.argmax()), float(values.mean.max())) for name, values in series.items()]
    return ", ".join(f"{name}: {names[at]!r} {format_number(value, 3)}" for name, at, value in tops)


def format_column(column: Spread, largest: float | None = None) -> list[str]:
    """Format each mean of a column, followed by its range over training runs, all with the same number of decimals.

    Args:
        column: the numbers.
        largest: the largest number of all columns that share a scale, so that their decimals agree; None: the largest
            absolute number of this column.
    """
    cells = list(zip(column.mean.tolist(), column.low.tolist(), column.high.tolist()))
    values = [value for cell in cells for value in cell]
    largest = max(map(abs, values)) if largest is None else largest
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    is_fine = power >= 0 or (power == -1 and not column.several)  # beside a range, another digit has little meaning
    max_decimals = max(0, (2 if is_fine else 1) - power)
    decimals = next(n for n in range(max_decimals + 1) if all(round(v, n) == round(v, max_decimals) for v in values))
    bounded = max(values) <= 1  # probably shares: only exactly 1 may read as 1
    return [
        _with_range(cell, [format_in_column(value, decimals, bounded) for value in cell], decimals) for cell in cells
    ]


def _with_range(cell: Sequence[float], texts: Sequence[str], decimals: int) -> str:
    """Return the text of a mean and its range; a single bound if the range spans 0 and all three round to 0."""
    mean, low, high = texts
    if low == high:
        return mean
    if cell[1] < 0 < cell[2] and all(round(abs(value), decimals) == 0 for value in cell):
        return f"within ±{format_fixed(10**-decimals, decimals)}"
    return f"{mean} ({low} to {high})"


def _panel_title(name: str, inches: float, max_lines: int = 2) -> str:
    """Wrap a name to the width of its panel, truncated after `max_lines` lines."""
    return "\n".join(
        wrap(drawable(name), max(8, int((inches - 0.3) / LETTER_WIDTH_INCHES)), max_lines=max_lines, placeholder="…")
    )
