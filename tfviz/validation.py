"""Check the arguments of public functions against their annotations, at the public interface only.

`validate_public(globals(), __all__)` at the end of a package's `__init__` wraps its public functions and constructors;
calls inside the package are not checked. Arguments that do not match are converted if they are equivalent
(`tfviz.coercion.coerce`). Typeguard checks each member of a list, while beartype checks a random one, so a call is
always accepted or always rejected.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import torch
from torch import Tensor, nn

from tfviz.coercion import coerce, without_shape
from tfviz.schema import describe

TOKEN_ARGUMENTS = ("token", "correct", "incorrect")  # of metrics, for which users may pass a string
METRIC_ARGUMENTS = ("metric", "target")  # of analyses, for which users may pass a token
SITE_ARGUMENTS = ("senders", "receivers")  # of path patching, for which users may pass (layer, head)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def validate_public(
    names: dict[str, Any], public: Iterable[str], *, exclude: Sequence[str] = (), package: str = ""
) -> None:
    """Replace public functions and constructors in a namespace by validated ones; protocols are unchanged.

    Args:
        names: the namespace, such as `globals()`.
        public: the names of the public functions and classes.
        exclude: the names to leave unchanged.
        package: the dotted name of the public package, if it is not that of the namespace.
    """
    package = package or names["__name__"].removeprefix("tfviz.")
    for name in public:
        member = names[name]
        if name in exclude or getattr(member, "_is_protocol", False):
            continue
        if inspect.isclass(member):
            if "__init__" in vars(member) and not hasattr(member.__init__, "__validated__"):
                member.__init__ = validated(member.__init__, package)  # type: ignore[method-assign]
        elif inspect.isfunction(member):
            names[name] = validated(member, package)


def validated(function: F, package: str = "") -> F:
    """Return a function that checks its arguments before each call, and converts equivalent ones.

    Args:
        function: the function to wrap.
        package: the dotted name of its package, for messages; empty: that of its module.

    Raises:
        TypeError: raised by the returned function if an argument is missing, unknown, or does not match its annotation.

    >>> from torch import Tensor
    >>> @validated
    ... def wide(x: Tensor, times: int = 1) -> int:
    ...     return x.shape[0] * times
    >>> wide([1.0, 2.0])
    2
    >>> wide([1.0, 2.0], times="3")
    Traceback (most recent call last):
    TypeError: validation.wide: times is '3'; give int
    """
    package = package or function.__module__.removeprefix("tfviz.").partition(".")[0]
    title = f"{package}.{function.__qualname__.removesuffix('.__init__').rpartition('<locals>.')[2]}"

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():  # the checks would break the graph
            return function(*args, **kwargs)
        signature = _signature(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{title}: {error}; it takes {_accepted(signature)}") from None
        hints, values = _hints(function), bound.arguments
        for key in [key for key in values if key in hints]:
            kind = signature.parameters[key].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                values[key] = tuple(_checked(title, key, value, hints[key]) for value in values[key])
            elif kind is inspect.Parameter.VAR_KEYWORD:
                values[key] = {name: _checked(title, name, value, hints[key]) for name, value in values[key].items()}
            else:
                values[key] = _checked(title, key, values[key], hints[key])
        return function(*bound.args, **bound.kwargs)

    wrapper.__validated__ = True  # type: ignore[attr-defined]
    return typing.cast(F, wrapper)


def unchecked(kind: type[T], *args: Any) -> T:
    """Return an instance of a public class, constructed without checks, for the package's own inner loops."""
    made = kind.__new__(kind)
    initialize = kind.__init__
    getattr(initialize, "__wrapped__", initialize)(made, *args)
    return made


def _accepted(signature: inspect.Signature) -> str:
    """Return a list of the arguments for a message, with keyword-only arguments last."""
    names = {key: parameter.kind for key, parameter in signature.parameters.items() if key not in ("self", "cls")}
    named = [key for key, kind in names.items() if kind is inspect.Parameter.KEYWORD_ONLY]
    plain = ", ".join(key for key in names if key not in named)
    if not named:
        return plain or "no arguments"
    return f"{plain}{'; ' if plain else ''}by name {', '.join(f'{key}=' for key in named)}"


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations of the arguments, without the return annotation, which may not resolve."""
    annotations = {key: hint for key, hint in function.__annotations__.items() if key != "return"}
    namespace = inspect.unwrap(function).__globals__
    hints = typing.get_type_hints(SimpleNamespace(__annotations__=annotations), namespace, include_extras=True)
    return {key: hint for key, hint in hints.items() if hint is not Any}


def _checked(title: str, key: str, value: Any, hint: Any) -> Any:
    """Return the value, converted if necessary; raise TypeError if it does not match its annotation."""
    if not _mismatch(value, hint):
        return value
    converted = coerce(value, hint)
    if converted is not value and not _mismatch(converted, hint):
        return converted
    member = re.search(r"(item \d+|value of key|key) .*", _mismatch(value, hint))
    inside = f": {member[0].rstrip(':')}" if member and not isinstance(value, str) else ""
    raise TypeError(f"{title}: {key} is {describe(value)}{inside}; give {_written(hint)}{_advice(key, value, hint)}")


def _mismatch(value: Any, hint: Any) -> str:
    """Return a description of how a value violates its annotation, or an empty string."""
    from typeguard import CollectionCheckStrategy, TypeCheckError, check_type  # loads slowly

    hint = without_shape(hint)
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(value, bool) and bool not in options and {int, float} & set(options):
        return "is a bool"  # a subclass of int in Python
    if isinstance(value, type) and any(getattr(option, "_is_protocol", False) for option in options):
        return "is a class"  # and has the methods of a protocol, like its instances
    if isinstance(value, Tensor) and not value.dim() and any(get_origin(option) is Iterable for option in options):
        return "is one number"  # although it has `__iter__`
    try:
        check_type(value, hint, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError as error:
        return str(error)
    return ""


def _written(hint: Any) -> str:
    """Return an annotation in words or as source, without modules and axes; a protocol is listed with its members.

    >>> _written(Union[typing.Literal["a", "b"], int, None]), _written(Callable[[int, str], int])
    ("'a', 'b', int or None", 'a function of (int, str)')
    """
    *first, last = _options(hint)
    return f"{', '.join(first)} or {last}" if first else last


def _options(hint: Any) -> list[str]:
    """Return the alternatives of an annotation, each in words or as source."""
    hint = without_shape(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return [written for option in args for written in _options(option)]
    if origin is typing.Literal:
        return list(map(repr, args))
    if origin is Callable:
        return ["a function" + (f" of ({', '.join(map(_written, args[0]))})" if args[0] is not ... else "")]
    if getattr(hint, "_is_protocol", False):
        members = [
            name for name in vars(hint) if not name.startswith("_") or name in ("__call__", "__getitem__", "__len__")
        ]
        return [f"{hint.__name__} (with {', '.join(members)})"]
    if hint in (nn.Module, type(None)):
        return ["None" if hint is not nn.Module else "a model (torch.nn.Module)"]
    if isinstance(hint, type) and not args:
        return [hint.__name__]
    return [re.sub(r"(\w+\.)+(?=\w)", "", re.sub(r"Annotated\[(.*?), '[^']*'\]", r"\1", str(hint)))]


def _advice(key: str, value: Any, hint: Any) -> str:
    """Return the end of a message: advice on the value that was probably meant, or the axes of a tensor."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if key in TOKEN_ARGUMENTS and int in options:
        return ": the id of a token, such as tokenizer.encode(' Mary')[0] if that is one token"
    if key in METRIC_ARGUMENTS and get_origin(hint) is Callable:
        return ": a metric, such as study.logit(id)"
    if key in SITE_ARGUMENTS:
        return ": globs of sites, or glob -> heads, such as {'transformer.h.1.attn.query': [0, 2]}"
    if any(getattr(option, "__name__", "") == "Table" for option in options):
        return _table_advice(value)
    if isinstance(value, type):
        return f": an instance, {value.__name__}(...)"
    if isinstance(getattr(value, "model", None), nn.Module):
        return ", such as its .model"
    return f" [{', '.join(hint.__metadata__[0].split())}]" if get_origin(hint) is Annotated else ""


def _table_advice(value: Any) -> str:
    """Return advice on how to get a `study.Table` from a value."""
    if isinstance(value, Tensor):
        return ", such as study.Table(values, {'layer': names, 'head': names})"
    if isinstance(value, Mapping) and value:
        first = next(iter(value))
        return f", such as that of {first!r}{_table_advice(value[first])}"
    return ", such as its .mean" if isinstance(getattr(type(value), "mean", None), property) else ""


def check_callable(*arguments: str, **functions: Any) -> None:
    """Check that each function can be called with these positional arguments; one without a signature is accepted.

    Args:
        *arguments: the names of the arguments, one for each that is passed.
        **functions: name -> function.

    Raises:
        TypeError: a value is not a function, or is a class, or takes more or fewer arguments.

    >>> check_callable("step", "steps", schedule=lambda step: 1.0)
    Traceback (most recent call last):
    TypeError: schedule is the function <lambda>; it must take (step, steps), but: too many positional arguments
    """
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name} is {describe(function)}; give a function")
        if isinstance(function, type):
            raise TypeError(
                f"{name} is {describe(function)}; give a function, or an instance, {function.__name__}(...)"
            )
        try:
            signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
        except (TypeError, ValueError):  # some C functions have no signature
            continue
        try:
            signature.bind(*arguments)
        except TypeError as error:
            expected = f"take ({', '.join(arguments)})" if arguments else "take nothing"
            raise TypeError(f"{name} is {describe(function)}; it must {expected}, but: {error}") from None
