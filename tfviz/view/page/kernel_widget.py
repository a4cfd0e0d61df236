"""The base class of widgets with a kernel, which answer requests of their page and can be saved as views."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfviz.extras import extra
from tfviz.view.figures.formatting import shorten
from tfviz.view.page.html import View

with extra("lessons"):
    import anywidget
    import traitlets

MAX_ERROR_LENGTH = 300  # characters of an error in a page


class KernelWidget(anywidget.AnyWidget):
    """A widget whose page sends requests to Python; subclasses implement `view` and `_reply`."""

    document = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self.on_msg(self._on_message)

    def view(self) -> View:
        """Return the current state as a view that needs no kernel, to be saved or embedded in a page.

        Raises:
            NotImplementedError: the subclass does not implement this method.
        """
        raise NotImplementedError

    def _reply(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a request, as plain values and binary buffers."""
        raise NotImplementedError

    def _on_message(self, _: Any, message: Any, buffers: Any) -> None:
        """Send the answer to a message of the page; if its `page` is true, send the view as a standalone page.

        The message may have any content. An exception is sent to the page as text.
        """
        request = message if isinstance(message, dict) else {}
        reply: dict[str, Any] = {"id": request.get("id")}
        try:
            answer, pieces = ({}, [self.view().page().encode()]) if request.get("page") else self._reply(request)
        except Exception as error:  # errors of the user's model are shown in the page
            self.send({**reply, "error": shorten(f"{type(error).__name__}: {error}", MAX_ERROR_LENGTH)})
        else:
            self.send({**reply, **answer}, pieces)

    def save(self, path: str | Path) -> Path:
        """Save the current view as `.html`, `.png` or `.svg`, by the suffix of `path`; see `view`."""
        return self.view().save(path)

    def _static(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the MIME bundle, (data, metadata), shown in notebooks without a kernel."""
        return self.view()._repr_mimebundle_()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        static, sizes = self._static()
        return {**data, **static}, {**metadata, **sizes}
