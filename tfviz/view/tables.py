"""Views of tables of numbers: positions to compare, the gates of a recurrent cell over a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index

from torch import Tensor
from torch.nn import functional

from tfviz.look.map_arguments import as_strings
from tfviz.shapes import Float
from tfviz.view.documents.charts import TablePanel, TablesDocument, TableSheet
from tfviz.view.documents.heads import Divider
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.spec import KEY, QUERY
from tfviz.view.still import panels
from tfviz.view.still import tables as position_tables
from tfviz.view.still.formatting import counted
from tfviz.view.still.numbers import check_at_most, check_finite
from tfviz.view.still.panels import table_scale
from tfviz.view.still.picture import Picture

TABLES = 24  # side by side
CELLS = 6_000_000  # numbers of one view: 24 MB of a page


def positions(tables: Tensor | Mapping[str, Tensor], title: str = "Positions", *, trained: int | None = None) -> View:
    """Show kinds of positions: each kind's table, and how alike two of its positions are.

    Args:
        tables: position dim, one or several by name. Vectors that are added (sinusoidal, learned) are compared by their
            cosine. A kind that has no vectors (a bias, as ALiBi's, or the score of a rotated query with a rotated key)
            is given as a table position position, wrapped in `similarity`, and shown as it is.
        trained: the number of positions seen in training; what lies beyond is marked.
    """
    kinds = {"positions": tables} if isinstance(tables, Tensor) else dict(tables)
    if not kinds:
        raise ValueError("no tables: give one, or several by name")
    if trained is not None and index(trained) < 1:
        raise ValueError(f"trained is {trained}; it is a number of positions, at least 1")
    longest = max(len(table) for table in kinds.values())
    if trained is not None and trained > longest:
        raise ValueError(
            f"trained is {trained}; the longest table has {counted(longest, 'position')}: give at most those"
        )
    blobs, sheets = BlobStore(), list[TableSheet]()
    check_at_most(len(kinds), TABLES, "tables", "give fewer of them")
    for name, table in kinds.items():
        if table.dim() != 2 or 0 in table.shape:
            raise ValueError(f"{name} has the shape {list(table.shape)}; a table is position dim")
        check_at_most(
            len(table) * max(table.shape), CELLS, "cells to show", f"give fewer positions, such as {name}[:1000]"
        )
        shown = _position_panels(check_finite(name, table).float(), isinstance(table, Similarity), blobs, trained)
        beyond = (
            f"trained on positions 0 to {trained - 1}; what lies past the line it has not seen"
            if trained and trained < len(table)
            else ""
        )
        sheets.append({"name": name, "panels": shown, "note": beyond})
    return View(_positions_picture(kinds, title), _tables_document(title, sheets), blobs.data)


def _positions_picture(kinds: Mapping[str, Tensor], title: str) -> Picture:
    """Picture one kind by its table and how alike its positions are, several by how alike their positions are."""
    (name, table), *others = kinds.items()
    if others:
        alike = {
            name: table if isinstance(table, Similarity) else _cosines(check_finite(name, table).float())
            for name, table in kinds.items()
        }
        return position_tables.similarities(
            {name: check_finite(name, table.as_subclass(Tensor)) for name, table in alike.items()}, title
        )
    if isinstance(table, Similarity):
        return panels.tables({name: table.as_subclass(Tensor)}, None, None, title, "key", "query")
    return position_tables.positions(table, title)


def _cosines(table: Tensor) -> Tensor:
    unit = functional.normalize(table, dim=-1)
    return unit @ unit.T


class Similarity(Tensor):
    """A table that already compares positions with positions."""


def similarity(table: Tensor) -> Float[Tensor, "position position"]:
    """Mark a table as one that compares positions: a bias for each query and key, or scores of turned vectors."""
    if table.dim() != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"a comparison is a table position position; this one has the shape {list(table.shape)}")
    return check_finite("table", table).float().as_subclass(Similarity)


def _position_panels(table: Tensor, compares: bool, blobs: BlobStore, trained: int | None) -> list[TablePanel]:
    """Return the heatmaps of a kind: its table and the cosines of its rows, or the table alone where it compares."""
    table = table.as_subclass(Tensor)
    numbers = [str(i) for i in range(len(table))]
    down: list[Divider] = [("rows", index(trained))] if trained and trained < len(table) else []
    both: list[Divider] = [*down, *(("cols", row) for _, row in down)]
    if compares:
        return [{**_panel("query and key", table, numbers, numbers, [QUERY, KEY], blobs), "dividers": both}]
    dims = [str(i) for i in range(table.shape[1])]
    top = float(table.abs().max()) or 1.0
    alike = _panel(
        "cosine of two positions", _cosines(table), numbers, numbers, ["position", "position"], blobs, limit=1.0
    )
    return [
        {**_panel("the table", table, numbers, dims, ["position", "dimension"], blobs, top), "dividers": down},
        {**alike, "dividers": both},
    ]


def gates(
    tables: Mapping[str, Float[Tensor, "step unit"]], words: Sequence[str] | None = None, title: str = "Gates"
) -> View:
    """Show what the gates of a recurrent cell do over a sentence: a table each, a column a word, a row a unit.

    Args:
        tables: by name, such as input, forget, output, cell; step unit.
        words: a word for each step.

    Raises:
        ValueError: no tables, not all of one shape, or words that do not fit.
    """
    if not isinstance(tables, Mapping):
        kind = type(tables).__name__
        raise TypeError(
            f"tables is a {kind}: give {{'forget': step_by_unit, ...}}, as captured or computed over a sentence"
        )
    check_at_most(len(tables), TABLES, "tables", "give fewer of them")
    steps, units = one_shape(list(tables.values()))
    check_at_most(steps * units * len(tables), CELLS, "cells", "give fewer steps, or some of the units")
    columns = axis_labels(words, steps, "words", "steps")
    blobs, numbers = BlobStore(), [str(unit) for unit in range(units)]
    turned = {name: check_finite(name, table).float().T.contiguous() for name, table in tables.items()}
    every = [_panel(name, table, numbers, columns, ["unit", "word"], blobs) for name, table in turned.items()]
    sheets: list[TableSheet] = [{"name": "all gates", "panels": every, "height": 240}]
    sheets += [{"name": panel["name"], "panels": [panel], "height": 520} for panel in every]
    picture = panels.tables(turned, None, columns, title, "word", "unit")
    return View(picture, _tables_document(title, sheets), blobs.data)


def _panel(
    name: str,
    table: Tensor,
    rows: list[str],
    cols: list[str],
    axes: list[str],
    blobs: BlobStore,
    limit: float | None = None,
) -> TablePanel:
    """Return the document of a heatmap of float32 numbers."""
    scale, data = table_scale(table), blobs.add(table.contiguous().numpy().tobytes())
    return {"name": name, "rows": rows, "cols": cols, "axes": axes, "data": data, "scale": scale.kind,
            "limit": limit or scale.limit}  # fmt: skip


def _tables_document(title: str, sheets: list[TableSheet]) -> TablesDocument:
    return {"kind": "tables", "title": title, "sheets": sheets, "state": {"sheet": 0, "rows": [], "cols": []}}


def one_shape(tables: Sequence[Tensor]) -> tuple[int, int]:
    shapes = sorted({tuple(table.shape) for table in tables})
    if len(shapes) != 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ValueError(f"tables must be of one shape with two axes, neither of size 0; got {shapes or 'none'}")
    return shapes[0][0], shapes[0][1]


def axis_labels(words: Sequence[str] | None, count: int, name: str, what: str) -> list[str]:
    if words is not None and len(words) != count:
        raise ValueError(f"{name} has {len(words)} words, the tables have {count} {what}")
    return [str(i) for i in range(count)] if words is None else as_strings(words)
