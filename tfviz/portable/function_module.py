"""`FunctionModule`: wrap a model, a method or a function with the models that it calls, for `torch.export`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree


class FunctionModule(nn.Module):
    """A module that calls a function with its flat inputs; its children are the modules that the function calls.

    Args:
        function: the function or model.
        parts: name -> module that the function calls.
        example: arguments of the function, whose nested structure the inputs are unflattened to.

    Attributes:
        prefix: the beginning of all module paths, "NAME." if there is one part; empty if there are none or several.
    """

    def __init__(self, function: Callable[..., Any], parts: Mapping[str, nn.Module], example: Sequence[Any]):
        super().__init__()
        self._structure = pytree.tree_structure(tuple(example))
        self._function = [function]  # in a list, so that a module is not registered as a child
        for name, part in parts.items():
            self.add_module(name, part)
        self.prefix = f"{next(iter(parts))}." if len(parts) == 1 else ""  # for sites named as in the model

    def forward(self, *tensors: Tensor) -> Any:
        return self._function[0](*pytree.tree_unflatten(tensors, self._structure))


def wrap_function(function: Any, example: Sequence[Any]) -> tuple[FunctionModule, list[str], str]:
    """Return a function or model as a `FunctionModule`, the names of its arguments, and its own name.

    Raises:
        TypeError: `function` is not callable, or was scripted, traced or exported before.
    """
    if isinstance(function, torch.jit.ScriptModule | fx.GraphModule):
        raise TypeError("export takes a module that is Python, not one that was scripted, traced or exported before")
    if not callable(function):
        raise TypeError(f"export takes a module or a function of tensors, not a {type(function).__name__}")
    name = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "function")
    if inspect.ismethod(function) and isinstance(function.__self__, nn.Module):
        name = f"{type(function.__self__).__name__}.{name}"
    called = function.forward if isinstance(function, nn.Module) else function
    wrapped = FunctionModule(function, called_modules(function), example)
    return wrapped, _argument_names(called, len(example)), name


def called_modules(function: Callable[..., Any]) -> dict[str, nn.Module]:
    """Return the modules that a function refers to, is, or is a method of, by name; decorators are unwrapped."""
    function = inspect.unwrap(function)
    owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    if isinstance(owner, nn.Module):
        return {"model": owner}
    if not inspect.isfunction(function):
        return {}
    named = inspect.getclosurevars(function)
    return {name: part for name, part in {**named.globals, **named.nonlocals}.items() if isinstance(part, nn.Module)}


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of a function's arguments; numbers for those of a C function and of `*args`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return [str(index) for index in range(count)]
    names = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return [*names, *(str(index) for index in range(len(names), count))]
