"""How the results of a function are shown: what a page is told of them, and their still picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from tfviz.view.page.asked import Asked
from tfviz.view.page.gears import Control, Points
from tfviz.view.still.draw import AXES, USUAL, Drawing
from tfviz.view.still.interaction import interaction
from tfviz.view.still.panel import Panel, colours
from tfviz.view.still.picture import Picture

GRIDS = 24  # side by side
NUMBERS = 250_000  # of one result


def described_view(asked: Asked, title: str, panels: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page is told, but for what computes."""
    controls = [{"name": name, **control.described()} for name, control in asked.controls.items()]
    return {
        "kind": "interact",
        "title": title, "note": "", "parts": [], "controls": controls, "chosen": asked.chosen, "panels": panels,
        "state": {"values": asked.start},
    }  # fmt: skip


def described_panels(
    shown: Mapping[str, Tensor], draw: Mapping[str, Drawing], controls: Mapping[str, Control]
) -> list[dict[str, Any]]:
    """How each result is drawn, in plain values.

    Raises:
        LookupError, ValueError: as `interact`.
    """
    if unknown := [name for name in draw if name not in shown]:
        raise LookupError(f"draw names {', '.join(unknown)}; the function returns {', '.join(shown)}")
    return [_panel(name, values, draw.get(name), controls) for name, values in shown.items()]


def _panel(name: str, values: Tensor, drawing: Drawing | None, controls: Mapping[str, Control]) -> dict[str, Any]:
    if values.is_complex() or not values.numel():
        found = "complex numbers" if values.is_complex() else f"the shape {list(values.shape)}"
        raise ValueError(f"{name} has {found}; a picture needs real numbers, at least one")
    shape = stripped(values, AXES[drawing.kind] if drawing else (0, 1, 2, 3)).shape
    if values.numel() > NUMBERS:
        raise ValueError(f"{name} has {values.numel():,} numbers, and a picture has room for {NUMBERS:,}")
    if drawing is None:
        if len(shape) not in USUAL:
            raise ValueError(f"{name} has the shape {list(values.shape)}: return a part of it, of 3 axes at most")
        drawing = Drawing(USUAL[len(shape)])
    pairs = drawing.kind in ("arrows", "dots") and shape[-1:] != (2,)
    if len(shape) not in AXES[drawing.kind] or pairs or (drawing.kind == "graph" and shape[0] != shape[1]):
        wanted = {"arrows": "[word, 2]", "dots": "[word, 2]", "graph": "[node, node]", "grid": "[row, col]",
                  "bars": "[word]", "words": "[word]", "lines": "[row, col]", "number": "[]"}[drawing.kind]  # fmt: skip
        raise ValueError(f"{name} has the shape {list(values.shape)}; {drawing.kind} draws {wanted}")
    if len(shape) == 3 and shape[0] > GRIDS:
        raise ValueError(f"{name} would be {shape[0]} grids, and a picture has room for {GRIDS}: return fewer")
    for side in ("rows", "cols", "places"):
        named = getattr(drawing, side)
        if isinstance(named, str) and (named not in controls or not _has(controls[named], side)):
            able = ", ".join(other for other, control in controls.items() if _has(control, side)) or "none"
            raise LookupError(f"{side} of {name} is {named!r}; the controls that have {WHAT[side]}: {able}")
    drawn = {side: one if isinstance(one := getattr(drawing, side), str) else list(one) for side in ("rows", "cols")}
    _fits(name, drawing, drawn, shape)
    near = controls.get(drawing.rows) if isinstance(drawing.rows, str) else None
    return {
        "output": name, "kind": drawing.kind, "title": drawing.title or ("" if name == "output" else name), **drawn,
        "scale": drawing.scale, "limit": drawing.limit,
        "least": near.limit if isinstance(near, Points) and drawing.kind in ("arrows", "dots") else 0,
        "places": drawing.places if isinstance(drawing.places, str) else [list(place) for place in drawing.places],
        **({"top": drawing.top} if drawing.top else {}),
        "filled": drawing.filled,
    }  # fmt: skip


WHAT = {"rows": "words", "cols": "words", "places": "points"}


def _has(control: Control, side: str) -> bool:
    return isinstance(control, Points) if side == "places" else bool(control.words(control.start)[0])


def _fits(name: str, drawing: Drawing, drawn: Mapping[str, Any], shape: tuple[int, ...]) -> None:
    """Words that are given as a list must be as many as there are rows or columns."""
    counts = {"rows": shape[0 if drawing.kind != "grid" else -2] if shape else 1, "cols": shape[-1] if shape else 1}
    if drawing.kind == "lines" and len(shape) == 1:
        counts["rows"] = 1
    for side, words in drawn.items():
        if not isinstance(words, str) and words and len(words) != counts[side]:
            raise ValueError(f"{side} of {name} has {len(words)} words, for {counts[side]} {side}")
    if not isinstance(drawing.places, str) and drawing.places and len(drawing.places) != shape[0]:
        raise ValueError(f"places of {name} has {len(drawing.places)} places, for {shape[0]} nodes")


def stripped(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Without leading axes of size 1, such as a batch's, as long as there are more axes than can be drawn."""
    while values.dim() > min(max(axes), 2) and values.shape[0] == 1:
        values = values[0]
    return values


def _first(values: Tensor, rows: Sequence[str], top: int) -> tuple[Tensor, list[str]]:
    """The largest of them in their order, with their words; what is no number comes last."""
    order = values.float().nan_to_num(nan=-math.inf).argsort(descending=True, stable=True)[:top]
    return values[order], [rows[i] if len(rows) == len(values) else str(i) for i in order.tolist()]


def still(
    asked: Asked, title: str, panels: list[dict[str, Any]], shown: Mapping[str, Tensor], values: Mapping[str, Any],
    note: str = "",
) -> Picture:  # fmt: skip
    """The still picture for these values of the controls."""
    words = {name: control.words(values[name]) for name, control in asked.controls.items()}
    line = [f"{name} = {control.said(values[name])}" for name, control in asked.controls.items()]
    drawn = []
    for panel in panels:
        tensor = stripped(shown[panel["output"]], AXES[panel["kind"]]).detach().cpu()
        rows, cols = (
            words[given][side] if isinstance(given := panel[name], str) else given
            for side, name in enumerate(("rows", "cols"))
        )
        places = values[panel["places"]] if isinstance(panel["places"], str) else panel["places"]
        scale, limit = colours(panel["kind"], tensor, panel["scale"], panel["limit"], panel["least"])
        if top := panel.get("top"):
            tensor, rows = _first(tensor, rows, top)
        several = tensor if tensor.dim() == 3 else [tensor]
        for at, table in enumerate(several):
            name = f"{panel['title']} {at}".strip() if tensor.dim() == 3 else panel["title"]
            drawn.append(Panel(panel["kind"], name, table, rows, cols, scale, limit, places, panel["filled"]))
    return interaction(title, line, drawn, note)
