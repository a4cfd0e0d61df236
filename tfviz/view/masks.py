"""Views of attention masks: one mask, or several to combine in the page.

Python computes every mask. The page only shows and combines them, so it always agrees with the Python code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from tfviz.look.map_arguments import as_mask, axis_labels
from tfviz.shapes import Bool
from tfviz.view.check_numbers import check_at_most, dense_tensor
from tfviz.view.documents.charts import MasksDocument, Predicate
from tfviz.view.figures import masks as figures
from tfviz.view.instrument.results import squeeze_leading
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.spec import KEY, QUERY
from tfviz.view.tables import MAX_TABLES, one_shape

MAX_CELLS = 16_000_000  # of a mask
MaskOrSizes = Tensor | Mapping[Any, Tensor]


def masks(
    masks: Mapping[str, MaskOrSizes],
    query_tokens: Sequence[str] | None = None,
    title: str = "Masks",
    *,
    key_tokens: Sequence[str] | None = None,
    roles: Mapping[str, str] | None = None,
) -> View:
    """Show several masks and their combination, with the masks that forbid each cell and a slider for each size.

    Args:
        masks: name -> mask, boolean [query, key], True where a query may attend; or, for a mask with a size, name ->
            {size: mask}. With the predicates of `tfviz.layers.masks`:
            `{"causal": causal.dense(9, 9), "window": {n: window(n).dense(9, 9) for n in (2, 4)}}`. Leading axes of size
            1 are dropped.
        query_tokens: a label for each query.
        title: the title.
        key_tokens: a label for each key; None: the labels of the queries if there are as many keys.
        roles: initial role of each mask: `all` (must hold), `any` (at least one of these must hold), `not` (must not
            hold) or `off` (unused); by default the first is `all`, the others `off`.

    Raises:
        TypeError: `masks` is not a mapping.
        ValueError: there are no masks or too many; they differ in shape or are too large; there are not as many labels
            as queries or keys.
        LookupError: `roles` has an unknown mask or an unknown role.
    """
    if not isinstance(masks, Mapping):
        raise TypeError(f"masks is a {type(masks).__name__}: give {{'a name': table}}, or use view.mask for one table")
    check_at_most(len(masks), MAX_TABLES, "masks", "give fewer of them")
    tables = {name: _values(name, given) for name, given in masks.items()}
    queries, keys = one_shape([table for values in tables.values() for table in values.values()])
    check_at_most(queries * keys, MAX_CELLS, "cells", "give fewer queries or keys")
    rows = axis_labels(query_tokens, queries, "query_tokens", "queries", "tables")
    columns = (
        axis_labels(key_tokens, keys, "key_tokens", "keys", "tables")
        if key_tokens is not None or queries != keys
        else rows
    )
    initial: Any = dict(roles if roles is not None else {next(iter(masks)): "all"})
    for name, role in initial.items():
        if name not in tables or role not in ("all", "any", "not", "off"):
            raise LookupError(
                f"roles[{name!r}] is {role!r}; it must be all, any, not or off, for one of the masks "
                f"{', '.join(tables)}"
            )
    blobs = BlobStore()
    predicates: list[Predicate] = [
        {"name": name, "sizes": list(map(str, sizes)), "masks": [blobs.mask_index(t) for t in sizes.values()]}
        for name, sizes in tables.items()
    ]
    chosen = {name: len(sizes) // 3 for name, sizes in tables.items()}
    first = {name: list(sizes.items())[chosen[name]] for name, sizes in tables.items()}
    document: MasksDocument = {
        "kind": "masks", "title": title, "predicates": predicates, "masks": blobs.masks,
        "rows": rows, "columns": columns,
        "axes": [QUERY, KEY], "state": {"roles": initial, "sizes": chosen, "locked_rows": [], "locked_columns": []},
    }  # fmt: skip
    static_figure = figures.mask_panels(
        {name: (f"{name} = {size}" if len(tables[name]) > 1 else name, table) for name, (size, table) in first.items()},
        title,
        rows if query_tokens is not None else (),
        columns if query_tokens is not None or key_tokens is not None else (),
        roles,
    )
    return View(static_figure, document, blobs.data)


def mask(
    allowed: Bool[Tensor, "... query key"],
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    title: str = "Mask",
) -> View:
    """Show which keys each query may attend to (filled) or not (hatched), for the first batch element and head.

    Args:
        allowed: the mask, [..., query, key], True where a query may attend.
        query_tokens: a label for each query.
        key_tokens: a label for each key; None: the labels of the queries if there are as many keys.
        title: the title.

    Raises:
        ValueError: the mask has fewer than two axes, or an axis of size 0; there are not as many labels as queries or
            keys.
    """
    allowed = as_mask(dense_tensor(title, allowed))
    if allowed.dim() < 2 or 0 in allowed.shape:
        raise ValueError(
            f"a mask is query key, with at least one of each; this one has the shape {list(allowed.shape)}"
        )
    allowed = allowed.reshape(-1, *allowed.shape[-2:])[0]
    lab = masks({"the mask": allowed}, query_tokens, title, key_tokens=key_tokens)
    labels: Any = lab.document
    return View(figures.mask(allowed, labels["rows"], labels["columns"], title), lab.document, lab.data)


def _values(name: str, mask: MaskOrSizes) -> dict[Any, Bool[Tensor, "query key"]]:
    """Return a mask by its sizes; without a size there is one, by the key "".

    Raises:
        ValueError: there are none, or one is not [query, key].
    """
    values = {"": mask} if isinstance(mask, Tensor) else dict(mask)
    if not values:
        raise ValueError(f"the mask {name!r} has no tables")
    for size, table in values.items():
        values[size] = squeeze_leading(dense_tensor(name, table), (2,))
        if values[size].dim() != 2:
            raise ValueError(f"the mask {name!r} has a table of shape {list(table.shape)}; it must be query key")
    return {size: as_mask(table) for size, table in values.items()}
