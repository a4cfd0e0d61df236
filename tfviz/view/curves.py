"""Drawings of numbers over numbers: the loss over the steps, lines with a name each."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator
from torch import Tensor

from tfviz.view.still.numbers import Spread, few, real
from tfviz.view.still.palette import plain
from tfviz.view.still.picture import Picture, headline, reference

BESIDE = 4  # lines whose names find room among them; those of more stand beside the axes
POINTS = 7  # of a log axis, that can all have their numbers
LEGEND = 40  # lines, at most
ACROSS = 4  # panels of a row
BROKEN = " (0 where the line breaks off)"  # said of a line on a log axis
LINES = (0, 6, 5, 3, 7, 1, 2, 4)  # of the eight colours, those that make good lines first


@runtime_checkable
class Step(Protocol):
    """What `learn.fit` yields."""

    step: int
    loss: float


def curves(history: Iterable[Step], title: str = "Learning", **measured: Sequence[tuple[int, float]]) -> Picture:
    """The loss over the steps: each step faint, the mean of those around it strong.

    Args:
        history: the steps of `learn.fit`.
        measured: further points (step, nats) by name, such as `held_out=[(100, 2.1), (200, 1.9)]`.
    """
    given: Any = history
    history = [given] if getattr(given, "ndim", None) == 0 else list(given)
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
    real("history", [step.loss for step in history], gaps=True)
    steps, losses = numpy.array([s.step for s in history]), numpy.array([s.loss for s in history])
    width = max(1, len(losses) // 40)
    smooth = numpy.convolve(losses, numpy.ones(width) / width, mode="valid")

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        ink = matplotlib.rcParams["text.color"]
        axes.plot(steps, losses, color=ink, alpha=0.18, linewidth=0.8)
        axes.plot(steps[(width - 1) // 2 :][: len(smooth)], smooth, color=ink, label=f"training, mean of {width} steps")
        for (name, points), colour in zip(measured.items(), itertools.cycle(("C6", "C5", "C3", "C7"))):
            axes.plot(*zip(*points), color=colour, marker="o", markersize=3.5, label=_spoken(name))
        axes.set(xlabel="step", ylabel="loss (nats per token)")
        axes.legend()
        headline(figure, title)
        return figure

    ends = [f"{_spoken(name)} {points[-1][1]:.3f}" for name, points in measured.items()]
    return Picture(
        draw, f"{title}\nloss in nats after {len(steps)} steps: " + ", ".join([f"training {smooth[-1]:.3f}", *ends])
    )


def _spoken(name: str) -> str:
    return plain(name.replace("_", " "))  # of an argument


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float] | Tensor]],
    *,
    x: str,
    y: str,
    title: str,
    references: Mapping[str, float] | None = None,
    apart: bool = False,
    shaded: Mapping[str, tuple[float, float]] | None = None,
    **axes_settings: Any,
) -> Picture:
    """Lines with a name each, from `name: (xs, ys)`; where a y is NaN, or 0 on a log axis, the line has a gap.

    Args:
        series: ys of several trainings are a tensor [training, point]: the line is their mean, in a band from the
            lowest to the highest.
        references: name -> y of a dashed line across the picture, such as what chance gives.
        apart: a panel for each line, all on one scale, the others faint behind it: for lines that hide each other.
        shaded: name -> (from, to), a stretch of x that is shaded, such as what a model was trained on.
        axes_settings: handed to matplotlib's `Axes.set`, such as `xscale="log"`.

    Raises:
        ValueError: there is no line, or one without points or with infinity, or more than there is room for; settings
            that matplotlib does not know, or a log axis for numbers that are not above 0.
    """
    counts = {
        name: (len(xs), ys.shape[-1] if getattr(ys, "ndim", 1) == 2 else len(ys)) for name, (xs, ys) in series.items()
    }
    if not series or not all(many and many == same for many, same in counts.values()):
        raise ValueError(f"there is nothing to draw: each line needs points, as many xs as ys; got {counts}")
    few(len(series), LEGEND, "lines", "give fewer of them")
    spread = {name: Spread.of(name, ys, gaps=True) for name, (_, ys) in series.items()}
    series = {name: (real(name, xs).tolist(), spread[name].mean.tolist()) for name, (xs, _) in series.items()}
    _settle(series, axes_settings)
    level = dict(zip(references or (), real("references", list((references or {}).values())).tolist()))
    whole = all(float(value).is_integer() for xs, _ in series.values() for value in xs)
    broken = {name for name, (_, ys) in series.items() if axes_settings.get("yscale") == "log" and 0 in ys}
    stretches = {name: tuple(real(name, ends).tolist()) for name, ends in (shaded or {}).items()}
    if wrong := [name for name, ends in stretches.items() if len(ends) != 2]:
        raise ValueError(f"shaded is name -> (from, to); {wrong[0]!r} has {len(stretches[wrong[0]])} numbers")

    def panels() -> Figure:
        down = -(-len(series) // ACROSS)
        across = -(-len(series) // down)
        figure = Figure(figsize=(min(9.0, 2.1 * across + 1.2), 1.7 * down + 0.7), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for index, (axes, (name, (xs, ys))) in enumerate(zip(grid.flat, series.items())):
            for other, also in series.values():
                axes.plot(other, also, color=matplotlib.rcParams["xtick.labelcolor"], alpha=0.3, linewidth=0.8)
            axes.plot(xs, ys, color="C5", linewidth=1.8)
            if spread[name].several:
                axes.fill_between(xs, spread[name].low, spread[name].high, color="C5", alpha=0.3, linewidth=0)
            for said, value in level.items():
                reference(axes, said if index == across - 1 else "", value)
            axes.set_title(f"{plain(name)}{BROKEN if name in broken else ''}", loc="left")
            axes.set(**axes_settings)
            _shade(axes, stretches, series if index == 0 else {})
        for axes in grid.flat[len(series) :]:
            axes.remove()
        for axes in grid.flat[max(0, len(series) - across) : len(series)]:
            axes.tick_params(labelbottom=True)
        figure.supxlabel(plain(x), fontsize=9)
        figure.supylabel(plain(y), fontsize=9)
        headline(figure, title)
        return figure

    def draw() -> Figure:
        if apart:
            return panels()
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        if whole:  # there is no step or block in between
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        for index, (name, (xs, ys)) in enumerate(series.items()):
            marker = "os^D"[index % 4] if len(xs) <= 30 else ""
            said = f"{plain(name)}{BROKEN if name in broken else ''}"
            ink = f"C{LINES[index % 8]}"
            axes.plot(xs, ys, marker=marker, markersize=4, color=ink, label=said)
            if spread[name].several:
                axes.fill_between(xs, spread[name].low, spread[name].high, color=ink, alpha=0.22, linewidth=0)
        for name, value in level.items():
            reference(axes, name, value)
        axes.set(**{"xlabel": plain(x), "ylabel": plain(y), **axes_settings})
        _shade(axes, stretches, series)
        if axes.get_xscale() == "log":
            _number(axes.xaxis, sorted({value for xs, _ in series.values() for value in xs}))
        if axes.get_yscale() == "log":
            _number(axes.yaxis)
        if len(series) > BESIDE:
            figure.legend(loc="outside right center")
        elif len(series) > 1 or broken:
            axes.legend()
        headline(figure, title)
        return figure

    ends = ", ".join(f"{name} {float(ys[-1]):.3g}" for name, (_, ys) in series.items())
    return Picture(draw, f"{title}\n{y} at the last {x}: {ends}")


def _shade(axes: Axes, stretches: Mapping[str, tuple[float, ...]], series: Mapping[str, Any]) -> None:
    """Stretches of x in a soft grey, each with its name at the foot, or at the top where fewer of the lines are."""
    soft = matplotlib.rcParams["xtick.labelcolor"]
    for name, (start, end) in stretches.items():
        axes.axvspan(start, end, color=soft, alpha=0.13, linewidth=0, zorder=0)
        inside = [(start, y) for xs, ys in series.values() for x, y in zip(xs, ys) if start <= x <= end and y == y]
        heights = [axes.transLimits.transform(axes.transScale.transform(point))[1] for point in inside]
        above = sum(height > 0.8 for height in heights) < sum(height < 0.2 for height in heights)
        where: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "va": "top" if above else "bottom"}
        at = ((start + end) / 2, 0.97 if above else 0.03)
        if series:
            axes.annotate(plain(name), at, ha="center", fontsize=8, color=soft, annotation_clip=False, **where)


def _settle(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], settings: Mapping[str, Any]) -> None:
    """Try the settings before anything is drawn."""
    try:
        Figure().subplots().set(**settings)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"matplotlib's Axes.set does not take {settings}: {error}") from error
    for which, axis in enumerate("xy"):
        for name, points in series.items() if settings.get(f"{axis}scale") == "log" else ():
            known = [value for value in points[which] if value == value and (axis == "x" or value != 0)]
            if not known or min(known) <= 0:
                raise ValueError(f"{axis}scale is 'log', which has numbers above 0 only; {name!r} has others")


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
    axis.set_major_formatter("{x:,g}")  # 0.01 and 100, not powers of ten, which would be formulas
    axis.set_minor_formatter(NullFormatter())
