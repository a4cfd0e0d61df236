"""What brings a still picture of heads to life: the reader's choices, and the maps as the page takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from tfviz.look.maps import AttentionMaps
from tfviz.view.page.html import View
from tfviz.view.page.packed import pack
from tfviz.view.still.picture import Picture

BUDGET = 32e6  # bytes of one view's data in a page, as base64
SENT = 4e6  # bytes that a view with a kernel sends at once; what is left out comes when it is looked at
ARRANGE = ("choose", "compare", "steps")
STATE: dict[str, Any] = {
    "mode": "sheet", "part": 0, "layer": 0, "head": 0, "marked": [], "how": "mean", "hide": "nothing", "hidden": [],
    "merged": False, "rows": [], "cols": [], "least": 0.02, "most": 5, "direction": "at",
}  # fmt: skip


def view(
    picture: Picture,
    parts: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None = None,
    *,
    budget: float = BUDGET,
    **more: Any,
) -> View:
    """A still picture brought to life by the maps it shows; `more` as in `describe`."""
    at = {"layer": index(state.get("layer", 0)), "head": index(state.get("head", 0))}  # also a tensor's argmax
    return View(picture, *describe(parts, {**STATE, **state, **at}, title, budget, **more))


def describe(
    parts: Mapping[str, AttentionMaps],
    state: Mapping[str, Any],
    title: str | None,
    budget: float,
    *,
    arrange: str = "choose",
    axes: Sequence[str] = ("query", "key"),
    gold: Sequence[Sequence[int]] = (),
    names: Sequence[str] = (),
    top: int | None = None,
    divide: int | None = None,
) -> tuple[dict[str, Any], bytes]:
    """What the page is told of the maps, and their bytes.

    Args:
        arrange: how several parts stand to each other: `choose` one, `compare` two, `steps` of a slider.
        axes: what rows and columns are.
        gold: cells to outline.
        names: of the heads.
        top: keys of each query that travel, the strongest; None: all.
        divide: the key before which a line stands.

    Raises:
        ValueError: nothing to show, another arrangement, or not two parts to compare.
    """
    if not parts or arrange not in ARRANGE or (arrange == "compare" and len(parts) != 2):
        raise ValueError(
            f"arrange is {arrange!r} with {len(parts)} captures; it can be 'choose' or 'steps' (one or more), "
            "or 'compare' (two)"
        )
    shown, packed, note = pack(parts, budget, (state["layer"], state["head"]), top)
    uneven = dict.fromkeys(f"{maps.doubt[0].upper() + maps.doubt[1:]}." for maps in parts.values() if maps.doubt)
    note = " ".join(filter(None, [note, *uneven]))
    kind = "heads-made" if any(part.get("made") for part in shown) else "heads"
    described: dict[str, Any] = {"kind": kind, "parts": shown, "note": note, "state": dict(state)}
    described |= {"masks": packed.masks, "rules": packed.rules}
    described |= {
        "title": title or "",
        "arrange": arrange,
        "axes": list(axes),
        "gold": list(gold),
        "names": list(names),
    }
    if divide is not None:
        described["borders"] = [["cols", index(divide)]]
    return described, packed.data
