"""From a model or a function to a `Program`, by `torch.export`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from tfviz.portable.graph import DEPENDS, LARGEST, Graph
from tfviz.portable.program import FORMAT, Program

WEIGHTS = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}


def export(
    module: nn.Module | Callable[..., Any],
    *example: Any,
    lengths: Mapping[str, Mapping[int, str]] | None = None,
    weights: str = "float32",
) -> Program:
    """A model or function as a program that runs where there is no Python; see `Program`.

    The model is taken as it computes in eval mode, without gradients. Its attention keeps the names that `look.capture`
    has for it.

    Args:
        module: a module, a method of one, or a function of tensors; one that calls a module takes it along.
        example: inputs to follow it with; where a length may change, take a length of 2 or more.
        lengths: which axes may change: `{"ids": {1: "words"}}` for the second axis of the argument `ids`, or of each
            tensor in it, if it is a list. Axes of one name have one length.
        weights: how they are kept: "float32", "float16", or "int8", with a scale for each row.

    Raises:
        TypeError: not a module or function; an example that holds no tensor.
        ValueError: it cannot travel: what it does depends on data, or the engine lacks operations it needs, each named
            with its module; another kind of weights; an argument or axis that is not there.

    >>> program = export(lambda x: (x @ x.mT).softmax(-1), torch.randn(5, 3), lengths={"x": {0: "words"}})
    >>> program.operations, program.described["lengths"]
    (['matmul', 'softmax.int', 'transpose.int'], {'words': [1, None]})
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights is {weights!r}; it can be {', '.join(map(repr, WEIGHTS))}")
    whole, names, said = _whole(module, example)
    shapes = _shapes(names, example, dict(lengths or {}))
    exported = _exported(whole, example, shapes, said)
    symbols, ranges = _lengths(exported, names, example, dict(lengths or {}))
    graph = Graph(exported, _leaves(names, example), symbols, whole.prefix, WEIGHTS[weights])
    described = {"format": FORMAT, "name": said, "lengths": ranges, **graph.described()}
    return Program(described, graph.tensors)


class _Whole(nn.Module):
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


def _whole(module: Any, example: Sequence[Any]) -> tuple[_Whole, list[str], str]:
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
    return _Whole(called, parts, example), _names(function, len(example)), said


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


def _shapes(names: Sequence[str], example: Sequence[Any], lengths: Mapping[str, Mapping[int, str]]) -> tuple[Any, ...]:
    """What torch.export is told of each input: which axes may change."""
    if not any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(example)):
        raise TypeError("export follows the module with an example; give one tensor for each input")
    given = dict(zip(names, example))
    for name, axes in lengths.items():
        tensors = [leaf for leaf in pytree.tree_leaves(given.get(name)) if isinstance(leaf, Tensor)]
        if not tensors:
            raise ValueError(f"lengths names {name!r}; the tensors given are {', '.join(given)}")
        for axis, said in axes.items():
            for one in tensors:
                _check_axis(name, one, axis, said)
    return tuple(
        _changing(lengths.get(name, {}), leaf) for name, one in given.items() for leaf in pytree.tree_leaves(one)
    )


def _changing(axes: Mapping[int, str], one: Any) -> Any:
    if not isinstance(one, Tensor):
        return None
    return {axis: Dim.AUTO if axis in axes else Dim.STATIC for axis in range(one.dim())}


def _check_axis(name: str, one: Tensor, axis: int, said: str) -> None:
    if not 0 <= axis < one.dim():
        raise ValueError(f"lengths names axis {axis} of {name}, which has {one.dim()} axes, counted from 0")
    if one.shape[axis] < 2:
        raise ValueError(
            f"{name} has {one.shape[axis]} {said!r} in the example; give one with 2 or more, so that it can be told "
            "apart from a size that never changes"
        )


def _exported(whole: _Whole, example: Sequence[Any], shapes: tuple[Any, ...], said: str) -> ExportedProgram:
    with _evaluating(whole), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaves = tuple(_alone(leaf) for leaf in pytree.tree_leaves(example))
            exported = torch.export.export(whole, leaves, dynamic_shapes=(shapes,), strict=False)
            return exported.run_decompositions({})
        except torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode as error:
            raise ValueError(f"{said} cannot travel: {DEPENDS}") from error
        except Exception as error:
            text = str(error)
            if "data-dependent" in text.lower() or "Data dependent" in text or "_local_scalar_dense" in text:
                raise ValueError(f"{said} cannot travel: {DEPENDS}") from error
            first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
            raise ValueError(f"{said} cannot travel: torch.export says: {first}") from error


def _alone(leaf: Any) -> Any:
    """A copy: of a view, torch.export would ask what lies under it."""
    return leaf.detach().clone().contiguous() if isinstance(leaf, Tensor) else leaf


@contextmanager
def _evaluating(whole: nn.Module) -> Iterator[None]:
    """Every part in eval mode, and back as it was."""
    training = [part for part in whole.modules() if part.training]
    whole.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _lengths(
    exported: ExportedProgram, names: Sequence[str], example: Sequence[Any], lengths: Mapping[str, Mapping[int, str]]
) -> tuple[dict[str, str], dict[str, list[int | None]]]:
    """What the reader calls each symbol of the graph, and how far each length goes."""
    kinds = {spec.arg.name: spec.kind for spec in exported.graph_signature.input_specs}
    nodes = [one for one in exported.graph.nodes if one.op == "placeholder" and kinds[one.name] == InputKind.USER_INPUT]
    symbols: dict[str, str] = {}
    ranges: dict[str, list[int | None]] = {}
    for node, name in zip(nodes, _leaves(names, example)):
        for axis, said in lengths.get(name, lengths.get(name.partition(".")[0], {})).items():
            extent = node.meta["val"].shape[axis]
            if isinstance(extent, int) or extent.node.expr.is_number:
                raise ValueError(
                    f"{said!r} cannot change: the model does something else for each length (a loop over it, or a size "
                    f"that must be {extent}); leave it out of lengths"
                )
            symbol = extent.node.expr
            symbols[symbol.name] = said
            limits = exported.range_constraints.get(symbol)
            low = 1 if limits is None or limits.lower <= 2 else int(limits.lower)  # 0 and 1 are never followed
            high = None if limits is None or not limits.upper < LARGEST else int(limits.upper)
            ranges[said] = [max(low, ranges.get(said, [low])[0] or 1), _least(high, ranges.get(said, [low, high])[1])]
    return symbols, ranges


def _leaves(names: Sequence[str], example: Sequence[Any]) -> list[str]:
    """The names of all tensors given: of an argument that holds several, its own name and their places."""
    counted = [(name, len(pytree.tree_leaves(one))) for name, one in zip(names, example)]
    return [name if many == 1 else f"{name}.{place}" for name, many in counted for place in range(many)]


def _least(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
