"""Encode, check and evaluate sizes: numbers, names of dynamic lengths, or expressions of them as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import sympy
from torch import SymInt
from torch.utils._sympy import functions

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
BINARY_OPERATORS = ("-", "//", "%")
MAX_PARTS, MAX_DEPTH, INT32_MAX = 1000, 100, 2**31 - 1
OPERATOR_SYMBOLS = {
    sympy.Add: "+",
    sympy.Mul: "*",
    sympy.Mod: "%",
    functions.FloorDiv: "//",
    functions.CleanDiv: "//",
    functions.Mod: "%",
    functions.PythonMod: "%",
    sympy.Max: "max",
    sympy.Min: "min",
    functions.Max: "max",
    functions.Min: "min",
}


def encode_size(value: int | SymInt | sympy.Expr, names: Mapping[str, str]) -> Size:
    """Return a size of an exported graph as plain data.

    Args:
        value: a number or a symbolic expression.
        names: symbol of the graph -> the name of the dynamic length.

    Raises:
        LookupError: a symbol is not a length of an input; it depends on data.
        NotImplementedError: the expression has an operator that a page cannot compute.

    >>> n = sympy.Symbol("s0", integer=True)
    >>> encode_size(2 * n + 1, {"s0": "words"})
    ['+', 1, ['*', 2, 'words']]
    """
    if isinstance(value, SymInt):
        return encode_size(value.node.expr, names)
    if isinstance(value, int | sympy.Integer):
        return int(value)
    if isinstance(value, sympy.Symbol):
        return names[value.name]
    if isinstance(value, sympy.Pow) and isinstance(value.exp, sympy.Integer) and value.exp > 0:
        return ["*", *[encode_size(value.base, names)] * int(value.exp)]
    symbol = OPERATOR_SYMBOLS.get(type(value))
    if symbol is None:
        raise NotImplementedError(f"the size {value}")
    return [symbol, *(encode_size(part, names) for part in value.args)]


def check_size(value: Any, key: str, lengths: Collection[str]) -> None:
    """Check that a value is a size in terms of these lengths.

    Args:
        value: the value.
        key: the key of the value, for messages.
        lengths: the names of the dynamic lengths.

    Raises:
        ValueError: the value is not such a size, or has too many parts.
    """
    if _remaining_parts(value, key, lengths, MAX_PARTS, MAX_DEPTH) < 0:
        raise ValueError(f"{key} has more than {MAX_PARTS} parts; a size has fewer")


def _remaining_parts(value: Any, key: str, lengths: Collection[str], parts: int, depth: int) -> int:
    """Check a size; return the number of parts that remain of the limit, negative if it is exceeded."""
    if type(value) is int:
        if not abs(value) <= INT32_MAX:
            raise ValueError(f"{key} is a number of {value.bit_length()} bits; it must be below 2**31")
        return parts - 1
    if type(value) is str:
        if value not in lengths:
            raise ValueError(
                f"{key} is {value[:60]!r}, which is not a length; there are {', '.join(lengths) or 'none'}"
            )
        return parts - 1
    if type(value) is not list or not depth or len(value) < 2 or type(value[0]) is not str:
        raise ValueError(f"{key} is not a size; it must be a number, the name of a length, or [operator, size, ...]")
    if value[0] not in OPERATORS or (value[0] in BINARY_OPERATORS and len(value) != 3):
        raise ValueError(f"{key} has the operator {value[0][:60]!r}; there are {', '.join(OPERATORS)}, of two or more")
    for part in value[1:]:
        parts = _remaining_parts(part, key, lengths, parts, depth - 1)
        if parts < 0:
            break
    return parts


def evaluate_size(value: Size, lengths: Mapping[str, int]) -> int:
    """Return the value of a size, given the dynamic lengths.

    Raises:
        ValueError: the size divides by zero, or is 2**62 or more.

    >>> evaluate_size(["//", ["+", "words", 1], 2], {"words": 8})
    4
    """
    if isinstance(value, str):
        return lengths[value]
    if isinstance(value, int):
        return value
    operator, *parts = value
    try:
        result = OPERATORS[operator](*(evaluate_size(part, lengths) for part in parts))
    except ZeroDivisionError:
        raise ValueError(f"the size {value} divides by 0") from None
    if abs(result) >= 2**62:
        raise ValueError(f"the size {value} is too large")
    return result


def bind_dims(shape: tuple[Size, ...], actual: tuple[int, ...], lengths: dict[str, int], name: str) -> None:
    """Set the lengths that a declared shape names to the sizes of an input's actual shape.

    Args:
        shape: the declared shape.
        actual: the actual shape.
        lengths: name -> value of the lengths known so far, which is updated.
        name: the name of the input, for messages.

    Raises:
        ValueError: the shapes do not match, or a length has two values.
    """
    fits = len(shape) == len(actual)
    for declared, size in zip(shape, actual):
        fits = fits and (lengths.setdefault(declared, size) if isinstance(declared, str) else declared) == size
    if not fits:
        expected = " ".join(map(str, shape))
        raise ValueError(f"{name} has the shape {list(actual)}; this program was made for [{expected}]")
