"""Views of analysis tables (`study.Table`), such as layer x head, layer x position, or a logit lens."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from matplotlib.figure import Figure
from torch import Tensor

from tfviz.study.logit_lens import LensTable
from tfviz.study.table import Table
from tfviz.view.check_numbers import check_at_most
from tfviz.view.documents.charts import TableTab
from tfviz.view.figures import heatmap as figures
from tfviz.view.figures import tables as figure_tables
from tfviz.view.figures.formatting import format_cell, format_count, format_number
from tfviz.view.figures.palette import muted
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.spec import Axis, Heatmap, Scale, is_numbered
from tfviz.view.tables import MAX_CELLS, MAX_TABLES, table_panel, tables_document

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"  # a plain space in a label is marked, as in a token
SHARE_UNITS = ("share", "probability")  # the scale ends at 1 for units with these prefixes
POSITIVE_UNITS = ("share of attention", "probability", "total variation distance")  # of values that are never negative


def table(table: Table, title: str | None = None) -> View:
    """Show an analysis table as a heatmap with labelled axes: blue for negative numbers, orange for positive ones.

    Quantities that cannot be negative according to their unit have one hue. The scale of probabilities and shares ends
    at 1. A dot in a cell stands for a number nearer to 0 than 1/200 of the scale's limit; a note below explains it.

    For a logit lens, each cell shows the most likely token. Pointing at a cell lists its most likely tokens with their
    probabilities.

    Args:
        table: a table with one axis (shown as a column), two axes, or three (one tab for each label of the first).
        title: the title; by default the table's own title and its unit.

    Raises:
        ValueError: the table has no axis or more than three, no values, or too many cells or tabs.

    >>> from tfviz import study
    >>> numbers = study.Table(torch.tensor([[0.5, -1.0]]), {"layer": ["0"], "head": ["0", "1"]}, "nats", "Change")
    >>> print(table(numbers))
    Change, in nats
    1 layer x 2 heads: from −1 (layer 0, head 1) to 0.5 (layer 0, head 0)
    """
    if not 1 <= table.values.dim() <= 3 or not table.values.numel():
        raise ValueError(f"the table is {list(table.values.shape)}; a table of one to three axes can be shown")
    check_at_most(table.values.numel(), MAX_CELLS, "cells", "give a part of the table")
    if title is None:
        is_named = not table.unit or table.unit in table.title
        title = table.title if is_named else f"{table.title}, in {table.unit}".removeprefix(", ")
    tabs = _tabs(table)
    check_at_most(len(tabs), MAX_TABLES, "tabs", "give a part of the table")
    blobs = BlobStore()
    documents: list[TableTab] = []
    for index, (name, heatmap) in enumerate(tabs):
        panel = table_panel(heatmap, blobs)
        if isinstance(table, LensTable):
            panel["details"] = _details(table.text(index) if table.values.dim() == 3 else table)
        documents.append({"name": name, "panels": [panel], "height": 560})
        if note := _note(heatmap):
            documents[-1]["note"] = note
    return View(_picture(table, tabs, title), tables_document(title, documents), blobs.data)


def _tabs(table: Table) -> list[tuple[str, Heatmap]]:
    """Return the name and the heatmap of each tab, on one scale; each text of a logit lens has its own scale."""
    if isinstance(table, LensTable) and table.values.dim() == 3:  # each text has its own tokens
        return [(f"text {index}", _tabs(table.text(index))[0][1]) for index in range(len(table.values))]
    names = [Axis(name, list(labels)) for name, labels in table.axes.items()]
    scale = _scale(table)
    if len(names) == 1:
        column = Axis("", [(table.unit or "value").replace(" ", NO_BREAK_SPACE)])
        return [("", _heatmap(table.values[:, None], names[0], column, scale, table))]
    if len(names) == 2:
        return [("", _heatmap(table.values, names[0], names[1], scale, table))]
    first, rows, columns = names
    return [
        (f"{first.name} {label}", _heatmap(values, rows, columns, scale, table))
        for label, values in zip(first.labels, table.values)
    ]


def _heatmap(values: Tensor, rows: Axis, columns: Axis, scale: Scale, table: Table) -> Heatmap:
    known = values.isfinite()
    texts = [[tokens[0] for tokens in row] for row in table.tokens] if isinstance(table, LensTable) else []
    return Heatmap(
        torch.where(known, values, 0.0),
        rows,
        columns,
        scale,
        allowed=None if known.all() else known,
        numbered=not texts and is_numbered(*values.shape),
        texts=texts,
    )


def _scale(table: Table) -> Scale:
    """Return the colour scale: one hue if the unit excludes negative numbers, otherwise a hue for each sign."""
    known = table.values[table.values.isfinite()]
    largest = float(known.abs().max()) if len(known) else 1.0
    is_positive = not len(known) or bool(known.min() >= 0)
    is_share = table.unit.startswith(SHARE_UNITS) and is_positive and largest <= 1
    is_unsigned = table.unit.startswith(POSITIVE_UNITS) and is_positive
    return Scale("linear" if is_unsigned else "diverging", 1.0 if is_share else largest or 1.0, table.unit)


def _note(heatmap: Heatmap) -> str:
    """Return a note that explains the two hues and the dots in cells; empty if the heatmap has neither."""
    limit = heatmap.scale.limit
    hues = "orange: above 0, blue: below 0" if heatmap.scale.rule.diverging else ""
    is_dotted = heatmap.numbered and any(
        format_cell(value, limit) == "·" for value in heatmap.values.flatten().tolist()
    )
    dots = f"·: nearer to 0 than {_rounded_up(limit / 200)}" if is_dotted else ""
    return "; ".join(filter(None, (hues, dots)))


def _rounded_up(limit: float) -> str:
    """Format a bound with one digit, rounded up, so that numbers below the bound are also below the written one."""
    power = math.floor(math.log10(limit) + 1e-6)
    return format_number(math.ceil(limit / 10**power - 1e-6) * 10**power)


def _details(table: LensTable) -> list[list[list[tuple[str, float]]]]:
    assert table.probabilities is not None
    return [
        [list(zip(tokens, shares)) for tokens, shares in zip(words, row)]
        for words, row in zip(table.tokens, table.probabilities.tolist())
    ]


def _picture(table: Table, tabs: list[tuple[str, Heatmap]], title: str) -> StaticFigure:
    """Return the static picture: one heatmap; or several, side by side if their cells have numbers, else stacked."""
    summary = f"{title}\n{_summary(table)}"
    if len(tabs) > 1:
        named = [replace(heatmap, title=name) for name, heatmap in tabs]
        if all(one.numbered for one in named) and is_numbered(len(named), named[0].values.numel()):
            return StaticFigure(lambda: figure_tables.numbered_tables(named, title, _note(named[0])), summary)
        return StaticFigure(figure_tables.stacked_tables(named, title).figure, summary)
    return StaticFigure(lambda: _drawn(tabs[0][1], title), summary)


def figure_table(table: Table, title: str, summary: str) -> StaticFigure:
    """Return the static picture of a table with two axes, with its unit below, for use by other views."""
    ((_, heatmap),) = _tabs(table)
    return StaticFigure(lambda: _drawn(heatmap, title, table.unit), f"{title}\n{summary}")


def _drawn(heatmap: Heatmap, title: str, unit: str = "") -> Figure:
    """Draw one heatmap; write below it the unit, if given, and the meaning of its hues and dots."""
    note = "\n".join(filter(None, (unit, _note(heatmap))))
    figure, _ = figures.draw_single_heatmap(heatmap, title, below=0.25 * len(note.splitlines()))
    if note:
        figure.supxlabel(note, fontsize="small", color=muted())
    return figure


def _summary(table: Table) -> str:
    sizes = " x ".join(format_count(len(labels), name, _plural(name)) for name, labels in table.axes.items())
    known = table.values.isfinite()
    if not known.any():
        return f"{sizes}: no number"
    ends = []
    lowest = torch.where(known, table.values, torch.inf).argmin()
    highest = torch.where(known, table.values, -torch.inf).argmax()
    for word, number in (("from", lowest), ("to", highest)):
        index = torch.unravel_index(number, table.values.shape)
        cell_name = ", ".join(f"{name} {labels[int(at)]}" for (name, labels), at in zip(table.axes.items(), index))
        ends.append(f"{word} {format_number(table.values[index].item())} ({cell_name})")
    return f"{sizes}: {' '.join(ends)}"


def _plural(name: str) -> str:
    """Return the plural of an axis's name, such as "layers", or "letters looked at" of "letter looked at".

    >>> _plural("layer input"), _plural("letter looked at")
    ('layer inputs', 'letters looked at')
    """
    noun, _, rest = name.partition(" ")
    return f"{noun}s {rest}" if rest.startswith("looked ") else f"{name}s"
