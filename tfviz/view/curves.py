"""Line charts: learning curves, and named lines."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import matplotlib
import numpy
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.view.check_numbers import Spread, check_at_most, check_finite, check_references
from tfviz.view.figures.formatting import format_count, format_fixed, format_number
from tfviz.view.figures.line_chart import Line, LineChart
from tfviz.view.figures.palette import drawable
from tfviz.view.figures.static_figure import StaticFigure, reference_line, set_title

MAX_LINES = 40


@runtime_checkable
class Step(Protocol):
    """A training step, as `learn.fit` yields it."""

    step: int
    loss: float


def curves(
    history: Iterable[Step],
    title: str = "Learning",
    *,
    references: Mapping[str, float] | None = None,
    **measured: Sequence[tuple[int, float]],
) -> StaticFigure:
    """Draw the loss over the training steps: a faint line for each step's loss, a strong line for the moving mean.

    A measured line has its last value beside its last point.

    Args:
        history: the steps that `learn.fit` yielded.
        title: the title.
        references: horizontal dashed lines, name -> loss in nats, such as the loss of a uniform prediction.
        measured: further lines by name, as pairs (step, nats), such as `held_out=[(100, 2.1), (200, 1.9)]`.

    Raises:
        TypeError: an element of `history` has no step and loss.
        ValueError: there are no steps, a measured line has no points, steps do not increase, or a loss is infinite.
    """
    history = list(history)
    wrong = next((i for i, step in enumerate(history) if not isinstance(step, Step)), None)
    if wrong is not None:
        raise TypeError(
            f"history[{wrong}] has no step and loss; give what learn.fit yields, as in list(learn.fit(...))"
        )
    if not history:
        raise ValueError("there are no steps to draw; give list(learn.fit(...))")
    for name, points in measured.items():
        if not points:
            raise ValueError(f"{name} has no points; give pairs (step, nats), or leave it out")
        check_finite(name, [nats for _, nats in points])
    check_finite("history", [step.loss for step in history], gaps=True)
    levels = check_references(references)
    if any(one.step >= other.step for one, other in itertools.pairwise(history)):
        raise ValueError("the steps of history must increase; draw each run separately")
    steps, losses = numpy.array([s.step for s in history]), numpy.array([s.loss for s in history])
    width = max(1, len(losses) // 40)
    smooth = numpy.convolve(losses, numpy.ones(width) / width, mode="valid")
    series = {drawable(name.replace("_", " ")): points for name, points in measured.items()}

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.3), layout="constrained")
        axes = figure.subplots()
        ink = matplotlib.rcParams["text.color"]
        axes.plot(
            steps, losses, color=ink, alpha=0.15, linewidth=0.7, label="training, each step" if width > 1 else None
        )
        label = f"training, mean of {format_count(width, 'step')}" if width > 1 else "training"
        axes.plot(steps[(width - 1) // 2 :][: len(smooth)], smooth, color=ink, label=label)
        for (name, points), colour in zip(series.items(), itertools.cycle(("C6", "C5", "C3", "C7"))):
            axes.plot(*zip(*points), color=colour, marker="o", markersize=3.5, label=name)
            box = {"facecolor": matplotlib.rcParams["figure.facecolor"], "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
            end: Any = {"ha": "center", "va": "bottom", "color": colour, "fontsize": 8, "weight": "bold", "bbox": box}
            axes.annotate(format_fixed(points[-1][1], 2), points[-1], (0, 6), textcoords="offset points", **end)
        for name, level in levels.items():
            reference_line(axes, name, level)
        axes.set(xlabel="step", ylabel="loss (nats per token)")
        above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}  # where no line crosses it
        axes.legend(ncols=2 + len(series) if len(series) < 3 else 3, **above)
        set_title(figure, title)
        return figure

    last = {"training": float(smooth[-1]), **{name: points[-1][1] for name, points in series.items()}}
    ends = ", ".join(f"{name} {format_fixed(loss, 3)}" for name, loss in last.items())
    return StaticFigure(draw, f"{title}\nloss in nats after {format_count(len(steps), 'step')}: {ends}")


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float] | Tensor]],
    *,
    x: str,
    y: str,
    title: str,
    references: Mapping[str, float] | None = None,
    in_panels: bool = False,
    at_ends: bool = False,
    shaded: Mapping[str, tuple[float, float]] | None = None,
    dashed: Collection[str] = (),
    **axes_settings: Any,
) -> StaticFigure:
    """Draw a chart of named lines; a line of several training runs is their mean in a band from minimum to maximum.

    NaN leaves a gap in a line. On a log y-axis, a line breaks off where it is 0.

    Args:
        series: name -> (xs, ys), where ys are [point] or [training, point].
        x: the name of the x-axis.
        y: the name of the y-axis.
        title: the title.
        references: horizontal dashed lines, name -> y, such as chance level.
        in_panels: whether to draw each line in a panel of its own, with the others faint behind it, for lines that
            overlap. All panels share one scale.
        at_ends: whether to label each line at its right end instead of in a legend; ignored with `in_panels`.
        shaded: ranges of x to shade, name -> (from, to), such as the lengths on which a model was trained.
        dashed: names of lines to draw dashed, in the colour of the line before, such as variants of it.
        axes_settings: arguments of matplotlib's `Axes.set`, such as `xscale="log"`.

    Raises:
        ValueError: there are no lines, or too many; a line has no points, infinite ones, or not as many ys as xs;
            matplotlib rejects a setting; a log x-axis has numbers that are not above 0, or a log y-axis has negative
            numbers or only zeros.
        LookupError: `dashed` names a line that does not exist.
    """
    if missing := [name for name in dashed if name not in series]:
        raise LookupError(f"there is no line {missing[0]!r} to draw dashed; there are {', '.join(series)}")
    drawn = _check_lines(series, axes_settings)
    levels = check_references(references)
    stretches = {name: tuple(check_finite(name, ends).tolist()) for name, ends in (shaded or {}).items()}
    chart = LineChart(drawn, drawable(x), drawable(y), levels, stretches, axes_settings, tuple(dashed))

    def draw() -> Figure:
        figure = chart.in_panels() if in_panels else chart.in_one(at_ends)
        set_title(figure, title)
        return figure

    last = {name: line.mean[-1] for name, line in drawn.items()}
    ends = ", ".join(f"{name} {format_number(end, 3)}" if end == end else f"{name} none" for name, end in last.items())
    return StaticFigure(draw, f"{title}\n{y} at the last {x}: {ends}")


def _check_lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float] | Tensor]], settings: Mapping[str, Any]
) -> dict[str, Line]:
    """Check the series and the settings, and return the lines."""
    counts = {name: (len(xs), getattr(ys, "shape", (len(ys),))[-1]) for name, (xs, ys) in series.items()}
    if not series or not all(points and points == same for points, same in counts.values()):
        raise ValueError(f"there is nothing to draw: each line needs points, as many xs as ys; got {counts}")
    check_at_most(len(series), MAX_LINES, "lines", "give fewer of them")
    drawn = {
        name: Line(check_finite(name, xs).tolist(), Spread.from_values(name, ys, gaps=True))
        for name, (xs, ys) in series.items()
    }
    try:
        Figure().subplots().set(**settings)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"matplotlib's Axes.set does not take {settings}: {error}") from error
    for axis in "xy":
        for name, line in drawn.items() if settings.get(f"{axis}scale") == "log" else ():
            points = line.xs if axis == "x" else [value for value in line.mean if value != 0]
            if not any(value > 0 for value in points) or any(value <= 0 for value in points):
                raise ValueError(f"{axis}scale is 'log', which needs numbers above 0; {name!r} has others")
    return drawn
