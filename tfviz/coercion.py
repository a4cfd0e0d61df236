"""`coerce`: convert equivalent values to an annotated type, such as NumPy arrays to tensors or lists."""

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import torch
from torch import Tensor


def coerce(value: Any, hint: Any) -> Any:
    """Return a value converted to an annotated type, with its members; unchanged if it cannot be converted.

    >>> from collections.abc import Sequence
    >>> coerce(torch.tensor([3, 4]), Sequence[int] | None)
    [3, 4]
    """
    hint = without_shape(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return next((converted for converted in (coerce(value, arg) for arg in args) if converted is not value), value)
    if not isinstance(origin, type) or origin is type:
        return _convert(value, hint)
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return value
        named = args[0] is str  # integers are accepted as names
        return {
            str(key) if named and isinstance(key, int) else key: coerce(item, args[1]) for key, item in value.items()
        }
    if issubclass(origin, Iterable) and isinstance(value, Iterable):
        return _coerce_items(value, origin, args)
    return value


def without_shape(hint: Any) -> Any:
    """Return an annotation without its shape (of `tfviz.shapes`, or in tests of jaxtyping), such as `Tensor`."""
    hint = hint.__origin__ if get_origin(hint) is Annotated else hint
    return getattr(hint, "array_type", hint)


def has_numbers(tensor: Tensor) -> bool:
    """Return whether the numbers of a tensor can be read: it is dense, and neither meta nor quantized."""
    return tensor.layout is torch.strided and not (tensor.is_meta or tensor.is_quantized)


def _coerce_items(values: Iterable[Any], kind: type, hints: tuple[Any, ...]) -> Any:
    if isinstance(values, str | bytes | bytearray | Mapping | set | frozenset):
        return values
    if getattr(values, "ndim", 1) == 0 or (isinstance(values, Tensor) and not has_numbers(values)):
        return values
    if kind is tuple and not isinstance(values, tuple) and slice in get_args(hints[0]):
        return values  # in brackets, a list means several indices, and a tuple one index for each axis
    arrays = hasattr(values, "tolist") and without_shape(hints[0]) is not Tensor
    items = values.tolist() if arrays else list(values)  # type: ignore[attr-defined]
    each = hints if kind is tuple and hints[-1] is not Ellipsis else (hints[0],) * len(items)
    return (tuple if kind is tuple else list)(map(coerce, items, each)) if len(each) == len(items) else values


def _convert(value: Any, kind: Any) -> Any:
    try:
        return value if kind in (int, float) and _is_bool(value) else CONVERTERS.get(kind, _unchanged)(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return value


def _unchanged(value: Any) -> Any:
    return value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or (not isinstance(value, Tensor) and str(getattr(value, "dtype", "")) == "bool")


def _to_tensor(value: Any) -> Any:
    """Return an array or nested list of numbers as a tensor, in PyTorch's default dtypes instead of NumPy's."""
    if isinstance(value, Tensor) or not (isinstance(value, list | tuple) or hasattr(value, "__array__")):
        return value
    if isinstance(value, list | tuple) and value and hasattr(value[0], "__array__"):  # including tensors
        return torch.stack([_to_tensor(item) for item in value])
    tensor = torch.tensor(value)
    if tensor.dtype == torch.float64:
        return tensor.to(torch.get_default_dtype())
    return tensor.long() if tensor.dtype in (torch.int8, torch.int16, torch.int32) else tensor


CONVERTERS: dict[type, Callable[[Any], Any]] = {
    Tensor: _to_tensor,
    int: operator.index,
    float: lambda value: float(value) if hasattr(value, "__float__") else value,
    bool: lambda value: bool(value) if value in (0, 1) else value,
    Path: lambda value: Path(os.fspath(value)) if isinstance(value, os.PathLike) else value,
}
