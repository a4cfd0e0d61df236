"""Blocks of a text put together to one map of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz.look.aside import aside
from tfviz.look.axes import Layout
from tfviz.look.kept import pack, unpack

Replay = Callable[[int], Tensor]


class Text:
    """A text as a module has it, batch word feature; the same object for all that is made of it."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.size = self.batch, self.words = shape[0], shape[1]


UNKNOWN = Text((0, 0))


@dataclass(eq=False)
class Node:
    """How a tensor came of a text.

    Attributes:
        wide: features of each word in it, or of the tensor that it was made of.
        whole: whether it is the text, word by word.
        replay: the numbers of its cells, from 1 on, 0 for none: word times `wide` plus feature; of scores, those of
            their queries (0) or of their keys (1), whichever factor came first.
        soft: whether they went through a softmax.
    """

    text: Text
    wide: tuple[int, ...]
    whole: bool
    replay: Replay
    soft: bool = False
    other: Text | None = None  # of scores, the second factor's


class Piece(NamedTuple):
    """Weights of a part of a text: how they, and the values that they met, came of it."""

    weights: Node | None
    values: Node | None
    own: tuple[Any, ...]
    others: tuple[Any, ...]
    axes: Layout

    @property
    def text(self) -> Text:
        """Of the keys; the queries' where that is not known."""
        if self.values is None and self.weights is not None and self.weights.text is UNKNOWN:
            return self.weights.other or UNKNOWN
        known = self.values or self.weights
        return known.text if known else UNKNOWN

    def places(self) -> Cells:
        """Of each weight, batch head query key, what it is of.

        Raises:
            LookupError: it is not known.
        """
        weights, values = self.weights, self.values
        if values is None or len(values.wide) != 1:
            raise LookupError("which keys these are is not known")
        if weights is None or weights.other is None:
            raise LookupError("which queries these are is not known")
        shape, texts = self.axes.given, (weights.text, weights.other)
        sides = [self.axes.to(weights.replay(which).expand(shape)) for which in (0, 1)]
        key = word_of(self.axes.to(lettered(values.replay(0), self.others, self.own).expand(shape)), values.wide[0])
        for first in (0, 1):  # the other factor of the scores had the keys of these values
            words = word_of(sides[1 - first], weights.wide[1 - first])
            if texts[1 - first].size == values.text.size and not ((words != key) & (words >= 0) & (key >= 0)).any():
                break
        else:
            raise LookupError("their keys and values are of different words")
        query, wide, text = word_of(sides[first], weights.wide[first]), weights.wide[first], texts[first]
        feature = ((sides[first] - 1) % wide).contiguous()
        features = feature[query >= 0].unique()  # the first of each head
        head = torch.searchsorted(features, feature).clamp(max=len(features) - 1)
        there = (query >= 0) & (key >= 0)
        batch = torch.where(there, query // text.words, -1)
        return Cells(batch, head, query % text.words, key % values.text.words, (len(features), text.words))


class Cells(NamedTuple):
    """Of each weight its text in the batch, or -1 where it is of none, its head, query and key; and how many heads and
    queries there are in all.
    """

    batch: Tensor
    head: Tensor
    query: Tensor
    key: Tensor
    many: tuple[int, int]


@torch.no_grad()
def whole(parts: Sequence[tuple[Piece, Tensor, Tensor | None]], batch: int) -> tuple[Tensor, Tensor]:
    """One map of a text, head query key, of its parts; and where its queries might look.

    Args:
        parts: with the weights of each, batch head query key in float32, and where they might look.

    Raises:
        LookupError: it is not known what a part is of.
    """
    with aside():
        every = [(piece.places(), made.cpu(), allowed) for piece, made, allowed in parts]
        heads, queries = (max(cells.many[axis] for cells, *_ in every) for axis in (0, 1))
        weights = torch.zeros(heads, queries, parts[0][0].text.words)
        mask = torch.zeros(weights.shape, dtype=torch.bool)
        for cells, made, allowed in every:
            here = cells.batch == batch
            at = cells.head[here], cells.query[here], cells.key[here]
            part = torch.zeros_like(weights).index_put_(at, made[here], accumulate=True)
            anew = weights.sum(-1) + part.sum(-1) > 1.01  # rows that are written over, as those of global words
            weights[anew], mask[anew] = 0.0, False
            weights += part
            may = here if allowed is None else here & allowed.cpu().expand(made.shape)
            mask[cells.head[may], cells.query[may], cells.key[may]] = True
    return weights, mask


def joined(
    site: str, firings: Sequence[tuple[Tensor, Tensor | None]], pieces: Mapping[int, Piece], batch: int
) -> list[tuple[Tensor, Tensor | None]]:
    """Firings of blocks, those of one text put together: batch head query key, all of the batch this one.

    Raises:
        ValueError: no such text; it is not known where a block belongs.
    """
    texts: dict[int, list[int]] = {}
    for number in range(len(firings)):
        texts.setdefault(id(pieces[number].text) if number in pieces else -1, []).append(number)
    made = []
    for key, numbers in texts.items():
        if key == -1:
            made += [firings[number] for number in numbers]
            continue
        text = pieces[numbers[0]].text
        if not -text.batch <= batch < text.batch:
            raise ValueError(f"batch is {batch}; the capture holds a batch of {text.batch}")
        try:
            parts = [(pieces[number], unpack(firings[number][0]), firings[number][1]) for number in numbers]
            weights, mask = whole(parts, batch % text.batch)
        except (LookupError, RuntimeError) as error:
            _, _, queries, keys = firings[numbers[-1]][0].shape
            raise ValueError(
                f"these are blocks of a text of {text.words} words, not the text: {site} fired {len(numbers)} times, "
                f"the last with {queries} queries and {keys} keys, and {error}; seen.over_time({site!r}) has them"
            ) from error
        packed = firings[numbers[0]][0].dtype == torch.uint8
        made.append(((pack(weights) if packed else weights).expand(text.batch, *weights.shape), mask[None]))
    return made


def words_of(scores: Node) -> tuple[int, ...]:
    return (scores.text.words, scores.other.words) if scores.other else (scores.text.words,)


def word_of(numbers: Tensor, wide: int) -> Tensor:
    """Which word, of all texts; -1: none."""
    return (numbers - 1).div(wide, rounding_mode="floor")


def lettered(numbers: Tensor, letters: Sequence[Any], output: Sequence[Any]) -> Tensor:
    """The axes of a factor as those of an output; of an axis that it does not have, its first place."""
    for axis in reversed(range(numbers.dim())):
        if letters[axis] not in output:
            numbers = numbers.select(axis, 0)
    left = [letter for letter in letters if letter in output]
    numbers = numbers.permute(sorted(range(len(left)), key=lambda axis: output.index(left[axis])))
    for axis, letter in enumerate(output):
        numbers = numbers if letter in left else numbers.unsqueeze(axis)
    return numbers
