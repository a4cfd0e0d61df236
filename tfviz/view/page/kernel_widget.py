"""The base class of views with a kernel, which answer requests of their page and can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfviz.extras import extra
from tfviz.view.figures.palette import shorten
from tfviz.view.page.html import View

with extra("lessons"):
    import anywidget
    import traitlets

MAX_ERROR_LENGTH = 300  # characters of an error in a page


class KernelWidget(anywidget.AnyWidget):
    """A widget whose page sends requests that Python answers; subclasses implement `view` and `_reply`."""

    document = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self.on_msg(self._on_message)

    def view(self) -> View:
        """Return the current view without a kernel, to be saved or embedded in a page.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError

    def _reply(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a request, and its bytes."""
        raise NotImplementedError

    def _on_message(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer a request, which may have any content, or send the view as a page if it asks for that."""
        request = message if isinstance(message, dict) else {}
        reply: dict[str, Any] = {"id": request.get("id")}
        try:
            answer, pieces = ({}, [self.view().page().encode()]) if request.get("page") else self._reply(request)
        except Exception as error:  # errors of the user's model are shown in the page
            self.send({**reply, "error": shorten(f"{type(error).__name__}: {error}", MAX_ERROR_LENGTH)})
        else:
            self.send({**reply, **answer}, pieces)

    def save(self, path: str | Path) -> Path:
        """Write the current view as `x.html`, `x.png` or `x.svg`; see `view`."""
        return self.view().save(path)

    def _static(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the static form of the widget, for notebooks without a kernel."""
        return self.view()._repr_mimebundle_()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        static, sizes = self._static()
        return {**data, **static}, {**metadata, **sizes}
