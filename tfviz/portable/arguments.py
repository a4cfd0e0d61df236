"""Encode the arguments, shapes and dtypes of an exported graph's nodes as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx

from tfviz.portable.supported_operators import OMITTED_ARGUMENTS
from tfviz.portable.symbolic_sizes import Size, encode_size

INT32_MAX, TO_THE_END = 2**31 - 1, 2**62  # larger integers are the end of a slice without one
DATA_DEPENDENT = (
    "what it does depends on the values of its input (an if, a loop or a size that is read from a tensor), and a "
    "program does the same steps whatever it is given; use torch.where, or a length instead"
)


def encode_args(node: fx.Node, numbers: Mapping[fx.Node, Any], symbols: Mapping[str, str]) -> list[Any]:
    """Return all arguments of a node as plain data, in the order of its schema, including defaults.

    A value is encoded as `{"value": number}`, a dynamic size as `{"size": size}`, and a float that JSON lacks as
    `{"float": "inf"}`.

    Args:
        node: a node of an exported graph.
        numbers: node -> the number of the value that it computed.
        symbols: symbol of the graph -> the name of the dynamic length.

    Raises:
        ValueError: an argument cannot be encoded.
    """
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    named = dict(zip([argument.name for argument in schema], node.args)) | dict(node.kwargs)

    def encode(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return {"value": numbers[value]} if value in numbers else encode_extent(value.meta["val"], symbols)
        if isinstance(value, list | tuple):
            return [encode(item) for item in value]
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
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
    """Return an integer after checking that it has at most 32 bits; the open end of a slice is clamped to 2**31 - 1.

    Raises:
        ValueError: the integer needs more than 32 bits.
    """
    if INT32_MAX < abs(value) < TO_THE_END:
        raise ValueError(f"the integer {value} cannot be exported: a page computes with 32 bits; use one below 2**31")
    return max(-INT32_MAX, min(INT32_MAX, value))


def encode_shape(value: Tensor, symbols: Mapping[str, str]) -> list[Size]:
    """Return the shape of a tensor, with each size as a number or an expression of the dynamic lengths."""
    sides = [encode_extent(length, symbols) for length in value.shape]
    return [side["size"] if isinstance(side, dict) else side for side in sides]


def encode_extent(value: Any, symbols: Mapping[str, str]) -> Any:
    """Return a size: a number, or {"size": an expression of the dynamic lengths}.

    Raises:
        ValueError: the size depends on data, or has an operator that a page cannot compute.
    """
    try:
        size = encode_size(value, symbols)
    except LookupError as error:
        raise ValueError(DATA_DEPENDENT.capitalize()) from error
    except NotImplementedError as error:
        raise ValueError(
            f"{error} cannot be exported: it is not a sum, product, quotient or extreme of lengths"
        ) from error
    return size if isinstance(size, int) else {"size": size}


def dtype_name(dtype: torch.dtype) -> str:
    """Return the dtype that a page uses for a dtype of PyTorch: "float32", "int64" or "bool".

    Raises:
        ValueError: the dtype is complex.
    """
    if dtype == torch.bool:
        return "bool"
    if dtype.is_complex:
        raise ValueError("complex numbers cannot be exported; compute with the real and the imaginary part")
    return "float32" if dtype.is_floating_point else "int64"
