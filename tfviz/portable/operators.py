"""Look up and call PyTorch's operators by name; only those of `SUPPORTED_OPERATORS` are allowed."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz.portable.supported_operators import OMITTED_ARGUMENTS, SUPPORTED_OPERATORS

# uninitialized memory could reveal earlier content
REPLACED_OPS = {"empty.memory_format": "zeros", "empty_like": "zeros_like"}
TRUNCATING_OPS = ("div.Scalar_mode", "div.Tensor_mode")


class Parameter(NamedTuple):
    """A parameter of an operator.

    Attributes:
        name: the name of the parameter.
        kind: its type in the schema, such as `Optional[List[int]]`.
        keyword: whether it is keyword-only.
    """

    name: str
    kind: str
    keyword: bool


class Operator(NamedTuple):
    """An operator and its parameters.

    Attributes:
        overload: the operator, of `torch.ops.aten`.
        parameters: its parameters, without those of `OMITTED_ARGUMENTS`.
        creates: whether it creates a tensor without tensor arguments, and so takes a device.
    """

    overload: Any
    parameters: tuple[Parameter, ...]
    creates: bool


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def decompositions() -> dict[Any, Any]:
    """Return PyTorch's decompositions except those of `SUPPORTED_OPERATORS`, for `run_decompositions`."""
    table = torch.export.default_decompositions()
    for name in SUPPORTED_OPERATORS:
        table.pop(_overload(name), None)
    return table


@cache
def operator(name: str) -> Operator:
    """Return an operator by its name and overload, such as `add.Tensor`.

    Raises:
        ValueError: the operator is not one of `SUPPORTED_OPERATORS`.
    """
    if name not in SUPPORTED_OPERATORS:
        raise ValueError(f"{name!r} is not an operation of a program; tfviz.portable.SUPPORTED_OPERATORS lists them")
    overload = _overload(REPLACED_OPS.get(name, name))
    arguments = overload._schema.arguments
    parameters = tuple(
        Parameter(argument.name, str(argument.real_type), argument.kwarg_only)
        for argument in arguments
        if argument.name not in OMITTED_ARGUMENTS
    )
    creates = not any("Tensor" in parameter.kind for parameter in parameters)
    return Operator(overload, parameters, creates and any(argument.name == "device" for argument in arguments))


def call_operator(name: str, args: list[Any], device: str) -> Any:
    """Call an operator and return its results; dropout is disabled, since a program computes in eval mode.

    Args:
        name: the name and overload of the operator.
        args: a value for each parameter, in order.
        device: the device of tensors that the operator creates, "cpu" or "meta".

    Raises:
        ValueError: the operator is not one of `SUPPORTED_OPERATORS`; an id is out of the rows of an embedding.
    """
    called = operator(name)
    named = dict(zip([parameter.name for parameter in called.parameters], args))
    if "dropout_p" in named:
        named["dropout_p"] = 0.0
    if name == "embedding" and device != "meta":
        _check_rows(named["indices"], len(named["weight"]))
    if name in TRUNCATING_OPS and named["rounding_mode"] == "trunc":
        return _truncated_division(named["self"], named["other"])
    keywords = {parameter.name: named.pop(parameter.name) for parameter in called.parameters if parameter.keyword}
    keywords = {key: value for key, value in keywords.items() if value is not None}
    results = called.overload(*named.values(), **keywords, **({"device": device} if called.creates else {}))
    if name == "_native_batch_norm_legit_no_training":  # other devices return two empty tensors
        return results[0], results[1].new_zeros(0), results[2].new_zeros(0)
    return results


def _check_rows(ids: Tensor, rows: int) -> None:
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < rows:
        outside = int(ids.min() if ids.min() < 0 else ids.max())
        raise ValueError(f"id {outside} is not one of the table's {rows} rows, 0 to {rows - 1}")


def _truncated_division(dividend: Any, divisor: Any) -> Tensor:
    """Return the quotient, truncated toward zero; in PyTorch, the smallest int64 divided by -1 ends the process."""
    if torch.result_type(torch.as_tensor(dividend), divisor).is_floating_point:
        return torch.div(dividend, divisor, rounding_mode="trunc")
    negates = torch.as_tensor(divisor) == -1
    safe = torch.where(negates, 1, divisor)
    return torch.where(negates, -dividend, torch.div(dividend, safe, rounding_mode="trunc"))
