"""The widget of `view.patch(kernel=True)`: activation patching with the model in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.study.inputs import Inputs
from tfviz.view.documents.studios import PatchDocument
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.bundle import BUNDLES
from tfviz.view.studio.local_program import LocalProgram
from tfviz.view.studio.patching_program import TABLES, PatchSites, patched_logits
from tfviz.view.studio.requirements import text_axes
from tfviz.view.studio.widget import ModelWidget, Request

# from the clean text, the ids of the answers, and the logits of each run by name
DrawLogits = Callable[[str, Sequence[int], Mapping[str, Tensor]], StaticFigure]


class PatchWidget(ModelWidget):
    """A widget whose language model is patched in Python at the page's request; see `view.patch(kernel=True)`.

    `state` is a trait that Python may read, set and observe: `clean`, `corrupt`, `clean_answer_id` and
    `corrupt_answer_id` (-1 for the likeliest next token), `target` (what is patched: "residual" or "heads", the layer,
    and the position or head; [] for nothing).

    Args:
        ids: the ids of the clean and the corrupt text, [position] each.
        draw: draws the likeliest next tokens of each run.

    Attributes:
        logits: after the last token of each text, [vocab].
    """

    _esm = BUNDLES / "patching-widget.js"

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        document: PatchDocument,
        sites: PatchSites,
        ids: Sequence[Tensor],
        draw: DrawLogits,
    ):
        self._draw = draw

        def read(ids: Tensor) -> dict[str, Tensor]:
            logits = Inputs.from_prompt("ids", ids, model).with_last_logits(model).logits(model)
            return {"logits": logits[0, -1].float()}

        def patch(texts: Tensor, target: Tensor) -> dict[str, Tensor]:
            table, layer, at = target.tolist()
            return {"logits": patched_logits(model, sites, texts, (TABLES[table], layer, at)).float()}

        index_limit = max(len(TABLES), len(sites.blocks), len(sites.projections), sites.heads, document["context"])
        programs = {
            "read": LocalProgram(model, read, {"ids": len(tokenizer)}),
            "patch": LocalProgram(model, patch, {"texts": len(tokenizer), "target": index_limit}),
        }
        self.logits = [programs["read"](one[None])["logits"] for one in ids]
        super().__init__(
            programs, document, {"read": [ids[1][None]]}, self._draw_shown, text_axes(tokenizer), [tokenizer]
        )

    def _texts(self) -> Tensor | None:
        """Return the ids of both texts, [2, position]; None if they differ in length, or are empty or too long."""
        clean, corrupt = (self._tokenizers[0].encode(self.state[name]) for name in ("clean", "corrupt"))
        is_readable = len(clean) == len(corrupt) and 0 < len(clean) <= self.document["context"]
        return torch.stack([clean, corrupt]) if is_readable else None

    def _shown(self) -> Request:
        texts = self._texts()
        return self._last if texts is None else Request("read", [texts[1:]])

    def _draw_shown(self, request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
        """Draw the next tokens of both runs, and of the patched one if there is a patch."""
        texts, logits = self._texts(), {"corrupt": outputs["logits"]}
        if texts is not None:
            logits = {"clean": self._programs["read"](texts[:1])["logits"], **logits}
            if self.state["target"]:
                table, layer, at = self.state["target"]
                target = torch.tensor([TABLES.index(table), layer, at])
                logits["patched"] = self._programs["patch"](texts, target)["logits"]
        return self._draw(self.state["clean"], [self.state["clean_answer_id"], self.state["corrupt_answer_id"]], logits)
