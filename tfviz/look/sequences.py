"""Chooses the firings of a site that are of one text, once for all sites of a capture.

The keys of a deep layer depend on all that was read before them, so the deepest site that looks at the text being
written leads: its firings are followed back by their keys, and the other sites take theirs from the same calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import NamedTuple

from torch import Tensor

from tfviz.look.history import FiringInfo, History
from tfviz.look.timeline import Segment, SiteFirings, Timeline


class _Text(NamedTuple):
    """A text that ends with firing number `last`.

    Attributes:
        advances: whether its keys grow from firing to firing.
        has_earlier: whether the site fired for other texts before.
    """

    timeline: Timeline
    advances: bool
    last: int
    has_earlier: bool


class Sequences:
    """The texts that were written in a capture.

    Args:
        row: the batch element; the number of the returned text, where `beams` is given.
        beams: for each returned text the batch elements in which its tokens were chosen, -1 after its end.
        generation: which text of several that the capture holds, in order; None: the last.
    """

    def __init__(self, history: History, row: int, beams: Tensor | None, generation: int | None) -> None:
        self.history, self.row, self.beams, self.generation = history, row, beams, generation
        self._sites: dict[str, SiteFirings] = {}
        self._timelines: dict[str, Timeline] = {}

    def of(self, site: str) -> Timeline:
        """Return the firings of the text at a site.

        Raises:
            ValueError: it cannot be told which firings these are.
        """
        own = self._site(site)
        found = self._leader(site, own)
        if found is None:
            return self._choose(site, own)
        leader, firing_pairs = found
        if leader not in self._timelines:
            self._timelines[leader] = self._choose(leader, self._site(leader))
        return self._translate(site, own, self._site(leader), firing_pairs, self._timelines[leader])

    def _site(self, site: str) -> SiteFirings:
        if site not in self._sites:
            history = self.history.sites[site]
            self._sites[site] = SiteFirings(history.firings, list(history.keys()))
        return self._sites[site]

    @property
    def _last_row(self) -> int:
        """A batch element of the last firing: of a beam search any, since all have gone through the same firings."""
        return 0 if self.beams is not None else self.row

    def _leader(self, site: str, own: SiteFirings) -> tuple[str, dict[int, int]] | None:
        """Return the site that leads this one, and its firings with those of this site in the same turns of calls."""
        numbers = {place: at for at, place in enumerate(_turns(own.firings))}
        last = len(own.firings) - 1
        for name in reversed(self.history.sites):
            other = self._site(name)
            pairs = {at: numbers[place] for at, place in enumerate(_turns(other.firings)) if place in numbers}
            end = next((at for at, mine in pairs.items() if mine == last), None)
            if end is None or not _same_queries(own, last, other, end):
                continue
            row = self._last_row % len(other.keys[end])
            if other.advances(other.follow(end, row)):
                return name, pairs
        return None

    def _choose(self, site: str, own: SiteFirings) -> Timeline:
        """Return the text that is asked for, of those whose last firing is at this site."""
        texts = self._texts(site, own)
        if self.generation is None:
            latest = next(texts)
            chosen = self._check(site, own, latest)
            if latest.has_earlier:
                warnings.warn(
                    f"{site} fired for more than one text; the last is shown, generation=0 is the first", stacklevel=7
                )
            return chosen
        found = list(texts)[::-1]
        if not -len(found) <= self.generation < len(found):
            count = "1 text" if len(found) == 1 else f"{len(found)} texts"
            raise ValueError(f"generation is {self.generation}; the capture holds {count}, counted from 0")
        return self._check(site, own, found[self.generation])

    def _texts(self, site: str, own: SiteFirings) -> Iterator[_Text]:
        """Yield the texts of a site, last to first: each takes its firings from those that are left."""
        left = set(range(len(own.firings)))
        while left:
            last = max(left)
            timeline, advances = self._last(site, own, last)
            left -= timeline.firings
            if self.beams is not None and timeline.grows and len(timeline.segments) == 1:
                left -= set(own.readings(last))  # without a cache, each step of a search reads the whole text
            call = own.firings[timeline.segments[-1].firing].call
            if any(own.firings[number].call == call for number in left):
                raise _same_keys_again(site, len(own.firings), len(timeline.keys))
            if timeline.grows:  # shorter beginnings of the text are earlier readings of it
                left -= {number for number in left if own.is_prefix(number, self._last_row, timeline.keys)}
            yield _Text(timeline, advances, last, bool(left))

    def _last(self, site: str, own: SiteFirings, last: int) -> tuple[Timeline, bool]:
        """Return the text that ends with this firing, in whatever batch elements, and whether it grows."""
        timeline = own.follow(last, self._last_row, self.history.dropped(own.firings[last].call))
        if own.advances(timeline):
            return timeline, True
        if len(timeline.segments) > 1 or timeline.missing:
            timeline = own.collect(last, self._last_row)
            calls = [own.firings[one.firing].call for one in timeline.segments]
            if calls.count(calls[-1]) > 1:  # a loop within one call of the model
                timeline.segments = [one for one, call in zip(timeline.segments, calls) if call == calls[-1]]
            if len(timeline.segments) == 1 and len(own.firings) > 1:
                raise ValueError(
                    f"{site} fired {len(own.firings)} times, and what its last firing looks at is in none before: "
                    "these are no steps in time of one text; AttentionMaps.of(seen, firings='layers') shows each"
                )
        return timeline, False

    def _in_rows(self, own: SiteFirings, timeline: Timeline) -> Timeline:
        """Return the same text in the batch elements in which a beam search computed it."""
        if self.beams is None:
            return timeline
        rows = _rows(self.beams, self.row)
        if timeline.grows and len(timeline.segments) == 1:  # without a cache each firing reads the whole text
            numbers = own.readings(timeline.segments[0].firing)
        else:
            numbers = [one.firing for one in timeline.segments]
        others, numbers = frozenset(numbers), numbers[: len(rows)]
        batch = min(len(own.keys[at]) for at in numbers)
        if len(numbers) < len(rows) or max(rows) >= batch:
            raise ValueError(
                f"beams names {len(rows)} steps in rows up to {max(rows)}; the capture has {len(numbers)} steps of "
                f"{batch} rows"
            )
        if not timeline.grows:
            places = zip(numbers, rows)
            segments = [Segment(at, place, 0, own.firings[at].queries, 0) for at, place in places]
            return Timeline(segments, False, timeline.length, keys=timeline.keys, others=others)
        found = own.follow(numbers[-1], rows[-1], rows={at: [place] for at, place in zip(numbers, rows)})
        found.others = others
        if len(found.segments) != len(timeline.segments[: len(rows)]):
            raise ValueError(
                "beams does not fit the capture: the rows that it names do not go on from one another; give the "
                "beam_indices of this call of generate"
            )
        return found

    def _check(self, site: str, own: SiteFirings, text: _Text) -> Timeline:
        """Return a text whose batch elements are known to be its own."""
        is_ambiguous = self.beams is None and len(own.keys[text.last]) > 1
        if is_ambiguous and self.history.is_beam_search(own.firings[text.last].call):
            raise _rows_are_mixed(site)
        timeline = self._in_rows(own, text.timeline)
        if not text.advances:
            return timeline
        if is_ambiguous and timeline.reordered:
            raise _rows_are_mixed(site)
        if timeline.missing and timeline.segments[0].firing:
            raise ValueError(
                f"{site}: {timeline.missing} keys of the text were computed by no firing of the capture: the cache was "
                "changed, or filled outside; capture one text from its beginning"
            )
        return timeline

    def _translate(
        self, site: str, own: SiteFirings, leader: SiteFirings, pairs: dict[int, int], text: Timeline
    ) -> Timeline:
        """Return the same queries at another site, which has keys of its own."""
        segments = [_corresponding(one, leader, own, pairs[one.firing]) for one in text.segments if one.firing in pairs]
        if len(segments) != len(text.segments):
            raise ValueError(
                f"{site} did not fire in each of the {len(text.segments)} calls that read the text; "
                "AttentionMaps.of(seen, firings='layers') shows each"
            )
        last = segments[-1]
        if not own.advances(own.follow(last.firing, last.row)):
            keys = own.keys[last.firing][last.row]
            if any(one.row not in own.same_keys(one.firing, keys) for one in segments):
                raise ValueError(f"{site} looks at another text from call to call, and not at one; capture one text")
            return Timeline(segments, False, len(keys), keys=keys)
        counts = [one.stop - one.start for one in segments]
        firsts = [text.missing, *(text.missing + read for read in accumulate(counts))]
        placed = [
            Segment(one.firing, one.row, one.start, one.stop, first + own.firings[one.firing].queries - end)
            for one, first in zip(segments, firsts)
            for end in [int(own.firings[one.firing].ends[one.row])]
        ]
        return Timeline(placed, True, firsts[-1], keys=own.keys[last.firing][last.row])


def _same_queries(own: SiteFirings, last: int, other: SiteFirings, end: int) -> bool:
    """Return whether two firings are of the same queries; beams may stand side by side on their axis."""
    rows, others = len(own.keys[last]), len(other.keys[end])
    return others % rows == 0 and rows * own.firings[last].queries == others * other.firings[end].queries


def _corresponding(segment: Segment, leader: SiteFirings, own: SiteFirings, at: int) -> Segment:
    """Return the queries of a firing that belong to those of another site."""
    width = len(leader.keys[segment.firing]) // len(own.keys[at])
    if width < 2:
        return Segment(at, segment.row, segment.start, segment.stop, 0)
    row, first = divmod(segment.row, width)
    first *= leader.firings[segment.firing].queries
    return Segment(at, row, first + segment.start, first + segment.stop, 0)


def _same_keys_again(site: str, firings: int, keys: int) -> ValueError:
    return ValueError(
        f"{site} fired {firings} times, more than once on the same {keys} keys: these are no steps in time; "
        "AttentionMaps.of(seen, firings='layers') shows each"
    )


def _turns(firings: Sequence[FiringInfo]) -> Iterator[tuple[int, int]]:
    """Yield for each firing its call, and how many firings of the site there were in that call before it."""
    within: dict[int, Iterator[int]] = {}
    for firing in firings:
        yield firing.call, next(within.setdefault(firing.call, count()))


def _rows(beams: Tensor, row: int) -> list[int]:
    """Return the batch elements of one returned text, step by step."""
    if beams.dim() != 2 or not -len(beams) <= row < len(beams):
        raise ValueError(
            f"beams is {list(beams.shape)}, batch is {row}; beams must be text step, with a row for each text"
        )
    rows = [int(one) for one in beams[row].tolist() if one >= 0]
    if not rows:
        raise ValueError(f"beams names no row for text {row}")
    return rows


def _rows_are_mixed(site: str) -> ValueError:
    return ValueError(
        f"the rows of the batch of {site} change places on the way (a beam search), and none of them is a text: "
        "give beams=out.beam_indices, of out = generate(..., return_dict_in_generate=True, output_scores=True), "
        "and as batch= the number of the returned text"
    )
