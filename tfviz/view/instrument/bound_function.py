"""A function with a control for each argument, which can be called with their values or exported as programs."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tfviz.portable import Program, export
from tfviz.portable.fx_graph import output_names
from tfviz.view.figures.formatting import shorten
from tfviz.view.instrument.bind import bind
from tfviz.view.instrument.controls import Control, Text

MAX_PROGRAMS = 24  # of one view, which has one for each combination of Python values
# lengths of example texts, all different, so that export never identifies two axes
EXAMPLE_LENGTHS = (5, 7, 11, 13, 17, 19)
REMEDY = "with kernel=True Python computes it, as long as a kernel lives"
MAX_PURPOSE_LENGTH = 200  # characters of the instruction


class BoundFunction:
    """A function and the controls of its arguments.

    Args:
        function: the function, or a module.
        abbreviations: a control for each argument, in the forms that `view.interact` accepts.

    Raises:
        TypeError: an argument has neither control nor default, or a control is invalid or for no argument.
        ValueError: a menu has no values, or the range or step of a slider is invalid.
    """

    def __init__(self, function: Callable[..., Any], abbreviations: Mapping[str, Any]):
        self.function = function
        module = isinstance(function, nn.Module)
        called = function.forward if isinstance(function, nn.Module) else function
        name = type(function).__name__ if module else getattr(function, "__name__", "function")
        self.name = name.replace("<lambda>", "function")
        self.purpose = _first_sentence(function)
        try:
            parameters = inspect.signature(called).parameters
        except (ValueError, TypeError) as error:
            raise TypeError(f"{self.name} does not say what it takes; give lambda x: {self.name}(x)") from error
        free = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        fixed = [one for one in parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
        unknown = [name for name in abbreviations if not free and name not in [one.name for one in fixed]]
        if unknown:
            raise TypeError(f"{self.name} takes no {', '.join(unknown)}; it takes {', '.join(parameters) or 'nothing'}")
        missing = [one.name for one in fixed if one.default is one.empty and one.name not in abbreviations]
        if missing:
            raise TypeError(f"{self.name} needs {', '.join(missing)}: give a control, such as {missing[0]}=(0.0, 1.0)")
        if not abbreviations:
            raise TypeError(f"{self.name} has no control: give one for an argument, such as x=(0.0, 1.0)")
        self.positional = [one.name for one in fixed if one.kind is one.POSITIONAL_ONLY and one.name in abbreviations]
        defaults = {one.name: one.default for one in fixed}
        self.controls: dict[str, Control] = {
            name: bind(name, one, defaults.get(name, inspect.Parameter.empty)) for name, one in abbreviations.items()
        }

    @property
    def start(self) -> dict[str, Any]:
        return {name: control.start for name, control in self.controls.items()}

    @property
    def discrete(self) -> list[str]:
        """Names of the arguments that take Python values instead of tensors."""
        return [name for name, control in self.controls.items() if control.values is not None]

    def key(self, values: Mapping[str, Any]) -> str:
        """Return the name of the program for these values: the index of each choice, such as "0.2"."""
        return ".".join(str(self.controls[name].index(values[name])) for name in self.discrete)

    @torch.no_grad()
    def call(self, values: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the function's results by name, for values from the page."""
        arguments = {name: control.argument(values[name]) for name, control in self.controls.items()}
        return outputs(self.name, self._call_function(arguments))

    def inputs(self, values: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Return the inputs of a program for these values; a single zero if no argument takes a tensor."""
        tensors = [one.tensor(values[name]) for name, one in self.controls.items() if one.values is None]
        return tuple(tensors) or (torch.zeros(()),)

    def programs(self) -> dict[str, Program]:
        """Return a program for each combination of Python values, by `key`.

        Raises:
            ValueError: the function cannot be exported, or its programs are too many.
        """
        choices = {name: self.controls[name].values or [] for name in self.discrete}
        if (count := math.prod(map(len, choices.values()))) > MAX_PROGRAMS:
            sizes = ", ".join(f"{len(values)} of {name}" for name, values in choices.items())
            raise ValueError(
                f"{self.name} would be exported as {count:,} programs ({sizes}), a page has room for {MAX_PROGRAMS}: "
                f"give fewer choices, or floats, such as (0.0, 1.0), where a tensor will do; {REMEDY}"
            )
        keys = itertools.product(*(range(len(values)) for values in choices.values()))
        programs = {}
        for indices in keys:
            fixed = {name: values[index] for (name, values), index in zip(choices.items(), indices)}
            programs[".".join(map(str, indices))] = self._export(fixed)
        return programs

    def _export(self, fixed: Mapping[str, Any]) -> Program:
        """Export the function with these arguments fixed, for texts of any length."""
        free = [name for name in self.controls if name not in fixed]
        examples: list[Tensor] = []
        lengths: dict[str, dict[int, str]] = {}
        for name in free:
            control = self.controls[name]
            if isinstance(control, Text):
                examples.append(control.example(EXAMPLE_LENGTHS[len(lengths) % len(EXAMPLE_LENGTHS)]))
                lengths[name] = {1: f"tokens of {name}"}
            else:
                examples.append(control.tensor(control.start))

        def called(*tensors: Tensor) -> Any:
            return self._call_function({**fixed, **dict(zip(free, tensors))})

        if not examples:  # a program needs an input, even if the function takes no tensors
            examples = [torch.zeros(())]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in free or ["nothing"]]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__name__ = self.name
        called.__wrapped__ = self.function  # type: ignore[attr-defined]  # export includes its modules
        try:
            return export(called, *examples, lengths=lengths)
        except ValueError as error:
            raise ValueError(f"{str(error).rstrip('.')}; {REMEDY}") from error

    def _call_function(self, arguments: Mapping[str, Any]) -> Any:
        named = dict(arguments)
        return self.function(*[named.pop(name) for name in self.positional], **named)


def _first_sentence(function: Callable[..., Any]) -> str:
    """Return the first sentence of a function's docstring; empty for a callable object."""
    text = inspect.getdoc(function) if inspect.isroutine(function) else None
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return shorten(re.split(r"(?<=[.!?])\s", paragraph)[0], MAX_PURPOSE_LENGTH)


def outputs(name: str, returned: Any) -> dict[str, Tensor]:
    """Return the tensors and numbers that a function returned, as tensors by name, named as in `tfviz.portable`.

    Raises:
        ValueError: the function returned no tensor or number.
    """
    leaves = zip(output_names(returned), pytree.tree_leaves(returned))
    tensors = {key: torch.as_tensor(value) for key, value in leaves if isinstance(value, Tensor | float | int)}
    if not tensors:
        raise ValueError(f"{name} returns no tensor: return at least one")
    return tensors
