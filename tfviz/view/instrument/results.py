"""Specify how an instrument's results are drawn in the page, and draw them as a static picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from tfviz.view.documents.interact import InteractDocument, ResultSpec
from tfviz.view.draw import AXIS_COUNTS, DEFAULT_KINDS
from tfviz.view.figures.interaction import interaction
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.instrument.bound_function import BoundFunction
from tfviz.view.instrument.controls import Control, Points
from tfviz.view.result_spec import Drawing, ResultPanel, result_scale
from tfviz.view.spec import Scale

MAX_GRIDS = 24  # side by side
MAX_NUMBERS = 250_000  # of one result
SHAPE_DESCRIPTIONS = {  # shape of the tensor that each kind draws
    "arrows": "[word, 2]", "dots": "[word, 2]", "graph": "[node, node]", "grid": "[row, col]", "bars": "[word]",
    "words": "[word]", "stack": "[part]", "lines": "[row, col]", "number": "[]",
}  # fmt: skip
SHARED_KINDS = ("grid", "bars")  # results with equal drawings share one scale
# argument of `view.draw` -> what a control needs to provide it
LABEL_SOURCES = {"rows": "words", "columns": "words", "positions": "points"}


def instrument_document(function: BoundFunction, title: str, panels: list[ResultSpec]) -> InteractDocument:
    """Return the document of an instrument, without its programs."""
    controls = {name: control.spec for name, control in function.controls.items()}
    document: InteractDocument = {
        "kind": "interact", "title": title, "controls": controls, "discrete": function.discrete, "panels": panels,
        "state": {"values": function.start},
    }  # fmt: skip
    if function.purpose:
        document["purpose"] = function.purpose
    return document


def result_specs(
    results: Mapping[str, Tensor], draw: Mapping[str, Drawing], controls: Mapping[str, Control]
) -> list[ResultSpec]:
    """Return the specification of each result, as plain values.

    Raises:
        LookupError: `draw` names a result or a control that does not exist.
        ValueError: a result cannot be drawn as `draw` specifies.
    """
    if unknown := [name for name in draw if name not in results]:
        raise LookupError(f"draw names {', '.join(unknown)}; the function returns {', '.join(results)}")
    specs = [_result_spec(name, values, draw.get(name), controls) for name, values in results.items()]
    alike = {
        spec["result"]: replace(draw[spec["result"]], title="", sentence="")
        for spec in specs
        if spec["kind"] in SHARED_KINDS and spec["result"] in draw
    }
    for spec in specs:
        group = [name for name, drawing in alike.items() if drawing == alike.get(spec["result"])]
        if len(group) > 1:
            spec["shared"] = group[0]
    return specs


def _result_spec(name: str, values: Tensor, drawing: Drawing | None, controls: Mapping[str, Control]) -> ResultSpec:
    _check_values(name, values)
    drawing = drawing or _default_drawing(name, values)
    shape = squeeze_leading(values, AXIS_COUNTS[drawing.kind]).shape
    _check_shape(name, values, drawing, shape)
    _check_controls(name, drawing, controls)
    _check_labels(name, drawing, shape)
    rows, columns = _axis_names(drawing, shape, controls)
    title = drawing.title or ("" if name == "output" else name)
    source = controls.get(drawing.rows) if isinstance(drawing.rows, str) else None
    points = source if isinstance(source, Points) and drawing.kind in ("arrows", "dots") else None
    document = _to_document(replace(drawing, title=title, rows=rows, columns=columns))
    min_limit = points.spec["limit"] if points else 0
    return {"result": name, **document, "min_limit": min_limit}  # type: ignore[typeddict-item]


def _to_document(drawing: Drawing) -> dict[str, Any]:
    """Return the fields of a drawing as plain values, without those that are optional and have their defaults."""
    document = {}
    for field in fields(drawing):
        value = getattr(drawing, field.name)
        if field.name in ResultSpec.__required_keys__ or value != field.default:
            document[field.name] = _as_lists(value)
    return document


def _from_document(spec: ResultSpec) -> Drawing:
    """Return the drawing whose fields a document holds."""
    values: Mapping[str, Any] = spec
    names = [field.name for field in fields(Drawing) if field.name in values]
    return Drawing(**{name: _as_tuples(values[name]) for name in names})


def _as_lists(value: Any) -> Any:
    """Return a value with lists instead of tuples, on all levels."""
    return list(map(_as_lists, value)) if isinstance(value, tuple) else value


def _as_tuples(value: Any) -> Any:
    """Return a value with tuples instead of lists, on all levels."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _axis_names(
    drawing: Drawing, shape: Sequence[int], controls: Mapping[str, Control]
) -> tuple[str | tuple[str, ...], str | tuple[str, ...]]:
    """Return the labels of rows and columns, or the names of the controls that provide them.

    Without labels, the rows of grids and bars take those of the only control that has the same number of labels. So do
    the columns of a square grid with more than two columns.
    """
    rows, columns = drawing.rows, drawing.columns
    if rows or drawing.top or drawing.kind not in ("grid", "bars") or not shape:
        return rows, columns
    count = shape[-1] if drawing.kind == "bars" else shape[-2]
    labels = {name: control.labels(control.start) for name, control in controls.items()}
    fitting = [name for name, (down, across) in labels.items() if down == across and len(down) == count > 1]
    if len(fitting) != 1:
        return rows, columns
    square = drawing.kind == "grid" and shape[-1] == count > 2
    return fitting[0], columns or (fitting[0] if square else columns)


def _check_values(name: str, values: Tensor) -> None:
    if values.is_complex() or not values.numel():
        found = "complex numbers" if values.is_complex() else f"the shape {list(values.shape)}"
        raise ValueError(f"{name} has {found}; a picture needs real numbers, at least one")
    if values.numel() > MAX_NUMBERS:
        raise ValueError(f"{name} has {values.numel():,} numbers, and a picture has room for {MAX_NUMBERS:,}")


def _default_drawing(name: str, values: Tensor) -> Drawing:
    axes = squeeze_leading(values, (0, 1, 2, 3)).dim()
    if axes not in DEFAULT_KINDS:
        raise ValueError(f"{name} has the shape {list(values.shape)}: return a part of it, of 3 axes at most")
    return Drawing(DEFAULT_KINDS[axes])


def _check_shape(name: str, values: Tensor, drawing: Drawing, shape: Sequence[int]) -> None:
    kind = drawing.kind
    pairs = kind not in ("arrows", "dots") or tuple(shape[-1:]) == (2,)
    square = kind != "graph" or (len(shape) == 2 and shape[0] == shape[1])
    if len(shape) not in AXIS_COUNTS[kind] or not pairs or not square:
        raise ValueError(f"{name} has the shape {list(values.shape)}; {kind} draws {SHAPE_DESCRIPTIONS[kind]}")
    if len(shape) == 3 and shape[0] > MAX_GRIDS:
        raise ValueError(f"{name} would be {shape[0]} grids, and a picture has room for {MAX_GRIDS}: return fewer")


def _check_controls(name: str, drawing: Drawing, controls: Mapping[str, Control]) -> None:
    """Raise LookupError if a control that should provide labels or positions has none, or does not exist."""

    def has(control: Control, side: str) -> bool:
        return isinstance(control, Points) if side == "positions" else bool(control.labels(control.start)[0])

    for side, what in LABEL_SOURCES.items():
        source = getattr(drawing, side)
        if isinstance(source, str) and (source not in controls or not has(controls[source], side)):
            able = ", ".join(other for other, control in controls.items() if has(control, side)) or "none"
            raise LookupError(f"{side} of {name} is {source!r}; the controls that have {what}: {able}")


def _check_labels(name: str, drawing: Drawing, shape: Sequence[int]) -> None:
    """Raise ValueError if a list of labels or positions does not have the length of its axis."""
    single = not shape or (drawing.kind == "lines" and len(shape) == 1)
    rows = 1 if single else shape[-2 if drawing.kind == "grid" else 0]
    counts = {"rows": rows, "columns": shape[-1] if shape else 1, "positions": rows}
    for side, what in LABEL_SOURCES.items():
        labels = getattr(drawing, side)
        if not isinstance(labels, str) and labels and len(labels) != counts[side]:
            many = "nodes" if side == "positions" else side
            raise ValueError(f"{side} of {name} has {len(labels)} {what}, for {counts[side]} {many}")
    if drawing.expected and len(drawing.expected) != rows:
        raise ValueError(f"expected of {name} has {len(drawing.expected)} signs, for {rows} bars")


def squeeze_leading(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Remove leading axes of size 1, such as the batch axis, while there are more axes than one drawing needs."""
    while values.dim() > min(max(axes), 2) and values.shape[0] == 1:
        values = values[0]
    return values


def static_figure(
    function: BoundFunction, title: str, panels: list[ResultSpec], results: Mapping[str, Tensor],
    values: Mapping[str, Any], note: str = "",
) -> StaticFigure:  # fmt: skip
    """Return the static picture for these values of the controls."""
    line = [f"{name.replace('_', ' ')} = {control.text(values[name])}" for name, control in function.controls.items()]
    scales = _scales(panels, results)
    drawn = [panel for spec in panels for panel in _panels(spec, scales[spec["result"]], function, results, values)]
    return interaction(title, line, drawn, note)


def _scales(panels: list[ResultSpec], results: Mapping[str, Tensor]) -> dict[str, Scale]:
    """Return the scale of each result; results that share a scale take the largest limit among them."""
    own = {}
    for spec in panels:
        tensor = squeeze_leading(results[spec["result"]], AXIS_COUNTS[spec["kind"]])
        own[spec["result"]] = result_scale(spec["kind"], tensor, spec["scale"], spec["limit"], spec["min_limit"])
    groups: dict[str, list[Scale]] = {}
    for spec in panels:
        groups.setdefault(spec.get("shared", spec["result"]), []).append(own[spec["result"]])
    shared = {}
    for name, scales in groups.items():
        diverging = next((scale.kind for scale in scales if scale.rule.diverging), scales[0].kind)
        shared[name] = Scale(diverging, max(scale.limit for scale in scales))
    return {spec["result"]: shared[spec.get("shared", spec["result"])] for spec in panels}


def _panels(
    spec: ResultSpec,
    scale: Scale,
    function: BoundFunction,
    results: Mapping[str, Tensor],
    values: Mapping[str, Any],
) -> list[ResultPanel]:
    """Return one panel for a result; if the result has three axes, one for each index of the first."""

    drawing = _from_document(spec)

    def labels(source: str | tuple[str, ...], side: int) -> Sequence[str]:
        return function.controls[source].labels(values[source])[side] if isinstance(source, str) else source

    tensor = squeeze_leading(results[spec["result"]], AXIS_COUNTS[drawing.kind]).detach().cpu()
    rows, columns = labels(drawing.rows, 0), labels(drawing.columns, 1)
    if drawing.top:
        tensor, rows = _largest(tensor, rows, drawing.top)
    positions = drawing.positions
    current = replace(
        drawing,
        rows=tuple(rows),
        columns=tuple(columns),
        positions=_as_tuples(values[positions]) if isinstance(positions, str) else positions,
    )
    if tensor.dim() < 3:
        return [ResultPanel(current, tensor, scale)]
    return [
        ResultPanel(replace(current, title=f"{drawing.title} {index}".strip()), table, scale)
        for index, table in enumerate(tensor)
    ]


def _largest(values: Tensor, rows: Sequence[str], top: int) -> tuple[Tensor, list[str]]:
    """Return the `top` largest values in descending order, with their labels; NaN comes last."""
    order = values.float().nan_to_num(nan=-math.inf).argsort(descending=True, stable=True)[:top]
    return values[order], [rows[i] if len(rows) == len(values) else str(i) for i in order.tolist()]
