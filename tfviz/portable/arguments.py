"""What an operation is given, as plain data: numbers of values (t), sizes (s), floats that JSON lacks (f)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx

from tfviz.portable.operations import LEFT_OUT
from tfviz.portable.sizes import Size, size

LARGEST, ENDLESS = 2**31 - 1, 2**62
DEPENDS = (
    "what it does depends on the values of its input (an if, a loop or a size that is read from a tensor), and a "
    "program does the same steps whatever it is given; use torch.where, or a length instead"
)


def given(node: fx.Node, numbers: Mapping[fx.Node, Any], symbols: Mapping[str, str]) -> list[Any]:
    """All arguments of the schema in their order, defaults filled in.

    Args:
        numbers: of the values that were made before.
        symbols: the name of each dynamic length.

    Raises:
        ValueError: one cannot travel.
    """
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    named = dict(zip([one.name for one in schema], node.args)) | dict(node.kwargs)

    def plain(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return {"t": numbers[value]} if value in numbers else extent(value.meta["val"], symbols)
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        if isinstance(value, torch.dtype):
            return kind(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {"f": str(value)}
        if isinstance(value, int) and not isinstance(value, bool):
            return whole(value)
        if value is None or isinstance(value, bool | float | str):
            return value
        raise ValueError(f"an argument of the kind {type(value).__name__} cannot travel: {value}")

    return [
        plain(named.get(one.name, one.default_value if one.has_default_value() else None))
        for one in schema
        if one.name not in LEFT_OUT
    ]


def whole(value: int) -> int:
    """A whole number; the largest there is says "to the end" in a slice."""
    if LARGEST < abs(value) < ENDLESS:
        raise ValueError(f"the whole number {value} cannot travel: a page computes with 32 bits; use one below 2**31")
    return max(-LARGEST, min(LARGEST, value))


def shape(value: Tensor, symbols: Mapping[str, str]) -> list[Size]:
    return [one["s"] if isinstance(one := extent(length, symbols), dict) else one for length in value.shape]


def extent(value: Any, symbols: Mapping[str, str]) -> Any:
    """A size: a number, or an expression of the dynamic lengths."""
    try:
        made = size(value, symbols)
    except LookupError as error:
        raise ValueError(DEPENDS.capitalize()) from error
    except NotImplementedError as error:
        raise ValueError(f"{error} cannot travel: it is no sum, product, quotient or extreme of lengths") from error
    return made if isinstance(made, int) else {"s": made}


def kind(dtype: torch.dtype) -> str:
    """The three kinds of numbers a page computes with."""
    if dtype == torch.bool:
        return "bool"
    if dtype.is_complex:
        raise ValueError("complex numbers cannot travel; compute with the real and the imaginary part")
    return "float32" if dtype.is_floating_point else "int64"
