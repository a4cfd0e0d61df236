"""What a model, batches, a loss or an optimizer is, apart from its weights: plain values that JSON holds.

Two of them are compared before a training goes on where another stood. Shapes alone do not tell: three heads and six
have the same, a mask or rotary positions none at all.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

Plain = dict[str, Any]  # from a dotted name to a number, a string, True, False or None
PLAIN = bool | int | float | str | None
DEPTH, MEMBERS, MOST, NUMBERS = 8, 12, 20_000, 2**20  # levels; of a list; in all; of a tensor
FREE = {
    "lr",
    "initial_lr",
    "params",
    "fused",
    "foreach",
    "capturable",
}  # of an optimizer: set anew, or no number changes


def of_model(model: nn.Module) -> Plain:
    """The class of each module and its plain attributes (heads, dropout); masks and functions by name."""
    return _described(model)


def of_function(function: Callable[..., Any]) -> Plain:
    """Its name and what it was made with, such as the smoothing of `losses.translation(0.1)`; an object's class."""
    if isinstance(function, FunctionType | partial | nn.Module):
        return _described(function)
    return {"": _called(function)}


def of_object(thing: Any) -> Plain:
    """Its class and plain attributes; of tensors what they hold, or only their shape where that is no whole numbers.

    Fractions may differ in their last digit on another machine.
    """
    return _described(thing)


def of_optimizer(optimizer: torch.optim.Optimizer | None) -> Plain:
    """Its class, the settings of its groups, the shapes of what it moves, in order."""
    if optimizer is None:
        return {}
    found: Plain = {"": type(optimizer).__qualname__}
    for number, group in enumerate(optimizer.param_groups):
        found[f"{number}.shapes"] = str([list(parameter.shape) for parameter in group["params"]])
        for name, value in group.items():
            if name not in FREE:
                found[f"{number}.{name}"] = str(value)
    return found


def under(name: str, found: Plain) -> Plain:
    """The same, as attributes of something with a name."""
    return {f"{name}.{key}" if key else name: value for key, value in found.items()}


def difference(one: Plain, other: Plain) -> tuple[str, Any, Any] | None:
    """The first name that both have and that means something else in each, with the two values.

    What only one has is let pass: a later version of a class may have one attribute more.
    """
    return next(((name, one[name], other[name]) for name in one if name in other and one[name] != other[name]), None)


def told(differs: tuple[str, Any, Any], what: str = "") -> str:
    """A difference in words."""
    name, before, now = differs
    return f"{what}{name or 'class'} is {before} there and {now} here"


def _described(thing: Any) -> Plain:
    found: Plain = {}
    _describe(thing, "", found, ())
    return found


def _describe(thing: Any, name: str, found: Plain, above: tuple[int, ...]) -> None:
    if isinstance(thing, PLAIN):
        found[name] = str(thing) if isinstance(thing, float) else thing  # JSON holds no NaN, no infinity
        return
    if isinstance(thing, Tensor):
        found[name] = _of_tensor(thing)
        return
    thing = inspect.unwrap(thing) if isinstance(thing, FunctionType) else thing
    inner = {} if id(thing) in above or len(above) > DEPTH else _inside(thing)
    found[name] = _called(thing)
    for key, value in inner.items() if len(found) < MOST else ():
        _describe(value, f"{name}.{key}" if name else str(key), found, (*above, id(thing)))


def _called(thing: Any) -> str:
    """Names, which a second process gives it as well; no address."""
    if isinstance(thing, type | FunctionType | BuiltinFunctionType | MethodType):
        return thing.__qualname__
    if isinstance(thing, torch.dtype | torch.device | Enum):
        return str(thing)
    if isinstance(thing, list | tuple | set | frozenset | Mapping):
        return f"{type(thing).__qualname__} of {len(thing)}"
    kind = type(thing)
    return (kind if not hasattr(thing, "unshard") else kind.__mro__[2]).__qualname__  # `fully_shard` makes a class


def _inside(thing: Any) -> Mapping[Any, Any]:
    """What a thing is made of, by name. Names that begin with _ are its own affair: caches, hooks."""
    if isinstance(thing, nn.Module):
        own = {key: value for key, value in vars(thing).items() if not key.startswith("_") and key != "training"}
        return own | dict(thing.named_children())
    if isinstance(thing, partial):
        return {"function": thing.func, **dict(enumerate(thing.args)), **thing.keywords}
    if isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or ())
        return {key: cell.cell_contents for key, cell in cells if _made_with(cell)}
    if isinstance(thing, Mapping):
        return dict(islice(thing.items(), MEMBERS))
    if isinstance(thing, list | tuple):
        return dict(enumerate(thing[:MEMBERS]))
    if isinstance(thing, type | Enum) or not hasattr(thing, "__dict__"):
        return {}
    return {key: value for key, value in vars(thing).items() if not key.startswith("_")}


def _made_with(cell: Any) -> bool:
    """Whether a variable that a function closes over holds a setting; anything else may change from call to call."""
    try:
        return isinstance(cell.cell_contents, PLAIN | FunctionType | partial)
    except ValueError:  # nothing yet
        return False


def _of_tensor(tensor: Tensor) -> str:
    kind = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_meta:
        return kind
    numbers = tensor.detach().flatten()[:NUMBERS].cpu().numpy().tobytes()
    return f"{kind} {hashlib.sha256(numbers).hexdigest()[:16]}"
