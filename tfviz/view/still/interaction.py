"""Picture a function's results for some values of its controls: the values in a line, the results in rows of panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure

from tfviz.view.spec import ResultPanel
from tfviz.view.still.formatting import formatted
from tfviz.view.still.palette import drawable, soft
from tfviz.view.still.picture import Picture, set_title, shorten
from tfviz.view.still.results import SIZES, draw_result

ACROSS = 9.0  # inches of a row of panels
SLACK = 1.2  # of the tallest panel: what numbers in a column may take
LINE = 100  # characters of a line of controls


def interaction(title: str, line: Sequence[str], panels: Sequence[ResultPanel], note: str = "") -> Picture:
    """Picture the panels, with the controls' values above them, such as "sharpness = 2.55", and `note` below."""
    sizes = [SIZES[panel.kind](panel) for panel in panels]
    stacks = _stacks(panels, [tall for _, tall in sizes])
    wide_of = [max(sizes[i][0] for i in stack) for stack in stacks]
    tall_of = [sum(sizes[i][1] for i in stack) for stack in stacks]
    rows = _rows(wide_of)
    lines = _join_lines(line)

    def draw() -> Figure:
        talls = [max(tall_of[n] for n in row) for row in rows]
        wides = [sum(wide_of[n] for n in row) for row in rows]
        wide, above, below = max(*wides, 3.2), 0.18 * len(lines), 0.25 if note else 0.05
        tall = above + sum(talls) + below + 0.35
        figure = Figure(figsize=(wide, tall), layout="constrained")
        parts: Any = figure.subfigures(2 + len(rows), 1, height_ratios=[above, *talls, below])
        for part, row, high, own in zip(parts[1:-1], rows, talls, wides):
            widths = [wide_of[n] for n in row] + [wide - own] * (wide - own > 0.05)
            grid = part.add_gridspec(1, len(widths), width_ratios=widths)
            for place, n in enumerate(row):
                rest = [high - tall_of[n]] * (len(stacks[n]) > 1 and high - tall_of[n] > 0.05)
                heights = [sizes[i][1] for i in stacks[n]] + rest
                cells = grid[place].subgridspec(len(heights), 1, height_ratios=heights)
                for cell, i in zip(cells, stacks[n]):
                    draw_result(part.add_subplot(cell), panels[i], sizes[i][0])
        ink: dict[str, Any] = {"color": soft(), "fontsize": 9}
        figure.text(0.01, 1 - 0.3 / tall, "\n".join(map(drawable, lines)), va="top", **ink)
        figure.text(0.01, 0.0, drawable(note), va="bottom", **ink)
        set_title(figure, title)
        return figure

    words = [f"{panel.title or panel.kind}: {_summary(panel)}" for panel in panels]
    return Picture(draw, "\n".join([title, "; ".join(line), *words, *([note] if note else [])]))


def _stacks(panels: Sequence[ResultPanel], talls: Sequence[float]) -> list[list[int]]:
    """Return which panels share a column: numbers are stacked beside a taller panel."""
    tallest, stacks = max(talls), [[0]]
    for i in range(1, len(panels)):
        stack = stacks[-1]
        numbers = panels[i].kind == panels[stack[0]].kind == "number"
        if numbers and sum(talls[j] for j in stack) + talls[i] <= SLACK * tallest:
            stack.append(i)
        else:
            stacks.append([i])
    return stacks


def _rows(wides: Sequence[float]) -> list[list[int]]:
    """Return which columns share a row: as few rows as needed, each as narrow as possible."""
    need = len(_fill_rows(wides, ACROSS))
    ends = sorted({sum(wides[i:j]) for i in range(len(wides)) for j in range(i + 1, len(wides) + 1)})
    return next(rows for end in [*ends, ACROSS] if len(rows := _fill_rows(wides, end)) <= need)


def _fill_rows(wides: Sequence[float], across: float) -> list[list[int]]:
    """Fill each row with as many columns as fit."""
    rows: list[list[int]] = [[]]
    for i, wide in enumerate(wides):
        if rows[-1] and sum(wides[j] for j in rows[-1]) + wide > across + 1e-6:
            rows.append([])
        rows[-1].append(i)
    return rows


def _join_lines(parts: Sequence[str]) -> list[str]:
    """Join the controls' values into lines of readable length; truncate a part that is too long by itself."""
    lines = [""]
    for part in parts:
        part = shorten(part, LINE)
        if lines[-1] and len(lines[-1]) + len(part) > LINE:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + part
    return lines[:6]


def _summary(panel: ResultPanel) -> str:
    """Return a panel in words: all of few numbers, the range of many."""
    values = panel.numbers
    shape = " x ".join(map(str, values.shape))
    if values.ndim == 0:
        return formatted(float(values))
    finite = values[numpy.isfinite(values)]
    if not finite.size:
        return f"{shape} without a finite number"
    if values.ndim == 1 and values.size <= 12:
        return ", ".join(f"{word!r} {formatted(value)}" for word, value in zip(panel.row_labels(len(values)), values))
    if panel.kind in ("arrows", "dots") and len(values) <= 12:
        words = panel.row_labels(len(values))
        return ", ".join(f"{word!r} ({formatted(x)}, {formatted(y)})" for word, (x, y) in zip(words, values))
    at = numpy.unravel_index(int(numpy.argmax(numpy.where(numpy.isfinite(values), values, -numpy.inf))), values.shape)
    words = [panel.row_labels(values.shape[0])[at[0]]]
    if values.ndim == 2:
        labels = panel.row_labels if panel.kind == "graph" else panel.column_labels
        words.append(labels(values.shape[1])[at[1]])
    return f"{shape}, from {formatted(finite.min())} to {formatted(finite.max())} ({' → '.join(map(repr, words))})"
