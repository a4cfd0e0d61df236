"""Select the firings of one text, for all sites of a capture.

Firings are matched backwards by their keys at the deepest self-attention site, since the keys of a deep layer depend on
all earlier tokens. Other sites use the firings of the same calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, count

from torch import Tensor

from tfviz.look.key_fingerprints import FiringInfo, History
from tfviz.look.text_matching import Segment, SiteFirings, Timeline


class SequenceSelector:
    """The texts that were generated in a capture.

    Args:
        row: the batch element; with `beams`, the index of the returned text.
        beams: for each returned text, the batch elements in which its tokens were chosen, -1 after its end.
        generation: index of the text, if the capture holds several; None: the last.
    """

    def __init__(self, history: History, row: int, beams: Tensor | None, generation: int | None) -> None:
        self.history, self.row, self.beams, self.generation = history, row, beams, generation
        # a batch element of the last firing; for a beam search any, since all went through the same firings
        self._last_row = 0 if beams is not None else row
        self._sites: dict[str, SiteFirings] = {}
        self._timelines: dict[str, Timeline] = {}

    def of(self, site: str) -> Timeline:
        """Return the firings of the text at a site.

        Raises:
            ValueError: the firings of the text cannot be determined.
        """
        firings = self._site(site)
        leader = self._leader(firings)
        if leader is None:
            return self._select(firings)
        leading, pairs = leader
        if leading.site not in self._timelines:
            self._timelines[leading.site] = self._select(leading)
        return _map_to_site(firings, leading, pairs, self._timelines[leading.site])

    def _site(self, site: str) -> SiteFirings:
        if site not in self._sites:
            history = self.history.sites[site]
            self._sites[site] = SiteFirings(site, history.firings, list(history.keys()))
        return self._sites[site]

    def _leader(self, firings: SiteFirings) -> tuple[SiteFirings, dict[int, int]] | None:
        """Return the leading site, and its firings together with those of this site in the same calls."""
        numbers = {turn: number for number, turn in enumerate(_call_positions(firings.infos))}
        last = len(firings.infos) - 1
        for site in reversed(self.history.sites):
            leading = self._site(site)
            turns = enumerate(_call_positions(leading.infos))
            pairs = {number: numbers[turn] for number, turn in turns if turn in numbers}
            end = next((number for number, paired in pairs.items() if paired == last), None)
            if end is None or not _same_queries(firings, last, leading, end):
                continue
            if leading.sees_more_keys(leading.follow(end, self._last_row % len(leading.keys[end]))):
                return leading, pairs
        return None

    def _select(self, firings: SiteFirings) -> Timeline:
        """Return the requested text among those whose last firing is at this site."""
        texts = self._texts(firings)
        if self.generation is None:
            latest = next(texts)
            chosen = self._check_rows(firings, latest)
            if latest.has_earlier:
                warnings.warn(
                    f"{firings.site} fired for more than one text; the last is shown, generation=0 is the first",
                    stacklevel=7,
                )
            return chosen
        ordered = list(texts)[::-1]
        if not -len(ordered) <= self.generation < len(ordered):
            texts_there = "1 text" if len(ordered) == 1 else f"{len(ordered)} texts"
            raise ValueError(f"generation is {self.generation}; the capture holds {texts_there}, counted from 0")
        return self._check_rows(firings, ordered[self.generation])

    def _texts(self, firings: SiteFirings) -> Iterator[Timeline]:
        """Yield the texts of a site, last to first, each from the firings that remain."""
        left = set(range(len(firings.infos)))
        while left:
            last = max(left)
            text = self._text(firings, last)
            left -= text.firings
            if self.beams is not None and text.is_self_attention and len(text.segments) == 1:
                left -= set(firings.full_prefix_firings(last))  # without a cache, steps read the whole text
            call = firings.infos[text.segments[-1].firing].call
            if any(firings.infos[number].call == call for number in left):
                raise ValueError(
                    f"{firings.site} fired {len(firings.infos)} times, more than once on the same {len(text.keys)} "
                    "keys: these are not steps in time; AttentionMaps.of(seen, firings='layers') shows each"
                )
            if text.is_self_attention:  # firings of a prefix are earlier firings of the same text
                left -= {number for number in left if firings.is_prefix(number, self._last_row, text.keys)}
            text.has_earlier = bool(left)
            yield text

    def _text(self, firings: SiteFirings, last: int) -> Timeline:
        """Return the text that ends with this firing; its tokens may come from different batch elements."""
        text = firings.follow(last, self._last_row, self.history.dropped(firings.infos[last].call))
        text.sees_more_keys = firings.sees_more_keys(text)
        if not text.sees_more_keys and (len(text.segments) > 1 or text.missing):
            text = firings.collect(last, self._last_row)
            calls = [firings.infos[segment.firing].call for segment in text.segments]
            if calls.count(calls[-1]) > 1:  # a loop within one call of the model
                text.segments = [segment for segment, call in zip(text.segments, calls) if call == calls[-1]]
            if len(text.segments) == 1 and len(firings.infos) > 1:
                raise ValueError(
                    f"{firings.site} fired {len(firings.infos)} times, and what its last firing looks at is in none "
                    "before: these are not steps in time; AttentionMaps.of(seen, firings='layers') shows each"
                )
        return text

    def _check_rows(self, firings: SiteFirings, text: Timeline) -> Timeline:
        """Return a text in the batch elements that computed it, after checking that they belong to it."""
        last = text.segments[-1].firing
        is_ambiguous = self.beams is None and len(firings.keys[last]) > 1
        if is_ambiguous and self.history.is_beam_search(firings.infos[last].call):
            raise _mixed_rows_error(firings.site)
        timeline = text if self.beams is None else _in_rows(firings, text, _beam_rows(self.beams, self.row))
        if not text.sees_more_keys:
            return timeline
        if is_ambiguous and timeline.reordered:
            raise _mixed_rows_error(firings.site)
        if timeline.missing and timeline.segments[0].firing:
            raise ValueError(
                f"{firings.site}: {timeline.missing} keys of the text were computed by no firing of the capture: the "
                "cache was changed, or filled outside; capture one text from its beginning"
            )
        return timeline


def _in_rows(firings: SiteFirings, text: Timeline, rows: Sequence[int]) -> Timeline:
    """Return the same text in the batch elements in which a beam search computed it, step by step."""
    numbers = [segment.firing for segment in text.segments]
    if text.is_self_attention and len(numbers) == 1:  # without a cache each firing reads the whole text
        numbers = firings.full_prefix_firings(numbers[0])
    others, numbers = frozenset(numbers), numbers[: len(rows)]
    batch = min(len(firings.keys[number]) for number in numbers)
    if len(numbers) < len(rows) or max(rows) >= batch:
        raise ValueError(
            f"beams names {len(rows)} steps in rows up to {max(rows)}; the capture has {len(numbers)} steps of "
            f"{batch} rows"
        )
    steps = dict(zip(numbers, rows))
    if not text.is_self_attention:
        segments = [Segment(number, row, 0, firings.infos[number].queries, 0) for number, row in steps.items()]
        return Timeline(segments, False, text.length, keys=text.keys, others=others)
    timeline = firings.follow(numbers[-1], rows[-1], rows={number: [row] for number, row in steps.items()})
    timeline.others = others
    if len(timeline.segments) != len(text.segments[: len(rows)]):
        raise ValueError(
            "beams does not fit the capture: the rows that it names do not go on from one another; give the "
            "beam_indices of this call of generate"
        )
    return timeline


def _map_to_site(firings: SiteFirings, leading: SiteFirings, pairs: dict[int, int], text: Timeline) -> Timeline:
    """Return the queries of a text at a site that follows another site but has its own keys."""
    segments = [
        _corresponding(segment, leading, firings, pairs[segment.firing])
        for segment in text.segments
        if segment.firing in pairs
    ]
    if len(segments) != len(text.segments):
        raise ValueError(
            f"{firings.site} did not fire in each of the {len(text.segments)} calls that read the text; "
            "AttentionMaps.of(seen, firings='layers') shows each"
        )
    last = segments[-1]
    keys = firings.keys[last.firing][last.row]
    if not firings.sees_more_keys(firings.follow(last.firing, last.row)):
        if any(segment.row not in firings.same_keys(segment.firing, keys) for segment in segments):
            raise ValueError(f"{firings.site} attends to other keys in each call; capture one text at a time")
        return Timeline(segments, False, len(keys), keys=keys)
    firsts = list(accumulate((segment.stop - segment.start for segment in segments), initial=text.missing))
    placed = []
    for segment, first in zip(segments, firsts):
        info = firings.infos[segment.firing]
        offset = first + info.queries - int(info.ends[segment.row])
        placed.append(Segment(segment.firing, segment.row, segment.start, segment.stop, offset))
    return Timeline(placed, True, firsts[-1], keys=keys)


def _same_queries(firings: SiteFirings, last: int, leading: SiteFirings, end: int) -> bool:
    """Return whether two firings have the same queries; beams may lie on the query axis."""
    rows, leading_rows = len(firings.keys[last]), len(leading.keys[end])
    same_count = rows * firings.infos[last].queries == leading_rows * leading.infos[end].queries
    return leading_rows % rows == 0 and same_count


def _corresponding(segment: Segment, leading: SiteFirings, firings: SiteFirings, number: int) -> Segment:
    """Return the queries of a firing that match those of the leading site."""
    width = len(leading.keys[segment.firing]) // len(firings.keys[number])
    row, first = divmod(segment.row, width) if width > 1 else (segment.row, 0)
    first *= leading.infos[segment.firing].queries
    return Segment(number, row, first + segment.start, first + segment.stop, 0)


def _call_positions(infos: Sequence[FiringInfo]) -> Iterator[tuple[int, int]]:
    """Yield, for each firing, its call and the number of earlier firings of the site in that call."""
    within: dict[int, Iterator[int]] = {}
    for info in infos:
        yield info.call, next(within.setdefault(info.call, count()))


def _beam_rows(beams: Tensor, row: int) -> list[int]:
    """Return the batch elements of one returned text, step by step."""
    if beams.dim() != 2 or not -len(beams) <= row < len(beams):
        raise ValueError(
            f"beams is {list(beams.shape)}, batch is {row}; beams must be text step, with a row for each text"
        )
    rows = [int(element) for element in beams[row].tolist() if element >= 0]
    if not rows:
        raise ValueError(f"beams names no row for text {row}")
    return rows


def _mixed_rows_error(site: str) -> ValueError:
    return ValueError(
        f"a beam search reordered the batch rows of {site}, so no single row is one text: give "
        "beams=out.beam_indices, of out = generate(..., return_dict_in_generate=True, output_scores=True), "
        "and as batch= the number of the returned text"
    )
