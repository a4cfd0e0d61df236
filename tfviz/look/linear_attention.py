"""Linear attention: the map that it amounts to, where a model never makes one.

Keys are multiplied with values and summed over the text first, and queries meet that sum (Katharopoulos et al. 2020,
equation 6). This equals weights q.k over their sum, which are computed here to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.context import untraced
from tfviz.look.lineage import CAST_OPS, SHAPE_OPS
from tfviz.look.products import Operation, Product, parse_einsum
from tfviz.look.trace import Trace
from tfviz.look.tracked_weights import index_along, is_learned, strided_axes


class KeyValueSum(NamedTuple):
    """Keys times values, summed over a text.

    Attributes:
        factors: one of them the keys, the other the values: the queries will tell which.
        summed: the axis of each factor that was summed over.
        axes: for each axis of the sum, the axes of the two factors that it comes of; None where one does not have it.
    """

    factors: tuple[Tensor, Tensor]
    summed: tuple[int, int]
    axes: tuple[tuple[int | None, int | None], ...]


class LinearAttention:
    """Tracks sums of keys times values, and records the map where queries meet one, at `<module>.implicit`."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.known: Any = WeakIdKeyDictionary()

    def observe(self, op: Operation, output: Any) -> None:
        """Record what queries take of each key, if they meet a sum here; track the output if it is one."""
        self._record(op)
        if not isinstance(output, Tensor):
            return
        if op.product is not None:
            self._begin(op.product, output)
        source = op.args[0] if op.args and isinstance(op.args[0], Tensor) else None
        was = None if source is None else self.known.get(source)
        if source is None or was is None:
            return
        if op.name in CAST_OPS:
            self.known[output] = was
        elif op.name in SHAPE_OPS:
            self._reshape(op, source, was, output)
        elif output is source:  # changed in place
            del self.known[source]

    def _begin(self, product: Product, output: Tensor) -> None:
        """A product may be a sum over a text."""
        summed = [letter for letter in product.letters[0] if product.contracts(letter)]
        if len(summed) != 1 or any(map(is_learned, product.factors)) or output.dim() != len(product.output):
            return
        left, right = product.letters
        axes = tuple((_position(left, letter), _position(right, letter)) for letter in product.output)
        self.known[output] = KeyValueSum(product.factors, (left.index(summed[0]), right.index(summed[0])), axes)

    def _reshape(self, op: Operation, source: Tensor, was: KeyValueSum, output: Tensor) -> None:
        """Follow the axes of a sum to another order; forget it where some are joined."""
        try:
            with untraced():
                moved = [op.func(index_along(source, axis), *op.args[1:], **op.kwargs) for axis in range(source.dim())]
        except RuntimeError:
            return
        order = [strided_axes(index) for index in moved]
        if sorted(order) == [[axis] for axis in range(output.dim())]:
            self.known[output] = was._replace(axes=tuple(was.axes[order.index([axis])] for axis in range(output.dim())))

    def _record(self, op: Operation) -> None:
        """Record the map that queries and a sum amount to, if they meet in this operation."""
        read = next((found for pair in _factor_pairs(op) if (found := self._match_read(*pair)) is not None), None)
        if read is None or read.key_count not in self.trace.position_counts():
            return
        site = self.trace.stack.site("implicit")

        def implied_map() -> Tensor:
            weights, roles = read.weights()
            return self.trace.recorder.copy(site, self.trace.resolver.layout(weights.shape, roles).to_bhqk(weights))

        self.trace.recorder.record(site, implied_map)

    def _match_read(
        self, factors: tuple[Tensor, Tensor], letters: tuple[Any, Any], output: Any
    ) -> _KeyValueRead | None:
        was = self.known.get(factors[0])
        shared = [at for at, letter in enumerate(letters[0]) if letter in letters[1] and letter not in output]
        if was is None or len(shared) != 1 or None not in was.axes[shared[0]]:
            return None
        place = 0 if was.axes[shared[0]][1] is None else 1
        return _KeyValueRead(was, place, factors[1], letters, letters[0][shared[0]])


class _KeyValueRead(NamedTuple):
    """Queries that meet a sum of keys times values.

    Attributes:
        place: which factor of the sum has the keys.
        letters: of the axes of the sum and of the queries.
        feature: the letter over which both are multiplied and summed.
    """

    sum: KeyValueSum
    place: int
    query: Tensor
    letters: tuple[Any, Any]
    feature: Any

    @property
    def key_count(self) -> int:
        return self.sum.factors[self.place].shape[self.sum.summed[self.place]]

    def weights(self) -> tuple[Tensor, list[str]]:
        """Return q.k over its sum, and the roles of its axes: those that both share, those of queries, the keys'."""
        sum_letters, query_letters = self.letters
        key = self.sum.factors[self.place]
        letter_of = {axes[self.place]: letter for letter, axes in zip(sum_letters, self.sum.axes)}
        key_letters = [letter_of.get(axis) for axis in range(key.dim())]
        key_letters[self.sum.summed[self.place]] = "key"
        shared = [letter for letter in query_letters if letter in key_letters and letter != self.feature]
        queries = [letter for letter in query_letters if letter not in (*shared, self.feature)]
        number = {letter: at for at, letter in enumerate(dict.fromkeys([*query_letters, *key_letters]))}
        sides = ([number[one] for one in some] for some in (query_letters, key_letters, (*shared, *queries, "key")))
        query_axes, key_axes, output_axes = sides
        products = torch.einsum(self.query.float(), query_axes, key.float(), key_axes, output_axes)
        total = products.sum(-1, keepdim=True)
        weights = torch.where(total == 0, 0.0, products / total)
        return weights, [*["shared"] * len(shared), *["q"] * len(queries), "k"]


def _factor_pairs(op: Operation) -> Iterator[tuple[tuple[Tensor, Tensor], tuple[Any, Any], Any]]:
    """Yield each pair of factors in both orders, with their letters and the output's."""
    if op.product is not None:
        factors: Sequence[Tensor] = op.product.factors
        sides: Sequence[Any] = op.product.letters
        output = op.product.output
    elif op.name == "einsum" and (found := parse_einsum(op.args)) is not None:
        factors, sides, output = found
    else:
        return
    for one in range(len(factors)):
        for other in range(len(factors)):
            if one != other:
                yield (factors[one], factors[other]), (sides[one], sides[other]), output


def _position(letters: Sequence[Any], letter: Any) -> int | None:
    return letters.index(letter) if letter in letters else None
