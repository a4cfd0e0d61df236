"""Products of two tensors, whichever call makes them, with a letter for each axis as in `einsum`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

Letters = tuple[Any, ...]
MATMUL = ("matmul", "__matmul__", "bmm", "mm", "mv")


class Product(NamedTuple):
    """A product: its factors, a letter for each of their axes and of the output's, and the same of other factors."""

    factors: tuple[Tensor, Tensor]
    letters: tuple[Letters, Letters]
    output: Letters
    again: Callable[[Tensor, Tensor], Any]
    lead: frozenset[Any] = frozenset()  # letters of axes that both have, if only by broadcasting

    def contracted(self, letter: Any) -> bool:
        """Whether the product adds up over this axis of both."""
        return letter not in self.output and all(letter in letters for letters in self.letters)


def product(name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Product | None:
    """What a call multiplies; None if it is no product of two tensors."""
    if name in MATMUL and len(args) == 2:
        return _matmul(args[0], args[1], again=lambda a, b: func(a, b, **kwargs))
    if name == "__rmatmul__" and len(args) == 2:
        return _matmul(args[1], args[0], again=lambda a, b: func(b, a, **kwargs))
    if name == "baddbmm" and len(args) == 3:
        return _matmul(args[1], args[2], again=lambda a, b: func(args[0], a, b, **kwargs))
    if name == "linear" and len(args) >= 2 and args[1].dim() == 2:
        over = tuple(range(args[0].dim() - 1))
        letters: tuple[Letters, Letters] = ((*over, "sum"), ("col", "sum"))
        return Product((args[0], args[1]), letters, (*over, "col"), lambda a, b: func(a, b, *args[2:], **kwargs))
    if name == "einsum":
        return _einsum(func, args)
    if name in ("tensordot", "inner"):
        return _tensordot(func, args, kwargs, name == "inner")
    return None


def _tensordot(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], last: bool) -> Product | None:
    """Axes of both are added up, and what is left of the first stands before what is left of the second."""
    if len(args) < 2 or not all(isinstance(one, Tensor) for one in args[:2]):
        return None
    a, b = args[:2]
    dims: Any = 1 if last else args[2] if len(args) > 2 else kwargs.get("dims", 2)
    if last or type(dims) is int:
        dims = [range(a.dim() - dims, a.dim()), range(b.dim() - dims, b.dim()) if last else range(dims)]
    if isinstance(dims, Tensor) or not (a.dim() and b.dim()):
        return None
    gone = [[axis % one.dim() for axis in ([axes] if type(axes) is int else axes)] for one, axes in zip((a, b), dims)]
    sides = [
        tuple(("sum", axes.index(axis)) if axis in axes else (side, axis) for axis in range(one.dim()))
        for side, one, axes in zip("ab", (a, b), gone)
    ]
    output = tuple(letter for side in sides for letter in side if letter[0] != "sum")
    return Product((a, b), (sides[0], sides[1]), output, lambda x, y: func(x, y, *args[2:], **kwargs))


def _matmul(a: Any, b: Any, again: Callable[[Tensor, Tensor], Any]) -> Product | None:
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() and b.dim()):
        return None
    lead = max(a.dim(), b.dim()) - 2
    left: Letters = ("row", "sum") if a.dim() > 1 else ("sum",)
    right: Letters = ("sum", "col") if b.dim() > 1 else ("sum",)
    over = tuple(range(lead))
    first, second = (over[lead - (one.dim() - 2) :] if one.dim() > 2 else () for one in (a, b))
    output = (*over, *left[:-1], *right[1:])
    return Product((a, b), ((*first, *left), (*second, *right)), output, again, frozenset(over))


def _einsum(func: Callable[..., Any], args: Sequence[Any]) -> Product | None:
    """Two factors and an equation; other forms of einsum are passed by."""
    found = equation(args)
    if found is None or len(found[0]) != 2:
        return None
    factors, sides, output = found
    dots = frozenset(one for one in output if isinstance(one, int))
    return Product((factors[0], factors[1]), (sides[0], sides[1]), output, lambda a, b: func(args[0], a, b), dots)


def equation(args: Sequence[Any]) -> tuple[Sequence[Tensor], list[Letters], Letters] | None:
    """The factors of an einsum, the letters of each, and those of the output."""
    if not args or not isinstance(args[0], str):
        return None
    factors = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    given, arrow, made = args[0].replace(" ", "").partition("->")
    sides = [_letters(side, factor.dim()) for side, factor in zip(given.split(","), factors)]
    if arrow:
        longest = max(sides, key=lambda side: sum(isinstance(one, int) for one in side))
        output = _letters(made, len(made.replace("...", "")) + sum(isinstance(one, int) for one in longest))
    else:
        every = [one for side in sides for one in side]
        once = sorted(one for one in every if isinstance(one, str) and every.count(one) == 1)
        output = (*sorted({one for one in every if isinstance(one, int)}), *once)
    return factors, sides, output


def _letters(side: str, count: int) -> Letters:
    """`b...k` of so many axes; those of the dots are numbers, which end at -1."""
    before, dots, after = side.partition("...")
    hidden = count - len(re.sub(r"\.", "", side))
    return (*before, *(range(-hidden, 0) if dots else ()), *after)


def summed(weights: Tensor, other: Tensor, output: Tensor, axes: Sequence[int], again: Callable[..., Any]) -> Product:
    """Two tensors multiplied cell by cell, and then added up over some axes of what that gave."""
    count = output.dim()

    def letters(factor: Tensor) -> Letters:
        first = count - factor.dim()
        return tuple(None if size == 1 != output.shape[first + i] else first + i for i, size in enumerate(factor.shape))

    gone = {axis % count for axis in axes}
    left = tuple(axis for axis in range(count) if axis not in gone)
    return Product((weights, other), (letters(weights), letters(other)), left, again)
