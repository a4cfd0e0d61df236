"""Head scores: the share of a head's attention that goes to one kind of position (previous token, first token ...)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from tfviz.look.capture_result import Capture
from tfviz.look.map_arguments import are_numbers
from tfviz.look.map_statistics import CountedPositions, statistic
from tfviz.look.maps import AttentionMaps, as_maps
from tfviz.shapes import Bool, Float, Int

Codes = Int[Tensor, "batch position"]  # equal where tokens are equal
Cells = Bool[Tensor, "#batch query key"]
Kind = Callable[[Codes], Cells]


def _mark_offset(back: int, codes: Codes) -> Cells:
    """Mark, for each query, the key `back` positions before it."""
    return torch.ones(codes.shape[1], codes.shape[1], dtype=torch.bool).tril(-back).triu(-back)[None]


def _mark_first(codes: Codes) -> Cells:
    cells = torch.zeros(1, codes.shape[1], codes.shape[1], dtype=torch.bool)
    cells[:, 1:, 0] = True
    return cells


def _mark_same_word(after: int, codes: Codes) -> Cells:
    """Mark earlier occurrences of the query's token, or the keys `after` positions after them.

    An induction head attends to the token after an earlier occurrence (Olsson et al. 2022).
    """
    equal = torch.zeros(len(codes), codes.shape[1], codes.shape[1], dtype=torch.bool)
    equal[:, :, after:] = codes[:, :, None] == codes[:, None, : codes.shape[1] - after]
    return equal.tril(-1)


# kind of position -> function, which can be pickled, that marks the keys of this kind for each query
SCORE_KINDS: dict[str, Kind] = {
    "current": partial(_mark_offset, 0),
    "previous": partial(_mark_offset, 1),
    "two back": partial(_mark_offset, 2),
    "first": _mark_first,
    "duplicate": partial(_mark_same_word, 0),
    "induction": partial(_mark_same_word, 1),
}
TOKEN_KINDS = ("duplicate", "induction")


def check_kinds(kinds: Sequence[str] | Mapping[str, Kind]) -> dict[str, Kind]:
    """Return name -> function for kinds of position, which are given as names or as such a mapping.

    Raises:
        TypeError: `kinds` is one name.
        LookupError: a kind is unknown; the message lists the known ones.
        ValueError: `kinds` is empty.
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


class Marks:
    """The marked cells of each kind, and the queries that have any.

    Few cells are marked, so their indices are listed: a head's share is the sum of its weights at these indices.

    Args:
        kinds: the marked cells of each kind, [#text, query, key].

    Attributes:
        cell_indices: flat indices of the marked cells, query x keys + key, of one kind after another, [#text, cell];
            padded with 0 where a text has fewer than others.
        counts: False where a cell is padding, [#text, cell].
        sizes: the number of cells of each kind.
        queries: 1 where a query has a marked cell, [#text, query, kind].
    """

    def __init__(self, kinds: Iterable[Cells]) -> None:
        cells = list(kinds)
        texts = max(len(marked) for marked in cells)
        listed = [_padded_indices(marked, texts) for marked in cells]
        self.cell_indices, self.counts = (torch.cat(parts, 1) for parts in zip(*listed))
        self.sizes = [cell_indices.shape[1] for cell_indices, _ in listed]
        queries = [marked.any(2).expand(texts, -1) for marked in cells]
        self.queries = torch.stack(queries, -1).float()

    def shares(
        self, weights: Float[Tensor, "batch #head query key"], sees: Bool[Tensor, "batch #head query"]
    ) -> Float[Tensor, "batch #head kind"]:
        """Return the mean share of the marked keys over queries with an allowed and a marked key; NaN without any."""
        weights = weights if sees.all() else weights * sees[..., None]
        counts = sees.to(weights) @ self.queries.to(weights)
        cells = weights.flatten(2)
        index = self.cell_indices[:, None].expand(len(cells), cells.shape[1], -1)
        marked = torch.where(self.counts[:, None], cells.gather(2, index), 0.0)
        totals = torch.stack([part.sum(-1) for part in marked.split(self.sizes, -1)], -1)
        return torch.where(counts > 0, totals / counts.clamp(min=1), torch.nan)


def _padded_indices(marked: Cells, texts: int) -> tuple[Int[Tensor, "batch cell"], Bool[Tensor, "batch cell"]]:
    """Return the flat indices of each text's marked cells, query x keys + key, and a mask without the padding."""
    flat = marked.flatten(1)
    text, cell = flat.nonzero(as_tuple=True)
    sizes = text.bincount(minlength=len(flat))
    column = torch.arange(len(text), device=flat.device) - (sizes.cumsum(0) - sizes)[text]
    counts = torch.arange(int(sizes.max()), device=flat.device) < sizes[:, None]
    cell_indices = torch.zeros(counts.shape, dtype=torch.long, device=flat.device)
    cell_indices[text, column] = cell
    return cell_indices.expand(texts, -1), counts.expand(texts, -1)


def head_scores(
    maps: AttentionMaps | Capture, kinds: Sequence[str] = tuple(SCORE_KINDS)
) -> dict[str, Float[Tensor, "layer head"]]:
    """Return the share of each head's attention, from 0 to 1, that goes to each kind of position, for square maps.

    Args:
        maps: the attention maps, as many queries as keys; or the capture of one text, which has no tokens.
        kinds: kinds of position, of `SCORE_KINDS`: "current", "previous", "two back", "first", "duplicate",
            "induction".

    Raises:
        LookupError: a kind is unknown; the message lists the known ones.
        TypeError: `kinds` is one name instead of a list.
        ValueError: `kinds` is empty; the maps are not square, attend from one text to another, have fewer than 3
            tokens, or lack the tokens that a kind compares.

    >>> maps = AttentionMaps(torch.eye(3).roll(-1, 1)[None, None], query_tokens=["a", "b", "c"])
    >>> round(head_scores(maps)["previous"].item(), 2), head_scores(maps)["current"].item()
    (1.0, 0.0)
    """
    named = check_kinds(kinds)
    maps = as_maps(maps)
    positions = CountedPositions.from_maps(maps)
    queries, keys = int(positions.queries.sum()), int(positions.keys.sum())
    if maps.shape[2] != maps.shape[3] or queries != keys or keys < 3:
        raise ValueError(f"head scores are defined for square maps of at least 3 tokens, not {(queries, keys)}")
    if maps.query_tokens != maps.key_tokens:
        raise ValueError("the maps are of cross-attention; head scores are defined for self-attention")
    comparing = next((kind for kind in kinds if kind in TOKEN_KINDS), None)
    if comparing and are_numbers(maps.query_tokens):
        others = [kind for kind in kinds if kind not in TOKEN_KINDS] or ["previous"]
        raise ValueError(
            f"the maps have no tokens, and {comparing!r} compares them: give AttentionMaps(..., query_tokens=tokens), "
            f"or leave it out, head_scores(maps, {others})"
        )
    tokens = [word for word, counts in zip(maps.query_tokens, positions.queries.tolist()) if counts]

    numbers: dict[str, int] = {}
    codes = torch.tensor([[numbers.setdefault(word, len(numbers)) for word in tokens]])

    def shares(weights: Tensor, counts: Tensor) -> Tensor:  # the marks of one kind at a time, which can be large
        each = [Marks([kind(codes)]).shares(weights[None], counts[None]) for kind in named.values()]
        return torch.cat(each, dim=-1)[0].nan_to_num(0.0)  # the weights are finite: NaN is a kind without positions

    scores = statistic(maps, shares, positions)
    return {kind: scores[..., cell] for cell, kind in enumerate(named)}
