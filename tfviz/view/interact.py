"""`interact`: a function's arguments bound to controls, and what it returns drawn as they move, with no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from tfviz.portable.program import pack
from tfviz.view.draw import AXES, USUAL, Drawing
from tfviz.view.page.asked import Asked
from tfviz.view.page.gears import Control, Points
from tfviz.view.page.html import View
from tfviz.view.page.packed import Packed
from tfviz.view.still.interaction import interaction
from tfviz.view.still.picture import Picture
from tfviz.view.still.results import Panel, colours

GRIDS = 24  # side by side
NUMBERS = 250_000  # of one result


def interact(
    function: Callable[..., Any],
    /,
    *,
    title: str = "",
    draw: Mapping[str, Drawing] | None = None,
    kernel: bool = False,
    **controls: Any,
) -> Any:
    """A function that answers as its arguments are moved: in a notebook, in a page made of it, in a file; no kernel.

    The function is followed by `torch.export` and travels inside the page. It takes tensors and returns a tensor, or
    several in a tuple or by name; arguments without a control keep their defaults.

    Args:
        title: what stands above; by default the function's name.
        draw: name of a result -> `view.draw.grid(...)`, `bars`, `lines`, `arrows`, `dots`, `words`, `graph`, `number`;
            by default by its axes: a number, bars, a grid, several grids.
        kernel: ask Python instead, as long as a kernel lives: for functions that cannot travel. Needs anywidget.
        controls: by argument. `(low, high[, step])` of floats is a slider, and the function is given a tensor of no
            axes. Of whole numbers it is a slider of ints, `[...]` and `{name: value}` are menus, `True` and `False`
            switches: these are given as they are, and each choice is a program of its own, 24 at most. A number
            alone is a slider around it. Also `view.points`, `cells`, `text`, `order`, `angle`.

    Raises:
        TypeError: a control that means nothing; an argument without one; one for no argument.
        ValueError: the function cannot travel, with the reason; a result that cannot be drawn so.
        LookupError: `draw` names a result, or a control, that is not there.
    """
    asked = Asked(function, controls)
    if kernel:
        from tfviz.view.page.asking import Asking

        return Asking(asked, title or asked.name, dict(draw or {}))
    asked.call(asked.start)  # what is wrong with the function itself is told as Python tells it
    programs = asked.programs()
    made = {key: program(*asked.inputs(asked.start)) for key, program in programs.items()}
    shown = made[asked.key(asked.start)]
    panels = described_panels(shown, dict(draw or {}), asked.controls)
    for other in made.values():
        _alike(shown, other, panels)
    packed, (plain, data) = Packed(), pack(programs)
    described = described_view(asked, title or asked.name, panels) | {"programs": plain, "data": packed.add(data)}
    return View(still(asked, title or asked.name, panels, shown, asked.start), described, packed.data)


def described_view(asked: Asked, title: str, panels: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page is told, but for what computes."""
    controls = [{"name": name, **control.described()} for name, control in asked.controls.items()]
    texts = any(control["kind"] == "text" for control in controls)
    return {
        "kind": "interact-text" if texts else "interact",
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
    shape = _stripped(values, AXES[drawing.kind] if drawing else (0, 1, 2, 3)).shape
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


def _stripped(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Without leading axes of size 1, such as a batch's, as long as there are more axes than can be drawn."""
    while values.dim() > min(max(axes), 2) and values.shape[0] == 1:
        values = values[0]
    return values


def still(
    asked: Asked, title: str, panels: list[dict[str, Any]], shown: Mapping[str, Tensor], values: Mapping[str, Any],
    note: str = "",
) -> Picture:  # fmt: skip
    """The still picture for these values of the controls."""
    words = {name: control.words(values[name]) for name, control in asked.controls.items()}
    line = [f"{name} = {control.said(values[name])}" for name, control in asked.controls.items()]
    drawn = []
    for panel in panels:
        tensor = _stripped(shown[panel["output"]], AXES[panel["kind"]]).detach().cpu()
        rows, cols = (
            words[given][side] if isinstance(given := panel[name], str) else given
            for side, name in enumerate(("rows", "cols"))
        )
        places = values[panel["places"]] if isinstance(panel["places"], str) else panel["places"]
        scale, limit = colours(panel["kind"], tensor, panel["scale"], panel["limit"], panel["least"])
        several = tensor if tensor.dim() == 3 else [tensor]
        for at, table in enumerate(several):
            name = f"{panel['title']} {at}".strip() if tensor.dim() == 3 else panel["title"]
            drawn.append(Panel(panel["kind"], name, table, rows, cols, scale, limit, places))
    return interaction(title, line, drawn, note)


def _alike(shown: Mapping[str, Tensor], other: Mapping[str, Tensor], panels: list[dict[str, Any]]) -> None:
    """Whatever is chosen, the same results are there, and of as many axes."""
    if list(shown) != list(other):
        raise ValueError(f"the function returns {', '.join(shown)}, and for other choices {', '.join(other)}")
    for panel in panels:
        name = panel["output"]
        axes = AXES[panel["kind"]]
        if _stripped(other[name], axes).dim() != _stripped(shown[name], axes).dim():
            raise ValueError(
                f"{name} has the shape {list(shown[name].shape)}, and for other choices {list(other[name].shape)}: "
                "a picture needs as many axes, whatever is chosen"
            )
