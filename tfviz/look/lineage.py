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

from tfviz.look.products import Operation, Product, align_axes, index_along, strided_axes, sum_of_products
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


class Lineage:
    """A tracker of the live tensors of attention weights.

    Attributes:
        known: tensor -> the facts known about it.
    """

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()
        self._sums: Any = WeakIdKeyDictionary()  # result of logsumexp -> its scores, by weak reference, and axis

    def begin(self, weights: Tensor, scores: Tensor | None, axis: int, stage: Stage = Stage.WEIGHTS) -> TrackedWeights:
        """Start to track weights that are a softmax of scores over an axis; return the facts known about them."""
        scores = None if scores is None else scores.detach()
        self.known[weights] = tracked = TrackedWeights(index_along(weights, axis % weights.dim()), scores, stage=stage)
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
        source = self._surviving_factor(op.product) if op.product else self._first_known(op)
        if source is None:
            return
        was = self.known[source]
        if output is source:  # changed in place
            if op.name not in CAST_OPS | SHAPE_OPS | DROPOUT_OPS:
                self.known[source] = replace(was, changed=True, status=Status.NEW)
            return
        is_float = isinstance(output, Tensor) and output.is_floating_point()
        if was.pending_product is None and (is_float or op.name in SHAPE_OPS):
            HANDLERS.get(op.name, Lineage._change_values)(self, op, source, was, output)

    def _first_known(self, op: Operation) -> Tensor | None:
        for value in (*op.args, *op.kwargs.values()):  # plain loops, since this runs for most calls
            for part in value if isinstance(value, list | tuple) else (value,):
                if isinstance(part, Tensor) and part in self.known:
                    return part
        return None

    def _surviving_factor(self, product: Product) -> Tensor | None:
        """Return the tracked factor whose keys a product does not sum over; None if there is none."""
        for factor, letters in zip(product.factors, product.letters):
            was = self.known.get(factor)
            if was and not was.pending_product and not any(product.contracts(letters[axis]) for axis in was.key_axes):
                return factor
        return None

    def pending_sum(self, op: Operation) -> Product | None:
        """Return the product that a sum completes after weights and values were multiplied elementwise; else None."""
        was = self.known.get(op.args[0]) if op.args and isinstance(op.args[0], Tensor) else None
        dim = op.argument(1, "dim", op.kwargs.get("axis"))
        if was is None or was.pending_product is None or dim is None:
            return None
        weights, other, multiply = was.pending_product
        keepdim = {name: value for name, value in op.kwargs.items() if name == "keepdim"}
        return sum_of_products(
            weights,
            other,
            op.args[0],
            dim if isinstance(dim, list | tuple) else (dim,),
            lambda left, right: multiply(left, right).sum(dim, *op.args[2:], **keepdim),
        )

    def _reshape(self, op: Operation, source: Tensor, was: TrackedWeights, output: Any) -> None:
        """Apply a reshape or selection also to the key index, scores and undropped weights, and track the output."""

        def moved(tensor: Tensor | None) -> Any:
            args = (tensor if arg is source else arg for arg in op.args)
            return None if tensor is None else op.func(*args, **op.kwargs)

        try:
            with untraced():  # gradients flow through the undropped weights, if they are edited
                parts = [moved(part) for part in (was.key_index, was.scores, was.undropped)]
        except RuntimeError:  # the key axis was joined with another
            return
        is_single = isinstance(output, Tensor)
        outputs = [output] if is_single else list(output)
        columns = [[part] if is_single else [None] * len(outputs) if part is None else list(part) for part in parts]
        for tensor, index, scores, undropped in zip(outputs, *columns):
            if isinstance(tensor, Tensor) and isinstance(index, Tensor) and index.shape == tensor.shape:
                softmax = was.softmax_of(source)
                now = replace(was, key_index=index, scores=scores, undropped=undropped, softmax=softmax)
                if now.axis is not None and was.axis is not None:
                    fewer = index.shape[now.axis] < was.key_index.shape[was.axis]
                    self.known[tensor] = replace(now, changed=was.changed or fewer)

    def _cast(self, op: Operation, source: Tensor, was: TrackedWeights, output: Tensor) -> None:
        self.known[output] = replace(was, softmax=was.softmax_of(source))

    def _drop(self, op: Operation, source: Tensor, was: TrackedWeights, output: Tensor) -> None:
        probability = op.argument(1, "p", 0.5) if op.argument(2, "training", op.kwargs.get("train", True)) else 0.0
        undropped = was.undropped if not probability or was.undropped is not None else source
        dropout = probability or was.dropout
        self.known[output] = replace(was, softmax=was.softmax_of(source), undropped=undropped, dropout=dropout)

    def _exponentiate(self, op: Operation, source: Tensor, was: TrackedWeights, output: Tensor) -> None:
        if was.stage is Stage.LOG_WEIGHTS:
            self.known[output] = replace(was, stage=Stage.WEIGHTS)
        else:
            self._change_values(op, source, was, output)

    def _multiply(self, op: Operation, source: Tensor, was: TrackedWeights, output: Tensor) -> None:
        """Track weights that are multiplied with values elementwise, a product that a sum over keys may complete."""
        if was.stage is Stage.LOG_WEIGHTS or output.shape == source.shape:
            self._change_values(op, source, was, output)
        elif isinstance(other := op.args[1] if op.args[0] is source else op.args[0], Tensor):
            self.known[output] = replace(was, pending_product=(source, other, op.func))

    def _change_values(self, op: Operation, source: Tensor, was: TrackedWeights, output: Tensor) -> None:
        """Track cells whose values change, or heads that are mixed (talking heads, Shazeer 2020)."""
        if was.stage is not Stage.WEIGHTS:
            return
        index: Tensor | None = was.key_index
        if op.product:
            operand = 0 if op.product.factors[0] is source else 1
            index = _index_after_product(was.key_index, op.product.letters[operand], op.product, output)
        elif output.shape != source.shape:
            index = _index_after_convolution(was, op, output)
        if index is not None:
            scores = was.scores if was.scores is not None and was.scores.shape == output.shape else None
            self.known[output] = TrackedWeights(index, scores, was.softmax_of(source), changed=True, stage=was.stage)


HANDLERS: dict[str, Callable[[Lineage, Operation, Tensor, TrackedWeights, Any], None]] = {
    **dict.fromkeys(SHAPE_OPS, Lineage._reshape),
    **dict.fromkeys(CAST_OPS, Lineage._cast),
    **dict.fromkeys(DROPOUT_OPS, Lineage._drop),
    **dict.fromkeys(MULTIPLY_OPS, Lineage._multiply),
    "exp": Lineage._exponentiate,
}


def _index_after_product(index: Tensor, letters: Sequence[Any], product: Product, output: Tensor) -> Tensor | None:
    """Return the key index of a product that does not sum over keys; None if its axes are unknown."""
    if output.dim() != len(product.output) or index.dim() != len(letters):
        return None
    return align_axes(index, letters, product.output).expand(output.shape)


def _index_after_convolution(was: TrackedWeights, op: Operation, output: Tensor) -> Tensor | None:
    """Return the key index after a convolution over an axis other than the keys', such as the heads'."""
    index = was.key_index
    if op.name not in ("conv3d", "conv2d", "conv1d") or output.dim() != index.dim():
        return None
    resized = [axis for axis in range(index.dim()) if output.shape[axis] != index.shape[axis]]
    if len(resized) != 1 or resized == [was.axis]:
        return None
    return index.select(resized[0], 0).unsqueeze(resized[0]).expand(output.shape)
