"""Tracking of attention weights from their softmax through all operations that a model applies to them.

A softmax alone is not attention: routers and gates also use one. Its output is therefore tracked through changes of
shape and type, dropout and arithmetic, until a product with values sums over its keys. An index tensor, which is
reshaped along with the weights, records which of their cells belong to which key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from typing import Any
from weakref import ref

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.products import Contraction, Operation, align_axes, index_along, strided_axes, sum_of_products
from tfviz.look.torch_modes import untraced

SHAPE_OPS = frozenset({
    "view", "reshape", "permute", "transpose", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "unsqueeze",
    "squeeze", "flatten", "unflatten", "expand", "expand_as", "view_as", "reshape_as", "__getitem__", "chunk", "split",
    "unbind", "select", "narrow", "mT", "T", "tensor_split", "flip", "roll",
})  # fmt: skip
CAST_OPS = frozenset({
    "contiguous", "clone", "detach", "to", "type", "type_as", "float", "half", "bfloat16", "double", "cpu", "cuda",
})  # fmt: skip
DROPOUT_OPS = frozenset({"dropout", "feature_dropout", "dropout2d", "dropout1d"})
MULTIPLY_OPS = frozenset({"mul", "multiply"})


class Stage(Enum):
    """The contents of a tracked tensor: weights, their logarithms, or gates."""

    WEIGHTS = auto()
    LOG_WEIGHTS = auto()  # output of a log-softmax, before `exp`
    GATES = auto()  # output of a sigmoid, whose rows need not sum to 1


class Status(Enum):
    """Whether weights were multiplied with values before, and what was done with them."""

    NEW = auto()  # not yet multiplied with values
    RECORDED = auto()
    EDITED = auto()  # recorded, and overwritten by an edit


@dataclass(eq=False)
class TrackedWeights:
    """The facts known about a tensor of attention weights.

    Attributes:
        key_index: the number of each cell's key, in the tensor's shape; only the key axis has a stride.
        scores: the softmax's input, in the tensor's shape; None if unknown.
        softmax: the softmax's output and its key axis; None: this tensor is that output.
        changed: whether the numbers differ from the softmax's output, apart from dropout.
        undropped: the weights before dropout; None without dropout.
        dropout: probability of the dropout.
        pending_product: the weights, the tensor with which they were multiplied elementwise, and the multiplication;
            None unless a sum may complete the product.
    """

    key_index: Tensor
    scores: Tensor | None = None
    softmax: tuple[Tensor, int] | None = None
    changed: bool = False
    undropped: Tensor | None = None
    dropout: float = 0.0
    stage: Stage = Stage.WEIGHTS
    status: Status = Status.NEW
    pending_product: tuple[Tensor, Tensor, Callable[..., Tensor]] | None = None

    @cached_property
    def key_axes(self) -> list[int]:
        """The key axes: a single axis, unless it was joined with another."""
        axes = strided_axes(self.key_index)
        if len(axes) > 1:  # reshaping copies the index of axes that are joined and split
            return [axis for axis in axes if bool((self.key_index != self.key_index.narrow(axis, 0, 1)).any())]
        return axes or [self.key_index.dim() - 1]

    @property
    def axis(self) -> int | None:
        """The key axis; None if there are several."""
        return self.key_axes[0] if len(self.key_axes) == 1 else None

    def softmax_of(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        """Return the output and axis of the softmax that a tensor comes from; the tensor may be that output."""
        if self.softmax is not None or self.axis is None or self.stage is Stage.LOG_WEIGHTS:
            return self.softmax
        return tensor.detach(), self.axis


class WeightTracker:
    """A tracker of the live tensors of attention weights.

    Attributes:
        tracked: tensor -> the facts known about it.
    """

    def __init__(self) -> None:
        self.tracked: Any = WeakIdKeyDictionary()
        self._sums: Any = WeakIdKeyDictionary()  # result of logsumexp -> its scores, by weak reference, and axis

    def begin(self, weights: Tensor, scores: Tensor | None, axis: int, stage: Stage = Stage.WEIGHTS) -> TrackedWeights:
        """Start to track weights that are a softmax of scores over an axis; return the facts known about them."""
        scores = None if scores is None else scores.detach()
        key_index = index_along(weights, axis % weights.dim())
        self.tracked[weights] = tracked = TrackedWeights(key_index, scores, stage=stage)
        return tracked

    def follow_logsumexp(self, op: Operation, output: Any) -> None:
        """Track `scores - scores.logsumexp(-1, keepdim=True)`, whose row sums are too inexact to be recognized."""
        if op.name.endswith("logsumexp"):
            dim = op.argument(1, "dim")
            dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
            if type(dim) is int:
                self._sums[output] = (ref(op.args[0]), dim)
        elif isinstance(op.args[1], Tensor) and op.args[1] in self._sums:
            scores, dim = self._sums[op.args[1]]
            if scores() is op.args[0]:
                self.begin(output, op.args[0], dim, Stage.LOG_WEIGHTS)

    def follow(self, op: Operation, output: Any) -> None:
        """Track the output of an operation on a tracked tensor, by the handler for its name."""
        source = self._surviving_factor(op.product) if op.product else self._first_tracked(op)
        if source is None:
            return
        previous = self.tracked[source]
        if output is source:  # changed in place
            if op.name not in CAST_OPS | SHAPE_OPS | DROPOUT_OPS:
                self.tracked[source] = replace(previous, changed=True, status=Status.NEW)
            return
        is_float = isinstance(output, Tensor) and output.is_floating_point()
        if previous.pending_product is None and (is_float or op.name in SHAPE_OPS):
            HANDLERS.get(op.name, WeightTracker._change_values)(self, op, source, previous, output)

    def _first_tracked(self, op: Operation) -> Tensor | None:
        for value in (*op.args, *op.kwargs.values()):  # plain loops, since this runs for most calls
            for part in value if isinstance(value, list | tuple) else (value,):
                if isinstance(part, Tensor) and part in self.tracked:
                    return part
        return None

    def _surviving_factor(self, product: Contraction) -> Tensor | None:
        """Return the tracked factor whose keys a product does not sum over; None if there is none."""
        for factor, subscripts in zip(product.factors, product.subscripts):
            previous = self.tracked.get(factor)
            if (
                previous
                and not previous.pending_product
                and not any(product.contracts(subscripts[axis]) for axis in previous.key_axes)
            ):
                return factor
        return None

    def pending_sum(self, op: Operation) -> Contraction | None:
        """Return the product that a sum completes after weights and values were multiplied elementwise; else None."""
        previous = self.tracked.get(op.args[0]) if op.args and isinstance(op.args[0], Tensor) else None
        dim = op.argument(1, "dim", op.kwargs.get("axis"))
        if previous is None or previous.pending_product is None or dim is None:
            return None
        weights, other, multiply = previous.pending_product
        keepdim = {name: value for name, value in op.kwargs.items() if name == "keepdim"}
        return sum_of_products(
            weights,
            other,
            op.args[0],
            dim if isinstance(dim, list | tuple) else (dim,),
            lambda left, right: multiply(left, right).sum(dim, *op.args[2:], **keepdim),
        )

    def _reshape(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Any) -> None:
        """Apply a reshape or selection also to the key index, scores and undropped weights, and track the output."""

        def reshaped(tensor: Tensor | None) -> list[Any]:
            """Return the results for one tensor, one for each output."""
            if tensor is None:
                return [None] * len(outputs)
            return _as_list(op.func(*(tensor if arg is source else arg for arg in op.args), **op.kwargs))

        outputs = _as_list(output)
        try:
            with untraced():  # gradients flow through the undropped weights, if they are edited
                columns = [reshaped(part) for part in (previous.key_index, previous.scores, previous.undropped)]
        except RuntimeError:  # the key axis was joined with another
            return
        for tensor, index, scores, undropped in zip(outputs, *columns):
            if not (isinstance(tensor, Tensor) and isinstance(index, Tensor) and index.shape == tensor.shape):
                continue
            softmax = previous.softmax_of(source)
            now = replace(previous, key_index=index, scores=scores, undropped=undropped, softmax=softmax)
            if now.axis is not None and previous.axis is not None:
                lost_keys = index.shape[now.axis] < previous.key_index.shape[previous.axis]
                self.tracked[tensor] = replace(now, changed=previous.changed or lost_keys)

    def _cast(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Tensor) -> None:
        self.tracked[output] = replace(previous, softmax=previous.softmax_of(source))

    def _drop(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Tensor) -> None:
        probability = op.argument(1, "p", 0.5) if op.argument(2, "training", op.kwargs.get("train", True)) else 0.0
        undropped = previous.undropped if not probability or previous.undropped is not None else source
        dropout = probability or previous.dropout
        self.tracked[output] = replace(
            previous, softmax=previous.softmax_of(source), undropped=undropped, dropout=dropout
        )

    def _exponentiate(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Tensor) -> None:
        if previous.stage is Stage.LOG_WEIGHTS:
            self.tracked[output] = replace(previous, stage=Stage.WEIGHTS)
        else:
            self._change_values(op, source, previous, output)

    def _multiply(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Tensor) -> None:
        """Track weights that are multiplied with values elementwise, a product that a sum over keys may complete."""
        if previous.stage is Stage.LOG_WEIGHTS or output.shape == source.shape:
            self._change_values(op, source, previous, output)
        elif isinstance(other := op.args[1] if op.args[0] is source else op.args[0], Tensor):
            self.tracked[output] = replace(previous, pending_product=(source, other, op.func))

    def _change_values(self, op: Operation, source: Tensor, previous: TrackedWeights, output: Tensor) -> None:
        """Track cells whose values change, or heads that are mixed (talking heads, Shazeer 2020)."""
        if previous.stage is not Stage.WEIGHTS:
            return
        index: Tensor | None = previous.key_index
        if op.product:
            operand = 0 if op.product.factors[0] is source else 1
            index = _index_after_product(previous.key_index, op.product.subscripts[operand], op.product, output)
        elif output.shape != source.shape:
            index = _index_after_convolution(previous, op, output)
        if index is not None:
            scores = previous.scores if previous.scores is not None and previous.scores.shape == output.shape else None
            self.tracked[output] = TrackedWeights(
                index, scores, previous.softmax_of(source), changed=True, stage=previous.stage
            )


HANDLERS: dict[str, Callable[[WeightTracker, Operation, Tensor, TrackedWeights, Any], None]] = {
    **dict.fromkeys(SHAPE_OPS, WeightTracker._reshape),
    **dict.fromkeys(CAST_OPS, WeightTracker._cast),
    **dict.fromkeys(DROPOUT_OPS, WeightTracker._drop),
    **dict.fromkeys(MULTIPLY_OPS, WeightTracker._multiply),
    "exp": WeightTracker._exponentiate,
}


def _as_list(output: Any) -> list[Any]:
    """Return the outputs of an operation that has one or several."""
    return [output] if isinstance(output, Tensor) else list(output)


def _index_after_product(
    index: Tensor, subscripts: Sequence[Any], product: Contraction, output: Tensor
) -> Tensor | None:
    """Return the key index of a product that does not sum over keys; None if its axes are unknown."""
    if output.dim() != len(product.output) or index.dim() != len(subscripts):
        return None
    return align_axes(index, subscripts, product.output).expand(output.shape)


def _index_after_convolution(previous: TrackedWeights, op: Operation, output: Tensor) -> Tensor | None:
    """Return the key index after a convolution over an axis other than the keys', such as the heads'."""
    index = previous.key_index
    if op.name not in ("conv3d", "conv2d", "conv1d") or output.dim() != index.dim():
        return None
    resized = [axis for axis in range(index.dim()) if output.shape[axis] != index.shape[axis]]
    if len(resized) != 1 or resized == [previous.axis]:
        return None
    return index.select(resized[0], 0).unsqueeze(resized[0]).expand(output.shape)
