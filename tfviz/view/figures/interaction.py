"""The static picture of an instrument: its results in rows of panels, below the values of its controls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy
from matplotlib.artist import Artist
from matplotlib.figure import Figure, SubFigure
from matplotlib.offsetbox import AnchoredOffsetbox, DrawingArea, HPacker, TextArea
from matplotlib.patches import Rectangle

from tfviz.view.figures.formatting import format_number, shorten
from tfviz.view.figures.heatmap import HATCH, colormap, norm
from tfviz.view.figures.legends import ScaleLegend, scale_legends
from tfviz.view.figures.palette import drawable, muted
from tfviz.view.figures.results import PANEL_SIZES, draw_result
from tfviz.view.figures.sentences import sentences, stated_cells
from tfviz.view.figures.static_figure import StaticFigure, set_title
from tfviz.view.result_spec import ResultPanel

ROW_WIDTH_INCHES = 9.1  # of a row of panels
MAX_STACK_RATIO = 1.2  # height of panels of numbers in one column, relative to the tallest panel
MAX_LINE_LENGTH = 100  # characters of a line of controls
RAMP_STEPS, RAMP_WIDTH, PATCH_WIDTH, PATCH_HEIGHT = 64, 84, 18, 8  # colours of a legend, and points
LETTERS_PER_INCH, TITLE_LETTERS_PER_INCH = 13, 10.5  # of the sentence below the title, and of the title


def interaction(title: str, line: Sequence[str], panels: Sequence[ResultPanel], note: str = "") -> StaticFigure:
    """Draw the panels of an instrument, with a sentence about them and the controls' values above, and a note below.

    Args:
        title: the title; the instruction after its colon or question mark is left to the page.
        line: the values of the controls, such as "sharpness = 2.55".
        panels: the results.
        note: the text below the panels.
    """
    statement, settings = sentences(panels), _join_lines(line)
    layout = _Layout(panels, _question(title))

    def draw() -> Figure:
        return layout.draw(statement, settings, note, scale_legends(panels))

    tokens = [f"{panel.drawing.title or panel.drawing.kind}: {_summary(panel)}" for panel in panels]
    return StaticFigure(
        draw, "\n".join([title, "; ".join(line), *tokens, *(text for text in (statement, note) if text)])
    )


class _Layout:
    """The layout of panels below a title: rows of columns, of one or several panels each."""

    def __init__(self, panels: Sequence[ResultPanel], title: str):
        self.panels = panels
        self.title = title
        self.stated = stated_cells(panels)
        self.sizes = [PANEL_SIZES[panel.drawing.kind](panel) for panel in panels]  # width and height of each
        self.columns = _stacks(panels, [height for _, height in self.sizes])
        self.widths = [max(self.sizes[i][0] for i in column) for column in self.columns]
        self.heights = [sum(self.sizes[i][1] for i in column) for column in self.columns]
        self.rows = _rows(self.widths)
        row_widths = [sum(self.widths[n] for n in row) for row in self.rows]
        self.width = max(*row_widths, min(len(title) / TITLE_LETTERS_PER_INCH, ROW_WIDTH_INCHES), 3.2)

    def draw(self, statement: str, settings: Sequence[str], note: str, keys: Sequence[ScaleLegend]) -> Figure:
        """Draw the figure, with lines of text wrapped to the width of the panels."""
        statement_lines, note_lines = (wrap(text, int(self.width * LETTERS_PER_INCH)) for text in (statement, note))
        row_heights = [max(self.heights[n] for n in row) for row in self.rows]
        above = 0.19 * len(statement_lines) + 0.18 * len(settings) + 0.05
        below = 0.05 + 0.19 * len(note_lines) + 0.22 * bool(keys)
        height = above + sum(row_heights) + below + 0.35
        figure = Figure(figsize=(self.width, height), layout="constrained")
        parts: Any = figure.subfigures(2 + len(self.rows), 1, height_ratios=[above, *row_heights, below])
        for part, row, row_height in zip(parts[1:-1], self.rows, row_heights):
            self._draw_row(part, row, row_height)
        small: dict[str, Any] = {"color": muted(), "fontsize": 8, "linespacing": 1.4}
        found = "\n".join(map(drawable, statement_lines))
        figure.text(0.01, 1 - 0.32 / height, found, va="top", fontsize=9, linespacing=1.4)
        settings_top = 0.34 + 0.19 * len(statement_lines)
        figure.text(0.01, 1 - settings_top / height, "\n".join(map(drawable, settings)), va="top", **small)
        figure.text(0.01, 0.0, "\n".join(map(drawable, note_lines)), va="bottom", **small)
        if keys:
            _draw_key(parts[-1], keys)
        set_title(figure, self.title)
        return _with_fixed_layout(figure)

    def _draw_row(self, part: SubFigure, row: Sequence[int], row_height: float) -> None:
        """Draw the columns of a row from the left, and the panels of each column from the top."""
        widths = _fill_up([self.widths[n] for n in row], self.width)
        grid = part.add_gridspec(1, len(widths), width_ratios=widths)
        for index, n in enumerate(row):
            column = self.columns[n]
            heights = [self.sizes[i][1] for i in column]
            if len(column) > 1:
                heights = _fill_up(heights, row_height)
            cells = grid[index].subgridspec(len(heights), 1, height_ratios=heights)
            for cell, i in enumerate(column):
                draw_result(part.add_subplot(cells[cell]), self.panels[i], self.sizes[i][0], self.stated[i])


def _fill_up(sizes: list[float], available: float) -> list[float]:
    """Return the sizes, followed by the remaining space if there is any."""
    rest = available - sum(sizes)
    return [*sizes, rest] if rest > 0.05 else sizes


def _question(title: str) -> str:
    """Return a title up to its first colon or question mark; what follows tells a reader of the page what to do."""
    parts = re.match(r"(.+?)(?:: |(\?) )", title, re.DOTALL)
    return parts[1] + (parts[2] or "") if parts else title


def _with_fixed_layout(figure: Figure) -> Figure:
    """Fix the layout of the panels at rounded positions, because the last digits of the solver vary between runs."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(number, 5) for number in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    return figure


def _draw_key(part: SubFigure, keys: Sequence[ScaleLegend]) -> None:
    """Draw in a line the legends of all scales: a strip of colours between its ends, or a patch for each meaning."""
    entries: list[list[Artist]] = []  # each of patches and texts
    for key in keys:
        colours, normalize = colormap(key.scale), norm(key.scale)
        if key.is_ramp:
            (low, low_text), (high, high_text) = key.ends
            shades = colours(normalize(numpy.linspace(low, high, RAMP_STEPS)))
            entries.append([_key_text(low_text), _patches(shades, RAMP_WIDTH), _key_text(high_text)])
        else:
            entries += [
                [_patches([colours(normalize(value))], PATCH_WIDTH), _key_text(text)] for value, text in key.ends
            ]
        if key.hatched:
            entries.append([_patches(["none"], PATCH_WIDTH, HATCH), _key_text(key.hatched)])
    packed: list[Artist] = [HPacker(children=entry, pad=0, sep=5, align="center") for entry in entries]
    line = HPacker(children=packed, pad=0, sep=18, align="center")
    style: dict[str, Any] = {"pad": 0, "borderpad": 0.3, "frameon": False, "bbox_to_anchor": part.bbox}
    part.add_artist(AnchoredOffsetbox("upper left", child=line, **style))


def _key_text(text: str) -> TextArea:
    return TextArea(drawable(text), textprops={"fontsize": 8})


def _patches(colours: Sequence[Any], width: float, hatch: str = "") -> DrawingArea:
    """Draw patches side by side in a frame of this width, in points."""
    area, each = DrawingArea(width, PATCH_HEIGHT), width / len(colours)
    for at, colour in enumerate(colours):
        area.add_artist(Rectangle((at * each, 0), each, PATCH_HEIGHT, facecolor=colour))
    frame: dict[str, Any] = {"facecolor": "none", "edgecolor": muted(), "linewidth": 0.8, "hatch": hatch}
    area.add_artist(Rectangle((0, 0), width, PATCH_HEIGHT, **frame))
    return area


def _stacks(panels: Sequence[ResultPanel], heights: Sequence[float]) -> list[list[int]]:
    """Return the indices of the panels in each column: successive numbers are stacked beside a taller panel."""
    tallest, stacks = max(heights), [[0]]
    for i in range(1, len(panels)):
        stack = stacks[-1]
        numbers = panels[i].drawing.kind == panels[stack[0]].drawing.kind == "number"
        if numbers and sum(heights[j] for j in stack) + heights[i] <= MAX_STACK_RATIO * tallest:
            stack.append(i)
        else:
            stacks.append([i])
    return stacks


def _rows(widths: Sequence[float]) -> list[list[int]]:
    """Return the indices of the columns in each row: as few rows as necessary, and these as narrow as possible."""
    min_rows = len(_fill_rows(widths, ROW_WIDTH_INCHES))
    ends = sorted({sum(widths[i:j]) for i in range(len(widths)) for j in range(i + 1, len(widths) + 1)})
    return next(rows for end in [*ends, ROW_WIDTH_INCHES] if len(rows := _fill_rows(widths, end)) <= min_rows)


def _fill_rows(widths: Sequence[float], across: float) -> list[list[int]]:
    """Return the indices of the columns in each row, each row filled with as many columns as fit into `across`."""
    rows: list[list[int]] = [[]]
    for i, width in enumerate(widths):
        if rows[-1] and sum(widths[j] for j in rows[-1]) + width > across + 1e-6:
            rows.append([])
        rows[-1].append(i)
    return rows


def _join_lines(parts: Sequence[str]) -> list[str]:
    """Join the controls' values into at most six lines of readable length; longer values are truncated."""
    lines = [""]
    for part in parts:
        part = shorten(part, MAX_LINE_LENGTH)
        if lines[-1] and len(lines[-1]) + len(part) > MAX_LINE_LENGTH:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + part
    return lines[:6]


def _summary(panel: ResultPanel) -> str:
    """Return a summary of a panel: its numbers if they are few, otherwise their range and the place of the largest."""
    values = panel.numbers
    shape = " x ".join(map(str, values.shape))
    if values.ndim == 0:
        return format_number(float(values))
    finite = values[numpy.isfinite(values)]
    if not finite.size:
        return f"{shape} without a finite number"
    if values.ndim == 1 and values.size <= 12:
        return ", ".join(
            f"{word!r} {format_number(value)}" for word, value in zip(panel.row_labels(len(values)), values)
        )
    if panel.drawing.kind in ("arrows", "dots") and len(values) <= 12:
        tokens = panel.row_labels(len(values))
        return ", ".join(f"{word!r} ({format_number(x)}, {format_number(y)})" for word, (x, y) in zip(tokens, values))
    at = numpy.unravel_index(int(numpy.argmax(numpy.where(numpy.isfinite(values), values, -numpy.inf))), values.shape)
    tokens = [panel.row_labels(values.shape[0])[at[0]]]
    if values.ndim == 2:
        labels = panel.row_labels if panel.drawing.kind == "graph" else panel.column_labels
        tokens.append(labels(values.shape[1])[at[1]])
    low, high = format_number(finite.min()), format_number(finite.max())
    return f"{shape}, from {low} to {high} ({' → '.join(map(repr, tokens))})"
