"""Studios with a kernel behind them: the model stays in Python, which answers what the page asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import traitlets
from torch import Tensor

from tfviz.look.capture import Seen
from tfviz.look.maps import AttentionMaps
from tfviz.portable.arguments import dtype_name
from tfviz.view.page import alive
from tfviz.view.page.answering import Answering
from tfviz.view.page.bundle import script
from tfviz.view.page.here import Here
from tfviz.view.page.html import View
from tfviz.view.still.picture import Picture, cut

LEFT = "Still: a model in Python said this, and it is not here any more. These are the heads of the last text."
EXACT = 1_000_000  # weights that are sent in 32 bits each
Question = tuple[str, Sequence[Tensor], Sequence[Mapping[str, Any]]]  # program, inputs, heads that are off
Asked = Mapping[str, Sequence[Tensor]]  # program -> its inputs
Draws = Callable[[Question, Mapping[str, Tensor]], Picture]
Words = Callable[[Asked], Mapping[str, tuple[list[str], list[str]]]]


class Questioned(Answering):
    """A model in a notebook, questioned there and run here; see `kernel=True` of the studios.

    `state` is a trait that Python may read, set and observe: what the reader typed and chose, such as `text` and `off`,
    a list of [site, head].

    Args:
        programs: what the page may run, by name.
        described: what the page is told.
        first: what is asked where no page has asked yet; the last is what is shown.
        draws: the picture that is left of a question and what was said to it.
        words: of the maps' rows and columns, part by part, such as {"": (rows, cols)}, for the inputs asked last.
        vocabs: in the order in which the page is told of them.
    """

    _esm = script("studios/widget")
    state = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        programs: Mapping[str, Here],
        described: Mapping[str, Any],
        first: Asked,
        draws: Draws,
        words: Words,
        vocabs: Sequence[Any],
    ):
        self._programs, self._draws, self._words, self._vocabs = dict(programs), draws, words, list(vocabs)
        self._asked = dict(first)
        self._last: Question = (*list(first.items())[-1], ())
        super().__init__(described=dict(described), state=dict(described["state"]))

    def _told(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """What a program gives, and its maps where the page looks; or the ids of texts."""
        if "encode" in question:
            return {"ids": self._encoded(question["encode"], question.get("vocabulary"))}, []
        here = self._programs[question["run"]]
        asked = (question["run"], here.tensors(question.get("inputs")), question.get("edits", []))
        watched = bool(question.get("watch"))
        outputs, seen = here.run(*asked[1:]) if watched else (here(*asked[1], off=asked[2]), None)
        self._asked[asked[0]] = asked[1]
        told = {"outputs": [[name, list(one.shape), dtype_name(one.dtype)] for name, one in outputs.items()]}
        pieces = [_bytes(one) for one in outputs.values()]
        if seen is None:
            return told | {"masks": 0, "patterns": []}, pieces
        self._last = asked
        more, maps = packed(seen)
        return told | more, [*pieces, *maps]

    def _encoded(self, texts: Any, number: Any) -> list[list[int]]:
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"the texts are {cut(repr(texts), 60)}; give a list of strings")
        if number not in range(len(self._vocabs)):
            raise ValueError(f"there is no vocabulary {cut(repr(number), 20)}")
        return [self._vocabs[number].encode(text).tolist() for text in texts]

    def _question(self) -> Question:
        """What is shown now."""
        return self._last

    def view(self) -> View:
        """The heads of the text that is shown, without a kernel: to save, or to leave in a page."""
        question = self._question()
        outputs, seen = self._programs[question[0]].run(*question[1:])
        words = self._words({**self._asked, question[0]: question[1]})
        parts = {part: AttentionMaps.of(seen, *axes, sites=f"*{part}*.pattern") for part, axes in words.items()}
        picture = self._draws(question, outputs)
        made = alive.view(picture, parts, {}, picture.summary.partition("\n")[0])
        made.described["note"] = f"{LEFT} {made.described['note']}".strip()
        return made

    def __repr__(self) -> str:
        return f"{self.described['title']}, answered by the kernel"


def packed(seen: Seen) -> tuple[dict[str, Any], list[bytes]]:
    """Maps as a page takes them: weights as they are, of many the root of each in a byte; masks that are alike once.

    A mask is [query, key], of all heads, or [head, query, key], where they differ.
    """
    masks: dict[bytes, int] = {}
    patterns, pieces = [], []
    exact = sum(seen[site].numel() for site in seen) <= EXACT
    for site in seen:
        weights, allowed = seen.firings(site)[-1]
        patterns.append([site, list(weights.shape), masks.setdefault(_mask(weights, allowed), len(masks))])
        pieces.append(_bytes(weights.float() if exact else (weights.float().sqrt() * 255).round().to(torch.uint8)))
    return {"masks": len(masks), "patterns": patterns}, [*masks, *pieces]


def _mask(weights: Tensor, allowed: Tensor | None) -> bytes:
    """Where the heads of the first text may look."""
    if allowed is None:
        return _bytes(torch.ones(weights.shape[-2:], dtype=torch.bool))
    heads = allowed.broadcast_to(weights.shape)[0].reshape(-1, *weights.shape[-2:])
    return _bytes((heads[0] if (heads == heads[0]).all() else heads).bool())


def _bytes(tensor: Tensor) -> bytes:
    kinds = {"bool": torch.uint8, "int64": torch.int32, "float32": torch.float32}
    kept = tensor if tensor.dtype == torch.uint8 else tensor.to(kinds[dtype_name(tensor.dtype)])
    return kept.cpu().contiguous().numpy().tobytes()
