"""The same instrument with a kernel behind it: Python computes what is asked, for functions that cannot travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import traitlets
from torch import Tensor

from tfviz.view.page.answering import Answering
from tfviz.view.page.asked import Asked
from tfviz.view.page.bundle import STATIC
from tfviz.view.page.html import View
from tfviz.view.page.pieces import Packed
from tfviz.view.page.shown import described_panels, described_view, still
from tfviz.view.still.draw import Drawing
from tfviz.view.still.picture import cut

LEFT = "Still: this was computed by Python, which is not here any more. It shows the last state."


class Asking(Answering):
    """A function in a notebook whose arguments are moved there and computed here.

    `values` is a trait: what the controls stand at, by argument, which Python may read, set and observe.

    Args:
        asked: the function and its controls.
        draw: as `view.interact` takes it.

    Raises:
        ValueError, LookupError: as `view.interact`.
    """

    _esm = STATIC / "interact-widget.js"
    values = traitlets.Dict().tag(sync=True)

    def __init__(self, asked: Asked, title: str, draw: Mapping[str, Drawing]):
        self._asked, self._title = asked, title
        self._panels = described_panels(asked.call(asked.start), draw, asked.controls)
        super().__init__(described=described_view(asked, title, self._panels), values=asked.start)

    @traitlets.validate("values")
    def _fitting(self, proposal: Any) -> dict[str, Any]:
        """Refuse values for which the controls have no place, by Python or by a page."""
        values = proposal["value"]
        if set(values) != set(self._asked.controls):
            raise traitlets.TraitError(
                f"values has {', '.join(values)}; the controls are {', '.join(self._asked.controls)}"
            )
        for name, control in self._asked.controls.items():
            try:
                control.given(values[name])
            except (ValueError, TypeError, IndexError, RuntimeError) as error:
                raise traitlets.TraitError(f"{name} cannot be {cut(repr(values[name]), 60)}: {error}") from None
        return values

    def _told(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """The results for a page's values."""
        told, packed = packed_results(self._asked.call(question["values"]))
        return {"results": told}, [packed.data]

    def view(self) -> View:
        """What it shows now, without a kernel: to save, or to leave in a page."""
        shown = self._asked.call(self.values)
        told, packed = packed_results(shown)
        described = described_view(self._asked, self._title, self._panels)
        described |= {"kind": "interact-left", "note": LEFT, "answer": told, "state": {"values": self.values}}
        picture = still(self._asked, self._title, self._panels, shown, self.values, LEFT)
        return View(picture, described, packed.data)

    def __repr__(self) -> str:
        return f"{self._title}, answered by the kernel: {', '.join(self._asked.controls)}"


def packed_results(results: Mapping[str, Tensor]) -> tuple[dict[str, Any], Packed]:
    """Results as a page takes them: name -> shape, dtype and place, and their bytes.

    Raises:
        ValueError: a whole number needs more than 32 bits.
    """
    packed, told = Packed(), {}
    for name, tensor in results.items():
        tensor = tensor.detach().cpu()
        if tensor.dtype == torch.bool:
            kind, kept = "bool", tensor.to(torch.uint8)
        elif tensor.is_floating_point():
            kind, kept = "float32", tensor.float()
        else:
            kind, kept = "int64", tensor.int()
            if not torch.equal(kept.long(), tensor.long()):
                raise ValueError(f"{name} holds whole numbers past 32 bits, which a page does not show; return floats")
        told[name] = {"shape": list(tensor.shape), "dtype": kind, "at": packed.add(kept.contiguous().numpy().tobytes())}
    return told, packed
