"""Joining the maps of a text's chunks (BigBird), or of a picture's windows (Swin), to one map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz.look.axes import Layout
from tfviz.look.map_arguments import check_batch_element
from tfviz.look.products import align_axes
from tfviz.look.quantization import dequantize, quantize
from tfviz.look.recorder import Invocation
from tfviz.look.torch_modes import untraced

Replay = Callable[[int], Tensor]

MAX_ROW_SUM = 1.01  # of a query's weights; with a larger sum, it was computed twice


class TrackedInput:
    """A batch of texts, [batch, position, feature], or of pictures, [batch, row, col, feature], as a module's input.

    Everything derived from it shares this object. The positions of a picture are numbered in row-major order.

    Attributes:
        batch: number of texts.
        positions: number of positions of each text.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.size = self.batch, self.positions = shape[0], math.prod(shape[1:-1])


UNKNOWN_INPUT = TrackedInput((0, 0, 0))


@dataclass(eq=False)
class Origin:
    """The origin of a tensor's cells in a text.

    A text of two positions with three features has the cells [[1, 2, 3], [4, 5, 6]]. For a tensor made of the last two
    features of the second position and a row of padding, `replay(0)` returns [[5, 6], [0, 0]]: cell 5 is feature 1 of
    position 1, since 5 = 1 * 3 + 1 + 1.

    Attributes:
        features: number of features of each position in the source tensor; for scores, of both factors.
        is_whole: whether the tensor is the text, position by position.
        replay: function that returns for each cell the number of its source cell in the text, position * features +
            feature + 1, or 0 for none. For scores, `replay(0)` refers to the cells of one factor, `replay(1)` to those
            of the other.
        is_softmax: whether a softmax was applied.
        other: the second factor's text, for scores.
    """

    text: TrackedInput
    features: tuple[int, ...]
    is_whole: bool
    replay: Replay
    is_softmax: bool = False
    other: TrackedInput | None = None

    @property
    def position_counts(self) -> tuple[int, ...]:
        """The number of positions of each factor's text."""
        return (self.text.positions, self.other.positions) if self.other else (self.text.positions,)


class Coordinates(NamedTuple):
    """The indices in the whole map of each weight of a chunk: tensors of its shape [batch, head, query, key].

    Attributes:
        batch: the index of the text; -1 where a weight belongs to no text.
        head, query, key: indices in the whole map.
        heads, queries: numbers of heads and queries of the whole map.
    """

    batch: Tensor
    head: Tensor
    query: Tensor
    key: Tensor
    heads: int
    queries: int


class ChunkOrigins(NamedTuple):
    """The weights of a chunk of a text: their origin, the origin of their values, and the axes of both."""

    weights: Origin | None
    values: Origin | None
    subscripts: tuple[Any, ...]
    value_subscripts: tuple[Any, ...]
    layout: Layout

    @property
    def text(self) -> TrackedInput:
        """The input whose positions the keys index; if it is unknown, that of the queries."""
        if self.values is None and self.weights is not None and self.weights.text is UNKNOWN_INPUT:
            return self.weights.other or UNKNOWN_INPUT
        known = self.values or self.weights
        return known.text if known else UNKNOWN_INPUT

    def coordinates(self) -> Coordinates:
        """Return the indices of each weight in the whole map.

        Raises:
            LookupError: they are unknown.
        """
        weights, values = self.weights, self.values
        if values is None or len(values.features) != 1:
            raise LookupError("which keys these are is not known")
        if weights is None or weights.other is None:
            raise LookupError("which queries these are is not known")
        shape = self.layout.shape
        value_cells = align_axes(values.replay(0), self.value_subscripts, self.subscripts).expand(shape)
        key = position_of(self.layout.to_bhqk(value_cells), values.features[0])
        sides = [self.layout.to_bhqk(weights.replay(which).expand(shape)) for which in (0, 1)]
        operand = self._query_side(weights, values, sides, key)
        text, features = (weights.text, weights.other)[operand], weights.features[operand]
        query = position_of(sides[operand], features)
        feature = ((sides[operand] - 1) % features).contiguous()
        first_features = feature[query >= 0].unique()  # one for each head
        head = torch.searchsorted(first_features, feature).clamp(max=len(first_features) - 1)
        batch = torch.where((query >= 0) & (key >= 0), query // text.positions, -1)
        return Coordinates(
            batch, head, query % text.positions, key % values.text.positions, len(first_features), text.positions
        )

    @staticmethod
    def _query_side(weights: Origin, values: Origin, sides: Sequence[Tensor], key: Tensor) -> int:
        """Return the index of the scores' factor that holds the queries; the other has the values' positions."""
        texts = (weights.text, weights.other)
        for operand in (0, 1):
            positions, text = position_of(sides[1 - operand], weights.features[1 - operand]), texts[1 - operand]
            differ = (positions != key) & (positions >= 0) & (key >= 0)
            if text is not None and text.size == values.text.size and not differ.any():
                return operand
        raise LookupError("their keys and values belong to different positions")


@torch.no_grad()
def assemble(parts: Sequence[tuple[ChunkOrigins, Tensor, Tensor | None]], batch: int) -> tuple[Tensor, Tensor]:
    """Return one map of a text, [head, query, key], and a mask of the same shape, True where a query may attend.

    Args:
        parts: chunks with their weights, [batch, head, query, key] in float32, and the mask of the weights or None.
        batch: the index of the text.

    Raises:
        LookupError: the position of a chunk is unknown.
    """
    with untraced():
        placed = [(chunk.coordinates(), weights.cpu(), allowed) for chunk, weights, allowed in parts]
        heads = max(at.heads for at, *_ in placed)
        queries = max(at.queries for at, *_ in placed)
        total = torch.zeros(heads, queries, parts[0][0].text.positions)
        mask = torch.zeros(total.shape, dtype=torch.bool)
        for at, weights, allowed in placed:
            of_text = at.batch == batch
            cells = at.head[of_text], at.query[of_text], at.key[of_text]
            part = torch.zeros_like(total).index_put_(cells, weights[of_text], accumulate=True)
            rewritten = (
                total.sum(-1) + part.sum(-1) > MAX_ROW_SUM
            )  # rows that are computed again, as those of global tokens
            total[rewritten], mask[rewritten] = 0.0, False
            total += part
            allowed_of_text = of_text if allowed is None else of_text & allowed.cpu().expand(weights.shape)
            mask[at.head[allowed_of_text], at.query[allowed_of_text], at.key[allowed_of_text]] = True
    return total, mask


def join_chunks(
    site: str, invocations: Sequence[tuple[Tensor, Tensor | None]], chunks: Mapping[int, ChunkOrigins], batch: int
) -> list[Invocation]:
    """Return the invocations of a site, with those that cover chunks of one text joined to one.

    Raises:
        ValueError: there is no such text, or the position of a chunk is unknown.
    """
    by_text: dict[TrackedInput | None, list[int]] = {}
    for number in range(len(invocations)):
        by_text.setdefault(chunks[number].text if number in chunks else None, []).append(number)
    joined: list[Invocation] = []
    for text, numbers in by_text.items():
        if text is None:
            joined += [invocations[number] for number in numbers]
            continue
        check_batch_element(batch, text.batch)
        try:
            parts = [(chunks[number], dequantize(invocations[number][0]), invocations[number][1]) for number in numbers]
            weights, mask = assemble(parts, batch % text.batch)
        except (LookupError, RuntimeError) as error:
            raise ValueError(
                f"{site} was computed {len(numbers)} times, for chunks of a text of {text.positions} tokens, which "
                f"cannot be joined: {error}; captured.over_time({site!r}) has them"
            ) from error
        is_quantized = invocations[numbers[0]][0].dtype == torch.uint8
        joined.append(((quantize(weights) if is_quantized else weights).expand(text.batch, *weights.shape), mask[None]))
    return joined


def position_of(cells: Tensor, features: int) -> Tensor:
    """Return the position, counted over all texts, to which numbered cells belong; -1 for none."""
    return (cells - 1).div(features, rounding_mode="floor")
