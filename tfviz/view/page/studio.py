"""What all studios share: a model that travels in the page or is asked where it is, and what else is told there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tfviz.portable.program import Program, pack
from tfviz.view.page.alive import STATE
from tfviz.view.page.html import View
from tfviz.view.still.picture import Picture

if TYPE_CHECKING:
    from tfviz.view.page.here import Here
    from tfviz.view.page.questioned import Draws, Questioned, Words


def studio(
    kind: str,
    title: str,
    picture: Picture,
    programs: Mapping[str, Program],
    state: Mapping[str, Any],
    more: Mapping[str, Any],
    budget: float,
) -> View:
    """The view of a model and what else its studio needs.

    Raises:
        ValueError: the model is past the budget.
    """
    described, data = pack(programs)
    takes = len(data) * 4 / 3  # as base64
    if takes > budget:
        raise ValueError(
            f"the model takes {takes:,.0f} bytes in a page, the budget is {budget:,.0f}: keep its weights as "
            'weights="int8", give a larger budget, or look at maps of it with view.live, which leaves the model here'
        )
    told = {"kind": kind, "title": title, "parts": [], "masks": [], "note": "", "programs": described}
    return View(picture, {**told, **more, "state": {**STATE, "off": [], **state}}, data)


def answered(
    kind: str,
    title: str,
    programs: Mapping[str, Here],
    first: Mapping[str, Sequence[Tensor]],
    state: Mapping[str, Any],
    more: Mapping[str, Any],
    draws: Draws,
    words: Words,
    vocabs: Sequence[Any],
) -> Questioned:
    """The same studio, whose model stays in Python: as `Questioned` takes it.

    Args:
        first: what each program is given first; the last of them is what is shown.
    """
    from tfviz.view.page.questioned import Questioned

    sites = {name: [{"pattern": site} for site in programs[name].run(given)[1]] for name, given in first.items()}
    told: dict[str, Any] = {"kind": kind, "title": title, "parts": [], "masks": [], "note": ""}
    told |= {"programs": {name: {"nodes": nodes} for name, nodes in sites.items()}, **more}
    told["state"] = {**STATE, "off": [], **state}
    return Questioned(programs, told, first, draws, words, vocabs)
