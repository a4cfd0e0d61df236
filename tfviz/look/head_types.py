"""To what kinds of places a head looks: shares of its attention, as `look.measures` has them."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tfviz.look.maps import AttentionMaps
from tfviz.look.padding import Text, mean, statistic
from tfviz.shapes import Bool, Float

CHUNK = 2**22  # cells of a map that are compared with words at a time


def _offset(back: int, weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    return mean(weights.diagonal(-back, -2, -1), counts[:, back:])


def _first(weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    return mean(weights[:, 1:, 0], counts[:, 1:])


def _same(after: int, weights: Tensor, counts: Tensor, words: list[str]) -> Tensor:
    """Over the queries whose word came before: the keys where it did, or so many positions after them.

    One after an earlier occurrence of the query's word is what an induction head looks at.
    """
    numbers: dict[str, int] = {}
    codes = torch.tensor([numbers.setdefault(word, len(numbers)) for word in words])
    places = torch.arange(len(words))
    given, known = torch.zeros(counts.shape), torch.zeros(len(words), dtype=torch.bool)
    for rows in places.split(max(1, CHUNK // weights[..., 0, :].numel())):
        cells = torch.zeros(len(rows), len(words), dtype=torch.bool)
        cells[:, after:] = codes[rows, None] == codes[: len(words) - after]
        cells &= places < rows[:, None]
        given[:, rows], known[rows] = (weights[:, rows] * cells).sum(-1), cells.any(-1)
    return mean(given, counts & known)


# name -> share of the attention, 0 to 1, that goes where the name says: the mean over the queries that see something
# and have such a place; of one text without padding, from weights [head, query, key] and which queries count
TYPES: dict[str, Callable[[Float[Tensor, "head query key"], Bool[Tensor, "head query"], list[str]], Tensor]] = {
    "itself": partial(_offset, 0),
    "previous": partial(_offset, 1),
    "two back": partial(_offset, 2),
    "first": _first,
    "same word": partial(_same, 0),
    "after same word": partial(_same, 1),
}
OF_WORDS = ("same word", "after same word")


def types(maps: AttentionMaps, kinds: Sequence[str] = tuple(TYPES)) -> dict[str, Float[Tensor, "layer head"]]:
    """How much of each head's attention goes to one kind of place: see `TYPES`. For square maps.

    Args:
        kinds: those to measure.

    Raises:
        LookupError: there is no such kind; lists them.
        ValueError: no kind is asked for; the maps are not square, of less than 3 words, or have no words where a kind
            asks for them.

    >>> maps = AttentionMaps(torch.eye(3).roll(-1, 1)[None, None], rows=["a", "b", "c"])
    >>> round(types(maps)["previous"].item(), 2), types(maps)["itself"].item()
    (1.0, 0.0)
    """
    if isinstance(kinds, str):
        raise TypeError(f"kinds is {kinds!r}; give a list, such as [{kinds!r}]")
    if not kinds:
        raise ValueError(f"kinds is empty; there are: {', '.join(TYPES)}")
    unknown = next((kind for kind in kinds if kind not in TYPES), None)
    if unknown is not None:
        raise LookupError(f"no kind of place is called {unknown!r}; there are: {', '.join(TYPES)}")
    text = Text.of(maps)
    queries, keys = int(text.queries.sum()), int(text.keys.sum())
    if maps.shape[2] != maps.shape[3] or queries != keys or keys < 3:
        raise ValueError(f"head types are defined for square maps of at least 3 words, not {(queries, keys)}")
    if maps.rows != maps.cols:
        raise ValueError("the maps look from one text at another; head types are of a text that looks at itself")
    wordy = next((kind for kind in kinds if kind in OF_WORDS), None)
    if wordy and maps.rows == [str(place) for place in range(maps.shape[2])]:
        plain = [kind for kind in kinds if kind not in OF_WORDS] or ["previous"]
        raise ValueError(
            f"the maps have no words, and {wordy!r} compares them: give AttentionMaps(..., rows=words), or leave it "
            f"out, types(maps, {plain})"
        )
    words = [word for word, kept in zip(maps.rows, text.queries.tolist()) if kept]

    def shares(weights: Tensor, counts: Tensor) -> Tensor:
        return torch.stack([TYPES[kind](weights, counts, words) for kind in kinds], dim=-1)

    found = statistic(maps, shares, text)
    return {kind: found[..., place] for place, kind in enumerate(kinds)}


def strongest(maps: AttentionMaps, kind: str) -> tuple[int, int]:
    """Layer and head that give most attention to this kind of place.

    Raises:
        LookupError: there is no such kind; lists them.
        ValueError: as for `types`.
    """
    shares = types(maps, [kind])[kind]
    if not shares.any():
        raise ValueError(f"no head gives any attention to {kind!r}; there is no strongest one")
    layer, head = divmod(int(shares.argmax()), shares.shape[1])
    return layer, head
