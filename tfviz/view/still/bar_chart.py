"""Bar charts of named numbers: vertical bars, or a table with a bar in each cell."""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.look.map_arguments import as_strings
from tfviz.view.check_numbers import Spread, check_at_most, check_finite, check_positive
from tfviz.view.still.formatting import MIN_LARGE, fixed, formatted
from tfviz.view.still.palette import axis_labels, drawable, shorten
from tfviz.view.still.picture import Picture, reference_line, set_title

MAX_BARS, MAX_ROWS, MAX_SERIES = 400, 200, 24
LETTER_WIDTH_INCHES = 0.075  # on average
MAX_NAME_LENGTH = 42  # characters of a row's name


def bars(
    words: Sequence[Any],
    heights: Mapping[str, Tensor | Sequence[float]],
    title: str,
    y: str = "probability",
    references: Mapping[str, float] | None = None,
) -> Picture:
    """Draw a bar for each word, a panel for each series, all on one scale.

    Args:
        words: a number becomes its digits.
        heights: [word], or [training, word]: bars are the mean, with a line from the lowest to the highest.
        title: the title.
        y: the name of the y axis.
        references: name -> height of a dashed line across the panels, such as chance level.

    Raises:
        ValueError: there is nothing to draw, or too much; a series has another number of values than there are words,
            or has NaN or infinity.
    """
    words, series = _check_series(words, heights, MAX_BARS)
    levels = dict(zip(references or (), check_finite("references", list((references or {}).values())).tolist()))

    def draw() -> Figure:
        width = min(9.0, max(2.4, 0.2 * len(words) + 0.6) * len(series) + 0.4)
        figure = Figure(figsize=(width, 2.5), layout="constrained")
        panels = figure.subplots(1, len(series), sharey=True, squeeze=False)[0]
        for axes, (name, values) in zip(panels, series.items()):
            axes.bar(range(len(words)), values.mean, color="C5", width=0.75)
            if values.several:
                ink = matplotlib.rcParams["text.color"]
                axes.vlines(range(len(words)), values.low, values.high, color=ink, linewidth=1.5)
            for label, level in levels.items():
                reference_line(axes, label if axes is panels[-1] else "", level)
            axes.set_xticks(range(len(words)), axis_labels(words))
            axes.grid(axis="x", visible=False)
            axes.set_title(_panel_title(name, width / len(series)))
        panels[0].set_ylabel(shorten(drawable(y), 32))
        set_title(figure, title)
        return figure

    return Picture(draw, f"{title}\nhighest {y}: {_highest(words, series)}")


def rows(
    names: Sequence[Any], columns: Mapping[str, Tensor | Sequence[float]], title: str, top: float | None = None
) -> Picture:
    """Draw a row for each name and a column of bars for each measure, every bar with its number.

    Args:
        names: a number becomes its digits.
        columns: measures, none below 0: [name], or [training, name]: bars are the mean, with a line and numbers from
            the lowest to the highest.
        title: the title.
        top: end of the scale of all measures, such as 1 for shares; None: each has its own.

    Raises:
        ValueError: a measure has another number of values than there are names, a value below 0 or above `top`, NaN or
            infinity; there are more rows than fit into a picture.
    """
    names, series = _check_series(names, columns, MAX_ROWS, minimum=0)
    check_positive("top", top)
    for name, column in series.items():
        if top is not None and column.high.max() > 1.001 * top:
            raise ValueError(f"{name!r} goes up to {column.high.max():.3g}, past the end of the scale: top is {top:g}")

    def draw() -> Figure:
        figure = Figure(figsize=(min(9.0, 2.6 * len(series) + 1.6), 0.27 * len(names) + 0.8), layout="constrained")
        panels = figure.subplots(1, len(series), sharey=True, squeeze=False)[0]
        for axes, (name, column) in zip(panels, series.items()):
            axes.barh(range(len(names)), column.mean, color="C5", height=0.72)
            if column.several:
                ink = matplotlib.rcParams["text.color"]
                axes.hlines(range(len(names)), column.low, column.high, color=ink, linewidth=1.5)
            end = float(column.high.max() or 1) if top is None else top
            for row, number in enumerate(_aligned(column)):
                axes.text(column.high[row] + 0.02 * end, row, number, va="center", fontsize=8)
            axes.set(xlim=(0, (1.5 if column.several else 1.22) * end), xticks=[])
            axes.set_title(_panel_title(name, 2.6), loc="left")
            axes.grid(False)
            axes.spines[["right", "top", "bottom"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(range(len(names)), [shorten(drawable(name), MAX_NAME_LENGTH) for name in names])
        panels[0].invert_yaxis()
        set_title(figure, title)
        return figure

    return Picture(draw, f"{title}\nhighest {_highest(names, series)}")


def _check_series(
    names: Sequence[Any], series: Mapping[str, Tensor | Sequence[float]], max_names: int, minimum: float = -math.inf
) -> tuple[list[str], dict[str, Spread]]:
    """Return names and series after checking that each has a number for each name, none below `minimum`."""
    if not names or not series:
        raise ValueError("there is nothing to draw: give names, and numbers for each")
    check_at_most(len(names), max_names, "names", "give those you mean, such as the 20 highest")
    check_at_most(len(series), MAX_SERIES, "series", "give fewer of them")
    spreads = {name: Spread.of(name, values) for name, values in series.items()}
    kind = "numbers" if minimum == -math.inf else f"numbers from {minimum:g} on"
    for name, spread in spreads.items():
        if spread.mean.shape != (len(names),) or not (spread.low >= minimum).all():
            raise ValueError(f"{name!r} must be {len(names)} {kind}, one for each name; got {series[name]}")
    return as_strings(names), spreads


def _highest(names: Sequence[str], series: Mapping[str, Spread]) -> str:
    tops = [(name, int(values.mean.argmax()), float(values.mean.max())) for name, values in series.items()]
    return ", ".join(f"{name}: {names[at]!r} {formatted(value, 3)}" for name, at, value in tops)


def _aligned(column: Spread) -> list[str]:
    """Format each mean, and its range if it has one, with the same number of decimals in a column."""
    cells = list(zip(column.mean.tolist(), column.low.tolist(), column.high.tolist()))
    values = [value for cell in cells for value in cell]
    power = math.floor(math.log10(max(values))) if max(values) > 0 else 0
    max_places = max(0, (2 if power >= -1 else 1) - power)
    places = next(n for n in range(max_places + 1) if all(round(v, n) == round(v, max_places) for v in values))
    texts = ([_decimals(value, places) for value in cell] for cell in cells)
    return [mean if low == high else f"{mean} ({low} to {high})" for mean, low, high in texts]


def _decimals(value: float, places: int) -> str:
    """Format a number with this many decimals, unless it is very large or would wrongly read as 0 or 1."""
    text = fixed(value, places)
    return formatted(value, 3) if value >= MIN_LARGE or (value and float(text.replace(",", "")) in (0, 1)) else text


def _panel_title(name: str, inches: float) -> str:
    """Wrap a name into at most two lines of a panel's width."""
    return "\n".join(
        wrap(drawable(name), max(8, int((inches - 0.3) / LETTER_WIDTH_INCHES)), max_lines=2, placeholder="…")
    )
