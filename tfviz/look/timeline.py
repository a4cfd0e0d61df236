"""Follows a text back through the firings of a site, from its last one, by what the keys are.

A firing computes the last queries of a text; the keys before them were computed by firings before it. So the firing
before is found by its keys: the latest one that has them. It need not be in the same row of the batch (a beam search
reorders them), and of its own queries only those count whose keys are still there (speculative decoding throws some
away). A firing whose keys all are its own begins a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tfviz.look.history import FiringInfo
from tfviz.look.key_signatures import Keys


@dataclass(frozen=True)
class Segment:
    """Queries of one firing.

    Attributes:
        firing: its number at its site.
        row: its batch element.
        start, stop: its first query, and one past the last.
        offset: the position of its first key, as the last firing counts.
    """

    firing: int
    row: int
    start: int
    stop: int
    offset: int


@dataclass
class Timeline:
    """The queries of one text, first to last.

    Attributes:
        grows: whether queries are among the keys, as where a text looks at itself.
        length: one past the last key that was seen, as the last firing counts.
        reordered: whether rows of the batch changed places on the way.
        missing: how many keys of the first segment no firing of the capture has computed.
        keys: the signatures of the last firing's row.
        others: firings of other batch elements for the same text, such as abandoned beams.
    """

    segments: list[Segment]
    grows: bool
    length: int
    reordered: bool = False
    missing: int = 0
    keys: Tensor = field(default_factory=lambda: torch.empty(0))
    others: frozenset[int] = frozenset()

    @property
    def firings(self) -> set[int]:
        return {segment.firing for segment in self.segments} | self.others


class SiteFirings:
    """The firings of one site and the signatures of their keys, in which texts are followed."""

    def __init__(self, firings: Sequence[FiringInfo], keys: Sequence[Keys]) -> None:
        self.firings, self.keys = firings, keys

    def follow(
        self,
        last: int,
        row: int,
        dropped: int = 0,
        rows: Mapping[int, Sequence[int]] | None = None,
    ) -> Timeline:
        """Follow the text that a batch element of a firing ends, where queries are among the keys.

        Args:
            dropped: how many of the last firing's queries were thrown away after it.
            rows: firing -> batch elements that may be of the text; firings that it lacks are skipped.
        """
        firing, text = self.firings[last], self.keys[last][row]
        end = int(firing.ends[row])
        segments = [Segment(last, row, 0, firing.queries - dropped, 0)]
        keys, needed = text, end - firing.queries  # the keys before the firing's own, which others have computed
        offset, is_reordered, later = 0, False, last
        for number in range(last - 1, -1, -1):
            if needed <= 0:
                break
            candidates = range(len(self.keys[number])) if rows is None else rows.get(number, ())
            found = self._find_keys(number, keys[:needed], candidates, row)
            if found is None:
                continue  # a firing of another text, or one whose tokens were all thrown away
            other, shift = found  # a sliding cache has dropped keys since: they stood `shift` further on
            earlier = self.firings[number]
            first = int(earlier.ends[other]) - earlier.queries
            accepted = min(needed + shift, first + earlier.queries) - first  # the queries whose keys are still there
            if accepted <= 0:
                continue
            is_reordered |= self._is_reordered(later, number, needed, shift)
            offset -= shift
            segments.append(Segment(number, other, 0, accepted, offset))
            row, later, needed, keys = other, number, first, self.keys[number][other]
        length = end - dropped
        return Timeline(segments[::-1], True, length, is_reordered, max(needed, 0), text[:length])

    def collect(self, last: int, row: int) -> Timeline:
        """Collect the firings of a text that looks at another, whose keys stay: those before with the same keys."""
        text, segments = self.keys[last][row], []
        for number in range(last, -1, -1):
            if same := self.same_keys(number, text):
                row = row if row in same else same[0]
                segments.append(Segment(number, row, 0, self.firings[number].queries, 0))
        return Timeline(segments[::-1], False, len(text), keys=text)

    def readings(self, last: int) -> list[int]:
        """Return the firings up to this one that each read a whole text, one token longer than the one before."""
        first = last
        while first and self.firings[first - 1].queries == self.firings[first].queries - 1:
            first -= 1
        return list(range(first, last + 1))

    def advances(self, timeline: Timeline) -> bool:
        """Return whether later queries see more keys, as in a text that looks at itself; or it was read whole."""
        last = timeline.segments[-1]
        if len(timeline.segments) == 1 and not timeline.missing and self.firings[last.firing].queries > 1:
            return True
        seen = {int(self.firings[one.firing].ends[one.row]) + one.offset for one in timeline.segments}
        firings = [(self.firings[one.firing], one.row) for one in timeline.segments]
        return len(seen) > 1 or any(one.queries > 1 and one.first_end[row] < one.ends[row] for one, row in firings)

    def same_keys(self, number: int, text: Tensor) -> list[int]:
        """Return the batch elements of a firing that have exactly these keys."""
        return [row for row, keys in enumerate(self.keys[number]) if self._same(text, keys, number)]

    def is_prefix(self, number: int, row: int, text: Tensor) -> bool:
        """Return whether the text of a firing is the beginning of another, and shorter."""
        if row >= len(self.keys[number]):
            return False
        firing = self.firings[number]
        start, end = int(firing.starts[row]), int(firing.ends[row])  # padding may change as a text is read again
        return end < len(text) and self._same(text[start:end], self.keys[number][row][start:end], number)

    def _same(self, one: Tensor, other: Tensor, number: int) -> bool:
        return one.shape == other.shape and bool(_close(one, other, self.firings[number].tolerance).all())

    def _find_keys(self, number: int, keys: Tensor, rows: Sequence[int], row: int) -> tuple[int, int] | None:
        """Return a batch element of a firing that has these keys in this order, and the position of the first."""
        firing, needed = self.firings[number], len(keys)
        for other in sorted(rows, key=lambda one: one != row):
            end, there = int(firing.ends[other]), self.keys[number][other]
            if end < needed:
                continue
            starts = _close(there[: end - needed + 1], keys[:1], firing.tolerance).nonzero()[:, 0].tolist()
            for shift in sorted(starts, key=lambda one: (one != end - needed, one)):
                if self._same(keys, there[shift : shift + needed], number):
                    return other, shift
        return None

    def _is_reordered(self, after: int, number: int, needed: int, shift: int) -> bool:
        """Return whether some batch element goes on from another element of an earlier firing."""
        now, then = self.keys[after], self.keys[number]
        if len(now) != len(then):
            return False
        parts = now[:, :needed], then[:, shift : shift + needed]
        return parts[0].shape != parts[1].shape or not bool(_close(*parts, self.firings[number].tolerance).all())


def _close(one: Tensor, other: Tensor, tolerance: float) -> Tensor:
    """Return for each key whether two signatures are the same but for rounding."""
    return (one - other).norm(dim=-1) <= tolerance * torch.maximum(one.norm(dim=-1), other.norm(dim=-1))
