"""Selection of the invocations of one text, at all sites of a capture.

Invocations are matched backwards by their keys at the deepest self-attention site, since the keys of a deep layer
depend on all earlier tokens. Other sites use the invocations of the same calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, count

from torch import Tensor

from tfviz.look.key_signatures import InvocationHistory, InvocationInfo
from tfviz.look.text_matching import Segment, SiteInvocations, Timeline


class SequenceSelector:
    """A selector of the invocations of one text among the texts that were generated in a capture.

    Args:
        row: the batch element; with `beam_indices`, the index of the returned text.
        beam_indices: for each returned text, the batch elements in which its tokens were chosen, [text, step], -1 after
            its end.
        text_index: index of the text, if the capture holds several; None: the last.
    """

    def __init__(
        self, history: InvocationHistory, row: int, beam_indices: Tensor | None, text_index: int | None
    ) -> None:
        self.history, self.row, self.beam_indices, self.text_index = history, row, beam_indices, text_index
        # a batch element of the last invocation; for a beam search any, since all went through the same invocations
        self._last_row = 0 if beam_indices is not None else row
        self._sites: dict[str, SiteInvocations] = {}
        self._timelines: dict[str, Timeline] = {}

    def timeline(self, site: str) -> Timeline:
        """Return the timeline of the text at a site.

        Raises:
            ValueError: the invocations of the text cannot be determined.
        """
        invocations = self._site(site)
        found = self._reference_site(invocations)
        if found is None:
            return self._select(invocations)
        reference, pairs = found
        if reference.site not in self._timelines:
            self._timelines[reference.site] = self._select(reference)
        return _map_to_site(invocations, reference, pairs, self._timelines[reference.site])

    def _site(self, site: str) -> SiteInvocations:
        if site not in self._sites:
            history = self.history.sites[site]
            self._sites[site] = SiteInvocations(site, history.invocations, list(history.keys()))
        return self._sites[site]

    def _reference_site(self, invocations: SiteInvocations) -> tuple[SiteInvocations, dict[int, int]] | None:
        """Return the site whose keys identify texts, and its invocations' indices -> this site's in the same calls.

        Return None if no site qualifies.
        """
        numbers = {turn: index for index, turn in enumerate(_call_positions(invocations.infos))}
        last = len(invocations.infos) - 1
        for site in reversed(self.history.sites):
            reference = self._site(site)
            turns = enumerate(_call_positions(reference.infos))
            pairs = {index: numbers[turn] for index, turn in turns if turn in numbers}
            end = next((index for index, paired in pairs.items() if paired == last), None)
            if end is None or not _same_queries(invocations, last, reference, end):
                continue
            if reference.sees_more_keys(reference.trace_self_attention(end, self._last_row % len(reference.keys[end]))):
                return reference, pairs
        return None

    def _select(self, invocations: SiteInvocations) -> Timeline:
        """Return the requested text among those of a site; warn if there are several and none was requested."""
        texts = self._texts(invocations)
        if self.text_index is None:
            latest = next(texts)
            chosen = self._check_rows(invocations, latest)
            if latest.has_earlier:
                warnings.warn(
                    f"{invocations.site} was computed for more than one text; the last is shown, text_index=0 is the "
                    "first",
                    stacklevel=7,
                )
            return chosen
        ordered = list(texts)[::-1]
        if not -len(ordered) <= self.text_index < len(ordered):
            texts_there = "1 text" if len(ordered) == 1 else f"{len(ordered)} texts"
            raise ValueError(f"text_index is {self.text_index}; the capture holds {texts_there}, counted from 0")
        return self._check_rows(invocations, ordered[self.text_index])

    def _texts(self, invocations: SiteInvocations) -> Iterator[Timeline]:
        """Yield the texts of a site, last to first, each found among the invocations that remain."""
        left = set(range(len(invocations.infos)))
        while left:
            last = max(left)
            text = self._text(invocations, last)
            left -= text.invocations
            if self.beam_indices is not None and text.is_self_attention and len(text.segments) == 1:
                left -= set(invocations.full_prefix_invocations(last))  # without a cache, steps read the whole text
            call = invocations.infos[text.segments[-1].invocation].call
            if any(invocations.infos[index].call == call for index in left):
                raise ValueError(
                    f"{invocations.site} was computed {len(invocations.infos)} times, more than once on the same "
                    f"{len(text.keys)} keys: these are not steps in time; AttentionMaps.from_capture(captured, "
                    "invocations='layers') shows each"
                )
            if text.is_self_attention:  # invocations of a prefix are earlier invocations of the same text
                left -= {index for index in left if invocations.is_prefix(index, self._last_row, text.keys)}
            text.has_earlier = bool(left)
            yield text

    def _text(self, invocations: SiteInvocations, last: int) -> Timeline:
        """Return the text that ends with this invocation; its tokens may come from different batch elements."""
        text = invocations.trace_self_attention(
            last, self._last_row, self.history.dropped(invocations.infos[last].call)
        )
        text.sees_more_keys = invocations.sees_more_keys(text)
        if not text.sees_more_keys and (len(text.segments) > 1 or text.missing):
            text = invocations.collect_cross_attention(last, self._last_row)
            calls = [invocations.infos[segment.invocation].call for segment in text.segments]
            if calls.count(calls[-1]) > 1:  # a loop within one call of the model
                text.segments = [segment for segment, call in zip(text.segments, calls) if call == calls[-1]]
            if len(text.segments) == 1 and len(invocations.infos) > 1:
                raise ValueError(
                    f"{invocations.site} was computed {len(invocations.infos)} times, and its last invocation attends "
                    "to keys that no earlier one computed: these are not steps in time; "
                    "AttentionMaps.from_capture(captured, invocations='layers') shows each"
                )
        return text

    def _check_rows(self, invocations: SiteInvocations, text: Timeline) -> Timeline:
        """Return a text in the batch elements that computed it, after checking that they belong to it."""
        last = text.segments[-1].invocation
        is_ambiguous = self.beam_indices is None and len(invocations.keys[last]) > 1
        if is_ambiguous and self.history.is_beam_search(invocations.infos[last].call):
            raise _mixed_rows_error(invocations.site)
        timeline = (
            text if self.beam_indices is None else _in_rows(invocations, text, _beam_rows(self.beam_indices, self.row))
        )
        if not text.sees_more_keys:
            return timeline
        if is_ambiguous and timeline.reordered:
            raise _mixed_rows_error(invocations.site)
        if timeline.missing and timeline.segments[0].invocation:
            raise ValueError(
                f"{invocations.site}: {timeline.missing} keys of the text were computed by no invocation of the "
                "capture: the cache was changed, or filled outside; capture one text from its beginning"
            )
        return timeline


def _in_rows(invocations: SiteInvocations, text: Timeline, rows: Sequence[int]) -> Timeline:
    """Return the same text in the batch elements in which a beam search computed it, step by step."""
    numbers = [segment.invocation for segment in text.segments]
    if text.is_self_attention and len(numbers) == 1:  # without a cache each invocation reads the whole text
        numbers = invocations.full_prefix_invocations(numbers[0])
    others, numbers = frozenset(numbers), numbers[: len(rows)]
    batch = min(len(invocations.keys[index]) for index in numbers)
    if len(numbers) < len(rows) or max(rows) >= batch:
        raise ValueError(
            f"beam_indices names {len(rows)} steps in rows up to {max(rows)}; the capture has {len(numbers)} steps of "
            f"{batch} rows"
        )
    steps = dict(zip(numbers, rows))
    if not text.is_self_attention:
        segments = [Segment(index, row, 0, invocations.infos[index].queries, 0) for index, row in steps.items()]
        return Timeline(segments, False, text.length, keys=text.keys, others=others)
    timeline = invocations.trace_self_attention(
        numbers[-1], rows[-1], batch_indices={index: [row] for index, row in steps.items()}
    )
    timeline.others = others
    if len(timeline.segments) != len(text.segments[: len(rows)]):
        raise ValueError(
            "beam_indices does not fit the capture: the rows that it names do not continue one another; give the "
            "beam_indices of this call of generate"
        )
    return timeline


def _map_to_site(
    invocations: SiteInvocations, reference: SiteInvocations, pairs: dict[int, int], text: Timeline
) -> Timeline:
    """Return the timeline of a text at a site with keys of its own, from the timeline at the reference site."""
    segments = [
        _corresponding(segment, reference, invocations, pairs[segment.invocation])
        for segment in text.segments
        if segment.invocation in pairs
    ]
    if len(segments) != len(text.segments):
        raise ValueError(
            f"{invocations.site} was not computed in each of the {len(text.segments)} calls that read the text; "
            "AttentionMaps.from_capture(captured, invocations='layers') shows each"
        )
    last = segments[-1]
    keys = invocations.keys[last.invocation][last.batch_index]
    if not invocations.sees_more_keys(invocations.trace_self_attention(last.invocation, last.batch_index)):
        if any(segment.batch_index not in invocations.same_keys(segment.invocation, keys) for segment in segments):
            raise ValueError(f"{invocations.site} attends to other keys in each call; capture one text at a time")
        return Timeline(segments, False, len(keys), keys=keys)
    firsts = list(accumulate((segment.stop - segment.start for segment in segments), initial=text.missing))
    placed = []
    for segment, first in zip(segments, firsts):
        info = invocations.infos[segment.invocation]
        offset = first + info.queries - int(info.ends[segment.batch_index])
        placed.append(Segment(segment.invocation, segment.batch_index, segment.start, segment.stop, offset))
    return Timeline(placed, True, firsts[-1], keys=keys)


def _same_queries(invocations: SiteInvocations, last: int, reference: SiteInvocations, end: int) -> bool:
    """Return whether two invocations have the same queries; beams may lie on the query axis."""
    rows, reference_rows = len(invocations.keys[last]), len(reference.keys[end])
    same_count = rows * invocations.infos[last].queries == reference_rows * reference.infos[end].queries
    return reference_rows % rows == 0 and same_count


def _corresponding(segment: Segment, reference: SiteInvocations, invocations: SiteInvocations, index: int) -> Segment:
    """Return the queries of an invocation that correspond to a segment of the reference site."""
    width = len(reference.keys[segment.invocation]) // len(invocations.keys[index])
    row, first = divmod(segment.batch_index, width) if width > 1 else (segment.batch_index, 0)
    first *= reference.infos[segment.invocation].queries
    return Segment(index, row, first + segment.start, first + segment.stop, 0)


def _call_positions(infos: Sequence[InvocationInfo]) -> Iterator[tuple[int, int]]:
    """Yield, for each invocation, its call and the number of earlier invocations of the site in that call."""
    within: dict[int, Iterator[int]] = {}
    for info in infos:
        yield info.call, next(within.setdefault(info.call, count()))


def _beam_rows(beam_indices: Tensor, row: int) -> list[int]:
    """Return the batch elements of one returned text, step by step."""
    if beam_indices.dim() != 2 or not -len(beam_indices) <= row < len(beam_indices):
        raise ValueError(
            f"beam_indices is {list(beam_indices.shape)}, batch is {row}; give [text, step], a row for each text"
        )
    rows = [int(element) for element in beam_indices[row].tolist() if element >= 0]
    if not rows:
        raise ValueError(f"beam_indices names no row for text {row}")
    return rows


def _mixed_rows_error(site: str) -> ValueError:
    return ValueError(
        f"a beam search reordered the batch rows of {site}, so no single row is one text: give "
        f"beam_indices=out.beam_indices, where out = generate(..., return_dict_in_generate=True, output_scores=True), "
        "and as batch= the number of the returned text"
    )
