"""The configuration of a training run, as a flat dictionary that can be stored in JSON.

Two configurations are compared before a run is resumed or a checkpoint is loaded. Shapes alone cannot distinguish
models: weights of three heads and of six have the same shapes, and masks and rotary positions have no weights.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.learn.schedule import Schedule, lr_factor

Config = dict[str, Any]  # from a dotted name to a number, a string, True, False or None
SCALAR_TYPES = bool | int | float | str | None
MAX_DEPTH, MAX_MEMBERS, MAX_ENTRIES, MAX_HASHED = 8, 12, 20_000, 2**20
SCHEDULE_SAMPLES = 8  # steps at which a schedule is evaluated
# Settings of an optimizer's groups that `fit` sets, or that do not change the result.
UNCOMPARED_SETTINGS = {"lr", "initial_lr", "params", "fused", "foreach", "capturable"}


def describe_config(value: Any, prefix: str = "") -> Config:
    """Describe an object by its class and its plain attributes, and recursively its parts.

    Functions and classes are described by their names, functions also by the settings in their closures. Tensors are
    described by dtype and shape, integer tensors also by a hash. Attributes that begin with an underscore (caches,
    hooks) are omitted.
    """
    return dict(islice(_entries(value, prefix, ()), MAX_ENTRIES))


def describe_run(
    model: nn.Module,
    batches: Any,
    optimizer: torch.optim.Optimizer,
    loss: Callable[..., Any],
    schedule: Schedule,
    **settings: Any,
) -> Config:
    """Describe everything that two runs must share to have the same losses; `settings` must include `steps`.

    A loss that is an object, but neither a function nor a module, is described only by its class, since its state may
    change from step to step.
    """
    unchanging = isinstance(loss, FunctionType | partial | nn.Module)
    return {
        **settings,
        **(describe_config(loss, "loss") if unchanging else {"loss": _label(loss)}),
        **_describe_schedule(schedule, settings["steps"]),
        **_describe_optimizer(optimizer),
        **describe_config(model, "model"),
        **describe_config(batches, "batches"),
    }


def _describe_schedule(schedule: Schedule, steps: int) -> Config:
    """Describe a schedule by its values at some steps."""
    sampled = sorted({steps * index // SCHEDULE_SAMPLES for index in range(SCHEDULE_SAMPLES)} | {steps - 1})
    return {f"schedule({step}, {steps})": f"{lr_factor(schedule, step, steps):.6g}" for step in sampled}


def _describe_optimizer(optimizer: torch.optim.Optimizer) -> Config:
    """Describe an optimizer by its class, the settings of its groups and the shapes of their parameters, in order."""
    config: Config = {"optimizer": type(optimizer).__qualname__}
    for index, group in enumerate(optimizer.param_groups):
        config[f"optimizer.{index}.shapes"] = str([list(parameter.shape) for parameter in group["params"]])
        settings = {name: str(value) for name, value in group.items() if name not in UNCOMPARED_SETTINGS}
        config |= {f"optimizer.{index}.{name}": value for name, value in settings.items()}
    return config


def first_difference(stored: Config, current: Config) -> tuple[str, Any, Any] | None:
    """Return the first shared name with different values, and the two values.

    A name in only one of them is ignored, since a later version of a class may have additional attributes.
    """
    both = (name for name in stored if name in current)
    return next(((name, stored[name], current[name]) for name in both if stored[name] != current[name]), None)


def _entries(value: Any, name: str, ancestors: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, SCALAR_TYPES):
        yield name, str(value) if isinstance(value, float) else value  # JSON holds no NaN and no infinity
    elif isinstance(value, Tensor):
        yield name, _describe_tensor(value)
    else:
        value = inspect.unwrap(value) if isinstance(value, FunctionType) else value
        yield name, _label(value)
        if id(value) not in ancestors and len(ancestors) <= MAX_DEPTH:
            for key, member in _members(value).items():
                yield from _entries(member, f"{name}.{key}" if name else str(key), (*ancestors, id(value)))


def _label(value: Any) -> str:
    """Return a name that is the same in every process: it contains no memory address."""
    if isinstance(value, type | FunctionType | BuiltinFunctionType | MethodType):
        return value.__qualname__
    if isinstance(value, torch.dtype | torch.device | Enum):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset | Mapping):
        return f"{type(value).__qualname__} of {len(value)}"
    cls = type(value)
    return (cls if not hasattr(value, "unshard") else cls.__mro__[2]).__qualname__  # `fully_shard` derives a class


def _members(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, nn.Module):
        return _public_attributes(value) | dict(value.named_children())
    if isinstance(value, partial):
        return {"function": value.func, **dict(enumerate(value.args)), **value.keywords}
    if isinstance(value, FunctionType):
        return _closure_settings(value)
    if isinstance(value, Mapping):
        return dict(islice(value.items(), MAX_MEMBERS))
    if isinstance(value, list | tuple):
        return dict(enumerate(value[:MAX_MEMBERS]))
    return {} if isinstance(value, type | Enum) else _public_attributes(value)


def _closure_settings(function: FunctionType) -> dict[str, Any]:
    """Return the settings in a function's closure; other values there may change from call to call."""
    settings = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, SCALAR_TYPES | FunctionType | partial):
                settings[name] = cell.cell_contents
    return settings


def _public_attributes(value: Any) -> dict[str, Any]:
    attributes = getattr(value, "__dict__", {})
    return {key: attribute for key, attribute in attributes.items() if key[0] != "_" and key != "training"}


def _describe_tensor(tensor: Tensor) -> str:
    kind = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_meta:
        return kind  # floats may differ in their last digit on another machine
    content = tensor.detach().flatten()[:MAX_HASHED].cpu().numpy().tobytes()
    return f"{kind} {hashlib.sha256(content).hexdigest()[:16]}"
