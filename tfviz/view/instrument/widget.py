"""`view.interact` with a kernel: Python computes functions that cannot be exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from tfviz.extras import extra
from tfviz.view.documents.interact import StoredResult
from tfviz.view.figures.formatting import shorten
from tfviz.view.instrument.bound_function import BoundFunction
from tfviz.view.instrument.results import instrument_document, result_specs, static_figure
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.bundle import BUNDLES
from tfviz.view.page.html import View
from tfviz.view.page.kernel_widget import KernelWidget
from tfviz.view.result_spec import Drawing

with extra("lessons"):
    import traitlets

NOTE_STATIC = "Static: Python computed this, and its kernel has ended. The last state is shown."


class FunctionWidget(KernelWidget):
    """A widget whose function is computed in Python, with arguments set by controls in the page.

    `values` is a trait that Python may read, set and observe. It holds the current value of each control, by argument.

    Args:
        function: the function with its controls.
        title: heading of the view.
        draw: how results are drawn, as for `view.interact`.
        examples: experiments shown as buttons above the view, as a document has them.

    Raises:
        ValueError, LookupError: as for `view.interact`.
    """

    _esm = BUNDLES / "interact-widget.js"
    values = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        function: BoundFunction,
        title: str,
        draw: Mapping[str, Drawing],
        examples: Sequence[list[Any]] = (),
    ):
        self._function, self._title = function, title
        self._panels = result_specs(function.call(function.start), draw, function.controls)
        document = instrument_document(function, title, self._panels)
        document["examples"] = list(examples)
        super().__init__(document=document, values=function.start)

    @traitlets.validate("values")
    def _check_values(self, proposal: Any) -> dict[str, Any]:
        """Return values set by Python or by the page; raise `TraitError` if they do not fit the controls."""
        values = proposal["value"]
        controls = self._function.controls
        if set(values) != set(controls):
            raise traitlets.TraitError(f"values has {', '.join(values)}; the controls are {', '.join(controls)}")
        for name, control in controls.items():
            try:
                control.argument(values[name])
            except (ValueError, TypeError, IndexError, RuntimeError) as error:
                raise traitlets.TraitError(f"{name} cannot be {shorten(repr(values[name]), 60)}: {error}") from None
        return values

    def _reply(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the results for values from the page."""
        results, blobs = pack_results(self._function.call(request["values"]))
        return {"results": results}, [blobs.data]

    def view(self) -> View:
        """Return the current state as a view that needs no kernel, to be saved or embedded in a page."""
        results = self._function.call(self.values)
        packed, blobs = pack_results(results)
        document = instrument_document(self._function, self._title, self._panels)
        document |= {"kind": "interact-snapshot", "note": NOTE_STATIC, "results": packed}
        document["state"]["values"] = self.values
        static = static_figure(self._function, self._title, self._panels, results, self.values, NOTE_STATIC)
        return View(static, document, blobs.data)

    def __repr__(self) -> str:
        return f"{self._title}, answered by the kernel: {', '.join(self._function.controls)}"


def pack_results(results: Mapping[str, Tensor]) -> tuple[dict[str, StoredResult], BlobStore]:
    """Return the description of each result by name (shape, dtype and byte range), and the bytes of all results.

    Raises:
        ValueError: an integer needs more than 32 bits.
    """
    blobs, packed = BlobStore(), dict[str, StoredResult]()
    for name, tensor in results.items():
        tensor = tensor.detach().cpu()
        kind: Literal["float32", "int64", "bool"]
        if tensor.dtype == torch.bool:
            kind, stored = "bool", tensor.to(torch.uint8)
        elif tensor.is_floating_point():
            kind, stored = "float32", tensor.float()
        else:
            kind, stored = "int64", tensor.int()
            if not torch.equal(stored.long(), tensor.long()):
                raise ValueError(f"{name} holds integers past 32 bits, which a page does not show; return floats")
        byte_range = blobs.add(stored.contiguous().numpy().tobytes())
        packed[name] = {"shape": list(tensor.shape), "dtype": kind, "byte_range": byte_range}
    return packed, blobs
