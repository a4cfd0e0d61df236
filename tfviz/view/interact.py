"""`interact`: a function's arguments bound to controls, and what it returns drawn as they move, with no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tfviz.doors import what
from tfviz.portable.program import pack
from tfviz.view.page.asked import Asked
from tfviz.view.page.html import View
from tfviz.view.page.pieces import Packed
from tfviz.view.page.shown import described_panels, described_view, still, stripped
from tfviz.view.still.draw import AXES, Drawing

if TYPE_CHECKING:
    from tfviz.view.page.asking import Asking


def interact(
    function: Callable[..., Any],
    /,
    *,
    title: str = "",
    draw: Mapping[str, Drawing] | None = None,
    kernel: bool = False,
    **controls: Any,
) -> View | Asking:
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
    try:
        asked.call(asked.start)  # what is wrong with the function itself is told as Python tells it
    except Exception as error:
        begun = ", ".join(f"{name} {_said(one)}" for name, one in asked.start.items())
        error.add_note(f"{asked.name} was called with what its controls begin with: {begun}")
        raise
    programs = asked.programs()
    made = {key: program(*asked.inputs(asked.start)) for key, program in programs.items()}
    shown = made[asked.key(asked.start)]
    panels = described_panels(shown, dict(draw or {}), asked.controls)
    for other in made.values():
        _alike(shown, other, panels)
    packed, (plain, data) = Packed(), pack(programs)
    described = described_view(asked, title or asked.name, panels) | {"programs": plain, "data": packed.add(data)}
    return View(still(asked, title or asked.name, panels, shown, asked.start), described, packed.data)


def _said(value: Any) -> str:
    return f"{list(value.shape)}" if isinstance(value, Tensor) else what(value)


def _alike(shown: Mapping[str, Tensor], other: Mapping[str, Tensor], panels: list[dict[str, Any]]) -> None:
    """Whatever is chosen, the same results are there, and of as many axes."""
    if list(shown) != list(other):
        raise ValueError(f"the function returns {', '.join(shown)}, and for other choices {', '.join(other)}")
    for panel in panels:
        name = panel["output"]
        axes = AXES[panel["kind"]]
        if stripped(other[name], axes).dim() != stripped(shown[name], axes).dim():
            raise ValueError(
                f"{name} has the shape {list(shown[name].shape)}, and for other choices {list(other[name].shape)}: "
                "a picture needs as many axes, whatever is chosen"
            )
