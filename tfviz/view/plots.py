"""Drawings of numbers: curves over steps, bars over words."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import matplotlib
import numpy
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.view.palette import plain, printable
from tfviz.view.picture import Picture, headline

LINES = (0, 6, 5, 3, 7, 1, 2, 4)  # of the eight colours, those that make good lines first


@runtime_checkable
class Step(Protocol):
    """What `learn.fit` yields."""

    step: int
    loss: float


def curves(history: Sequence[Step], title: str = "Learning", **measured: Sequence[tuple[int, float]]) -> Picture:
    """The loss over the steps: each step faint, their running mean strong.

    Args:
        history: the steps of `learn.fit`.
        measured: further points (step, nats) by name, such as `validation=[(100, 2.1), (200, 1.9)]`.
    """
    steps, losses = numpy.array([s.step for s in history]), numpy.array([s.loss for s in history])
    width = max(1, len(losses) // 40)
    smooth = numpy.convolve(losses, numpy.ones(width) / width, mode="valid")

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        ink = matplotlib.rcParams["text.color"]
        axes.plot(steps, losses, color=ink, alpha=0.18, linewidth=0.8)
        axes.plot(steps[width - 1 :], smooth, color=ink, label=f"training, mean of {width} steps")
        for (name, points), colour in zip(measured.items(), ("C6", "C5", "C3", "C7")):
            axes.plot(*zip(*points), color=colour, marker="o", markersize=3.5, label=plain(name))
        axes.set(xlabel="step", ylabel="loss (nats a token)")
        axes.legend()
        headline(figure, title)
        return figure

    ends = [f"{name} {points[-1][1]:.3f}" for name, points in measured.items()]
    return Picture(
        draw, f"{title}\nloss in nats after {len(steps)} steps: " + ", ".join([f"training {smooth[-1]:.3f}", *ends])
    )


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, x: str, y: str, title: str, **axes_settings: Any
) -> Picture:
    """Lines with a name each, from `name: (xs, ys)`.

    Args:
        axes_settings: handed to matplotlib's `Axes.set`, such as `xscale="log"`.
    """

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        for index, (name, (xs, ys)) in enumerate(series.items()):
            marker = "os^D"[index % 4] if len(xs) <= 30 else ""
            axes.plot(xs, ys, marker=marker, markersize=4, color=f"C{LINES[index % 8]}", label=plain(name))
        axes.set(xlabel=x, ylabel=y, **axes_settings)
        if len(series) > 1:
            axes.legend()
        headline(figure, title)
        return figure

    ends = ", ".join(f"{name} {float(ys[-1]):.3g}" for name, (_, ys) in series.items())
    return Picture(draw, f"{title}\n{y} at the last {x}: {ends}")


def bars(
    words: Sequence[str], heights: Mapping[str, Tensor | Sequence[float]], title: str, y: str = "probability"
) -> Picture:
    """A bar for each word, a panel for each series, all on one scale."""
    values = {name: numpy.asarray(series, dtype=float) for name, series in heights.items()}

    def draw() -> Figure:
        figure = Figure(
            figsize=(min(9.0, max(2.4, 0.2 * len(words) + 0.6) * len(values) + 0.4), 2.5), layout="constrained"
        )
        panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for axes, (name, series) in zip(panels, values.items()):
            axes.bar(range(len(words)), series, color="C5", width=0.75)
            axes.set_xticks(range(len(words)), printable(words))
            axes.grid(axis="x", visible=False)
            axes.set_title(plain(name))
        panels[0].set_ylabel(y)
        headline(figure, title)
        return figure

    tops = ", ".join(f"{name}: {words[int(series.argmax())]!r} {series.max():.2g}" for name, series in values.items())
    return Picture(draw, f"{title}\nhighest {y}: {tops}")
