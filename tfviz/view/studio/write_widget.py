"""The widget of `view.write(kernel=True)`: a language model in Python, whose text Python can read and set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.logits import extract_logits
from tfviz.view.documents.studios import WriteDocument
from tfviz.view.figures.formatting import shorten
from tfviz.view.figures.generation import next_tokens
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.studio.local_program import LocalProgram
from tfviz.view.studio.requirements import text_axes
from tfviz.view.studio.static_studio import predict_next
from tfviz.view.studio.widget import ModelWidget, Request


class WriteWidget(ModelWidget):
    """A widget whose language model runs in Python at the page's request; see `view.write(kernel=True)`.

    `state` is a trait that Python may read, set and observe: `prompt`, `tree` (all generated tokens, [index of the
    previous token, id]), `node` (the index in `tree` of the last token shown, -1 for none), `ablated_heads` (a list of
    [site, head]), `temperature`, `top_k`, `top_p`, `seed`.
    """

    def __init__(self, model: nn.Module, tokenizer: Any, document: WriteDocument):
        self._tokenizer = tokenizer

        def scores(ids: Tensor) -> dict[str, Tensor]:
            return {"logits": extract_logits(model(ids))[0].float()}

        def read(ids: Tensor) -> dict[str, Any]:
            logits = scores(ids)["logits"][:, : len(tokenizer)]  # some models have more logits than tokens
            loss = nn.functional.cross_entropy(logits[:-1], ids[0, 1:]) if ids.shape[1] > 1 else torch.nan
            return {"logits": logits[None, -1:], "loss": loss}

        def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
            prompt = shorten(tokenizer.decode(request.inputs[0][0]), 60)
            sampling = self.state["temperature"], self.state["top_k"] or None, self.state["top_p"]
            prediction = predict_next(tokenizer, outputs["logits"][0, -1], *sampling)
            return next_tokens(prediction.names, prediction.bars[""], document["title"], prompt)

        first = {"read": [torch.zeros(1, 1, dtype=torch.long)]}
        self.scores = LocalProgram(model, scores, {})
        self.width = self.scores(*first["read"])["logits"].shape[-1]  # logits of the model
        program = LocalProgram(model, read, {"ids": len(tokenizer)})
        super().__init__({"read": program}, document, first, draw_static, text_axes(tokenizer), [tokenizer])

    def _shown(self) -> Request:
        ablated_heads = [{"site": site, "head": head} for site, head in self.state["ablated_heads"]]
        return Request("read", [torch.tensor([self._ids()])], ablated_heads)

    def _ids(self) -> list[int]:
        """Return the ids of the displayed text: the prompt and the generated tokens."""
        tree, node = self.state["tree"], self.state["node"]
        written: list[int] = []
        while node >= 0:
            node, token = tree[node]
            written.insert(0, token)
        ids = [*self._tokenizer.encode(self.state["prompt"]).tolist(), *written]
        return ids[-self.document["context"] :]

    def __repr__(self) -> str:
        return f"{super().__repr__()}: {self.state['prompt']!r}"
