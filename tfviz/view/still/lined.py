"""Lines over numbers: in one pair of axes, or in a panel each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from tfviz.view.still.formatting import formatted
from tfviz.view.still.numbers import Spread
from tfviz.view.still.palette import plain
from tfviz.view.still.picture import reference

BESIDE = 4  # lines whose names find room among them; those of more stand beside the axes
POINTS = 7  # of a log axis, that can all have their numbers
BROKEN = " (0 where the line breaks off)"  # said of a line on a log axis
LINES = (0, 6, 5, 3, 7, 1, 2, 4)  # of the eight colours, those that make good lines first
ACROSS = 4  # panels side by side


class Line:
    """Numbers over numbers, of one training or of several."""

    def __init__(self, xs: list[float], ys: Spread):
        self.xs, self.ys, self.mean = xs, ys, ys.mean.tolist()

    def draw(self, axes: Axes, ink: str, band: float = 0.22, **how: Any) -> None:
        axes.plot(self.xs, self.mean, color=ink, **how)
        if self.ys.several:
            axes.fill_between(self.xs, self.ys.low, self.ys.high, color=ink, alpha=band, linewidth=0)


@dataclass(frozen=True)
class Plot:
    """What is drawn.

    Attributes:
        level: name -> y of a dashed line across.
        stretches: name -> (from, to), a stretch of x that is shaded.
        settings: handed to matplotlib's `Axes.set`.
    """

    lines: Mapping[str, Line]
    x: str
    y: str
    level: Mapping[str, float]
    stretches: Mapping[str, tuple[float, ...]]
    settings: Mapping[str, Any]

    def together(self) -> Figure:
        """All in one pair of axes, with a legend."""
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        if all(float(value).is_integer() for line in self.lines.values() for value in line.xs):  # a step, a block
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        for index, (name, line) in enumerate(self.lines.items()):
            marker = "os^D"[index % 4] if len(line.xs) <= 30 else ""
            line.draw(axes, f"C{LINES[index % 8]}", marker=marker, markersize=4, label=self._said(name))
        for name, value in self.level.items():
            reference(axes, name, value)
        axes.set(**{"xlabel": self.x, "ylabel": self.y, **self.settings})
        shade(axes, self.stretches, self.lines)
        self._number(axes)
        if len(self.lines) > BESIDE:
            figure.legend(loc="outside right center")
        elif len(self.lines) > 1 or BROKEN in self._said(next(iter(self.lines))):
            axes.legend()
        return figure

    def apart(self) -> Figure:
        """A panel for each, all on one scale, the others faint behind it."""
        count = len(self.lines)
        down = -(-count // ACROSS)
        across = -(-count // down)
        figure = Figure(figsize=(min(9.0, 2.1 * across + 1.2), 1.7 * down + 0.7), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for index, (axes, (name, line)) in enumerate(zip(grid.flat, self.lines.items())):
            for other in self.lines.values():
                soft = matplotlib.rcParams["xtick.labelcolor"]
                axes.plot(other.xs, other.mean, color=soft, alpha=0.3, linewidth=0.8)
            line.draw(axes, "C5", 0.3, linewidth=1.8)
            for said, value in self.level.items():
                reference(axes, said if index == across - 1 else "", value)
            axes.set_title(self._said(name), loc="left")
            axes.set(**self.settings)
            shade(axes, self.stretches, self.lines if index == 0 else {})
            self._number(axes)
        for axes in grid.flat[count:]:
            axes.remove()
        for axes in grid.flat[max(0, count - across) : count]:
            axes.tick_params(labelbottom=True)
        figure.supxlabel(self.x, fontsize=9)
        figure.supylabel(self.y, fontsize=9)
        return figure

    def _number(self, axes: Axes) -> None:
        """The numbers of log axes."""
        if axes.get_xscale() == "log":
            _number(axes.xaxis, sorted({value for line in self.lines.values() for value in line.xs}))
        if axes.get_yscale() == "log":
            _number(axes.yaxis)

    def _said(self, name: str) -> str:
        broken = self.settings.get("yscale") == "log" and 0 in self.lines[name].mean
        return f"{plain(name)}{BROKEN if broken else ''}"


def shade(axes: Axes, stretches: Mapping[str, tuple[float, ...]], lines: Mapping[str, Line]) -> None:
    """Stretches of x in a soft grey, each with its name at the foot, or at the top where fewer of the lines are."""
    soft = matplotlib.rcParams["xtick.labelcolor"]
    for name, (start, end) in stretches.items():
        axes.axvspan(start, end, color=soft, alpha=0.13, linewidth=0, zorder=0)
        pairs = ((x, y) for line in lines.values() for x, y in zip(line.xs, line.mean))
        inside = [(start, y) for x, y in pairs if start <= x <= end and y == y]
        heights = [axes.transLimits.transform(axes.transScale.transform(point))[1] for point in inside]
        above = sum(height > 0.8 for height in heights) < sum(height < 0.2 for height in heights)
        where: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "va": "top" if above else "bottom"}
        at = ((start + end) / 2, 0.97 if above else 0.03)
        if lines:
            page = {
                "facecolor": matplotlib.rcParams["figure.facecolor"],
                "alpha": 0.75,
                "edgecolor": "none",
                "pad": 0.5,
            }
            where |= {"color": soft, "bbox": page, "annotation_clip": False}
            axes.annotate(plain(name), at, ha="center", fontsize=8, **where)


def _on_log_axis(value: SupportsFloat) -> str:
    """0.01, 100, 1,000: powers of ten would be formulas, and no years stand there."""
    number = float(value)
    return f"{int(number):,}" if number >= 1000 and number.is_integer() else formatted(number, 6)


def _number(axis: Axis, points: Sequence[float] = ()) -> None:
    """Numbers on a log axis: those asked for; at its points, if they are few and apart; or 1, 2, 5 ... if short."""
    low, high = axis.get_view_interval()
    apart = all(after > 1.4 * before for before, after in itertools.pairwise(points))
    if isinstance(axis.get_major_locator(), FixedLocator):
        pass
    elif 1 < len(points) <= POINTS and apart:
        axis.set_major_locator(FixedLocator(points))
        axis.set_minor_locator(NullLocator())
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: _on_log_axis(value))
    axis.set_minor_formatter(NullFormatter())
