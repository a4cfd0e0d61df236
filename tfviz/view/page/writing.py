"""The studio that writes with a kernel behind it: the model stays in Python, which answers what the page asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import traitlets
from torch import Tensor, nn

from tfviz.look import edits
from tfviz.look.capture import Seen, capture
from tfviz.look.maps import AttentionMaps
from tfviz.portable.whole import evaluating
from tfviz.view.page import alive
from tfviz.view.page.answering import Answering
from tfviz.view.page.bundle import script
from tfviz.view.page.html import View
from tfviz.view.still.likeliest import likeliest
from tfviz.view.still.picture import cut

LEFT = "Still: a model in Python wrote this, and it is not here any more. These are the heads of the last text."


class Writing(Answering):
    """A language model in a notebook, questioned there and run here; see `view.write(kernel=True)`.

    `state` is a trait that Python may read, set and observe: `prompt`, `tree` (a list of [token before, id]), `at` (the
    place there of the last token, -1 for none), `off` (a list of [site, head]), `temperature`, `topK`, `topP`, `seed`.
    """

    _esm = script("studios/widget")
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, model: nn.Module, vocab: Any, described: Mapping[str, Any]):
        self._model, self._vocab = model, vocab
        super().__init__(described=dict(described), state=dict(described["state"]))

    def _told(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Logits, cost and maps of a text."""
        logits, seen = self._read(question["ids"], question.get("edits", []))
        row = logits[-1].float().cpu().contiguous()
        told: dict[str, Any] = {"cost": _cost(logits, question["ids"]), "masks": 0, "patterns": []}
        masks: dict[bytes, int] = {}
        pieces = []
        for site in seen if question.get("watch") else ():
            weights, allowed = seen.firings(site)[-1]
            cells = weights.shape[-2:]
            may = torch.ones(cells) if allowed is None else allowed.broadcast_to(weights.shape)[0, 0]
            mask = masks.setdefault(may.to(torch.uint8).cpu().contiguous().numpy().tobytes(), len(masks))
            told["patterns"].append([site, list(weights.shape), mask])
            pieces.append((weights.float().sqrt() * 255).round().to(torch.uint8).cpu().contiguous().numpy().tobytes())
        told["masks"] = len(masks)
        return told, [row.numpy().tobytes(), *masks, *pieces]

    def _read(self, ids: Any, off: Any) -> tuple[Tensor, Seen]:
        """Logits, position vocab, and what was seen, with these heads off."""
        text = _text(ids, len(self._vocab))
        heads: dict[str, list[int]] = {}
        for edit in off:
            heads.setdefault(edit["site"], []).append(edit["head"])
        changes = {site: _without(some) for site, some in heads.items()}
        device = next(self._model.parameters()).device
        with evaluating(self._model), torch.no_grad(), capture(self._model, "*.pattern", edit=changes) as seen:
            made = self._model(text.to(device)[None])
        return getattr(made, "logits", made)[0], seen

    @property
    def width(self) -> int:
        """Tokens that the model chooses among."""
        return self._read([0], [])[0].shape[-1]

    def _ids(self) -> list[int]:
        """The text that is shown: the prompt and what was written after it."""
        tree, at = self.state["tree"], self.state["at"]
        written: list[int] = []
        while at >= 0:
            at, token = tree[at]
            written.insert(0, token)
        ids = [*self._vocab.encode(self.state["prompt"]).tolist(), *written]
        return ids[-self.described["context"] :]

    def view(self) -> View:
        """The heads of the text that is shown, without a kernel: to save, or to leave in a page."""
        ids = self._ids()
        logits, seen = self._read(ids, [{"site": site, "head": head} for site, head in self.state["off"]])
        maps = AttentionMaps.of(seen, self._vocab.words(torch.tensor(ids)))
        said = cut(self._vocab.decode(torch.tensor(ids)), 60)
        picture = likeliest(self._vocab, logits[-1].float().cpu(), self.described["title"], said)
        made = alive.view(picture, {"": maps}, {}, f"{self.described['title']}: {said!r}")
        made.described["note"] = f"{LEFT} {made.described['note']}".strip()
        return made

    def __repr__(self) -> str:
        return f"{self.described['title']}, answered by the kernel: {self.state['prompt']!r}"


def _text(ids: Any, size: int) -> Tensor:
    """What a page sends, if it is a text: it may send anything."""
    if not isinstance(ids, list) or not ids or not all(type(one) is int and 0 <= one < size for one in ids):
        raise ValueError(f"ids is {cut(repr(ids), 60)}; give a list of numbers from 0 to {size - 1}")
    return torch.tensor(ids)


def _without(heads: list[int]) -> Any:
    def change(weights: Tensor) -> Tensor:
        for head in heads:
            weights = edits.zero(head)(weights)
        return weights

    return change


def _cost(logits: Tensor, ids: list[int]) -> float | None:
    """Nats a token."""
    if len(ids) < 2:
        return None
    return nn.functional.cross_entropy(logits[:-1].float(), torch.tensor(ids[1:], device=logits.device)).item()
