"""The instrument `interact`: a function with controls for its arguments, whose results are redrawn without a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tfviz.portable.program import serialize_programs
from tfviz.schema import describe
from tfviz.view.documents.interact import ResultSpec
from tfviz.view.draw import AXIS_COUNTS
from tfviz.view.instrument.bound_function import REMEDY, BoundFunction
from tfviz.view.instrument.results import instrument_document, result_specs, squeeze_leading, static_figure
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.result_spec import Drawing
from tfviz.view.studio.build import examples_spec

if TYPE_CHECKING:
    from tfviz.view.instrument.widget import FunctionWidget

MAX_WEIGHT_BYTES = 24e6  # of all weights of one view in a page


def interact(
    function: Callable[..., Any],
    /,
    *,
    title: str = "",
    draw: Mapping[str, Drawing] | None = None,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
    **controls: Any,
) -> View | FunctionWidget:
    """Bind controls to a function's arguments and draw its results, in a notebook or a page, without a kernel.

    The function is exported by `torch.export` and embedded in the page. It returns a tensor, or several in a tuple or a
    dictionary. Arguments without a control keep their defaults. The first sentence of its docstring is shown above the
    controls as an instruction; without a docstring, the text after a colon or question mark in the title is shown
    there. Below the title, a sentence states what the results show; see `sentence` in `view.draw`.

    Args:
        function: the function to call.
        title: heading of the view; by default the function's name.
        draw: name of a result -> its drawing: `view.draw.grid(...)`, `bars`, `stack`, `lines`, `arrows`, `dots`,
            `words`, `graph` or `number`. By default, the number of axes decides: a number, bars, a grid, several grids.
        kernel: compute in Python while the notebook's kernel runs, for functions that cannot be exported. Needs
            anywidget.
        examples: experiments shown as buttons above the view: name -> the values of some controls, in the form that the
            page uses.
        controls: the control of each argument. `(low, high[, step])` of floats is a slider that passes a scalar tensor.
            `(low, high[, step])` of integers is a slider, `[...]` and `{name: value}` are menus, `True` and `False` are
            switches; these pass Python values. Each combination of these values is a separate program; 24 are allowed.
            A single number becomes a slider around it. Other controls are `view.controls.points`, `cells`, `text`,
            `order` and `angle`.

    Raises:
        TypeError: a control is invalid, or has no argument; an argument has neither a control nor a default.
        ValueError: the function cannot be exported (the message gives the reason), its weights are over 24 MB, or a
            result cannot be drawn as specified in `draw`.
        LookupError: `draw` names a result or a control that does not exist.
        Exception: the function raises an exception for the initial values of the controls.
    """
    bound = BoundFunction(function, controls)
    title = title or bound.name
    proposed = examples_spec(examples, bound.controls)
    if kernel:
        from tfviz.view.instrument.widget import FunctionWidget

        return FunctionWidget(bound, title, dict(draw or {}), proposed)
    try:
        bound.call(bound.start)  # before the export, so that the function's own errors have their plain traceback
    except Exception as error:
        starts = ", ".join(f"{name} {_start_text(value)}" for name, value in bound.start.items())
        error.add_note(f"{bound.name} was called with what its controls begin with: {starts}")
        raise
    programs = bound.programs()
    documents, data = serialize_programs(programs)
    if len(data) > MAX_WEIGHT_BYTES:
        raise ValueError(
            f"{bound.name} has {len(data):,} bytes of weights, and a page has room for "
            f"{MAX_WEIGHT_BYTES:,.0f}: {REMEDY}"
        )
    every = {key: program(*bound.inputs(bound.start)) for key, program in programs.items()}
    first = every[bound.key(bound.start)]
    panels = result_specs(first, dict(draw or {}), bound.controls)
    for other in every.values():
        _check_same_axes(first, other, panels)
    blobs = BlobStore()
    document = instrument_document(bound, title, panels)
    document["examples"] = proposed
    document |= {"programs": documents, "data": blobs.add(data)}
    return View(static_figure(bound, title, panels, first, bound.start), document, blobs.data)


def _start_text(value: Any) -> str:
    return f"{list(value.shape)}" if isinstance(value, Tensor) else describe(value)


def _check_same_axes(first: Mapping[str, Tensor], other: Mapping[str, Tensor], panels: list[ResultSpec]) -> None:
    """Raise ValueError unless two programs return results with the same names and numbers of axes."""
    if list(first) != list(other):
        raise ValueError(f"the function returns {', '.join(first)}, and for other choices {', '.join(other)}")
    for panel in panels:
        name = panel["result"]
        axes = AXIS_COUNTS[panel["kind"]]
        if squeeze_leading(other[name], axes).dim() != squeeze_leading(first[name], axes).dim():
            raise ValueError(
                f"{name} has the shape {list(first[name].shape)}, and for other choices {list(other[name].shape)}: "
                "a picture needs the same number of axes for all choices"
            )
