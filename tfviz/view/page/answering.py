"""What views with a kernel behind them share: they answer their page, save what they show, and leave it in the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from tfviz.view.page.html import View
from tfviz.view.still.picture import cut

SAID = 300  # characters of an error in a page


class Answering(anywidget.AnyWidget):
    """A widget whose page asks and whose Python answers: `view` and `_told` say with what."""

    described = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self.on_msg(self._answer)

    def view(self) -> View:
        """What is shown now, without a kernel: to save, or to leave in a page."""
        raise NotImplementedError

    def _told(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """What is said to a question, and its bytes."""
        raise NotImplementedError

    def _answer(self, _: Any, question: Any, buffers: Any) -> None:
        """Answer what a page asks, which may be anything; the whole as a page, where it asks for that."""
        question = question if isinstance(question, dict) else {}
        answer: dict[str, Any] = {"id": question.get("id")}
        try:
            told, pieces = ({}, [self.view().page().encode()]) if question.get("page") else self._told(question)
        except Exception as error:  # whatever the reader's model raises is told where it was asked
            self.send({**answer, "error": cut(f"{type(error).__name__}: {error}", SAID)})
        else:
            self.send({**answer, **told}, pieces)

    def save(self, path: str | Path) -> Path:
        """What is shown now as `x.html`, `x.png` or `x.svg`; see `view`."""
        return self.view().save(path)

    def _left(self) -> tuple[dict[str, str], dict[str, Any]]:
        """What stands beside the widget, for where there is none."""
        return self.view()._repr_mimebundle_()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        left, sizes = self._left()
        return {**data, **left}, {**metadata, **sizes}
