"""Eager attention: recording and editing of weights that a model computes itself and multiplies with values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfviz.look.attention_call import compact_mask, is_unmasked, zero_masked_rows
from tfviz.look.axes import Layout, OutputAxes, roles
from tfviz.look.capture_state import CaptureState
from tfviz.look.chunk_tracker import ChunkTracker
from tfviz.look.key_signatures import KeyRecord, keys_of_product
from tfviz.look.linear_attention import LinearAttention
from tfviz.look.products import Contraction, Operation
from tfviz.look.text_chunks import ChunkOrigins
from tfviz.look.torch_modes import paused, untraced
from tfviz.look.weight_finder import WeightFinder
from tfviz.look.weight_tracker import Stage, Status, TrackedWeights

SOFTMAX_OPS = {
    "softmax": Stage.WEIGHTS,
    "special_softmax": Stage.WEIGHTS,
    "log_softmax": Stage.LOG_WEIGHTS,
    "special_log_softmax": Stage.LOG_WEIGHTS,
    "sigmoid": Stage.GATES,
}


@dataclass
class EagerWeights:
    """Attention weights that are multiplied with their values in a product.

    Attributes:
        tensor: the weights as a factor of the product, after dropout.
        tracked: the facts known about the weights.
        product, operand: the product, and the index of the factor that holds the weights.
        layout: the layout of the weights' axes.
    """

    tensor: Tensor
    tracked: TrackedWeights
    product: Contraction
    operand: int
    layout: Layout

    @property
    def scores(self) -> Tensor | None:
        """The scores, in the weights' own axes; None unless each weight has a score."""
        scores = self.tracked.scores
        return None if scores is None or scores.shape != self.tensor.shape else scores

    @property
    def undropped(self) -> Tensor:
        """The weights before dropout."""
        return self.tensor if self.tracked.undropped is None else self.tracked.undropped

    @property
    def pattern(self) -> Tensor:
        """The pattern, [batch, head, query, key], before dropout, with zeros in fully masked rows."""
        weights = self.layout.to_bhqk(self.undropped)
        return weights if self.scores is None else zero_masked_rows(weights, self.layout.to_bhqk(self.scores))

    def allowed(self) -> Tensor | None:
        """Return a mask, True where a query may attend; None if nothing is masked or the scores are unknown."""
        if self.scores is None:
            return None
        return compact_mask(is_unmasked(self.layout.to_bhqk(self.scores)))

    def output_axes(self, output: Tensor) -> OutputAxes | None:
        """Return the axes of the product; None if the outputs of the heads cannot be separated in it."""
        return OutputAxes.from_product(self.layout, self.product, self.operand, self.tracked.axis or 0, output)

    def chunk(self, tracker: ChunkTracker) -> ChunkOrigins | None:
        """Return the chunk of a text that the weights cover; None if they cover the whole text."""
        return tracker.chunk(self.product, self.operand, self.layout)

    def key_record(self) -> KeyRecord:
        """Return the key record of the values, by which maps are joined over time."""
        scores = self.scores

        def allowed(rows: slice) -> Tensor | None:
            return None if scores is None else is_unmasked(self.layout.to_bhqk(scores)[:, :, rows])

        keys = keys_of_product(self.product, self.operand, self.tracked.axis or 0, self.layout)
        return KeyRecord(self.layout.sizes[2], allowed, keys, self.product.factors[1 - self.operand].dtype)


class EagerAttention:
    """A matcher that tracks softmaxes and products, and records and edits the weights that multiply values."""

    def __init__(self, state: CaptureState) -> None:
        self.state = state
        self.finder = WeightFinder(state)
        wants_implicit = any(glob.rpartition(".")[2] == "implicit" for glob in state.recorder.globs)
        self.linear = LinearAttention(state) if wants_implicit else None

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a torch call of the model and return its output, edited where edits apply."""
        op = Operation.from_call(func, args, kwargs)
        if op.name in SOFTMAX_OPS:
            return self._softmax(SOFTMAX_OPS[op.name], func, *args, **kwargs)
        if op.name == "sum" and self.finder.tracker.tracked:
            op = op._replace(product=self.finder.tracker.pending_sum(op))
        if op.product and (match := self.finder.find(op.product)):
            return self._apply_to_values(self._weights(op.product, *match), lambda: func(*args, **kwargs))
        output = func(*args, **kwargs)
        if self.linear is not None:
            self.linear.observe(op, output)
        self.finder.follow(op, output)
        return output

    def _softmax(
        self, stage: Stage, func: Callable[..., Any], input: Tensor, dim: int | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Compute a softmax, possibly of edited attention scores, and track its output."""
        is_gate = stage is Stage.GATES
        rest = args if is_gate else (dim, *args)
        if input.is_nested or input.layout is not torch.strided or not input.dim() or not input.numel():
            return func(input, *rest, **kwargs)
        if is_gate:
            axis = -1
        elif dim is not None:
            axis = dim
        else:  # the axis that PyTorch guesses
            axis = int(input.dim() not in (0, 1, 3))
        site = self.state.stack.site("scores")
        if self.state.recorder.is_edited(site) and input.dim() > 1:
            moved = input.movedim(axis, -1)
            edited = self.state.recorder.edit(site, self.state.with_heads(moved))
            input = edited.reshape(moved.shape).movedim(-1, axis)
        weights = func(input, *rest, **kwargs)
        if not is_gate:
            self.state.diagnostics.softmaxes[self.state.stack.path] = None
        self.finder.tracker.begin(weights, input, axis, stage)
        if self.state.chunk_tracker:
            self.state.chunk_tracker.follow_softmax(input, weights)
        return weights

    def _weights(self, product: Contraction, operand: int, tracked: TrackedWeights) -> EagerWeights:
        """Return the weights that are a factor of a product, with the layout of their axes."""
        tensor = product.factors[operand]
        layout = self.state.layout(tensor.shape, roles(product, operand, tracked.axis or 0))
        return EagerWeights(tensor, tracked, product, operand, layout)

    def _apply_to_values(self, weights: EagerWeights, call: Callable[[], Any]) -> Any:
        """Record weights at their first product with values; return the product, recomputed if weights are edited."""
        tracked, recorder = weights.tracked, self.state.recorder
        site = self.state.stack.site("pattern")
        status = tracked.status
        if tracked.dropout:
            self.state.diagnostics.dropout[site] = tracked.dropout
        if status is Status.NEW:
            tracked.status = Status.RECORDED
            self._record_parts(site, weights)
        is_edited = self.state.is_edited("pattern")
        if is_edited:
            factors = list(weights.product.factors)
            if status is not Status.EDITED:
                with self.state.noting_chunk(site, weights.chunk):
                    factors[weights.operand] = self._edited(site, weights, status)
            with paused():
                output = weights.product.recompute(*factors)
        else:
            if status is Status.NEW:
                with self.state.noting_chunk(site, weights.chunk):
                    recorder.record(site, lambda: recorder.copy(site, weights.pattern), weights.allowed)
            output = call()
        axes = weights.output_axes(output) if status is Status.NEW else None
        return output if axes is None else self.state.edit_output_heads(output, lambda: axes, outer=is_edited)

    def _record_parts(self, site: str, weights: EagerWeights) -> None:
        """Record keys and scores, and the softmax's output if it differs from the weights that multiply the values."""
        recorder, tracked = self.state.recorder, weights.tracked
        recorder.record_keys(site, weights.key_record)
        scores = weights.scores
        if scores is not None and tracked.stage is not Stage.GATES:
            name = self.state.stack.site("scores")
            recorder.record(name, lambda: recorder.copy(name, weights.layout.to_bhqk(scores)))
        if tracked.changed and tracked.softmax is not None:
            softmax = tracked.softmax[0].movedim(tracked.softmax[1], -1)
            if not _same_numbers(softmax, weights.undropped):
                below = self.state.stack.site("softmax")
                recorder.record(below, lambda: recorder.copy(below, self.state.with_heads(softmax)))
        self.state.note_channels(weights.layout)
        if tracked.stage is Stage.GATES:
            self.state.diagnostics.unnormalized[site] = None

    def _edited(self, site: str, weights: EagerWeights, status: Status) -> Tensor:
        """Return the edited weights in their own axes, with the original dropout applied."""
        tensor, undropped, tracked, layout = weights.tensor, weights.undropped, weights.tracked, weights.layout
        with untraced():
            if status is Status.NEW:
                scores = None if weights.scores is None else layout.to_bhqk(weights.scores)
                edited = self.state.edit_pattern(scores, weights.pattern, weights.allowed, weights.key_record)
            else:
                edited = self.state.recorder.edit(site, weights.pattern)
            edited = layout.from_bhqk(edited).to(tensor.dtype)
            is_writable = not (tensor.requires_grad or 0 in undropped.stride())
            if weights.scores is not None and is_writable:
                undropped.copy_(edited)  # for code that reads the weights later, such as the caller
                tracked.status = Status.EDITED if tracked.undropped is None else tracked.status
            if tracked.undropped is not None:
                surviving = (tensor != 0) | (undropped == 0)
                edited = torch.where(surviving, edited / (1 - tracked.dropout), 0.0)
        return edited


def _same_numbers(softmax: Tensor, weights: Tensor) -> bool:
    """Return whether two tensors are equal up to rounding to another dtype."""
    return softmax.shape == weights.shape and torch.equal(softmax.to(weights.dtype), weights)
