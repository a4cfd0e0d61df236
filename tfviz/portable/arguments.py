"""Encode an operation's arguments as plain data: indices of values (t), sizes (s), and floats that JSON lacks (f)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx

from tfviz.portable.operations import OMITTED_ARGUMENTS
from tfviz.portable.symbolic_sizes import Size, encode_size

INT32_MAX, TO_THE_END = 2**31 - 1, 2**62  # a slice without an end has the largest number there is
DATA_DEPENDENT = (
    "what it does depends on the values of its input (an if, a loop or a size that is read from a tensor), and a "
    "program does the same steps whatever it is given; use torch.where, or a length instead"
)


def encode_args(node: fx.Node, numbers: Mapping[fx.Node, Any], symbols: Mapping[str, str]) -> list[Any]:
    """Return all arguments of a node, in the order of its schema, including defaults.

    Args:
        node: a node of an exported graph.
        numbers: the number of each value that was computed before.
        symbols: the name of each dynamic length.

    Raises:
        ValueError: an argument cannot be encoded.
    """
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    named = dict(zip([argument.name for argument in schema], node.args)) | dict(node.kwargs)

    def encode(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return {"t": numbers[value]} if value in numbers else encode_extent(value.meta["val"], symbols)
        if isinstance(value, list | tuple):
            return [encode(item) for item in value]
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {"f": str(value)}
        if isinstance(value, int) and not isinstance(value, bool):
            return check_int32(value)
        if value is None or isinstance(value, bool | float | str):
            return value
        raise ValueError(f"an argument of the kind {type(value).__name__} cannot be exported: {value}")

    return [
        encode(named.get(argument.name, argument.default_value if argument.has_default_value() else None))
        for argument in schema
        if argument.name not in OMITTED_ARGUMENTS
    ]


def check_int32(value: int) -> int:
    """Return an integer after checking that a page can compute with it.

    Raises:
        ValueError: it needs more than 32 bits.
    """
    if INT32_MAX < abs(value) < TO_THE_END:
        raise ValueError(f"the integer {value} cannot be exported: a page computes with 32 bits; use one below 2**31")
    return max(-INT32_MAX, min(INT32_MAX, value))


def encode_shape(value: Tensor, symbols: Mapping[str, str]) -> list[Size]:
    """Return the shape of a tensor, each axis as a number or an expression of lengths."""
    sides = [encode_extent(length, symbols) for length in value.shape]
    return [side["s"] if isinstance(side, dict) else side for side in sides]


def encode_extent(value: Any, symbols: Mapping[str, str]) -> Any:
    """Return a size: a number, or {"s": an expression of the dynamic lengths}.

    Raises:
        ValueError: the size depends on data, or is not an expression that a page can compute.
    """
    try:
        size = encode_size(value, symbols)
    except LookupError as error:
        raise ValueError(DATA_DEPENDENT.capitalize()) from error
    except NotImplementedError as error:
        raise ValueError(
            f"{error} cannot be exported: it is not a sum, product, quotient or extreme of lengths"
        ) from error
    return size if isinstance(size, int) else {"s": size}


def dtype_name(dtype: torch.dtype) -> str:
    """Return the dtype with which a page computes: "float32", "int64" or "bool".

    Raises:
        ValueError: the dtype is complex.
    """
    if dtype == torch.bool:
        return "bool"
    if dtype.is_complex:
        raise ValueError("complex numbers cannot be exported; compute with the real and the imaginary part")
    return "float32" if dtype.is_floating_point else "int64"
