"""The kinds of what a public function is given, looked at once, at its door.

`guard(globals(), __all__)` at the end of a room's `__init__` puts a door before each public function and constructor;
what the room calls inside goes by no door. A door reads the annotations. What means the same is taken: numpy arrays and
lists where a tensor is asked for, numpy's whole numbers where an int is. The rest is told in one sentence: which
argument, what it is, what to give. Values (ranges, sizes, names) are each function's own to look at.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from torch import Tensor, nn

from tfviz.kinds import LARGEST, NO, fit, plain

F = TypeVar("F", bound=Callable[..., Any])
SHOWN = 60  # characters of a value in a message
SAID: dict[Any, str] = {  # what to give, in words; rooms add kinds of their own
    type(None): "None", int: "a whole number", float: "a number", bool: "True or False", str: "a string",
    Path: "a path", Tensor: "a tensor", nn.Module: "a model (torch.nn.Module)", Any: "anything",
}  # fmt: skip


def guard(names: dict[str, Any], public: Iterable[str], *, without: Sequence[str] = (), room: str = "") -> None:
    """Put a door before each of these functions and constructors; rooms, constants and those of `without` have none.

    Args:
        room: where a reader finds them, if it is another than where they are guarded, such as "view.draw".
    """
    room = room or names["__name__"].removeprefix("tfviz.")
    for name in public:
        thing = names[name]
        if name in without or getattr(thing, "_is_protocol", False):
            continue
        if inspect.isclass(thing):
            if "__init__" in vars(thing) and not hasattr(thing.__init__, "__wrapped_door__"):
                thing.__init__ = door(thing.__init__, room)  # type: ignore[method-assign]
        elif inspect.isfunction(thing):
            names[name] = door(thing, room)


def door(function: F, room: str = "") -> F:
    """The same function; what does not fit its annotations is told before anything is done.

    Raises:
        TypeError: an argument is missing, unknown, or of another kind.

    >>> @door
    ... def wide(x: Tensor, times: int = 1) -> int:
    ...     return x.shape[0] * times
    >>> wide([1.0, 2.0])
    2
    >>> wide([1.0, 2.0], times="3")
    Traceback (most recent call last):
    TypeError: doors.wide: times is '3'; give a whole number
    """
    signature = inspect.signature(function)
    own = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
    known = re.match(r"tfviz\.(\w+)", function.__module__ or "")
    said = ".".join(filter(None, (room or (known[1] if known else ""), own)))

    @wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(key for key in signature.parameters if key not in ("self", "cls"))
            raise TypeError(f"{said}: {error}; it takes {takes or 'nothing'}") from None
        hints, given = _hints(function), bound.arguments
        for key, value in given.items():
            if key in hints:
                many = signature.parameters[key].kind
                if many is inspect.Parameter.VAR_POSITIONAL:
                    given[key] = tuple(_taken(said, key, one, hints[key]) for one in value)
                elif many is inspect.Parameter.VAR_KEYWORD:
                    given[key] = {inner: _taken(said, inner, one, hints[key]) for inner, one in value.items()}
                else:
                    given[key] = _taken(said, key, value, hints[key])
        return function(*bound.args, **bound.kwargs)

    entered.__wrapped_door__ = True  # type: ignore[attr-defined]
    return typing.cast(F, entered)


def takes(*arguments: str, **given: Any) -> None:
    """Each is a function that can be called with these arguments, as far as its signature tells.

    Raises:
        TypeError: it is a class, or takes more or fewer.

    >>> takes("step", "steps", schedule=lambda step: 1.0)
    Traceback (most recent call last):
    TypeError: schedule is the function <lambda>; it must take (step, steps), but: too many positional arguments
    """
    for name, function in given.items():
        if not callable(function):
            raise TypeError(f"{name} is {what(function)}; give a function")
        if isinstance(function, type):
            raise TypeError(f"{name} is {what(function)}; give a function, or an instance, {function.__name__}(...)")
        try:
            signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
        except (TypeError, ValueError):  # of some functions in C nothing is known
            continue
        try:
            signature.bind(*arguments)
        except TypeError as error:
            asked = f"take ({', '.join(arguments)})" if arguments else "take nothing"
            raise TypeError(f"{name} is {what(function)}; it must {asked}, but: {error}") from None


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    asked = {key: hint for key, hint in function.__annotations__.items() if key != "return"}
    names = types.SimpleNamespace(__annotations__=asked)  # what is returned may be known to type checkers only
    hints = typing.get_type_hints(names, inspect.unwrap(function).__globals__, include_extras=True)
    return {key: hint for key, hint in hints.items() if hint is not Any}


def _taken(said: str, key: str, value: Any, hint: Any) -> Any:
    fitting = fit(value, hint)
    if fitting is NO:
        where, wrong, asked = _culprit(key, value, hint)
        raise TypeError(f"{said}: {where} is {what(wrong)}; give {_say(asked)}{_instead(wrong, asked)}")
    return fitting


def what(value: Any) -> str:
    """A value in a message: itself if it is short, else its kind."""
    if value is None or isinstance(value, str | bytes | int | float | complex):
        text = repr(value)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    kind = {"ndarray": "numpy array", "Tensor": "tensor", "dict": "dictionary"}.get(kind, kind)
    size = f" of shape {list(shape)}" if isinstance(shape, tuple) else ""
    return f"{_a(kind)}{size}"


def _a(name: str) -> str:
    """With its article, as it is spoken: a GPT, an LSTM."""
    spelt = name.isupper() and name[0] in "FHLMNRSX"
    return f"{'an' if spelt or name[0] in 'aeioAEIO' else 'a'} {name}"


def _say(hint: Any) -> str:
    """What an annotation asks for, in words."""
    if get_origin(hint) is Annotated:
        return f"{_say(plain(hint))} ({' '.join(hint.__metadata__)})"
    if dims := getattr(hint, "dim_str", ""):  # jaxtyping's
        return f"{_say(plain(hint))} ({dims})"
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_say(one) for one in inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is type:
        return f"a class ({inner[0].__name__})" if inner and isinstance(inner[0], type) else "a class"
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return f"({', '.join(map(_say, inner))})"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{{'a name': {_say(inner[1])}}}" if inner[0] is str else "a dictionary"
    if isinstance(origin, type) and issubclass(origin, Sequence | Iterable):
        if slice in get_args(inner[0]):
            return "whole numbers and slices, one for each axis"
        return f"a list{_of_many(inner[0])}"
    if origin is not None or hint is Callable:
        return "a function"
    return SAID.get(hint) or _kind(hint)


def _of_many(hint: Any) -> str:
    many = {str: " of strings", int: " of whole numbers", float: " of numbers", Tensor: " of tensors"}
    return many.get(plain(hint), f" of {_say(hint)}" if get_origin(hint) is tuple else "")


def _kind(hint: Any) -> str:
    """A class by its name; a protocol by what it must have."""
    name = getattr(hint, "__name__", str(hint))
    if not getattr(hint, "_is_protocol", False):
        return _a(name)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    own = [key for key in vars(hint) if not key.startswith("_") or key in ("__getitem__", "__call__", "__len__")]
    asked = [*own, *(key for key in getattr(hint, "__annotations__", {}) if key not in own)]
    return f"{_a(words)} (with {', '.join(asked)})"


def _instead(value: Any, hint: Any) -> str:
    """What was probably meant."""
    for kind in get_args(hint) or (hint,):
        if isinstance(value, type) and (kind in value.__mro__ or getattr(kind, "_is_protocol", False)):
            return f": an instance, {value.__name__}(...)"
        if kind is int and isinstance(value, int) and abs(value) > LARGEST:
            return " below 2**63"
        if kind is nn.Module and isinstance(getattr(value, "model", None), nn.Module):
            return ", such as its .model"
    return ""


def _culprit(key: str, value: Any, hint: Any) -> tuple[str, Any, Any]:
    """Where it is that something does not fit: the argument, or the first of its members that does not, and so on."""
    for one in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        origin, inner = get_origin(plain(one)), get_args(plain(one))
        if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
            return next(_culprit(f"{key}[{k!r}]", v, inner[1]) for k, v in value.items() if fit(v, inner[1]) is NO)
        if origin in (Sequence, Iterable, list, tuple) and isinstance(value, list | tuple):
            asked = inner if origin is tuple and len(inner) == len(value) else [inner[0]] * len(value)
            wrong = (_culprit(f"{key}[{i}]", v, a) for i, (v, a) in enumerate(zip(value, asked)) if fit(v, a) is NO)
            return next(wrong, (key, value, hint))
    return key, value, hint
