"""The two forms of a studio: a view whose model travels in the page, and a widget whose model stays in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tfviz.portable.program import Program, pack
from tfviz.view.page.blobs import BASE64
from tfviz.view.page.heads import STATE
from tfviz.view.page.html import View
from tfviz.view.still.picture import Picture

if TYPE_CHECKING:
    from tfviz.view.studio.program import LocalProgram
    from tfviz.view.studio.widget import AxisWords, DrawStatic, ModelWidget


def studio_document(
    kind: str, title: str, programs: Mapping[str, Any], more: Mapping[str, Any], state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what every studio tells its page.

    Args:
        programs: as the page takes them, by name; none where the kernel has them all.
        more: what this kind of studio adds.
    """
    document: dict[str, Any] = {"kind": kind, "title": title, "parts": [], "masks": [], "note": ""}
    document |= {"programs": programs} if programs else {}
    return {**document, **more, "state": {**STATE, "off": [], **state}}


def studio_view(
    kind: str,
    title: str,
    picture: Picture,
    programs: Mapping[str, Program],
    state: Mapping[str, Any],
    more: Mapping[str, Any],
    budget: float,
) -> View:
    """Return the view of a studio whose model travels in the page.

    Raises:
        ValueError: the model is past the budget.
    """
    packed, data = pack(programs)
    takes = len(data) * BASE64
    if takes > budget:
        raise ValueError(
            f"the model takes {takes:,.0f} bytes in a page, the budget is {budget:,.0f}: keep its weights as "
            'weights="int8", give a larger budget, or look at maps of it with view.live, which leaves the model here'
        )
    return View(picture, studio_document(kind, title, packed, more, state), data)


def studio_widget(
    kind: str,
    title: str,
    programs: Mapping[str, LocalProgram],
    first: Mapping[str, Sequence[Tensor]],
    state: Mapping[str, Any],
    more: Mapping[str, Any],
    draw_static: DrawStatic,
    axis_words: AxisWords,
    vocabs: Sequence[Any],
) -> ModelWidget:
    """Return the widget of a studio whose model stays in Python; arguments as of `ModelWidget`."""
    from tfviz.view.studio.widget import ModelWidget

    nodes = {name: [{"pattern": site} for site in programs[name].run(inputs)[1]] for name, inputs in first.items()}
    packed = {name: {"nodes": sites} for name, sites in nodes.items()}
    document = studio_document(kind, title, packed, more, state)
    return ModelWidget(programs, document, first, draw_static, axis_words, vocabs)
