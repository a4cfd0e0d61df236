"""Sentences that state what an instrument's results show, from the author's templates or by default.

Pages compose the same sentences for results that they compute (`js/interact/sentences.js`). The author's sentence is a
template with placeholders in braces, which are filled from the current numbers:

    {row}, {col}       labels of the largest number; in a grid with negative numbers, of the largest absolute one
    {value}, {percent} that number, as it is and as a percentage
    {second}           label of the next largest number: in the same row of a grid, or among the other bars or words
    {second_value}, {second_percent} that number, as it is and as a percentage
    {count}, {of}      the number of cells that are not 0 (of bars: that have the expected sign, if one is), and of all
    {sum}              the sum of all numbers
    {last}, {last_of_second} the last numbers of the first and of the second line or row

For a grid of shares (rows that sum to 1) with the same labels on both axes, {row} is the row with the largest share for
a different label, and {col} has the largest share in that row. In a stack, {percent} is the share of the sum. A single
number has {value} and {percent} only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy

from tfviz.text.token_labels import VISIBLE_SIGNS
from tfviz.view.figures.formatting import format_number, percent, shorten, unit_suffix
from tfviz.view.result_spec import ResultPanel

NUMBER_NAMES = ("value", "percent")
NAMES = (
    "row",
    "col",
    *NUMBER_NAMES,
    "second",
    "second_value",
    "second_percent",
    "count",
    "of",
    "sum",
    "last",
    "last_of_second",
)
MAX_DEFAULT_SENTENCES = 2
NUMBER = re.compile(r"[-−]?\d[\d.,]*$")
MAX_WORD_LENGTH = 30
MARKED_KINDS = ("grid", "bars", "lines")  # kinds whose pictures mark the number that the sentence names
NAMES_A_CELL = re.compile(r"\{(row|col|value|percent)\}")
ROW_KINDS = ("bars", "words", "stack")  # kinds with one number for each word


def check_sentence(kind: str, sentence: str) -> None:
    """Raise ValueError if a sentence has a placeholder that results of this kind do not have."""
    known = NUMBER_NAMES if kind == "number" else tuple(n for n in NAMES if n != "col" or kind not in ROW_KINDS)
    unknown = [name for name in re.findall(r"\{([^{}]*)\}", sentence) if name not in known]
    if unknown:
        raise ValueError(f"sentence has {{{unknown[0]}}}; {kind} can have {', '.join(f'{{{name}}}' for name in known)}")


def sentences(panels: Sequence[ResultPanel]) -> str:
    """Return the author's sentences about results, or, if there are none, default sentences about the first two."""
    return " ".join(dict.fromkeys(_chosen(panels).values()))  # equal sentences of several results appear once


def _chosen(panels: Sequence[ResultPanel]) -> dict[int, str]:
    """Return the sentence about each result that has one, by the index of the result."""
    custom = {at: filled(panel) for at, panel in enumerate(panels) if panel.drawing.sentence}
    automatic = {at: text for at, panel in enumerate(panels) if (text := default_sentence(panel))}
    return custom or dict(list(automatic.items())[:MAX_DEFAULT_SENTENCES])


def stated_cells(panels: Sequence[ResultPanel]) -> list[tuple[int, int] | None]:
    """Return, for each result, the row and the column of the number that its sentence names.

    None if the sentence names no number, or if several cells have that number.
    """
    chosen = _chosen(panels)
    return [_stated_cell(panel) if at in chosen else None for at, panel in enumerate(panels)]


def _stated_cell(panel: ResultPanel) -> tuple[int, int] | None:
    sentence = panel.drawing.sentence
    if panel.drawing.kind not in MARKED_KINDS or (sentence and not NAMES_A_CELL.search(sentence)):
        return None
    values = panel.numbers
    if not numpy.isfinite(values).any():
        return None
    table = values[:, None].T if values.ndim == 1 else values
    row, column = _chosen_cell(panel, table)
    if (table == table[row, column]).sum() > 1:
        return None
    return (column, 0) if panel.drawing.kind == "bars" else (row, column)


def filled(panel: ResultPanel) -> str:
    """Return the author's sentences with their placeholders filled; empty if no number is finite.

    Of several sentences, those about the next largest number are left out where there is none.
    """
    if not (known := facts(panel)):
        return ""
    parts = re.split(r"(?<=[.?!]) ", panel.drawing.sentence)
    if known.get("second") == "none":
        parts = [part for part in parts if "{second" not in part] or parts
    return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], " ".join(parts))


def default_sentence(panel: ResultPanel) -> str:
    """Return a sentence made from the numbers; empty for a single number, arrows or dots, or if none is finite."""
    known = facts(panel)
    if panel.drawing.kind in ("number", "arrows", "dots") or not known:
        return ""
    values = panel.numbers
    finite = values[numpy.isfinite(values)]
    if panel.drawing.kind != "stack" and (finite == finite[0]).all():
        where = "everywhere" if finite.size == values.size else f"in {finite.size} of {values.size} cells"
        text = f"{known['value']} {where}."
    else:
        text = _uneven_sentence(panel, finite, known)
    if panel.drawing.kind == "stack" and panel.drawing.budget is not None:  # the title asks whether it fits
        return f"{stack_answer(panel)}. {_capital(text)}"
    return f"{_capital(shorten(panel.drawing.title, 60))}: {text}" if panel.drawing.title else _capital(text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _uneven_sentence(panel: ResultPanel, finite: numpy.ndarray, known: dict[str, str]) -> str:
    row, value = known["row"], known["value"]
    if panel.drawing.kind == "stack":
        of = f" of {known['sum']}" if panel.drawing.budget is None else ""
        return f"the largest part is {row}, {value}{of} ({known['percent']})."
    if panel.drawing.kind in ROW_KINDS:
        then = f", then {known['second']} ({known['second_value']})" if known["second"] != "none" else ""
        return f"largest for {row} ({value}){then}."
    if panel.drawing.kind == "lines":
        several = panel.numbers.ndim == 2 and (len(panel.numbers) > 1 or panel.drawing.rows)
        return f"highest {f'for {row} at' if several else 'at'} {known['col']} ({value})."
    return _grid_sentence(panel, finite, known)


def _grid_sentence(panel: ResultPanel, finite: numpy.ndarray, known: dict[str, str]) -> str:
    row, col, value = known["row"], known["col"], known["value"]
    if ((finite == 0) | (finite == 1)).all():
        return f"{panel.drawing.ends[1] or 1} in {known['count']} of {known['of']} cells."
    if _is_shares(panel):
        return f"{row} gives most to {col} ({known['percent']}), then to {known['second']} ({known['second_percent']})."
    top = abs(finite).max()
    if (ties := int((abs(finite) == top).sum())) > 1:
        return f"{value} at most, in {ties} of {known['of']} cells."
    first, second = (f"{name} " if name else "" for name in panel.drawing.axes)
    return f"{'strongest' if (finite < 0).any() else 'largest'} for {first}{row} and {second}{col} ({value})."


def stack_answer(panel: ResultPanel) -> str:
    """Return the sum of a stack's positive parts; with a budget, also whether it fits, as in "No: 144 of 80 GB"."""
    values = panel.numbers
    total = float(values[numpy.isfinite(values)].clip(0).sum())  # as drawn
    unit = unit_suffix(panel.drawing.unit)
    if panel.drawing.budget is None:
        return format_number(total) + unit
    digits = next((n for n in (2, 3, 4, 5) if format_number(total, n) != format_number(panel.drawing.budget, n)), 2)
    answer = "Yes" if total <= panel.drawing.budget else "No"
    return f"{answer}: {format_number(total, digits)} of {format_number(panel.drawing.budget, digits)}{unit}"


def facts(panel: ResultPanel) -> dict[str, str]:
    """Return the text of each placeholder for a result; empty if no number is finite."""
    values = panel.numbers
    if not numpy.isfinite(values).any():
        return {}
    unit = unit_suffix(panel.drawing.unit)
    if panel.drawing.kind == "number":
        return {"value": format_number(float(values)) + unit, "percent": _percent(float(values))}
    table = values[:, None].T if values.ndim == 1 else values
    row, col = _chosen_cell(panel, table)
    rest = numpy.where(numpy.isfinite(table[row]), table[row], -numpy.inf)
    rest[col] = -numpy.inf
    second = int(numpy.argmax(rest)) if rest.max(initial=-numpy.inf) > -numpy.inf else None
    total = float(table[numpy.isfinite(table)].sum())
    share = total if panel.drawing.kind == "stack" and total else 1.0
    labels = _Words(panel, table.shape)
    return {
        "row": labels.row(col if panel.drawing.kind in ROW_KINDS else row),
        "col": labels.column(row, col),
        "value": format_number(float(table[row, col])) + unit,
        "percent": _percent(float(table[row, col]) / share),
        "second": "none" if second is None else labels.column(row, second),
        "second_value": "" if second is None else format_number(float(rest[second])) + unit,
        "second_percent": "" if second is None else _percent(float(rest[second]) / share),
        "count": format_number(int((numpy.isfinite(table) & (table * (panel.drawing.expected or table) > 0)).sum())),
        "of": format_number(table.size),
        "sum": format_number(total) + unit,
        "last": format_number(float(table[0, -1])) + unit,
        "last_of_second": format_number(float(table[1, -1])) + unit if len(table) > 1 else "",
    }


def _chosen_cell(panel: ResultPanel, table: numpy.ndarray) -> tuple[int, int]:
    """Return the row and the column of the cell that the sentence is about; see the module's docstring."""
    signed = panel.drawing.kind == "grid" and bool((table[numpy.isfinite(table)] < 0).any())
    sizes = numpy.where(numpy.isfinite(table), abs(table) if signed else table, -numpy.inf)
    if _is_shares(panel) and _has_same_words(panel, table.shape):
        labels = numpy.array(panel.row_labels(len(table)), dtype=object)
        others = numpy.where(labels[:, None] == labels[None], -numpy.inf, sizes)
        if others.max() > 0:
            row = int(numpy.argmax(others.max(1)))
            return row, int(numpy.argmax(sizes[row]))
    return divmod(int(numpy.argmax(sizes)), sizes.shape[1])


def _is_shares(panel: ResultPanel) -> bool:
    table = numpy.where(numpy.isfinite(panel.numbers), panel.numbers, 0.0)
    return panel.drawing.kind == "grid" and table.ndim == 2 and bool((abs(table.sum(-1) - 1) < 1e-3).all())


def _has_same_words(panel: ResultPanel, shape: tuple[int, ...]) -> bool:
    rows, columns = shape
    return rows == columns > 1 and panel.row_labels(rows) == panel.column_labels(columns)


def _percent(share: float) -> str:
    return percent(share).replace(" ", "\N{NO-BREAK SPACE}")


class _Words:
    """The labels of a result's axes, as sentences quote them."""

    def __init__(self, panel: ResultPanel, shape: Any):
        self.panel, self.shape = panel, shape
        self.by_word = panel.drawing.kind in ROW_KINDS
        self.rows = panel.row_labels(shape[1] if self.by_word else shape[0])
        columns = panel.row_labels if panel.drawing.kind == "graph" else panel.column_labels
        self.columns = self.rows if self.by_word else columns(shape[1])

    def row(self, index: int) -> str:
        return self._quote(self.rows[index])

    def column(self, row: int, index: int) -> str:
        itself = self.panel.drawing.kind == "grid" and row == index and _has_same_words(self.panel, self.shape)
        return "itself" if itself else self._quote(self.columns[index])

    def _quote(self, word: str) -> str:
        """Quote a label unless it is a number; spaces become symbols if it begins or ends with whitespace."""
        if NUMBER.match(word):
            return word
        signs = {" ": " "} if word.strip() == word else {}
        shown = "".join({**VISIBLE_SIGNS, **signs}.get(letter, letter) for letter in word) or "∅"
        return f"“{shorten(shown, MAX_WORD_LENGTH)}”"
