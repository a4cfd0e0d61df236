"""Drawings of numbers that have names: bars over words, or in rows."""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.look.map_arguments import as_strings
from tfviz.view.still.formatting import LARGE, fixed, formatted
from tfviz.view.still.numbers import Spread, above, few, real
from tfviz.view.still.palette import plain, printable
from tfviz.view.still.picture import Picture, cut, headline, reference

BARS, ROWS, PANELS = 400, 200, 24  # bars side by side, rows, panels or columns: what a picture has room for
LETTER = 0.075  # inches, about
NAME = 42  # characters of a row's name


def bars(
    words: Sequence[Any],
    heights: Mapping[str, Tensor | Sequence[float]],
    title: str,
    y: str = "probability",
    references: Mapping[str, float] | None = None,
) -> Picture:
    """A bar for each word, a panel for each series, all on one scale.

    Args:
        words: a number becomes its digits.
        heights: those of several trainings are a tensor [training, word]: bars are their mean, with a line from the
            lowest to the highest.
        references: name -> height of a dashed line across the panels, such as what chance gives.

    Raises:
        ValueError: there is nothing to draw, or too much; a series with another number of values than there are words,
            or with NaN or infinity.
    """
    words = as_strings(words)
    values = _columns(words, heights, BARS)
    level = dict(zip(references or (), real("references", list((references or {}).values())).tolist()))

    def draw() -> Figure:
        wide = min(9.0, max(2.4, 0.2 * len(words) + 0.6) * len(values) + 0.4)
        figure = Figure(figsize=(wide, 2.5), layout="constrained")
        panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for axes, (name, series) in zip(panels, values.items()):
            axes.bar(range(len(words)), series.mean, color="C5", width=0.75)
            if series.several:
                axes.vlines(
                    range(len(words)), series.low, series.high, color=matplotlib.rcParams["text.color"], linewidth=1.5
                )
            for what, value in level.items():
                reference(axes, what if axes is panels[-1] else "", value)
            axes.set_xticks(range(len(words)), printable(words))
            axes.grid(axis="x", visible=False)
            axes.set_title(_over(name, wide / len(values)))
        panels[0].set_ylabel(cut(plain(y), 32))
        headline(figure, title)
        return figure

    means = {name: series.mean for name, series in values.items()}
    tops = ", ".join(
        f"{name}: {words[int(mean.argmax())]!r} {formatted(float(mean.max()), 3)}" for name, mean in means.items()
    )
    return Picture(draw, f"{title}\nhighest {y}: {tops}")


def rows(
    names: Sequence[Any], columns: Mapping[str, Tensor | Sequence[float]], title: str, top: float | None = None
) -> Picture:
    """A row for each name, a column of bars for each measure, every bar with its number.

    Args:
        names: a number becomes its digits.
        columns: the measures, none below 0; of several trainings a tensor [training, name]: bars are their mean, with a
            line and numbers from the lowest to the highest.
        top: where the scales of all measures end, such as 1 for shares; None: each has its own.

    Raises:
        ValueError: a measure with another number of values than there are names, with one below 0 or above `top`, or
            with NaN or infinity; more rows than a picture has room for.
    """
    names = as_strings(names)
    values = _columns(names, columns, ROWS, least=0)
    above("top", top)
    for name, column in values.items():
        if top is not None and column.high.max() > 1.001 * top:
            raise ValueError(f"{name!r} goes up to {column.high.max():.3g}, past the end of the scale: top is {top:g}")

    def draw() -> Figure:
        figure = Figure(figsize=(min(9.0, 2.6 * len(values) + 1.6), 0.27 * len(names) + 0.8), layout="constrained")
        panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for axes, (name, column) in zip(panels, values.items()):
            axes.barh(range(len(names)), column.mean, color="C5", height=0.72)
            if column.several:
                axes.hlines(
                    range(len(names)), column.low, column.high, color=matplotlib.rcParams["text.color"], linewidth=1.5
                )
            end = float(column.high.max() or 1) if top is None else top
            for row, said in enumerate(_said(column)):
                axes.text(column.high[row] + 0.02 * end, row, said, va="center", fontsize=8)
            axes.set(xlim=(0, (1.5 if column.several else 1.22) * end), xticks=[])
            axes.set_title(_over(name, 2.6), loc="left")
            axes.grid(False)
            axes.spines[["right", "top", "bottom"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
        shown = [cut(plain(name), NAME) for name in names]
        panels[0].set_yticks(range(len(names)), shown)
        panels[0].invert_yaxis()
        headline(figure, title)
        return figure

    means = {name: column.mean for name, column in values.items()}
    tops = ", ".join(
        f"{name}: {names[int(mean.argmax())]!r} {formatted(float(mean.max()), 3)}" for name, mean in means.items()
    )
    return Picture(draw, f"{title}\nhighest {tops}")


def _columns(
    names: Sequence[str], given: Mapping[str, Tensor | Sequence[float]], most: int, least: float | None = None
) -> dict[str, Spread]:
    """Each series, of one training or several: a number for each of at most so many names, none below `least`."""
    if not names or not given:
        raise ValueError("there is nothing to draw: give names, and numbers for each")
    few(len(names), most, "names", "give those you mean, such as the 20 highest")
    few(len(given), PANELS, "series", "give fewer of them")
    columns = {name: Spread.of(name, series) for name, series in given.items()}
    kind = "numbers" if least is None else f"numbers from {least:g} on"
    for name, column in columns.items():
        if column.mean.shape != (len(names),) or (least is not None and not (column.low >= least).all()):
            raise ValueError(f"{name!r} must be {len(names)} {kind}, one for each name; got {given[name]}")
    return columns


def _said(column: Spread) -> list[str]:
    """Each mean, and between which numbers it lies, where these differ; all of a column to the same place."""
    rows = list(zip(column.mean.tolist(), column.low.tolist(), column.high.tolist()))
    values = [value for row in rows for value in row]
    size = math.floor(math.log10(max(values))) if max(values) > 0 else 0  # its power of ten
    most = max(0, (2 if size >= -1 else 1) - size)
    places = next(n for n in range(most + 1) if all(round(v, n) == round(v, most) for v in values))
    shown = ([_to(value, places) for value in row] for row in rows)
    return [mean if low == high else f"{mean} ({low} to {high})" for mean, low, high in shown]


def _to(value: float, places: int) -> str:
    """To so many decimals; what would be 0 or 1 then and is not, or is very large, as it is written alone."""
    said = fixed(value, places)
    return formatted(value, 3) if value >= LARGE or (value and float(said.replace(",", "")) in (0, 1)) else said


def _over(name: str, inches: float) -> str:
    """A panel's name in at most two lines of the panel's width."""
    return "\n".join(wrap(plain(name), max(8, int((inches - 0.3) / LETTER)), max_lines=2, placeholder="…"))
