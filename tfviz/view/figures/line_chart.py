"""Line charts, with all lines in one pair of axes, or with a panel for each line."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from tfviz.view.check_numbers import Spread
from tfviz.view.figures.log_axis import end_at_ticks, set_log_ticks
from tfviz.view.figures.palette import drawable, muted
from tfviz.view.figures.static_figure import panel_grid, reference_line

MAX_LINES_LEGEND_INSIDE = 4  # the legend of more lines is beside the axes
LINE_BREAK_NOTE = " (0 where the line breaks off)"  # appended in the legend to a line on a log axis
COLOUR_ORDER = (0, 6, 5, 3, 7, 1, 2, 4)  # of the eight colours; the most legible lines first
MARKERS = "os^DvPX*"  # one for each colour
PANELS_PER_ROW = 4
MIN_CENTRED_SHARE = 0.3  # of the axes' width: a narrower range may be narrower than its name
EXTRA_NAME_INCHES = 0.2  # additional height for each of more names at the ends of lines
END_NAME_POINTS = 10.5  # height of a name at the end of a line


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
        names = len(self.lines) + len(self.references)
        more = EXTRA_NAME_INCHES * max(0, names - MAX_LINES_LEGEND_INSIDE) if at_ends else 0
        figure = Figure(figsize=(6.4, 3.0 + more), layout="constrained")
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
        grid = panel_grid(figure, nrows, ncols, count, share=True)
        for index, (axes, (name, line)) in enumerate(zip(grid, self.lines.items())):
            for other in self.lines.values():
                axes.plot(other.xs, other.mean, color=muted(), alpha=0.3, linewidth=0.8)
            line.draw(axes, "C5", 0.3, linewidth=1.8)
            for label, value in self.references.items():
                reference_line(axes, label if index == ncols - 1 else "", value)
            axes.set_title(self._label(name), loc="left")
        for index, axes in enumerate(grid):  # with all lines drawn: a limit that is None is computed only once
            axes.set(**self.settings)
            self._shade_ranges(axes, labels=index == 0)
            self._set_log_ticks(axes)
            axes.tick_params(labelbottom=True)
        figure.supxlabel(f"{self.x} (grey: the other lines)" if count > 1 else self.x, fontsize=9)
        figure.supylabel(self.y, fontsize=9)
        return figure

    def _label_line_ends(self, figure: Figure, axes: Axes) -> None:
        """Write the names of lines beside their last points, and of references at the right, without overlap.

        If some names are pushed far from the ends of their lines, each has a sample of its line before it.
        """
        figure.draw_without_rendering()  # computes the limits and the layout
        drawn = dict(zip(self.lines, axes.lines))
        ends: list[tuple[float, str, str, Line2D]] = []  # height, name, colour, and the line as it is drawn
        for name, line in self.lines.items():
            known = [(x, y) for x, y in zip(line.xs, line.mean) if y == y]
            if known and (len(line.xs) == 1 or known[-1][0] != line.xs[-1]):  # a point, or NaN before the right edge
                above = 0 if len(line.xs) > 1 else -1
                style: Any = {
                    "fontsize": 8,
                    "color": self.colours[name],
                    "ha": "left",
                    "va": "center" if above == 0 else "top",
                }
                axes.annotate(self._label(name), known[-1], xytext=(5, above), textcoords="offset points", **style)
            else:
                height = _height(axes, line.xs[-1], known[-1][1] if known else 0)
                ends.append((height, self._label(name), self.colours[name], drawn[name]))
        dashes = axes.lines[len(self.lines) :]
        for (name, value), dash in zip(self.references.items(), dashes):
            ends.append((_height(axes, axes.get_xlim()[1], value), drawable(name), muted(), dash))
        ends.sort(key=lambda end: end[0])
        min_gap = END_NAME_POINTS / (axes.get_window_extent().height / figure.dpi * 72)
        heights = _spread_out([height for height, *_ in ends], min_gap)
        has_samples = any(abs(height - end[0]) > min_gap for height, end in zip(heights, ends))
        for height, (_, name, colour, drawn_line) in zip(heights, ends):
            if has_samples:
                _draw_sample(axes, drawn_line, height)
            style = {"ha": "left", "va": "center", "fontsize": 8, "color": colour, "annotation_clip": False}
            axes.annotate(name, (1.07 if has_samples else 1.01, height), xycoords="axes fraction", **style)

    def _label(self, name: str) -> str:
        has_gap = self.settings.get("yscale") == "log" and 0 in self.lines[name].mean
        return f"{drawable(name)}{LINE_BREAK_NOTE if has_gap else ''}"

    def _shade_ranges(self, axes: Axes, labels: bool = True) -> None:
        """Shade ranges of x, each labelled at the bottom, or at the top if fewer points lie there."""
        for name, (start, end) in self.shaded.items():
            axes.axvspan(start, end, color=muted(), alpha=0.13, linewidth=0, zorder=0)
            if not labels:
                continue
            points = [point for line in self.lines.values() for point in zip(line.xs, line.mean)]
            inside = [(x, y) for x, y in points if start <= x <= end and y == y]
            inside += [(start, value) for value in self.references.values()]
            heights = [_height(axes, *point) for point in inside]
            top = sum(height > 0.8 for height in heights) < sum(height < 0.2 for height in heights)
            box = {"facecolor": matplotlib.rcParams["figure.facecolor"], "alpha": 0.75, "edgecolor": "none", "pad": 0.5}
            style: Any = {"va": "top" if top else "bottom", "color": muted(), "bbox": box, "annotation_clip": False}
            ends = [axes.transLimits.transform(axes.transScale.transform((x, 1)))[0] for x in (start, end)]
            narrow = ends[1] - ends[0] < MIN_CENTRED_SHARE  # its name is aligned with its start
            style |= {"ha": "left" if narrow else "center", "fontsize": 8}
            anchor = (max(start, axes.get_xlim()[0]) if narrow else (start + end) / 2, 0.97 if top else 0.03)
            axes.annotate(drawable(name), anchor, xycoords=axes.get_xaxis_transform(), **style)

    def _set_log_ticks(self, axes: Axes) -> None:
        if axes.get_xscale() == "log":
            set_log_ticks(axes.xaxis, sorted({value for line in self.lines.values() for value in line.xs}))
        if axes.get_yscale() == "log":
            end_at_ticks(axes)
            set_log_ticks(axes.yaxis)


def _height(axes: Axes, x: float, y: float) -> float:
    """Return where a point is between the bottom (0) and the top (1) of the axes."""
    return float(axes.transLimits.transform(axes.transScale.transform((x, y)))[1])


def _spread_out(heights: list[float], min_gap: float) -> list[float]:
    """Return the sorted heights with at least `min_gap` between neighbours: nearer neighbours are pushed apart."""
    heights = list(heights)
    for _ in range(50):
        for at in range(len(heights) - 1):
            if (overlap := min_gap - (heights[at + 1] - heights[at])) > 0:
                heights[at], heights[at + 1] = heights[at] - overlap / 2, heights[at + 1] + overlap / 2
    return heights


def _draw_sample(axes: Axes, line: Line2D, height: float) -> None:
    """Draw a short piece of a line, with its marker, at the right of the axes."""
    sample = Line2D([1.015, 1.055], [height, height])
    sample.update_from(line)
    sample.set(transform=axes.transAxes, markevery=[0], clip_on=False)
    axes.add_artist(sample)
