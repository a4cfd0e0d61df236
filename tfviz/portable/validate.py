"""Whether a program is one: every part of what is described is checked against the others and against the tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.portable.operators import operator
from tfviz.portable.sizes import check_size
from tfviz.schema import boolean, dict_of, enum, fail, integer, list_of, number, object_of, optional, string

FORMAT = "tfviz/program/1"
INT32 = 2**31 - 1
DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
STORED = {
    "float32": (torch.float32, torch.float16, torch.int8),
    "int64": (torch.int64,),
    "bool": (torch.bool,),
}
WEIGHS = ("softmax.int", "_softmax", "_safe_softmax", "scaled_dot_product_attention")
NAME = string(10_000)


def _size(value: Any, key: str) -> None:
    """Of an input: a number or the name of a length."""
    if type(value) is str:
        NAME(value, key)
    elif type(value) is not int or not 0 <= value <= INT32:
        fail(value, key, "a size from 0 to 2**31 - 1, or the name of a length")


def _anything(value: Any, key: str) -> None:
    """Checked later, where it can be said what it is."""


SHAPE = list_of(_size, maximum=64)
SIDES = list_of(integer(0, INT32), maximum=64)
DTYPE = enum(*DTYPES)
DESCRIBED = object_of(
    {
        "format": enum(FORMAT),
        "name": NAME,
        "lengths": dict_of(list_of(optional(integer(0, INT32)), 2, 2), 1000),
        "inputs": list_of(object_of({"name": NAME, "shape": SHAPE, "dtype": DTYPE}), maximum=10_000),
        "weights": list_of(object_of({"name": NAME, "shape": SIDES, "dtype": DTYPE})),
        "nodes": list_of(
            object_of(
                {
                    "op": string(100),
                    "args": list_of(_anything, maximum=100),
                    "site": NAME,
                    "out": list_of(list_of(_anything, maximum=64)),
                    "dtype": list_of(DTYPE),
                },
                {"pattern": NAME},
            )
        ),
        "outputs": list_of(object_of({"name": NAME, "t": integer(0)}), 1),
    }
)


def validate(described: Any, tensors: Any) -> None:
    """Check a program's description and its tensors.

    Raises:
        ValueError: they are no program; names the key.
    """
    if type(described) is dict and described.get("format", FORMAT) != FORMAT:
        raise ValueError(f"program is of the format {str(described['format'])[:60]!r}; this tfviz reads {FORMAT!r}")
    DESCRIBED(described, "program")
    _lengths(described)
    _weights(described["weights"], tensors)
    count = len(described["inputs"]) + len(described["weights"])
    for place, node in enumerate(described["nodes"]):
        _node(node, f"program.nodes[{place}]", count, described["lengths"])
        count += len(node["out"])
    for place, output in enumerate(described["outputs"]):
        _earlier(output["t"], f"program.outputs[{place}].t", count)
    _unique([one["name"] for one in described["outputs"]], "outputs")


def _lengths(described: Mapping[str, Any]) -> None:
    _unique([one["name"] for one in described["inputs"]], "inputs")
    used = {side for one in described["inputs"] for side in one["shape"] if isinstance(side, str)}
    lengths = described["lengths"]
    if odd := sorted(used ^ lengths.keys()):
        raise ValueError(f"lengths names {', '.join(lengths) or 'none'}, the inputs have {', '.join(used) or 'none'}: "
                         f"{odd[0]!r} must be in both")  # fmt: skip
    for name, (least, most) in lengths.items():
        if least is None or (most is not None and most < least):
            raise ValueError(
                f"lengths[{name!r}] is {[least, most]}; it must be the least and the largest, or null for no largest"
            )


def _weights(weights: Sequence[Mapping[str, Any]], tensors: Any) -> None:
    if not isinstance(tensors, Mapping):
        fail(tensors, "tensors", "a dictionary of tensors")
    wanted: list[str] = []
    for place, weight in enumerate(weights):
        key, name = f"program.weights[{place}] ({weight['name']!r})", weight["name"]
        tensor = _tensor(tensors, name, key, weight["shape"])
        if tensor.dtype not in STORED[weight["dtype"]]:
            raise ValueError(f"{key} is {weight['dtype']}, and its tensor {tensor.dtype}; the two do not fit")
        wanted.append(name)
        if tensor.dtype == torch.int8:
            scale = _tensor(tensors, f"{name}:scale", key, [*weight["shape"][:-1], 1])
            if scale.dtype != torch.float32 or not tensor.dim():
                raise ValueError(f"{name}:scale is {scale.dtype}; it must be float32, one number for each row")
            wanted.append(f"{name}:scale")
    _unique(wanted, "weights")
    if left := sorted(map(str, tensors.keys() - set(wanted))):
        raise ValueError(f"there is a tensor {left[0]!r} that weights does not name")


def _tensor(tensors: Mapping[str, Any], name: str, key: str, shape: list[int]) -> Tensor:
    tensor = tensors.get(name)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{key} has no tensor {name!r}")
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or list(tensor.shape) != shape:
        raise ValueError(f"{key} says {shape}, and the tensor {name!r} is {list(tensor.shape)} on {tensor.device}; "
                         "the two must be the same, dense and on the CPU")  # fmt: skip
    return tensor


def _unique(names: Sequence[str], key: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{key} has two of the name {name!r}; each must have its own")
        seen.add(name)


def _earlier(value: Any, key: str, count: int) -> None:
    if type(value) is not int or not 0 <= value < count:
        fail(value, key, f"the number of an earlier value, from 0 to {count - 1}")


def _node(node: Mapping[str, Any], key: str, count: int, lengths: Mapping[str, Any]) -> None:
    try:
        parameters = operator(node["op"]).parameters
    except ValueError as error:
        raise ValueError(f"{key}.op: {error}") from None
    if len(node["args"]) != len(parameters):
        names = ", ".join(one.name for one in parameters)
        raise ValueError(f"{key}.args has {len(node['args'])} members; {node['op']} takes {names}")
    given = {}
    for place, (value, one) in enumerate(zip(node["args"], parameters)):
        _argument(value, one.kind, f"{key}.args[{place}]", count, lengths)
        given[one.name] = value
    _functional(node["op"], given, key)
    if len(node["out"]) != len(node["dtype"]) or not node["out"]:
        raise ValueError(f"{key} has {len(node['out'])} shapes and {len(node['dtype'])} dtypes; each result has one")
    for place, shape in enumerate(node["out"]):
        for axis, side in enumerate(shape):
            check_size(side, f"{key}.out[{place}][{axis}]", lengths)
    if "pattern" in node and node["op"] not in WEIGHS:
        raise ValueError(f"{key}.pattern is at {node['op']}, which gives no attention; it must be at a softmax")


def _functional(op: str, given: Mapping[str, Any], key: str) -> None:
    """No step changes what it is given, draws at random, or makes a shape from numbers that it finds."""
    trains = next((name for name in ("training", "train") if given.get(name)), "")
    if op == "instance_norm" and given["use_input_stats"] and (given["running_mean"] or given["running_var"]):
        trains = "use_input_stats"
    if trains:
        raise ValueError(f"{key}: {op} has {trains}, which is for training; a program computes in eval mode")
    if op == "one_hot" and given["num_classes"] == -1:
        raise ValueError(f"{key}: one_hot has num_classes -1; give the number of classes")


def _argument(value: Any, kind: str, key: str, count: int, lengths: Mapping[str, Any]) -> None:
    """What a parameter of this kind, as PyTorch's schema has it, can be."""
    if kind.startswith("Optional["):
        if value is None:
            return
        kind = kind[9:-1]
    if kind.startswith("List["):
        inner = kind[5:-1]
        if type(value) is list:
            list_of(lambda one, where: _argument(one, inner, where, count, lengths))(value, key)
            return
        if inner != "int":
            fail(value, key, "a list")
        kind = inner  # one number stands for as many as there are axes
    if type(value) is dict and len(value) == 1 and kind in REFERENCES.get(form := next(iter(value)), ()):
        if form == "t":
            _earlier(value["t"], f"{key}.t", count)
        elif form == "s":
            check_size(value["s"], f"{key}.s", lengths)
        else:
            FLOAT(value["f"], f"{key}.f")
    else:
        KINDS[kind](value, key)


def _scalar(value: Any, key: str) -> None:
    if type(value) is not bool:
        _finite(value, key)


def _finite(value: Any, key: str) -> None:
    if type(value) is int:
        INTEGER(value, key)
    else:
        number(value, key)


def _tensor_or_scalar(value: Any, key: str) -> None:
    if type(value) not in (bool, int, float):
        fail(value, key, 'a value {"t": number}, or a number')
    _scalar(value, key)


FLOAT = enum("inf", "-inf", "nan")
REFERENCES = {  # the kinds of parameters that each can stand for; PyTorch takes a number where it wants a tensor
    "t": ("Tensor",),
    "s": ("Tensor", "number", "float", "int"),
    "f": ("Tensor", "number", "float"),
}
INTEGER = integer(-INT32, INT32)
KINDS = {
    "Tensor": _tensor_or_scalar,
    "number": _scalar,
    "float": _finite,
    "int": INTEGER,
    "bool": boolean,
    "str": string(10_000),
    "ScalarType": DTYPE,
}
