"""Matching a site's invocations to one text, from the last invocation back, by the signatures of their keys.

An invocation computes the last queries of a text; earlier keys were computed by earlier invocations. The previous
invocation of the text is therefore the latest one that has these keys. It may be in another row of the batch (beam
search reorders rows). Only those of its queries count whose keys are still present (speculative decoding discards
some). An invocation that computed all of its keys itself begins a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.look.key_signatures import InvocationInfo, Keys


@dataclass(frozen=True)
class Segment:
    """The queries of a text that a single invocation computed.

    Attributes:
        invocation: the index of the invocation at its site.
        batch_index: the batch element.
        start, stop: the first of the invocation's queries, and one past the last.
        offset: the position of the invocation's first key in the last invocation.
    """

    invocation: int
    batch_index: int
    start: int
    stop: int
    offset: int


@dataclass
class Timeline:
    """The queries of one text, first to last.

    Attributes:
        segments: the queries of each invocation, in order of time.
        is_self_attention: whether queries are among the keys.
        length: one past the last key attended to, in the positions of the last invocation.
        reordered: whether rows of the batch were reordered between invocations.
        missing: number of keys of the first segment that no captured invocation computed.
        keys: the signatures of the last invocation's row, [key, width].
        others: invocations of other batch elements for the same text, such as abandoned beams.
        sees_more_keys: whether later queries attend to more keys.
        has_earlier: whether the site was computed for other texts before.
    """

    segments: list[Segment]
    is_self_attention: bool
    length: int
    reordered: bool = False
    missing: int = 0
    keys: Tensor = field(default_factory=lambda: torch.empty(0))
    others: frozenset[int] = frozenset()
    sees_more_keys: bool = False
    has_earlier: bool = False

    @property
    def invocations(self) -> set[int]:
        return {segment.invocation for segment in self.segments} | self.others


class _Row(NamedTuple):
    """A batch element of an invocation, and how many of its keys earlier invocations computed."""

    invocation: int
    batch_index: int
    earlier_keys: int


class _Predecessor(NamedTuple):
    """The row that a later row of the same text continues.

    Attributes:
        row: the row.
        shift: how far positions have moved since, because a sliding cache dropped keys.
        accepted: number of its queries whose keys are still there.
    """

    row: _Row
    shift: int
    accepted: int


class SiteInvocations:
    """The invocations of one site and the signatures of their keys, among which those of a text are found."""

    def __init__(self, site: str, infos: Sequence[InvocationInfo], keys: Sequence[Keys]) -> None:
        self.site, self.infos, self.keys = site, infos, keys

    def trace_self_attention(
        self, last: int, batch_index: int, dropped: int = 0, batch_indices: Mapping[int, Sequence[int]] | None = None
    ) -> Timeline:
        """Return the timeline of the self-attention text that ends in a batch element of an invocation.

        Args:
            last: the index of the invocation.
            batch_index: the batch element in which the text ends.
            dropped: number of the last invocation's queries that were discarded after it.
            batch_indices: invocation -> batch elements that may belong to the text; other invocations are skipped.
        """
        length = int(self.infos[last].ends[batch_index]) - dropped
        timeline = Timeline(
            [Segment(last, batch_index, 0, self.infos[last].queries - dropped, 0)],
            is_self_attention=True,
            length=length,
            keys=self.keys[last][batch_index][:length],
        )
        later, offset = self._row(last, batch_index), 0
        for index in range(last - 1, -1, -1):
            if later.earlier_keys <= 0:
                break
            candidates = range(len(self.keys[index])) if batch_indices is None else batch_indices.get(index, ())
            found = self._predecessor(later, index, candidates)
            if found is None:
                continue
            timeline.reordered |= self._is_reordered(later.invocation, index, later.earlier_keys, found.shift)
            offset -= found.shift
            timeline.segments.insert(0, Segment(index, found.row.batch_index, 0, found.accepted, offset))
            later = found.row
        timeline.missing = max(later.earlier_keys, 0)
        return timeline

    def _row(self, invocation: int, batch_index: int) -> _Row:
        info = self.infos[invocation]
        return _Row(invocation, batch_index, int(info.ends[batch_index]) - info.queries)

    def _predecessor(self, later: _Row, index: int, candidates: Sequence[int]) -> _Predecessor | None:
        """Return the row of an invocation among `candidates` that a later row continues.

        None if the invocation belongs to another text, or all of its tokens were discarded.
        """
        keys = self.keys[later.invocation][later.batch_index][: later.earlier_keys]
        match = self._find_keys(index, keys, candidates, later.batch_index)
        if match is None:
            return None
        batch_index, shift = match
        row = self._row(index, batch_index)
        still_there = min(later.earlier_keys + shift, row.earlier_keys + self.infos[index].queries)
        accepted = still_there - row.earlier_keys
        return _Predecessor(row, shift, accepted) if accepted > 0 else None

    def collect_cross_attention(self, last: int, batch_index: int) -> Timeline:
        """Return the timeline of a text's cross-attention: all invocations up to `last` whose keys are the same."""
        keys, segments = self.keys[last][batch_index], []
        for index in range(last, -1, -1):
            if same := self.same_keys(index, keys):
                batch_index = batch_index if batch_index in same else same[0]
                segments.append(Segment(index, batch_index, 0, self.infos[index].queries, 0))
        return Timeline(segments[::-1], False, len(keys), keys=keys)

    def full_prefix_invocations(self, last: int) -> list[int]:
        """Return the invocations up to this one that each read the full text, one token longer each time."""
        first = last
        while first and self.infos[first - 1].queries == self.infos[first].queries - 1:
            first -= 1
        return list(range(first, last + 1))

    def sees_more_keys(self, timeline: Timeline) -> bool:
        """Return whether later queries see more keys, as in self-attention; also of a text that was read at once."""
        segments = timeline.segments
        if len(segments) == 1 and not timeline.missing and self.infos[segments[0].invocation].queries > 1:
            return True
        ends = set()
        for segment in segments:
            info, element = self.infos[segment.invocation], segment.batch_index
            if info.queries > 1 and info.first_end[element] < info.ends[element]:
                return True
            ends.add(int(info.ends[element]) + segment.offset)
        return len(ends) > 1

    def same_keys(self, index: int, keys: Tensor) -> list[int]:
        """Return the batch elements of an invocation that have exactly these keys."""
        there = enumerate(self.keys[index])
        return [element for element, others in there if self._have_same_keys(keys, others, index)]

    def is_prefix(self, index: int, batch_index: int, keys: Tensor) -> bool:
        """Return whether the text of an invocation is a proper prefix of another."""
        if batch_index >= len(self.keys[index]):
            return False
        info = self.infos[index]
        # padding may change as a text is read again
        start, end = int(info.starts[batch_index]), int(info.ends[batch_index])
        return end < len(keys) and self._have_same_keys(
            keys[start:end], self.keys[index][batch_index][start:end], index
        )

    def _have_same_keys(self, keys: Tensor, others: Tensor, index: int) -> bool:
        return keys.shape == others.shape and bool(_are_close(keys, others, self.infos[index].tolerance).all())

    def _find_keys(
        self, index: int, keys: Tensor, batch_indices: Sequence[int], batch_index: int
    ) -> tuple[int, int] | None:
        """Return (batch element, index of the first key) where an invocation has these keys in this order; or None."""
        info, needed = self.infos[index], len(keys)
        for element in sorted(batch_indices, key=lambda element: element != batch_index):
            last_start, there = int(info.ends[element]) - needed, self.keys[index][element]
            if last_start < 0:
                continue
            starts = _are_close(there[: last_start + 1], keys[:1], info.tolerance).nonzero()[:, 0].tolist()
            for shift in sorted(starts, key=lambda start: (start != last_start, start)):
                if self._have_same_keys(keys, there[shift : shift + needed], index):
                    return element, shift
        return None

    def _is_reordered(self, later: int, index: int, needed: int, shift: int) -> bool:
        """Return whether some batch element continues a different element of an earlier invocation."""
        if len(self.keys[later]) != len(self.keys[index]):
            return False
        return not self._have_same_keys(
            self.keys[later][:, :needed], self.keys[index][:, shift : shift + needed], index
        )


def _are_close(keys: Tensor, others: Tensor, tolerance: float) -> Tensor:
    """Return, for each key, whether two signatures are equal up to rounding."""
    return (keys - others).norm(dim=-1) <= tolerance * torch.maximum(keys.norm(dim=-1), others.norm(dim=-1))
