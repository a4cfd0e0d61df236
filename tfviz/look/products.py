"""Torch calls and the products of two tensors that they compute, with a subscript for each axis, as in `einsum`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

Subscripts = tuple[Any, ...]
MATMUL_OPS = ("matmul", "__matmul__", "bmm", "mm", "mv")


class Contraction(NamedTuple):
    """A product of two tensors that may sum over axes of both, as `einsum` computes; a tensor contraction.

    Attributes:
        factors: the two tensors.
        subscripts: for each factor, a subscript for each axis.
        output: the subscripts of the output.
        recompute: function (left, right) -> the product, computed like the original call.
        batch: subscripts of the axes that both factors have, if only by broadcasting.
    """

    factors: tuple[Tensor, Tensor]
    subscripts: tuple[Subscripts, Subscripts]
    output: Subscripts
    recompute: Callable[[Tensor, Tensor], Any]
    batch: frozenset[Any] = frozenset()

    def contracts(self, subscript: Any) -> bool:
        """Return whether the product sums over this axis."""
        return subscript not in self.output and all(subscript in subscripts for subscripts in self.subscripts)

    def contracted_axes(self, operand: int) -> list[int]:
        """Return the axes of a factor that are summed over."""
        return [axis for axis, subscript in enumerate(self.subscripts[operand]) if self.contracts(subscript)]


class Operation(NamedTuple):
    """A torch call that a model made.

    Attributes:
        name: `__name__` of the function, such as `add_`; for a property, the name of the attribute.
        product: the product that the call computes, if any.
    """

    name: str
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    product: Contraction | None

    @classmethod
    def from_call(cls, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation:
        name = getattr(func, "__name__", "")
        name = getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name
        return cls(name, func, args, kwargs, product(name, func, args, kwargs))

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return an argument passed by position or name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors among the arguments, including those in lists."""
        return tensors((*self.args, *self.kwargs.values()))


def tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among some values, including those in lists."""
    for value in values:
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, Tensor):
                yield part


def product(name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Contraction | None:
    """Return the product that a call computes; None if it is not a product of two tensors."""
    if name in MATMUL_OPS and len(args) == 2:
        return _matmul(args[0], args[1], recompute=lambda a, b: func(a, b, **kwargs))
    if name == "__rmatmul__" and len(args) == 2:
        return _matmul(args[1], args[0], recompute=lambda a, b: func(b, a, **kwargs))
    if name == "baddbmm" and len(args) == 3:
        return _matmul(args[1], args[2], recompute=lambda a, b: func(args[0], a, b, **kwargs))
    if name == "linear" and len(args) >= 2 and args[1].dim() == 2:
        batch = tuple(range(args[0].dim() - 1))
        subscripts: tuple[Subscripts, Subscripts] = ((*batch, "sum"), ("col", "sum"))
        return Contraction(
            (args[0], args[1]), subscripts, (*batch, "col"), lambda a, b: func(a, b, *args[2:], **kwargs)
        )
    if name == "einsum":
        return _einsum(func, args)
    if name in ("tensordot", "inner"):
        return _tensordot(func, args, kwargs, name == "inner")
    return None


def _tensordot(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], last: bool
) -> Contraction | None:
    """Return the product of a `tensordot`, or of an `inner` (`last`); None if its axes are unknown.

    The output has the remaining axes of the first factor, then those of the second.
    """
    if len(args) < 2 or not all(isinstance(arg, Tensor) for arg in args[:2]):
        return None
    a, b = args[:2]
    dims: Any = 1 if last else args[2] if len(args) > 2 else kwargs.get("dims", 2)
    if last or type(dims) is int:
        dims = [range(a.dim() - dims, a.dim()), range(b.dim() - dims, b.dim()) if last else range(dims)]
    if isinstance(dims, Tensor) or not (a.dim() and b.dim()):
        return None
    summed = [
        [axis % factor.dim() for axis in ([axes] if type(axes) is int else axes)] for factor, axes in zip((a, b), dims)
    ]
    sides = [
        tuple(("sum", axes.index(axis)) if axis in axes else (side, axis) for axis in range(factor.dim()))
        for side, factor, axes in zip("ab", (a, b), summed)
    ]
    output = tuple(subscript for side in sides for subscript in side if subscript[0] != "sum")
    return Contraction((a, b), (sides[0], sides[1]), output, lambda x, y: func(x, y, *args[2:], **kwargs))


def _matmul(a: Any, b: Any, recompute: Callable[[Tensor, Tensor], Any]) -> Contraction | None:
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() and b.dim()):
        return None
    count = max(a.dim(), b.dim()) - 2
    left: Subscripts = ("row", "sum") if a.dim() > 1 else ("sum",)
    right: Subscripts = ("sum", "col") if b.dim() > 1 else ("sum",)
    batch = tuple(range(count))
    first, second = (batch[count - (part.dim() - 2) :] if part.dim() > 2 else () for part in (a, b))
    output = (*batch, *left[:-1], *right[1:])
    return Contraction((a, b), ((*first, *left), (*second, *right)), output, recompute, frozenset(batch))


def _einsum(func: Callable[..., Any], args: Sequence[Any]) -> Contraction | None:
    """Return the product of an einsum of two factors; other forms of einsum are ignored."""
    parsed = parse_einsum(args)
    if parsed is None or len(parsed[0]) != 2:
        return None
    factors, sides, output = parsed
    dots = frozenset(subscript for subscript in output if isinstance(subscript, int))
    return Contraction((factors[0], factors[1]), (sides[0], sides[1]), output, lambda a, b: func(args[0], a, b), dots)


def parse_einsum(args: Sequence[Any]) -> tuple[Sequence[Tensor], list[Subscripts], Subscripts] | None:
    """Return the factors of an einsum, the subscripts of each, and those of the output; None without an equation."""
    if not args or not isinstance(args[0], str):
        return None
    factors = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    inputs, arrow, result = args[0].replace(" ", "").partition("->")
    sides = [_subscripts(side, factor.dim()) for side, factor in zip(inputs.split(","), factors)]
    if arrow:
        longest = max(sides, key=lambda side: sum(isinstance(subscript, int) for subscript in side))
        hidden = sum(isinstance(subscript, int) for subscript in longest)
        output = _subscripts(result, len(result.replace("...", "")) + hidden)
    else:
        every = [subscript for side in sides for subscript in side]
        once = sorted(subscript for subscript in every if isinstance(subscript, str) and every.count(subscript) == 1)
        output = (*sorted({subscript for subscript in every if isinstance(subscript, int)}), *once)
    return factors, sides, output


def _subscripts(side: str, count: int) -> Subscripts:
    """Return the subscripts of a term such as `b...k` with `count` axes; those of the dots are numbers up to -1."""
    before, dots, after = side.partition("...")
    hidden = count - len(re.sub(r"\.", "", side))
    return (*before, *(range(-hidden, 0) if dots else ()), *after)


def sum_of_products(
    left: Tensor, right: Tensor, output: Tensor, axes: Sequence[int], recompute: Callable[..., Any]
) -> Contraction:
    """Return the product of two tensors that were multiplied elementwise to `output`, then summed over `axes`."""
    count = output.dim()

    def subscripts(factor: Tensor) -> Subscripts:
        first = count - factor.dim()
        return tuple(None if size == 1 != output.shape[first + i] else first + i for i, size in enumerate(factor.shape))

    summed = {axis % count for axis in axes}
    remaining = tuple(axis for axis in range(count) if axis not in summed)
    return Contraction((left, right), (subscripts(left), subscripts(right)), remaining, recompute)


def align_axes(index: Tensor, subscripts: Sequence[Any], output: Sequence[Any]) -> Tensor:
    """Reorder a factor's axes to match a product's output, with size 1 for axes that it does not have.

    For an axis that the output does not have, the first index is taken.
    """
    for axis in reversed(range(index.dim())):
        if subscripts[axis] not in output:
            index = index.select(axis, 0)
    remaining = [subscript for subscript in subscripts if subscript in output]
    index = index.permute(sorted(range(len(remaining)), key=lambda axis: output.index(remaining[axis])))
    for axis, subscript in enumerate(output):
        index = index if subscript in remaining else index.unsqueeze(axis)
    return index


def index_along(tensor: Tensor, axis: int) -> Tensor:
    """Return the numbers 0, 1, ... along one axis, expanded to the shape of a tensor."""
    numbers = torch.arange(tensor.shape[axis])
    return numbers.reshape([-1 if other == axis else 1 for other in range(tensor.dim())]).expand(tensor.shape)


def strided_axes(index: Tensor) -> list[int]:
    """Return the axes along which the numbers of `index_along` change."""
    return [axis for axis, step in enumerate(index.stride()) if step and index.shape[axis] > 1]


def is_learned(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter, or a view of one, and so cannot be values that attention reads."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)
