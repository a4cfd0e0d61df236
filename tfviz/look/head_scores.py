"""Head scores: the share of a head's attention that goes to one kind of position (previous word, first word ...)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.look.capture import Capture
from tfviz.look.map_arguments import are_numbers
from tfviz.look.maps import AttentionMaps, as_maps
from tfviz.look.padding import Positions, statistic
from tfviz.shapes import Bool, Float, Int

Codes = Int[Tensor, "text position"]  # equal where words are equal
Cells = Bool[Tensor, "#text query key"]
Kind = Callable[[Codes], Cells]


def _mark_offset(back: int) -> Kind:
    """Return a function that marks the position a number of words back."""
    return lambda codes: torch.ones(codes.shape[1], codes.shape[1], dtype=torch.bool).tril(-back).triu(-back)[None]


def _mark_first(codes: Codes) -> Cells:
    cells = torch.zeros(1, codes.shape[1], codes.shape[1], dtype=torch.bool)
    cells[:, 1:, 0] = True
    return cells


def _mark_same_word(after: int) -> Kind:
    """Return a function that marks earlier occurrences of the query's word, or a number of positions after them.

    An induction head attends to the word after an earlier occurrence (Olsson et al. 2022).
    """

    def mark(codes: Codes) -> Cells:
        equal = torch.zeros(len(codes), codes.shape[1], codes.shape[1], dtype=torch.bool)
        equal[:, :, after:] = codes[:, :, None] == codes[:, None, : codes.shape[1] - after]
        return equal.tril(-1)

    return mark


# kinds of position: name -> function that marks the keys of the kind for each query
SCORE_KINDS: dict[str, Kind] = {
    "current": _mark_offset(0),
    "previous": _mark_offset(1),
    "two back": _mark_offset(2),
    "first": _mark_first,
    "duplicate": _mark_same_word(0),
    "induction": _mark_same_word(1),
}
COMPARE_WORDS = ("duplicate", "induction")


def check_kinds(kinds: Sequence[str] | Mapping[str, Kind]) -> dict[str, Kind]:
    """Return name -> function of kinds of position given by name, or by name and function.

    Raises:
        TypeError: `kinds` is one name.
        LookupError: a kind is unknown; the message lists the known ones.
        ValueError: there is no kind.
    """
    if isinstance(kinds, str):
        raise TypeError(f"kinds is {kinds!r}; give a list, such as [{kinds!r}]")
    if not kinds:
        raise ValueError(f"kinds is empty; there are: {', '.join(SCORE_KINDS)}")
    if isinstance(kinds, Mapping):
        return dict(kinds)
    unknown = next((kind for kind in kinds if kind not in SCORE_KINDS), None)
    if unknown is not None:
        raise LookupError(f"no kind of position is called {unknown!r}; there are: {', '.join(SCORE_KINDS)}")
    return {kind: SCORE_KINDS[kind] for kind in kinds}


class Marks(NamedTuple):
    """The marked cells of each kind, and the queries that have any.

    Attributes:
        cells: [#text, query x key, kind], 1 where a cell is marked.
        queries: [#text, query, kind].
    """

    cells: Float[Tensor, "#text cell kind"]
    queries: Float[Tensor, "#text query kind"]

    @classmethod
    def of(cls, kinds: Iterable[Cells]) -> Marks:
        """Return the marks of each kind."""
        stacked = torch.stack(list(kinds), -1)
        return cls(stacked.flatten(1, 2).float(), stacked.any(2).float())

    def shares(
        self, weights: Float[Tensor, "text #head query key"], sees: Bool[Tensor, "text #head query"]
    ) -> Float[Tensor, "text #head kind"]:
        """Return the mean share of the marked keys, over queries that see something and have one; NaN without such."""
        weights = weights if sees.all() else weights * sees[..., None]
        counts = sees.to(weights) @ self.queries.to(weights)
        totals = weights.flatten(2) @ self.cells.to(weights)
        return torch.where(counts > 0, totals / counts.clamp(min=1), torch.nan)


def head_scores(
    maps: AttentionMaps | Capture, kinds: Sequence[str] = tuple(SCORE_KINDS)
) -> dict[str, Float[Tensor, "layer head"]]:
    """Return, for square maps, the share of each head's attention, 0 to 1, that goes to each kind of position.

    Args:
        maps: the attention maps, as many queries as keys; or the capture of one text, which has no words.
        kinds: kinds of position, of `SCORE_KINDS`: "current", "previous", "two back", "first", "duplicate", "after same
            word".

    Raises:
        LookupError: the kind is unknown; the message lists the known ones.
        ValueError: `kinds` is empty; the maps are not square, have fewer than 3 words, or lack the words that a kind
            needs.

    >>> maps = AttentionMaps(torch.eye(3).roll(-1, 1)[None, None], rows=["a", "b", "c"])
    >>> round(head_scores(maps)["previous"].item(), 2), head_scores(maps)["current"].item()
    (1.0, 0.0)
    """
    named = check_kinds(kinds)
    maps = as_maps(maps)
    positions = Positions.of(maps)
    queries, keys = int(positions.queries.sum()), int(positions.keys.sum())
    if maps.shape[2] != maps.shape[3] or queries != keys or keys < 3:
        raise ValueError(f"head scores are defined for square maps of at least 3 words, not {(queries, keys)}")
    if maps.rows != maps.cols:
        raise ValueError("the maps look from one text at another; head scores are of a text that looks at itself")
    comparing = next((kind for kind in kinds if kind in COMPARE_WORDS), None)
    if comparing and are_numbers(maps.rows):
        others = [kind for kind in kinds if kind not in COMPARE_WORDS] or ["previous"]
        raise ValueError(
            f"the maps have no words, and {comparing!r} compares them: give AttentionMaps(..., rows=words), or leave "
            f"it out, head_scores(maps, {others})"
        )
    words = [word for word, counts in zip(maps.rows, positions.queries.tolist()) if counts]

    numbers: dict[str, int] = {}
    codes = torch.tensor([[numbers.setdefault(word, len(numbers)) for word in words]])

    def shares(weights: Tensor, counts: Tensor) -> Tensor:  # the marks of one kind at a time, which can be large
        each = [Marks.of([kind(codes)]).shares(weights[None], counts[None]) for kind in named.values()]
        return torch.cat(each, dim=-1)[0].nan_to_num(0.0)  # the weights are finite: NaN is a kind without positions

    scores = statistic(maps, shares, positions)
    return {kind: scores[..., place] for place, kind in enumerate(named)}
