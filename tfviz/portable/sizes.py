"""Sizes that depend on the lengths of the inputs, in plain values: a number, a name, or an operator and its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


def number(value: Size, lengths: Mapping[str, int]) -> int:
    """What a size is for these lengths.

    >>> number(["//", ["+", "words", 1], 2], {"words": 8})
    4
    """
    if isinstance(value, str):
        return lengths[value]
    if isinstance(value, int):
        return value
    operator, *parts = value
    return OPERATORS[operator](*(number(part, lengths) for part in parts))


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
