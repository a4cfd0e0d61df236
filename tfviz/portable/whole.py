"""What is exported, as one module: a model, one of its methods, or a function with the models it calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree


class Whole(nn.Module):
    """A function as a module: what it calls is a part of it."""

    def __init__(self, function: Callable[..., Any], parts: Mapping[str, nn.Module], example: Sequence[Any]):
        super().__init__()
        self.form = pytree.tree_structure(tuple(example))
        self._function = [function]  # in a list, or a module would be a part under this name
        for name, part in parts.items():
            self.add_module(name, part)
        self.prefix = f"{next(iter(parts))}." if len(parts) == 1 else ""  # sites are named as in the one model

    def forward(self, *tensors: Tensor) -> Any:
        return self._function[0](*pytree.tree_unflatten(tensors, self.form))


def whole_of(module: Any, example: Sequence[Any]) -> tuple[Whole, list[str], str]:
    """What is exported, the names of its arguments, and its own."""
    if isinstance(module, nn.Module):
        parts, function, said = {"model": module}, module.forward, type(module).__name__
        called: Callable[..., Any] = module
    elif inspect.ismethod(module) and isinstance(module.__self__, nn.Module):
        parts, function, called = {"model": module.__self__}, module, module
        said = f"{type(module.__self__).__name__}.{module.__name__}"
    elif callable(module):
        function = called = module
        said = getattr(module, "__name__", type(module).__name__).replace("<lambda>", "function")
        parts = _closed_over(module)
    else:
        raise TypeError(f"export takes a module or a function of tensors, not a {type(module).__name__}")
    if isinstance(module, torch.jit.ScriptModule | fx.GraphModule):
        raise TypeError("export takes a module that is Python, not one that was scripted, traced or exported before")
    return Whole(called, parts, example), _names(function, len(example)), said


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Of the arguments; numbers stand for those of a function written in C or with `*args`."""
    try:
        given = inspect.signature(function).parameters.values()
    except ValueError:
        return [str(place) for place in range(count)]
    names = [one.name for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return [*names, *(str(place) for place in range(len(names), count))]


def _closed_over(function: Callable[..., Any]) -> dict[str, nn.Module]:
    """The modules a function names."""
    function = inspect.unwrap(function)  # what a decorator has wrapped
    if not inspect.isfunction(function):
        return {}
    named = inspect.getclosurevars(function)
    return {name: part for name, part in {**named.globals, **named.nonlocals}.items() if isinstance(part, nn.Module)}


@contextmanager
def evaluating(whole: nn.Module) -> Iterator[None]:
    """Every part in eval mode, and back as it was."""
    training = [part for part in whole.modules() if part.training]
    whole.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
