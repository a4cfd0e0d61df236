"""`WeightFinder`: finds the products of a model in which attention weights are multiplied with values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.capture_state import CaptureState
from tfviz.look.products import Contraction, Operation, is_learned, tensors
from tfviz.look.torch_modes import untraced
from tfviz.look.weight_tracker import CAST_OPS, DROPOUT_OPS, SHAPE_OPS, Stage, TrackedWeights, WeightTracker

LOGSUMEXP_OPS = frozenset({"logsumexp", "special_logsumexp", "sub", "__sub__", "subtract"})
JOIN_OPS = SHAPE_OPS | CAST_OPS | DROPOUT_OPS | {"cat", "concat", "concatenate", "stack"}
MAX_ROUNDING_UNITS = 200  # units in the last place by which the sum of a row may differ from 1

Match = tuple[int, TrackedWeights]  # index of the factor with weights, and the facts known about them


class WeightFinder:
    """A tracker of certain and possible attention weights up to the products with their values."""

    def __init__(self, state: CaptureState) -> None:
        self.state = state
        self.tracker = WeightTracker()
        self.scores = ScoreTracker()
        self.samples: Any = WeakIdKeyDictionary()  # tensors that `grid_sample` read at points of a picture
        self._buffers = {id(buffer) for buffer in state.stack.model.buffers()}

    def follow(self, op: Operation, output: Any) -> None:
        """Track the output of an operation.

        Most calls of a model have nothing to do with attention, so each tracker is consulted only if it is not empty.
        This is tested by the dictionary inside a weak one, whose own length takes longer to compute.
        """
        if op.name == "grid_sample":
            self.state.diagnostics.sampled[self.state.stack.path] = None
            self.samples[output] = True
        elif self.samples.data and op.name in JOIN_OPS and any(map(self.samples.get, op.tensors())):
            self.samples.update((tensor, True) for tensor in tensors((output,)))
        if self.state.chunk_tracker:
            self.state.chunk_tracker.follow(op, output)
        if op.product or self.scores.tracked.data:
            self.scores.follow(op, output)
        if op.name in LOGSUMEXP_OPS:
            self.tracker.follow_logsumexp(op, output)
        if self.tracker.tracked.data:
            self.tracker.follow(op, output)

    def find(self, product: Contraction) -> Match | None:
        """Return the weights in a product: from a softmax, with rows that sum to 1, of chunks, or named by the user."""
        return (
            self._of_softmax(product)
            or self._by_row_sums(product)
            or self._by_chunks(product)
            or self._by_name(product)
        )

    def _of_softmax(self, product: Contraction) -> Match | None:
        for operand in (0, 1):
            weights = self.tracker.tracked.get(product.factors[operand])
            if (
                weights
                and not weights.pending_product
                and weights.stage is not Stage.LOG_WEIGHTS
                and weights.axis is not None
            ):
                meets = product.contracts(product.subscripts[operand][weights.axis])
                if (
                    meets
                    and not is_learned(product.factors[1 - operand])
                    and not self._is_not_weights_times_values(product, operand)
                ):
                    return operand, weights
        return None

    def _by_row_sums(self, product: Contraction) -> Match | None:
        for operand in (0, 1):
            axis = None if is_learned(product.factors[1 - operand]) else self._axis_of_ones(product, operand)
            if axis is not None and not self._is_not_weights_times_values(product, operand):
                return operand, self.tracker.begin(product.factors[operand], None, axis)
        return None

    def _by_chunks(self, product: Contraction) -> Match | None:
        match = self.state.chunk_tracker.find(product) if self.state.chunk_tracker else None
        return None if match is None else (match[0], self.tracker.begin(product.factors[match[0]], None, match[1]))

    def _by_name(self, product: Contraction) -> Match | None:
        """Return weights whose rows do not sum to 1 if the user names their site in full."""
        match = self.scores.find(product, self.state.position_counts())
        if match is None:
            return None
        self.state.diagnostics.skipped[self.state.stack.path] = None
        recorder = self.state.recorder
        if self.state.stack.site("pattern") not in (*recorder.globs, *recorder.edits):
            return None
        return match[0], self.tracker.begin(product.factors[match[0]], None, match[1], Stage.GATES)

    def _is_not_weights_times_values(self, product: Contraction, operand: int) -> bool:
        """Return whether a product that sums over keys is no attention: sampling of an image, or heads that are mixed.

        For mixed heads see Shazeer et al. 2020.
        """
        if product.factors[1 - operand] in self.samples:
            return True
        others = [name for name in product.subscripts[1 - operand] if name not in product.subscripts[operand]]
        if len(others) < 2:  # the axes of a query and a key
            return False
        other = self.tracker.tracked.get(product.factors[1 - operand])
        if other and not other.pending_product:
            return other.axis is None or not product.contracts(product.subscripts[1 - operand][other.axis])
        size = product.factors[operand].shape[product.contracted_axes(operand)[0]]
        positions, heads = self.state.position_counts(), self.state.heads().count
        return size not in positions and (size == heads or (heads is None and bool(positions) and len(others) > 2))

    def _axis_of_ones(self, product: Contraction, operand: int) -> int | None:
        """Return the axis along which all rows of a factor are nonnegative and sum to 1; None if there is none."""
        rows, axes = product.factors[operand], product.contracted_axes(operand)
        if len(axes) != 1 or rows.dim() < 2 or rows.shape[axes[0]] < 2 or not rows.numel():
            return None
        if not rows.is_floating_point() or rows.is_meta or is_learned(rows) or id(rows) in self._buffers:
            return None
        with untraced(), torch.no_grad():
            last = rows.movedim(axes[0], -1)
            first = last[(0,) * (last.dim() - 1)]  # a single row rules out most tensors
            tolerance = min(MAX_ROUNDING_UNITS * torch.finfo(rows.dtype).eps, 1e-2)
            if not (abs(first.sum() - 1) < tolerance and (first >= 0).all()):
                return None
            return axes[0] if bool(((last.sum(-1) - 1).abs() < tolerance).all() and (last >= 0).all()) else None


class ScoreTracker:
    """A tracker of possible weights with rows that do not sum to 1: `relu(scores) / n`, `exp / (1 + sum)`, raw scores.

    Their numbers do not identify them as weights. They are recognized by their origin: a product of two tensors that
    are not learned is changed elementwise, then multiplied with a third tensor in a product that sums over positions.
    """

    def __init__(self) -> None:
        self.tracked: Any = WeakIdKeyDictionary()

    def follow(self, op: Operation, output: Any) -> None:
        """Track a product, or a tracked tensor that is reshaped or whose numbers change."""
        if op.product:  # with one tracked factor, the output is that of attention
            factors = op.product.factors
            if not any(map(is_learned, factors)) and len({factor in self.tracked for factor in factors}) == 1:
                self._add(output)
            return
        for source in op.tensors():
            for tensor in tensors((output,)) if source in self.tracked else ():
                if op.name in JOIN_OPS or tensor.shape == source.shape:
                    self._add(tensor)

    def _add(self, output: Any) -> None:
        if isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 1:
            self.tracked[output] = True

    def find(self, product: Contraction, counts: Iterable[int]) -> tuple[int, int] | None:
        """Return the index of the factor that may be weights, and its key axis.

        Args:
            product: the product in which to search.
            counts: the possible numbers of positions; empty: unknown.
        """
        for operand in (0, 1):
            weights, other, axes = (
                product.factors[operand],
                product.factors[1 - operand],
                product.contracted_axes(operand),
            )
            meets = len(axes) == 1 and weights in self.tracked and other not in self.tracked and not is_learned(other)
            if meets and (not counts or weights.shape[axes[0]] in counts):
                return operand, axes[0]
        return None
