"""The calls of a model, in order, and what the keys of each firing were."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look.signatures import Firing, Keys, Log, near, reach

CALLERS = 32  # frames above a call of the model in which a beam search may stand


class History:
    """What a capture knows of time: which call of the model each firing belongs to, and what its keys are."""

    def __init__(self) -> None:
        self.calls = 0
        self.logs: dict[str, Log] = {}
        self._deepest: str | None = None  # the last site of those that were seen to look at a text that grows
        self._searched: set[int] = set()  # calls that a beam search made
        self._read: dict[int, tuple[int, int]] = {}  # call -> its cache, and how many tokens that held after it
        self._caches: dict[int, int] = {}  # cache -> how many tokens it holds at last
        self._cache: Any = None  # the one in use: what is dropped from it after the last call is known at the end

    def begin(self) -> None:
        """A call of the model begins."""
        self.calls += 1
        self._deepest = next((site for site, log in reversed(self.logs.items()) if log.grows), None)
        if _is_beam_search():
            self._searched.add(self.calls)

    def end(self, given: dict[str, Any], output: Any) -> None:
        """A call ends: its cache, if it has one, holds so many tokens now."""
        cache: Any = given.get("past_key_values")
        cache = getattr(output, "past_key_values", None) if cache is None else cache
        if not hasattr(cache, "get_seq_length"):
            return
        if cache is not self._cache:
            self.close()
            self._cache = cache
        self._read[self.calls] = len(self._caches), int(cache.get_seq_length())

    def close(self) -> None:
        """The capture ends, or another cache comes into use: what this one holds now are the tokens that stayed."""
        if self._cache is not None:
            self._caches[len(self._caches)] = int(self._cache.get_seq_length())
            self._cache = None

    def note(self, site: str, queries: int, seen: Sequence[Tensor | None], keys: Keys, dtype: torch.dtype) -> None:
        """A firing.

        Args:
            seen: where its first query may look, and its last, [batch, head, 1, key]; None: everywhere.
        """
        (_, begins), (starts, ends) = (reach(row, keys) for row in seen)
        firing = Firing(self.calls, queries, begins, starts, ends, near(dtype))
        self.logs.setdefault(site, Log()).add(firing, keys)

    def leads(self, site: str) -> bool:
        """Whether a site tells of the text that is written: the deepest that does, or any while that is not known."""
        return self._deepest in (None, site)

    def searched(self, call: int) -> bool:
        """Whether a beam search made a call."""
        return call in self._searched

    def dropped(self, call: int) -> int:
        """How many tokens that a call read were dropped from its cache afterwards, with no other call in between."""
        if call not in self._read:
            return 0
        cache, length = self._read[call]
        later = [other for other, (kept, _) in self._read.items() if kept == cache and other > call]
        return 0 if later else max(0, length - self._caches.get(cache, length))


def _is_beam_search() -> bool:
    """Whether one of the callers is a beam search, whose rows change places."""
    frame = sys._getframe(2)
    for _ in range(CALLERS):
        if frame is None:
            return False
        if "beam_search" in frame.f_code.co_name:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
