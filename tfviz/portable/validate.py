"""Validate the specification of a program: its schema, operators, arguments, values and tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tfviz.portable.operators import operator
from tfviz.portable.symbolic_sizes import INT32_MAX, check_size
from tfviz.schema import boolean, dict_of, enum, fail, integer, list_of, number, object_of, optional, string

FORMAT = "tfviz/program/1"
DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
STORAGE_DTYPES = {  # dtype of a weight -> dtypes it may be stored in
    "float32": (torch.float32, torch.float16, torch.int8),
    "int64": (torch.int64,),
    "bool": (torch.bool,),
}
ATTENTION_OPS = ("softmax.int", "scaled_dot_product_attention")
NAME_SCHEMA = string(10_000)


def _check_side(value: Any, key: str) -> None:
    if type(value) is str:
        NAME_SCHEMA(value, key)
    elif type(value) is not int or not 0 <= value <= INT32_MAX:
        fail(value, key, "a size from 0 to 2**31 - 1, or the name of a length")


def _accept_any(value: Any, key: str) -> None:
    """Accept any value; arguments and sizes are checked later, with their operator."""


SHAPE_SCHEMA = list_of(_check_side, maximum=64)
DTYPE_SCHEMA = enum(*DTYPES)
NODE_SCHEMA = {
    "op": string(100),
    "args": list_of(_accept_any, maximum=100),
    "module": NAME_SCHEMA,
    "out": list_of(list_of(_accept_any, maximum=64), 1),
    "dtype": list_of(DTYPE_SCHEMA),
}
PROGRAM_SCHEMA = object_of(
    {
        "format": enum(FORMAT),
        "name": NAME_SCHEMA,
        "lengths": dict_of(list_of(optional(integer(0, INT32_MAX)), 2, 2), 1000),
        "inputs": list_of(
            object_of({"name": NAME_SCHEMA, "shape": SHAPE_SCHEMA, "dtype": DTYPE_SCHEMA}), maximum=10_000
        ),
        "weights": list_of(
            object_of(
                {"name": NAME_SCHEMA, "shape": list_of(integer(0, INT32_MAX), maximum=64), "dtype": DTYPE_SCHEMA}
            ),
        ),
        "nodes": list_of(object_of(NODE_SCHEMA, {"site": NAME_SCHEMA})),
        "outputs": list_of(object_of({"name": NAME_SCHEMA, "value": integer(0)}), 1),
    }
)


def validate(spec: Any, tensors: Any) -> None:
    """Check the specification of a program and its tensors.

    Raises:
        ValueError: the two do not form a program; the message names the key.
    """
    if type(spec) is dict and spec.get("format", FORMAT) != FORMAT:
        raise ValueError(f"program is of the format {str(spec['format'])[:60]!r}; this tfviz reads {FORMAT!r}")
    PROGRAM_SCHEMA(spec, "program")
    for key in ("inputs", "outputs", "weights"):
        _check_unique(key, [entry["name"] for entry in spec[key]])
    _check_lengths(spec["lengths"], spec["inputs"])
    _check_weights(spec["weights"], tensors)
    count = len(spec["inputs"]) + len(spec["weights"])
    for index, node in enumerate(spec["nodes"]):
        _check_node(node, f"program.nodes[{index}]", count, spec["lengths"])
        count += len(node["out"])
    for index, output in enumerate(spec["outputs"]):
        _check_value(output["value"], f"program.outputs[{index}].value", count)


def _check_unique(key: str, names: Sequence[str]) -> None:
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{key} has two of the name {repeated[0]!r}; each must have its own")


def _check_lengths(lengths: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> None:
    used = {dim for declared in inputs for dim in declared["shape"] if isinstance(dim, str)}
    if unmatched := sorted(used ^ lengths.keys()):
        raise ValueError(
            f"lengths names {', '.join(lengths) or 'none'}, the inputs have {', '.join(used) or 'none'}: "
            f"{unmatched[0]!r} must be in both"
        )
    for name, (least, most) in lengths.items():
        if least is None or (most is not None and most < least):
            raise ValueError(
                f"lengths[{name!r}] is {[least, most]}; it must be the least and the largest, or null for no largest"
            )


def _check_weights(weights: Sequence[Mapping[str, Any]], tensors: Any) -> None:
    if not isinstance(tensors, Mapping):
        fail(tensors, "tensors", "a dictionary of tensors")
    left = set(tensors)
    for index, weight in enumerate(weights):
        key, name = f"program.weights[{index}] ({weight['name']!r})", weight["name"]
        tensor = _checked_tensor(tensors, name, key, weight["shape"])
        if tensor.dtype not in STORAGE_DTYPES[weight["dtype"]]:
            raise ValueError(f"{key} is {weight['dtype']}, and its tensor {tensor.dtype}; the two do not fit")
        left.discard(name)
        if tensor.dtype == torch.int8:
            scale = _checked_tensor(tensors, f"{name}:scale", key, [*weight["shape"][:-1], 1])
            if scale.dtype != torch.float32 or not tensor.dim():
                raise ValueError(f"{name}:scale is {scale.dtype}; it must be float32, one number for each row")
            left.discard(f"{name}:scale")
    if left:
        raise ValueError(f"there is a tensor {min(map(str, left))!r} that weights does not name")


def _checked_tensor(tensors: Mapping[str, Any], name: str, key: str, shape: list[int]) -> Tensor:
    tensor = tensors.get(name)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{key} has no tensor {name!r}")
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or list(tensor.shape) != shape:
        raise ValueError(
            f"{key} says {shape}, and the tensor {name!r} is {list(tensor.shape)} on {tensor.device}; "
            "the two must be the same, dense and on the CPU"
        )
    return tensor


def _check_node(node: Mapping[str, Any], key: str, count: int, lengths: Mapping[str, Any]) -> None:
    try:
        parameters = operator(node["op"]).parameters
    except ValueError as error:
        raise ValueError(f"{key}.op: {error}") from None
    names = [parameter.name for parameter in parameters]
    if len(node["args"]) != len(names):
        raise ValueError(f"{key}.args has {len(node['args'])} members; {node['op']} takes {', '.join(names)}")
    references: dict[str, Callable[..., None]] = {
        "value": partial(_check_value, count=count),
        "size": partial(check_size, lengths=lengths),
        "float": enum("inf", "-inf", "nan"),
    }
    for index, (value, parameter) in enumerate(zip(node["args"], parameters)):
        _check_argument(value, parameter.kind, f"{key}.args[{index}]", references)
    _check_functional(node["op"], dict(zip(names, node["args"])), key)
    if len(node["out"]) != len(node["dtype"]):
        raise ValueError(f"{key} has {len(node['out'])} shapes and {len(node['dtype'])} dtypes; each result has one")
    for index, shape in enumerate(node["out"]):
        for axis, dim in enumerate(shape):
            check_size(dim, f"{key}.out[{index}][{axis}]", lengths)
    if "site" in node and node["op"] not in ATTENTION_OPS:
        raise ValueError(f"{key}.site is at {node['op']}, which gives no attention; it must be at a softmax")


def _check_functional(op: str, args: Mapping[str, Any], key: str) -> None:
    """Raise ValueError for a node in training mode, or one whose output size depends on data."""
    trains = next((name for name in ("training", "train") if args.get(name)), "")
    if op == "instance_norm" and args["use_input_stats"] and (args["running_mean"] or args["running_var"]):
        trains = "use_input_stats"
    if trains:
        raise ValueError(f"{key}: {op} has {trains}, which is for training; a program computes in eval mode")
    if op == "one_hot" and args["num_classes"] == -1:
        raise ValueError(f"{key}: one_hot has num_classes -1; give the number of classes")


def _check_value(value: Any, key: str, count: int) -> None:
    if type(value) is not int or not 0 <= value < count:
        fail(value, key, f"the number of an earlier value, from 0 to {count - 1}")


def _check_argument(value: Any, kind: str, key: str, references: Mapping[str, Callable[..., None]]) -> None:
    """Check an argument against the type of its parameter in PyTorch's schema, such as `Optional[List[int]]`."""
    if kind.startswith("Optional["):
        if value is None:
            return
        kind = kind[9:-1]
    if kind.startswith("List["):
        kind = kind[5:-1]
        if type(value) is list:
            list_of(lambda one, member_key: _check_argument(one, kind, member_key, references))(value, key)
            return
        if kind != "int":  # one integer is valid for all axes
            fail(value, key, "a list")
    form = next(iter(value)) if type(value) is dict and len(value) == 1 else ""
    if kind in REFERENCED_KINDS.get(form, ()):
        references[form](value[form], f"{key}.{form}")
    else:
        PARAMETER_CHECKS[kind](value, key)


def _check_finite(value: Any, key: str) -> None:
    (INTEGER_SCHEMA if type(value) is int else number)(value, key)


def _check_scalar(value: Any, key: str) -> None:
    if type(value) is not bool:
        _check_finite(value, key)


def _check_tensor_or_scalar(value: Any, key: str) -> None:
    if type(value) not in (bool, int, float):
        fail(value, key, 'a value {"value": number}, or a number')
    _check_scalar(value, key)


INTEGER_SCHEMA = integer(-INT32_MAX, INT32_MAX)
REFERENCED_KINDS = {  # kind of reference -> types of parameters that accept it; PyTorch accepts a number for a tensor
    "value": ("Tensor",),
    "size": ("Tensor", "number", "float", "int"),
    "float": ("Tensor", "number", "float"),
}
PARAMETER_CHECKS = {  # type of parameter -> check of a plain value
    "Tensor": _check_tensor_or_scalar,
    "number": _check_scalar,
    "float": _check_finite,
    "int": INTEGER_SCHEMA,
    "bool": boolean,
    "str": string(10_000),
    "ScalarType": DTYPE_SCHEMA,
}
