"""The studio that writes with a kernel behind it: what is written can be read and set in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.view.page.here import Here
from tfviz.view.page.passage import axes
from tfviz.view.page.questioned import Question, Questioned
from tfviz.view.still.likeliest import likeliest
from tfviz.view.still.picture import cut


class Writing(Questioned):
    """A language model in a notebook, questioned there and run here; see `view.write(kernel=True)`.

    `state` is a trait that Python may read, set and observe: `prompt`, `tree` (a list of [token before, id]), `at` (the
    place there of the last token, -1 for none), `off` (a list of [site, head]), `temperature`, `topK`, `topP`, `seed`.
    """

    def __init__(self, model: nn.Module, vocab: Any, described: Mapping[str, Any]):
        self._vocab = vocab

        def scores(ids: Tensor) -> dict[str, Tensor]:
            made = model(ids)
            return {"logits": getattr(made, "logits", made)[0].float()}

        def read(ids: Tensor) -> dict[str, Any]:
            logits = scores(ids)["logits"][:, : len(vocab)]  # some models have room for more tokens
            cost = nn.functional.cross_entropy(logits[:-1], ids[0, 1:]) if ids.shape[1] > 1 else torch.nan
            return {"logits": logits[None, -1:], "cost": cost}

        def draws(question: Question, outputs: Mapping[str, Tensor]) -> Any:
            said = cut(vocab.decode(question[1][0][0]), 60)
            return likeliest(vocab, outputs["logits"][0, -1], described["title"], said)

        here = Here(model, read, {"ids": len(vocab)})
        first = {"read": [torch.zeros(1, 1, dtype=torch.long)]}
        self.scores = Here(model, scores, {})
        self.width = self.scores(*first["read"])["logits"].shape[-1]  # tokens that the model chooses among
        super().__init__({"read": here}, described, first, draws, axes(vocab), [vocab])

    def _ids(self) -> list[int]:
        """The text that is shown: the prompt and what was written after it."""
        tree, at = self.state["tree"], self.state["at"]
        written: list[int] = []
        while at >= 0:
            at, token = tree[at]
            written.insert(0, token)
        ids = [*self._vocab.encode(self.state["prompt"]).tolist(), *written]
        return ids[-self.described["context"] :]

    def _question(self) -> Question:
        off = [{"site": site, "head": head} for site, head in self.state["off"]]
        return "read", [torch.tensor([self._ids()])], off

    def __repr__(self) -> str:
        return f"{super().__repr__()}: {self.state['prompt']!r}"
