"""The implicit map of linear attention, which a model never computes.

Linear attention first multiplies keys with values and sums over the text, then multiplies queries with that sum
(Katharopoulos et al. 2020, equation 6). This equals attention with the weights q.k divided by their sum over keys,
which are computed here for display.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.capture_state import CaptureState
from tfviz.look.products import Operation, Subscripts, index_along, is_learned, parse_einsum, strided_axes
from tfviz.look.torch_modes import untraced
from tfviz.look.weight_tracker import CAST_OPS, SHAPE_OPS


class KeyValueSum(NamedTuple):
    """A product of keys and values, summed over a text.

    Attributes:
        factors: keys and values, in an order that is unknown until queries are multiplied with the sum.
        subscripts: the subscripts of each factor's axes.
        summed: the subscript of the axis of positions, which was summed over.
        axes: the subscripts of the sum's axes.
    """

    factors: tuple[Tensor, Tensor]
    subscripts: tuple[Subscripts, Subscripts]
    summed: Any
    axes: Subscripts


class LinearAttention:
    """A tracker of sums of keys times values, which records `<module>.implicit` when queries multiply a sum."""

    def __init__(self, state: CaptureState) -> None:
        self.state = state
        self.tracked: Any = WeakIdKeyDictionary()

    def observe(self, op: Operation, output: Any) -> None:
        """Record the map if queries multiply a tracked sum; track the output if it is itself such a sum."""
        self._record(op)
        if not isinstance(output, Tensor):
            return
        if (product := op.product) is not None and not any(map(is_learned, product.factors)):
            summed = [name for name in product.subscripts[0] if product.contracts(name)]
            if len(summed) == 1 and output.dim() == len(product.output):
                self.tracked[output] = KeyValueSum(product.factors, product.subscripts, summed[0], product.output)
        source = op.args[0] if op.args and isinstance(op.args[0], Tensor) else None
        previous = None if source is None else self.tracked.get(source)
        if source is None or previous is None:
            return
        if op.name in CAST_OPS:
            self.tracked[output] = previous
        elif op.name in SHAPE_OPS:
            self._reshape(op, source, previous, output)
        elif output is source:  # changed in place
            del self.tracked[source]

    def _reshape(self, op: Operation, source: Tensor, previous: KeyValueSum, output: Tensor) -> None:
        """Track a sum whose axes are reordered; ignore the output if axes are joined."""
        try:
            with untraced():
                moved = [op.func(index_along(source, axis), *op.args[1:], **op.kwargs) for axis in range(source.dim())]
        except RuntimeError:
            return
        order = [strided_axes(index) for index in moved]
        if sorted(order) == [[axis] for axis in range(output.dim())]:
            axes = tuple(previous.axes[order.index([axis])] for axis in range(output.dim()))
            self.tracked[output] = previous._replace(axes=axes)

    def _record(self, op: Operation) -> None:
        """Record the implicit map if this operation multiplies queries with a tracked sum."""
        for factors, subscripts, output in _factor_pairs(op):
            previous = self.tracked.get(factors[0])
            features = [name for name in subscripts[0] if name in subscripts[1] and name not in output]
            if previous is None or len(features) != 1:
                continue
            names = dict(zip(subscripts[0], previous.axes))  # subscripts here -> those of the sum's factors
            sides = [side for side in (0, 1) if names[features[0]] in previous.subscripts[side]]
            if len(sides) != 1:  # in both: an axis of texts or heads
                continue
            keys, key_subscripts = previous.factors[sides[0]], previous.subscripts[sides[0]]
            if keys.shape[key_subscripts.index(previous.summed)] in self.state.position_counts():
                query_subscripts = tuple(names.get(name, ("query", name)) for name in subscripts[1])
                self._record_map(
                    (factors[1], keys), (query_subscripts, key_subscripts), names[features[0]], previous.summed
                )
                return

    def _record_map(
        self, factors: tuple[Tensor, Tensor], subscripts: tuple[Subscripts, Subscripts], feature: Any, key: Any
    ) -> None:
        """Record q.k divided by its sum over keys, for queries and keys whose axes have these subscripts."""
        site = self.state.stack.site("implicit")

        def implied_map() -> Tensor:
            shared = [name for name in subscripts[0] if name in subscripts[1] and name != feature]
            queries = [name for name in subscripts[0] if name not in (*shared, feature)]
            number = {name: index for index, name in enumerate(dict.fromkeys([*subscripts[0], *subscripts[1]]))}
            sides = ([number[name] for name in side] for side in (*subscripts, (*shared, *queries, key)))
            query_axes, key_axes, output_axes = sides
            products = torch.einsum(factors[0].float(), query_axes, factors[1].float(), key_axes, output_axes)
            total = products.sum(-1, keepdim=True)
            weights = torch.where(total == 0, 0.0, products / total)
            roles = [*["shared"] * len(shared), *["q"] * len(queries), "k"]
            return self.state.recorder.copy(site, self.state.layout(weights.shape, roles).to_bhqk(weights))

        self.state.recorder.record(site, implied_map)


def _factor_pairs(op: Operation) -> Iterator[tuple[tuple[Tensor, Tensor], tuple[Subscripts, Subscripts], Subscripts]]:
    """Yield each pair of factors in both orders, with their subscripts and the output's."""
    factors: Any = ()
    if op.product is not None:
        factors, sides, output = op.product.factors, list(op.product.subscripts), op.product.output
    elif op.name == "einsum" and (parsed := parse_einsum(op.args)) is not None:
        factors, sides, output = parsed
    for left in range(len(factors)):
        for right in range(len(factors)):
            if left != right:
                yield (factors[left], factors[right]), (sides[left], sides[right]), output
