"""Views of tables of numbers: position encodings, and the gates of a recurrent network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.map_arguments import axis_labels
from tfviz.shapes import Float
from tfviz.view.check_numbers import check_at_most, check_finite
from tfviz.view.documents.charts import TablePanel, TablesDocument, TableTab
from tfviz.view.figures import tables as figures
from tfviz.view.figures.formatting import format_count
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.tables import table_scale
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.result_spec import labels_or_numbers
from tfviz.view.spec import KEY, QUERY, Axis, Divider, Heatmap, Scale

MAX_TABLES = 24  # in one view
MAX_CELLS = 6_000_000  # in one view: 24 MB of float32 in the page


def positions(
    tables: Tensor | Mapping[str, Tensor], title: str = "Positions", *, trained_length: int | None = None
) -> View:
    """Show position encodings: the table of each, and the cosine similarity of each pair of its positions.

    Args:
        tables: one table, [position, dim], or several by name. Encodings without vectors, such as the bias of ALiBi or
            the scores of rotated queries and keys, are passed as `as_similarities(table)` with [position, position],
            and shown unchanged.
        title: the title.
        trained_length: the number of positions seen in training; a line separates later positions.

    Raises:
        ValueError: there are no tables, or too many or too large ones; one does not have two axes; `trained_length` is
            below 1 or above the number of positions of the longest table.
    """
    kinds = {"positions": tables} if isinstance(tables, Tensor) else dict(tables)
    if not kinds:
        raise ValueError("no tables: give one, or several by name")
    if trained_length is not None and index(trained_length) < 1:
        raise ValueError(f"trained_length is {trained_length}; it is a number of positions, at least 1")
    longest = max(len(table) for table in kinds.values())
    if trained_length is not None and trained_length > longest:
        raise ValueError(
            f"trained_length is {trained_length}; the longest table has {format_count(longest, 'position')}: "
            "give at most those"
        )
    check_at_most(len(kinds), MAX_TABLES, "tables", "give fewer of them")
    blobs, tabs, heatmaps = BlobStore(), list[TableTab](), dict[str, list[Heatmap]]()
    for name, table in kinds.items():
        if table.dim() != 2 or 0 in table.shape:
            raise ValueError(f"{name} has the shape {list(table.shape)}; a table is position dim")
        check_at_most(
            len(table) * max(table.shape), MAX_CELLS, "cells to show", f"give fewer positions, such as {name}[:1000]"
        )
        heatmaps[name] = _position_heatmaps(name, table, trained_length)
        note = (
            f"trained on positions 0 to {trained_length - 1}; what lies past the line it has not seen"
            if trained_length and trained_length < len(table)
            else ""
        )
        tabs.append({"name": name, "panels": [table_panel(one, blobs) for one in heatmaps[name]], "note": note})
    return View(_positions_picture(heatmaps, title), tables_document(title, tabs), blobs.data)


def _positions_picture(heatmaps: Mapping[str, list[Heatmap]], title: str) -> StaticFigure:
    """Return the static picture: all heatmaps of a single encoding, or the similarities of several encodings."""
    shown = next(iter(heatmaps.values()))
    if len(heatmaps) > 1:
        return figures.similarities({name: one[-1] for name, one in heatmaps.items()}, title)
    if len(shown) == 1:
        return figures.stacked_tables([replace(shown[0], title=next(iter(heatmaps)))], title)
    return figures.positions(shown, title)


def _position_heatmaps(name: str, table: Tensor, trained_length: int | None) -> list[Heatmap]:
    """Return the heatmaps of an encoding: its table and the cosines of its rows, or only its similarities."""
    values = check_finite(name, table).float().as_subclass(Tensor)
    row_dividers: list[Divider] = [("rows", trained_length)] if trained_length and trained_length < len(table) else []
    dividers: list[Divider] = [*row_dividers, *(("columns", row) for _, row in row_dividers)]
    if isinstance(table, Similarity):
        return [Heatmap(values, Axis(QUERY), Axis(KEY), table_scale(values), dividers=dividers, title="query and key")]
    position, dimension = Axis("position"), Axis("dimension")
    scale, cosines = Scale("diverging", float(values.abs().max()) or 1.0), Scale("diverging", name="cosine")
    return [
        Heatmap(values, position, dimension, scale, dividers=row_dividers, title="the table"),
        Heatmap(_cosines(values), position, position, cosines, dividers=dividers, title="cosine of two positions"),
    ]


def _cosines(table: Tensor) -> Tensor:
    unit = functional.normalize(table, dim=-1)
    return unit @ unit.T


class Similarity(Tensor):
    """A table [position, position] of similarities, as `as_similarities` returns it."""


def as_similarities(table: Tensor) -> Float[Tensor, "position position"]:
    """Mark a table for `positions` as similarities, such as a bias for each query and key, or scores after RoPE.

    Raises:
        ValueError: the table is not a square matrix, or its numbers are not finite.
    """
    if table.dim() != 2 or table.shape[0] != table.shape[1]:
        shape = list(table.shape)
        raise ValueError(f"similarities must be a square matrix [position, position]; these have the shape {shape}")
    return check_finite("table", table).float().as_subclass(Similarity)


def gates(
    tables: Mapping[str, Float[Tensor, "step unit"]], tokens: Sequence[str] | None = None, title: str = "Gates"
) -> View:
    """Show the gates of a recurrent network over a text: a heatmap for each gate, with columns for steps.

    Args:
        tables: activations of each gate, [step, unit], by name, such as input, forget, output, cell.
        tokens: a label for each step.
        title: the title.

    Raises:
        TypeError: `tables` is not a mapping.
        ValueError: there are no tables, their shapes differ, they are too many or too large, or there are not as many
            labels as steps.
    """
    if not isinstance(tables, Mapping):
        kind = type(tables).__name__
        raise TypeError(
            f"tables is a {kind}: give {{'forget': step_by_unit, ...}}, as captured or computed over a sentence"
        )
    check_at_most(len(tables), MAX_TABLES, "tables", "give fewer of them")
    steps, units = one_shape(list(tables.values()))
    check_at_most(steps * units * len(tables), MAX_CELLS, "cells", "give fewer steps, or some of the units")
    axes = Axis("unit"), Axis("word", axis_labels(tokens, steps, "tokens", "steps", "tables"))
    transposed = {name: check_finite(name, table).float().T.contiguous() for name, table in tables.items()}
    heatmaps = [Heatmap(table, *axes, table_scale(table), title=name) for name, table in transposed.items()]
    blobs = BlobStore()
    panels = [table_panel(one, blobs) for one in heatmaps]
    tabs: list[TableTab] = [{"name": "all gates", "panels": panels, "height": 240}]
    tabs += [{"name": panel["name"], "panels": [panel], "height": 520} for panel in panels]
    return View(figures.stacked_tables(heatmaps, title), tables_document(title, tabs), blobs.data)


def table_panel(heatmap: Heatmap, blobs: BlobStore) -> TablePanel:
    """Return the document of a heatmap of float32 numbers; masked cells become NaN."""
    axes = (heatmap.rows, heatmap.columns)
    rows, columns = (labels_or_numbers(axis.labels, count) for axis, count in zip(axes, heatmap.values.shape))
    values = heatmap.values if heatmap.allowed is None else heatmap.values.masked_fill(~heatmap.allowed, torch.nan)
    panel: TablePanel = {
        "name": heatmap.title, "rows": rows, "columns": columns, "axes": [axis.name for axis in axes],
        "data": blobs.add(values.contiguous().numpy().tobytes()), "scale": heatmap.scale.kind,
        "limit": heatmap.scale.limit,
    }  # fmt: skip
    if heatmap.dividers:
        panel["dividers"] = list(heatmap.dividers)
    if heatmap.numbered:
        panel["numbered"] = True
    if heatmap.texts:
        panel["texts"] = [list(row) for row in heatmap.texts]
    return panel


def tables_document(title: str, tabs: list[TableTab]) -> TablesDocument:
    return {
        "kind": "tables",
        "title": title,
        "tabs": tabs,
        "state": {"tab": 0, "locked_rows": [], "locked_columns": []},
    }


def one_shape(tables: Sequence[Tensor]) -> tuple[int, int]:
    """Return the shape that all tables share.

    Raises:
        ValueError: there are no tables, their shapes differ, or they do not have two axes of size 1 or more.
    """
    shapes = sorted({tuple(table.shape) for table in tables})
    if len(shapes) != 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ValueError(f"tables must be of one shape with two axes, neither of size 0; got {shapes or 'none'}")
    return shapes[0][0], shapes[0][1]
