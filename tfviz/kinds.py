"""Whether a value is of the kind that an annotation asks for, or means the same as one that is."""

import operator
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import torch
from torch import Tensor

NO = object()  # what does not fit
LARGEST = 2**63 - 1  # of whole numbers, as tensors have them


def fit(value: Any, hint: Any) -> Any:
    """The value, or what means the same of the kind that is asked for; `NO` if it does not fit."""
    hint = plain(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        best: Any = NO
        for one in inner:  # what is of a kind as it is need not be turned into another
            found = fit(value, one)
            if found is value:
                return value
            best = found if best is NO else best
        return best
    if origin is Literal:
        return value if value in inner else NO
    if origin is type:
        return value if isinstance(value, type) and _is_one_of(value, inner) else NO
    if origin is tuple and inner[-1:] != (Ellipsis,):
        same = isinstance(value, list | tuple) and len(value) == len(inner)
        return _members(value, inner, tuple) if same else NO
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _entries(value, inner[1]) if isinstance(value, Mapping) else NO
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _sequence(value, inner[0], origin)
    if isinstance(value, Tensor) and not value.dim() and origin is not None:
        return NO  # which PyTorch lets pass for a sequence
    if origin in (Iterable, Collection) and isinstance(value, list | tuple):
        return _members(value, [inner[0]] * len(value), list)
    if origin is not None:  # functions, iterators: what is inside shows when it is used
        return value if isinstance(value, origin) else NO
    if isinstance(hint, type):
        return _single(value, hint)
    return value  # Any, a type variable


def plain(hint: Any) -> Any:
    """Without the names of axes; jaxtyping's own kinds, as in tests, are those of their tensors."""
    hint = hint.__origin__ if get_origin(hint) is Annotated else hint
    return getattr(hint, "array_type", hint)


def _is_one_of(value: type, kinds: tuple[Any, ...]) -> bool:
    """Whether a class is one of those that `type[...]` names, or is made of one."""
    known = [kind for kind in kinds if isinstance(kind, type)]
    return not known or issubclass(value, tuple(known))


def _single(value: Any, kind: type) -> Any:
    try:
        if getattr(kind, "_is_protocol", False) and isinstance(value, type):
            return NO  # a class has the methods that its instances have
        if isinstance(value, kind) and not (kind in (int, float) and isinstance(value, bool)):
            return value if kind is not int or -LARGEST <= value <= LARGEST else NO  # type: ignore[operator]
    except TypeError:  # a protocol that cannot be asked
        return value
    convert = CONVERTED.get(kind)
    try:
        return NO if convert is None else convert(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return NO


def _members(values: Iterable[Any], hints: Iterable[Any], make: Callable[[list[Any]], Any]) -> Any:
    """As they are, if all fit as they are."""
    fitting = [fit(value, hint) for value, hint in zip(values, hints)]
    if any(one is NO for one in fitting):
        return NO
    return values if all(one is value for one, value in zip(fitting, values)) else make(fitting)


def _sequence(value: Any, member: Any, kind: type) -> Any:
    if isinstance(value, str):
        return value if member in (str, Any) and kind is Sequence else NO
    if isinstance(value, bytes | bytearray | Mapping | set | frozenset) or not isinstance(value, Iterable):
        return NO
    if slice in get_args(member) and not isinstance(value, tuple):
        return NO  # in brackets a list is several indices, and a tuple the places of one
    if not isinstance(value, Sequence):
        if getattr(value, "ndim", 1) == 0 or (isinstance(value, Tensor) and not has_numbers(value)):
            return NO
        value = value.tolist() if hasattr(value, "tolist") and plain(member) is not Tensor else list(value)
    make = tuple if kind is tuple else list
    value = make(value) if kind in (list, tuple) and not isinstance(value, kind) else value
    return value if member is Any else _members(value, [member] * len(value), make)


def _entries(values: Mapping[Any, Any], member: Any) -> Any:
    fitting = {key: fit(value, member) for key, value in values.items()}
    if any(one is NO for one in fitting.values()):
        return NO
    return values if all(one is values[key] for key, one in fitting.items()) else fitting


def has_numbers(tensor: Tensor) -> bool:
    """Whether they can be read one by one."""
    return tensor.layout is torch.strided and not (tensor.is_meta or tensor.is_quantized)


def _tensor(value: Any) -> Any:
    """Of numpy's arrays and of numbers in lists; in torch's usual kinds, where numpy's are others."""
    if isinstance(value, list | tuple) and value and (isinstance(value[0], Tensor) or hasattr(value[0], "__array__")):
        return torch.stack([one if isinstance(one, Tensor) else _tensor(one) for one in value])
    if not (isinstance(value, list | tuple) or hasattr(value, "__array__")):
        return NO
    tensor = torch.tensor(value)
    if tensor.dtype == torch.float64:
        return tensor.to(torch.get_default_dtype())
    return tensor.long() if tensor.dtype in (torch.int8, torch.int16, torch.int32) else tensor


def _whole(value: Any) -> Any:
    boolean = isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))
    return NO if boolean or not -LARGEST <= operator.index(value) <= LARGEST else operator.index(value)


def _number(value: Any) -> Any:
    boolean = isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))
    return float(value) if hasattr(value, "__float__") and not boolean else NO


def _truth(value: Any) -> Any:
    kind = str(getattr(value, "dtype", ""))
    return bool(value) if "bool" in kind or (isinstance(value, int) and value in (0, 1)) else NO


CONVERTED: dict[type, Callable[[Any], Any]] = {
    Tensor: _tensor,
    int: _whole,
    float: _number,
    bool: _truth,
    Path: lambda value: Path(os.fspath(value)) if isinstance(value, os.PathLike) else NO,
}
