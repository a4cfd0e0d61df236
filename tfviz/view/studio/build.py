"""Build both forms of a studio: a view with the model in the page, and a widget with the model in Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tfviz.portable.program import Program, serialize_programs
from tfviz.view.documents.studio_base import StudioState
from tfviz.view.documents.studios import StudioDocument
from tfviz.view.figures.bar_chart import bar_table
from tfviz.view.figures.formatting import shorten
from tfviz.view.figures.static_figure import StaticFigure, subtitled
from tfviz.view.page.blobs import BASE64_RATIO
from tfviz.view.page.heads import HEADS_STATE
from tfviz.view.page.html import View

if TYPE_CHECKING:
    from tfviz.view.studio.local_program import LocalProgram
    from tfviz.view.studio.widget import AxisTokens, DrawStatic, ModelWidget

STUDIO_STATE: StudioState = {**HEADS_STATE, "ablated_heads": [], "head_map_open": False, "head_importance": False}


def examples_spec(examples: Mapping[str, Mapping[str, Any]] | None, state: Collection[str]) -> list[list[Any]]:
    """Return the author's examples as plain values for a document: [[name, the state that it sets], ...].

    Raises:
        ValueError: an example sets a key that the state of this view does not have.
    """
    for name, changes in (examples or {}).items():
        if unknown := [key for key in changes if key not in state]:
            raise ValueError(f"examples[{name!r}] sets {', '.join(unknown)}; it can set {', '.join(sorted(state))}")
    return [[name, dict(changes)] for name, changes in (examples or {}).items()]


def probability_picture(
    names: Sequence[str], probabilities: Mapping[str, Tensor], title: str, text: str, where: str = ""
) -> StaticFigure:
    """Draw probabilities as bars, under a title that quotes the text.

    Args:
        names: the tokens or labels.
        probabilities: name of a series -> a probability for each name, [name].
        title: the title.
        text: the input text of the model.
        where: words before the quoted text, such as "in place of 'cat' in ".
    """
    return bar_table(names, probabilities, text_heading(title, text, where), limit=1.0)


def text_heading(title: str, text: str, where: str = "") -> str:
    """Return a title with the text, quoted and shortened, as its subtitle."""
    return subtitled(title, f"{where}{shorten(text, 40)!r}")


def studio_view(
    document: StudioDocument, static_figure: StaticFigure, programs: Mapping[str, Program], max_bytes: float | None
) -> View:
    """Return the view of a studio whose model is embedded in the page.

    Raises:
        ValueError: the model exceeds `max_bytes`.
    """
    document["programs"], data = serialize_programs(programs)
    takes = len(data) * BASE64_RATIO
    if max_bytes is not None and takes > max_bytes:
        raise ValueError(
            f"the model takes {takes:,.0f} bytes in a page, max_bytes is {max_bytes:,.0f}: keep its weights as "
            'dtype="int8", give max_bytes=None for a page that large, or look at maps of it with view.live, which '
            "leaves the model here"
        )
    return View(static_figure, document, data)


def studio_widget(
    document: StudioDocument,
    programs: Mapping[str, LocalProgram],
    first: Mapping[str, Sequence[Tensor]],
    draw_static: DrawStatic,
    axis_tokens: AxisTokens,
    tokenizers: Sequence[Any],
) -> ModelWidget:
    """Return the widget of a studio whose model stays in Python; arguments as for `ModelWidget`."""
    from tfviz.view.studio.widget import ModelWidget

    nodes = {name: [{"site": site} for site in programs[name].run(inputs)[1]] for name, inputs in first.items()}
    document["programs"] = {name: {"nodes": sites} for name, sites in nodes.items()}
    return ModelWidget(programs, document, first, draw_static, axis_tokens, tokenizers)
