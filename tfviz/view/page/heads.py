"""Build the document and the binary data of an interactive view of attention heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, TypedDict, Unpack, cast

from tfviz.look import AttentionMaps
from tfviz.view.documents.heads import Arrangement, HeadsDocument, HeadsState
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.html import View
from tfviz.view.page.payload import encode_maps
from tfviz.view.spec import KEY, QUERY, WEIGHT, Divider

MAX_PAGE_BYTES = 32e6  # of one view's data in a page, as base64
MAX_WIDGET_BYTES = 4e6  # sent at first by a view with a kernel; the rest is sent on request
ARRANGEMENTS = ("choose", "compare", "steps")
HEADS_STATE: HeadsState = {
    "mode": "sheet", "part": 0, "layer": 0, "head": 0, "selected_heads": [], "combine_heads": "mean",
    "hide_keys": "nothing", "hidden_keys": [], "merge_subwords": False, "locked_rows": [], "locked_columns": [],
    "min_weight": 0.02, "max_links": 5, "direction": "from",
}  # fmt: skip


class HeadsOptions(TypedDict, total=False):
    """The options of `heads_document`, which describes them."""

    arrange: str
    axes: Sequence[str]
    outlined: Sequence[Sequence[int]]
    names: Sequence[str]
    top_k: int | None
    divider: int | None
    rows: Sequence[int]
    note: str
    unit: str


def heads_view(
    static_figure: StaticFigure,
    maps_by_name: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None = None,
    *,
    max_bytes: float = MAX_PAGE_BYTES,
    **options: Unpack[HeadsOptions],
) -> View:
    """Return an interactive view of attention maps, with a static picture; the rest is as for `heads_document`."""
    return View(static_figure, *heads_document(maps_by_name, state, title, max_bytes, **options))


def heads_document(
    maps_by_name: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None,
    max_bytes: float,
    *,
    arrange: str = "choose",
    axes: Sequence[str] = (QUERY, KEY),
    outlined: Sequence[Sequence[int]] = (),
    names: Sequence[str] = (),
    top_k: int | None = None,
    divider: int | None = None,
    rows: Sequence[int] = (),
    note: str = "",
    unit: str = WEIGHT,
) -> tuple[HeadsDocument, bytes]:
    """Return the document of a view of attention heads, and its binary data.

    Args:
        maps_by_name: the attention maps by name.
        state: the initial choices that differ from `HEADS_STATE`.
        title: the title; None: the page describes what it shows.
        max_bytes: the maximum size of the data as base64, in bytes.
        arrange: how several parts are arranged: "choose" one from a menu, "compare" two, or "steps" of a slider.
        axes: names of the rows and the columns.
        outlined: cells to outline, as (row, column).
        names: names of the heads, instead of numbers.
        top_k: number of strongest keys to send for each query; None: all.
        divider: index of the key before which a line is drawn.
        rows: indices of queries to mark by a line above and a line below.
        note: a sentence that precedes the notes on omitted data.
        unit: name of the numbers.

    Raises:
        ValueError: `maps_by_name` is empty, `arrange` is unknown, "compare" has other than two parts, or `max_bytes`
            is too small.
    """
    if not maps_by_name or arrange not in ARRANGEMENTS or (arrange == "compare" and len(maps_by_name) != 2):
        raise ValueError(
            f"arrange is {arrange!r} with {len(maps_by_name)} captures; it can be 'choose' or 'steps' (one or more), "
            "or 'compare' (two)"
        )
    chosen: Any = {**HEADS_STATE, **state}
    chosen |= {name: index(chosen[name]) for name in ("layer", "head")}  # accepts a tensor, such as an argmax
    packed, blobs, omitted = encode_maps(maps_by_name, max_bytes, (chosen["layer"], chosen["head"]), top_k)
    of_attention = [maps.caveat for maps in maps_by_name.values() if maps.caveat and tuple(axes) == (QUERY, KEY)]
    caveats = dict.fromkeys(f"{caveat[0].upper()}{caveat[1:]}." for caveat in of_attention)
    document: HeadsDocument = {
        "kind": "heads-computed" if any(part.get("computed") for part in packed) else "heads",
        "parts": packed,
        "note": " ".join(filter(None, [note, omitted, *caveats])),
        "state": chosen,
        "masks": blobs.masks,
        "key_ranges": blobs.key_ranges,
        "title": title or "",
        "arrange": cast(Arrangement, arrange),
        "axes": list(axes),
        "outlined": [list(cell) for cell in outlined],
        "head_names": list(names),
    }
    if unit != WEIGHT:
        document["unit"] = unit
    lines: list[Divider] = [] if divider is None else [("columns", index(divider))]
    lines += [("rows", at) for row in rows for at in (row, row + 1)]
    if lines:
        document["dividers"] = lines
    return document, blobs.data
