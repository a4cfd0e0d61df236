"""What all studios share: a model that travels in the page, and what else is told there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfviz.portable.program import Program, pack
from tfviz.view.page.alive import STATE
from tfviz.view.page.html import View
from tfviz.view.still.picture import Picture


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
