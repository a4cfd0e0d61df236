"""Sizes that depend on the lengths of the inputs, in plain values: a number, a name, or an operator and its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Any

import sympy
from torch import SymInt
from torch.utils._sympy import functions as sizes

Size = int | str | list[Any]

OPERATORS: dict[str, Callable[..., int]] = {
    "+": lambda *parts: sum(parts),
    "*": lambda *parts: math.prod(parts),
    "-": lambda left, right: left - right,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
    "max": max,
    "min": min,
}
TWO = ("-", "//", "%")  # operators of two parts
LONGEST, DEEPEST, LARGEST = 1000, 100, 2**31 - 1  # of a size: parts, lists within each other, numbers
SYMBOLS = {
    sympy.Add: "+",
    sympy.Mul: "*",
    sympy.Mod: "%",
    sizes.FloorDiv: "//",
    sizes.CleanDiv: "//",
    sizes.Mod: "%",
    sizes.PythonMod: "%",
    sympy.Max: "max",
    sympy.Min: "min",
    sizes.Max: "max",
    sizes.Min: "min",
}


def size(value: int | SymInt | sympy.Expr, names: Mapping[str, str]) -> Size:
    """A size of an exported graph as plain data.

    Args:
        names: what the reader calls the graph's symbols.

    Raises:
        LookupError: a symbol that no input's length gives: it depends on the data.
        NotImplementedError: an operator that is not in the table.

    >>> n = sympy.Symbol("s0", integer=True)
    >>> size(2 * n + 1, {"s0": "words"})
    ['+', 1, ['*', 2, 'words']]
    """
    if isinstance(value, SymInt):
        return size(value.node.expr, names)
    if isinstance(value, int | sympy.Integer):
        return int(value)
    if isinstance(value, sympy.Symbol):
        return names[value.name]
    if isinstance(value, sympy.Pow) and isinstance(value.exp, sympy.Integer) and value.exp > 0:
        return ["*", *[size(value.base, names)] * int(value.exp)]
    symbol = SYMBOLS.get(type(value))
    if symbol is None:
        raise NotImplementedError(f"the size {value}")
    return [symbol, *(size(part, names) for part in value.args)]


def check_size(value: Any, key: str, lengths: Collection[str]) -> None:
    """A size of these lengths.

    Raises:
        ValueError: it is none, or longer than a size is.
    """
    left = _check(value, key, lengths, LONGEST, DEEPEST)
    if left < 0:
        raise ValueError(f"{key} has more than {LONGEST} parts; a size has fewer")


def _check(value: Any, key: str, lengths: Collection[str], parts: int, depth: int) -> int:
    """How many parts are left of those that it may have."""
    if type(value) is int:
        if not -LARGEST <= value <= LARGEST:
            raise ValueError(f"{key} is a number of {value.bit_length()} bits; it must be below 2**31")
        return parts - 1
    if type(value) is str:
        if value not in lengths:
            raise ValueError(f"{key} is {value[:60]!r}, which is no length; there are {', '.join(lengths) or 'none'}")
        return parts - 1
    if type(value) is not list or not depth or len(value) < 2 or type(value[0]) is not str:
        raise ValueError(f"{key} is no size; it must be a number, the name of a length, or [operator, size, ...]")
    if value[0] not in OPERATORS or (value[0] in TWO and len(value) != 3):
        raise ValueError(f"{key} has the operator {value[0][:60]!r}; there are {', '.join(OPERATORS)}, of two or more")
    for part in value[1:]:
        parts = _check(part, key, lengths, parts, depth - 1)
        if parts < 0:
            break
    return parts


def number(value: Size, lengths: Mapping[str, int]) -> int:
    """What a size is for these lengths.

    Raises:
        ValueError: it divides by nothing, or is 2**62 or more.

    >>> number(["//", ["+", "words", 1], 2], {"words": 8})
    4
    """
    if isinstance(value, str):
        return lengths[value]
    if isinstance(value, int):
        return value
    operator, *parts = value
    try:
        made = OPERATORS[operator](*(number(part, lengths) for part in parts))
    except ZeroDivisionError:
        raise ValueError(f"the size {value} divides by 0") from None
    if abs(made) >= 2**62:
        raise ValueError(f"the size {value} is too large")
    return made


def bound(shape: tuple[Size, ...], actual: tuple[int, ...], lengths: dict[str, int], name: str) -> None:
    """Learn lengths from an input's actual shape.

    Raises:
        ValueError: the shape does not fit.
    """
    fits = len(shape) == len(actual)
    for declared, given in zip(shape, actual):
        fits = fits and (lengths.setdefault(declared, given) if isinstance(declared, str) else declared) == given
    if not fits:
        said = reduce(lambda text, part: f"{text} {part}", map(str, shape), "").strip()
        raise ValueError(f"{name} has the shape {list(actual)}; this program was made for [{said}]")
