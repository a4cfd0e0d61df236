"""Line charts, with all lines in one pair of axes, or with a panel for each line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from tfviz.view.check_numbers import Spread
from tfviz.view.figures.formatting import formatted
from tfviz.view.figures.palette import drawable, soft
from tfviz.view.figures.static_figure import reference_line

MAX_LINES_LEGEND_INSIDE = 4  # the legend of more lines is beside the axes
MAX_LOG_TICKS = 7  # a log axis labels up to so many points
LINE_BREAK_NOTE = " (0 where the line breaks off)"  # appended in the legend to a line on a log axis
COLOUR_ORDER = (0, 6, 5, 3, 7, 1, 2, 4)  # of the eight colours; the most legible lines first
MARKERS = "os^DvPX*"  # one for each colour
PANELS_PER_ROW = 4
MIN_CENTRED_SHARE = 0.3  # of the axes' width: a narrower range may be narrower than its name
END_NAME_POINTS = 10.5  # height of a name at the end of a line
MIN_WRITTEN_OUT = 1e-5  # a log axis that goes below is labelled with powers of ten
RAISED = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Line:
    """A line of a chart: x-coordinates, and y-coordinates from one or several training runs."""

    xs: list[float]
    ys: Spread

    @property
    def mean(self) -> list[float]:
        return self.ys.mean.tolist()

    def draw(self, axes: Axes, colour: str, band: float = 0.22, **style: Any) -> None:
        axes.plot(self.xs, self.mean, color=colour, **style)
        if self.ys.several:
            axes.fill_between(self.xs, self.ys.low, self.ys.high, color=colour, alpha=band, linewidth=0)


@dataclass(frozen=True)
class LineChart:
    """The lines and settings of a chart.

    Attributes:
        lines: the lines by name.
        x: the name of the x-axis.
        y: the name of the y-axis.
        references: horizontal dashed lines, name -> y.
        shaded: shaded ranges of x, name -> (from, to).
        settings: arguments of matplotlib's `Axes.set`.
        dashed: names of lines that are dashed, in the colour of the line before.
    """

    lines: Mapping[str, Line]
    x: str
    y: str
    references: Mapping[str, float]
    shaded: Mapping[str, tuple[float, ...]]
    settings: Mapping[str, Any]
    dashed: Collection[str] = ()

    @property
    def colours(self) -> dict[str, str]:
        """The colour of each line in a chart with one pair of axes."""
        turns = itertools.accumulate(name not in self.dashed for name in self.lines)
        return {name: f"C{COLOUR_ORDER[max(0, turn - 1) % 8]}" for name, turn in zip(self.lines, turns)}

    def in_one(self, at_ends: bool = False) -> Figure:
        """Draw all lines in one pair of axes, with a legend or, if `at_ends`, with their names at their right ends."""
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        if all(float(value).is_integer() for line in self.lines.values() for value in line.xs):  # a step, a block
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        for index, (name, line) in enumerate(self.lines.items()):
            marker = MARKERS[index % len(MARKERS)] if len(line.xs) <= 30 else ""
            style: Any = {"marker": marker, "markersize": 4, "linestyle": "--" if name in self.dashed else "-"}
            line.draw(axes, self.colours[name], label=self._label(name), **style)
        for name, value in self.references.items():
            reference_line(axes, "" if at_ends else name, value)
        axes.set(**{"xlabel": self.x, "ylabel": self.y, **self.settings})
        self._shade_ranges(axes)
        self._set_log_ticks(axes)
        if at_ends:
            self._label_line_ends(figure, axes)
        elif len(self.lines) > MAX_LINES_LEGEND_INSIDE:
            figure.legend(loc="outside right center")
        elif len(self.lines) > 1 or LINE_BREAK_NOTE in self._label(next(iter(self.lines))):
            self._add_legend(figure, axes)
        return figure

    def _add_legend(self, figure: Figure, axes: Axes) -> None:
        """Add a legend inside the axes if it covers no line there, and otherwise below them."""
        legend = axes.legend()
        figure.draw_without_rendering()  # places the legend
        box = legend.get_window_extent()
        paths = [line.get_transform().transform_path(line.get_path()) for line in axes.lines]
        if any(path.intersects_bbox(box, filled=False) for path in paths):
            legend.remove()
            figure.legend(loc="outside lower center", ncols=2)

    def in_panels(self) -> Figure:
        """Draw a panel for each line, on a common scale, with the other lines faint behind it."""
        count = len(self.lines)
        nrows = -(-count // PANELS_PER_ROW)
        ncols = -(-count // nrows)
        figure = Figure(figsize=(min(9.0, 2.1 * ncols + 1.2), 1.7 * nrows + 0.7), layout="constrained")
        grid = figure.subplots(nrows, ncols, squeeze=False, sharex=True, sharey=True)
        for index, (axes, (name, line)) in enumerate(zip(grid.flat, self.lines.items())):
            for other in self.lines.values():
                axes.plot(other.xs, other.mean, color=soft(), alpha=0.3, linewidth=0.8)
            line.draw(axes, "C5", 0.3, linewidth=1.8)
            for label, value in self.references.items():
                reference_line(axes, label if index == ncols - 1 else "", value)
            axes.set_title(self._label(name), loc="left")
            axes.set(**self.settings)
            self._shade_ranges(axes, labels=index == 0)
            self._set_log_ticks(axes)
        for axes in grid.flat[count:]:
            axes.remove()
        for axes in grid.flat[:count]:
            axes.tick_params(labelbottom=True)
        figure.supxlabel(f"{self.x} (grey: the other lines)" if count > 1 else self.x, fontsize=9)
        figure.supylabel(self.y, fontsize=9)
        return figure

    def _label_line_ends(self, figure: Figure, axes: Axes) -> None:
        """Write the names of lines beside their last points, and of references at the right, without overlap."""
        figure.draw_without_rendering()  # computes the limits and the layout
        height = axes.get_window_extent().height / figure.dpi * 72  # points
        ends = []
        for name, line in self.lines.items():
            known = [y for y in line.mean if y == y]
            if len(line.xs) == 1 and known:
                beside: Any = {"xytext": (5, -1), "textcoords": "offset points", "ha": "left", "va": "top"}
                axes.annotate(self._label(name), (line.xs[0], known[0]), fontsize=8, color=self.colours[name], **beside)
                continue
            if known and line.mean[-1] != line.mean[-1]:  # ends with NaN, before the right edge
                last = max(at for at, y in enumerate(line.mean) if y == y)
                beside = {"xytext": (5, 0), "textcoords": "offset points", "ha": "left", "va": "center"}
                axes.annotate(
                    self._label(name), (line.xs[last], known[-1]), fontsize=8, color=self.colours[name], **beside
                )
                continue
            place = axes.transLimits.transform(axes.transScale.transform((line.xs[-1], known[-1] if known else 0)))
            ends.append((float(place[1]), self._label(name), self.colours[name]))
        for name, value in self.references.items():
            place = axes.transLimits.transform(axes.transScale.transform((axes.get_xlim()[1], value)))
            ends.append((float(place[1]), drawable(name), soft()))
        ends.sort(key=lambda end: end[0])
        levels = [level for level, *_ in ends]
        min_gap = END_NAME_POINTS / height
        for _ in range(50):  # neighbours that overlap push each other apart
            for at in range(len(levels) - 1):
                if (overlap := min_gap - (levels[at + 1] - levels[at])) > 0:
                    levels[at], levels[at + 1] = levels[at] - overlap / 2, levels[at + 1] + overlap / 2
        for level, (_, name, colour) in zip(levels, ends):
            style: Any = {"ha": "left", "va": "center", "fontsize": 8, "color": colour, "annotation_clip": False}
            axes.annotate(name, (1.01, level), xycoords="axes fraction", **style)

    def _label(self, name: str) -> str:
        has_gap = self.settings.get("yscale") == "log" and 0 in self.lines[name].mean
        return f"{drawable(name)}{LINE_BREAK_NOTE if has_gap else ''}"

    def _shade_ranges(self, axes: Axes, labels: bool = True) -> None:
        """Shade ranges of x, each labelled at the bottom, or at the top if fewer points lie there."""
        for name, (start, end) in self.shaded.items():
            axes.axvspan(start, end, color=soft(), alpha=0.13, linewidth=0, zorder=0)
            if not labels:
                continue
            points = [point for line in self.lines.values() for point in zip(line.xs, line.mean)]
            inside = [(x, y) for x, y in points if start <= x <= end and y == y]
            inside += [(start, value) for value in self.references.values()]
            heights = [axes.transLimits.transform(axes.transScale.transform(point))[1] for point in inside]
            top = sum(height > 0.8 for height in heights) < sum(height < 0.2 for height in heights)
            box = {"facecolor": matplotlib.rcParams["figure.facecolor"], "alpha": 0.75, "edgecolor": "none", "pad": 0.5}
            style: Any = {"va": "top" if top else "bottom", "color": soft(), "bbox": box, "annotation_clip": False}
            ends = [axes.transLimits.transform(axes.transScale.transform((x, 1)))[0] for x in (start, end)]
            narrow = ends[1] - ends[0] < MIN_CENTRED_SHARE  # its name is aligned with its start
            style |= {"ha": "left" if narrow else "center", "fontsize": 8}
            place = (max(start, axes.get_xlim()[0]) if narrow else (start + end) / 2, 0.97 if top else 0.03)
            axes.annotate(drawable(name), place, xycoords=axes.get_xaxis_transform(), **style)

    def _set_log_ticks(self, axes: Axes) -> None:
        if axes.get_xscale() == "log":
            set_log_ticks(axes.xaxis, sorted({value for line in self.lines.values() for value in line.xs}))
        if axes.get_yscale() == "log":
            _end_at_ticks(axes)
            set_log_ticks(axes.yaxis)


def _end_at_ticks(axes: Axes) -> None:
    """Extend a log y-axis of less than two decades to 1, 2 or 5 times powers of ten, so that its ends have labels."""
    low, high = axes.get_ylim()
    if axes.get_autoscaley_on() and high < 100 * low:
        steps = [step * 10.0**power for power in range(-30, 30) for step in (1, 2, 5)]
        axes.set_ylim(max(step for step in steps if step <= low), min(step for step in steps if step >= high))


def set_log_ticks(axis: Axis, points: Sequence[float] = ()) -> None:
    """Label a log axis at requested ticks, at its points if they are few and apart, or at 1, 2 and 5 if it is short.

    Numbers are written out, because matplotlib would typeset powers of ten as formulas. If the axis goes below 1e-5,
    powers of ten are written with superscripts.
    """
    low, high = axis.get_view_interval()
    spread_out = all(after > 1.4 * before for before, after in itertools.pairwise(points))
    if isinstance(axis.get_major_locator(), FixedLocator):
        pass
    elif 1 < len(points) <= MAX_LOG_TICKS and spread_out:
        axis.set_major_locator(FixedLocator(points))
        axis.set_minor_locator(NullLocator())
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    as_powers = low < MIN_WRITTEN_OUT
    axis.set_major_formatter(lambda value, _: _power(float(value)) if as_powers else _tick(float(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    return f"{int(value):,}" if value >= 1000 and value.is_integer() else formatted(value, 6)


def _power(value: float) -> str:
    """Format a power of ten with a superscript; other numbers and 1 are written out."""
    exponent = math.log10(value) if value > 0 else 0.0
    if not exponent or abs(exponent - round(exponent)) > 1e-6:
        return _tick(value)
    return f"10{str(round(exponent)).translate(RAISED)}"
