"""Drawings of numbers: curves over steps, bars over words or in rows, position tables, shares of heads."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, Protocol, runtime_checkable

import matplotlib
import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
from torch import Tensor
from torch.nn import functional

from tfviz.shapes import Float
from tfviz.view.palette import diverging, plain, printable, ramp
from tfviz.view.picture import Picture, bare, headline

WRAPPED = 16  # characters of a column's name in a line
BESIDE = 4  # lines whose names find room among them; those of more stand beside the axes
NAME = 36  # characters of a row's name
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

    whole = all(float(value).is_integer() for xs, _ in series.values() for value in xs)

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        if whole:  # there is no step or block in between
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        for index, (name, (xs, ys)) in enumerate(series.items()):
            marker = "os^D"[index % 4] if len(xs) <= 30 else ""
            axes.plot(xs, ys, marker=marker, markersize=4, color=f"C{LINES[index % 8]}", label=plain(name))
        axes.set(xlabel=x, ylabel=y, **axes_settings)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":  # 0.01 and 100, not powers of ten, which would be formulas
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(NullFormatter())
        if len(series) > BESIDE:
            figure.legend(loc="outside right center")
        elif len(series) > 1:
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


def rows(names: Sequence[str], columns: Mapping[str, Tensor | Sequence[float]], title: str) -> Picture:
    """A row for each name, a column of bars for each measure, every bar with its number.

    Measures have scales of their own, from 0; they must not be below it.

    Raises:
        ValueError: a measure with another number of values than there are names, or with one below 0.
    """
    values = {name: numpy.asarray(column, dtype=float) for name, column in columns.items()}
    for name, column in values.items():
        if column.shape != (len(names),) or (column < 0).any():
            raise ValueError(f"{name!r} must be {len(names)} numbers from 0 on, one for each name; got {column}")

    def draw() -> Figure:
        figure = Figure(figsize=(min(9.0, 2.6 * len(values) + 1.6), 0.27 * len(names) + 0.8), layout="constrained")
        panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for axes, (name, column) in zip(panels, values.items()):
            drawn = axes.barh(range(len(names)), column, color="C5", height=0.72)
            axes.bar_label(drawn, [f"{value:.3g}" for value in column], padding=3, fontsize=8)
            axes.set(xlim=(0, 1.22 * (column.max(initial=0) or 1)), xticks=[])
            axes.set_title(plain(name), loc="left")
            axes.grid(False)
            axes.spines[["right", "top", "bottom"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
        shown = [name if len(name) <= NAME else f"{name[: NAME - 1]}…" for name in map(plain, names)]
        panels[0].set_yticks(range(len(names)), shown)
        panels[0].invert_yaxis()
        headline(figure, title)
        return figure

    tops = ", ".join(f"{name}: {names[int(column.argmax())]!r} {column.max():.3g}" for name, column in values.items())
    return Picture(draw, f"{title}\nhighest {tops}")


def positions(table: Float[Tensor, "position dim"], title: str = "Positions") -> Picture:
    """A position table, and how alike its rows are (cosine)."""
    table = table.detach().cpu().float()
    unit = functional.normalize(table, dim=-1)

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        top = float(table.abs().max()) or 1.0
        for axes, values, limit, x in (
            (left, table.numpy(), top, "dimension"),
            (right, (unit @ unit.T).numpy(), 1.0, "position"),
        ):
            image = axes.imshow(
                values, cmap=diverging(), vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
            )
            axes.grid(False)
            axes.set(xlabel=x, ylabel="position")
            figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
        left.set_title("the table")
        right.set_title("cosine of two positions")
        headline(figure, title)
        return figure

    return Picture(draw, f"{title}\n{table.shape[0]} positions x {table.shape[1]} dimensions")


def shares(columns: Mapping[str, Float[Tensor, "layer head"]], title: str = "What each head looks at") -> Picture:
    """A table of numbers from 0 to 1, a row for each head: for `look.measures.types`, or any share of your own."""
    values = numpy.stack([column.flatten().numpy() for column in columns.values()], axis=1)
    layers, heads = next(iter(columns.values())).shape
    names = [f"{layer}.{head}" for layer in range(layers) for head in range(heads)]

    def draw() -> Figure:
        figure = Figure(figsize=(0.95 * len(columns) + 1.2, 0.235 * len(names) + 0.9), layout="constrained")
        axes = figure.subplots()
        axes.imshow(values, cmap=ramp(), vmin=0, vmax=1, aspect="auto")
        ink, paper = matplotlib.rcParams["text.color"], matplotlib.rcParams["figure.facecolor"]
        for (row, column), value in numpy.ndenumerate(values):
            colour = paper if value > 0.45 else ink
            axes.text(column, row, _two(float(value)), ha="center", va="center", color=colour, fontsize=8)
        bare(axes)
        axes.set_xticks(range(len(columns)), [fill(plain(name), WRAPPED) for name in columns])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylabel("layer.head")
        axes.xaxis.tick_top()
        for edge in range(heads, len(names), heads):
            axes.axhline(edge - 0.5, color=matplotlib.rcParams["axes.edgecolor"], linewidth=0.8)
        headline(figure, title)
        return figure

    best = (
        f"{name}: {names[int(values[:, i].argmax())]} ({_two(float(values[:, i].max()))})"
        for i, name in enumerate(columns)
    )
    return Picture(draw, f"{title}\nstrongest head by kind, as layer.head: " + ", ".join(best))


def _two(value: float) -> str:
    """Two significant digits, without the zeros of a small number."""
    return "·" if value < 0.005 else f"{value:.2f}".lstrip("0") if value < 0.995 else "1"
