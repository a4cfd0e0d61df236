"""Head scores: the share of a head's attention that goes to one kind of position (previous word, first word ...)."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tfviz.look.capture import Capture
from tfviz.look.map_arguments import are_numbers
from tfviz.look.maps import AttentionMaps, as_maps
from tfviz.look.padding import Positions, mean, statistic
from tfviz.shapes import Bool, Float

CHUNK = 2**22  # cells of a map that are compared with words at a time


def _score_offset(back: int, weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    return mean(weights.diagonal(-back, -2, -1), counts[:, back:])


def _score_first(weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    return mean(weights[:, 1:, 0], counts[:, 1:])


def _score_same_word(after: int, weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    """Score attention to earlier occurrences of the query's word, or to a fixed number of positions after them.

    An induction head attends to the word after an earlier occurrence (Olsson et al. 2022). The mean is over queries
    whose word occurred before.
    """
    numbers: dict[str, int] = {}
    codes = torch.tensor([numbers.setdefault(word, len(numbers)) for word in words])
    places = torch.arange(len(words))
    shares, known = torch.zeros(counts.shape), torch.zeros(len(words), dtype=torch.bool)
    for rows in places.split(max(1, CHUNK // weights[..., 0, :].numel())):
        cells = torch.zeros(len(rows), len(words), dtype=torch.bool)
        cells[:, after:] = codes[rows, None] == codes[: len(words) - after]
        cells &= places < rows[:, None]
        shares[:, rows], known[rows] = (weights[:, rows] * cells).sum(-1), cells.any(-1)
    return mean(shares, counts & known)


# name -> function of weights without padding, of which queries count, and of the words, that returns the mean share of
# attention, 0 to 1, over the queries that see something and have such a position
SCORES: dict[str, Callable[[Float[Tensor, "head query key"], Bool[Tensor, "head query"], list[str]], Tensor]] = {
    "itself": partial(_score_offset, 0),
    "previous": partial(_score_offset, 1),
    "two back": partial(_score_offset, 2),
    "first": _score_first,
    "same word": partial(_score_same_word, 0),
    "after same word": partial(_score_same_word, 1),
}
COMPARE_WORDS = ("same word", "after same word")


def head_scores(
    maps: AttentionMaps | Capture, kinds: Sequence[str] = tuple(SCORES)
) -> dict[str, Float[Tensor, "layer head"]]:
    """Return, for square maps, the share of each head's attention, 0 to 1, that goes to each kind of position.

    Args:
        maps: the attention maps, as many queries as keys; or the capture of one text, which has no words.
        kinds: kinds of position, of `SCORES`: "itself", "previous", "two back", "first", "same word", "after same
            word".

    Raises:
        LookupError: the kind is unknown; the message lists the known ones.
        ValueError: `kinds` is empty; the maps are not square, have fewer than 3 words, or lack the words that a kind
            needs.

    >>> maps = AttentionMaps(torch.eye(3).roll(-1, 1)[None, None], rows=["a", "b", "c"])
    >>> round(head_scores(maps)["previous"].item(), 2), head_scores(maps)["itself"].item()
    (1.0, 0.0)
    """
    if isinstance(kinds, str):
        raise TypeError(f"kinds is {kinds!r}; give a list, such as [{kinds!r}]")
    if not kinds:
        raise ValueError(f"kinds is empty; there are: {', '.join(SCORES)}")
    unknown = next((kind for kind in kinds if kind not in SCORES), None)
    if unknown is not None:
        raise LookupError(f"no kind of position is called {unknown!r}; there are: {', '.join(SCORES)}")
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

    def shares(weights: Tensor, counts: Tensor) -> Tensor:
        return torch.stack([SCORES[kind](weights, counts, words) for kind in kinds], dim=-1)

    scores = statistic(maps, shares, positions)
    return {kind: scores[..., place] for place, kind in enumerate(kinds)}
