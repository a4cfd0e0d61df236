"""From a model or a function to a `Program`, by `torch.export`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from tfviz import bounds
from tfviz.doors import what
from tfviz.portable.arguments import DEPENDS, LARGEST
from tfviz.portable.graph import Graph, plain
from tfviz.portable.program import Program
from tfviz.portable.validate import FORMAT
from tfviz.portable.whole import Whole, evaluating, whole_of

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
    (['mT', 'matmul', 'softmax.int'], {'words': [1, None]})
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights is {weights!r}; it can be {', '.join(map(repr, WEIGHTS))}")
    if isinstance(module, type):
        raise TypeError(f"module is {what(module)}; give an instance, {module.__name__}(...), or a function of tensors")
    if isinstance(module, nn.Module):
        bounds.readable(**dict(module.state_dict()))
    whole, names, said = whole_of(module, example)
    shapes = _shapes(names, example, dict(lengths or {}))
    exported = _exported(whole, example, shapes, said)
    symbols, ranges = _lengths(exported, names, example, dict(lengths or {}))
    graph = Graph(exported, _leaves(names, example), symbols, whole.prefix, WEIGHTS[weights])
    described = {"format": FORMAT, "name": said, "lengths": ranges, **graph.described()}
    program = Program._of_model(described, graph.tensors)
    if ranges and not _holds_for_one(program, whole, pytree.tree_leaves(example)):
        for limits in ranges.values():
            limits[0] = max(2, limits[0] or 2)
    return program


def _holds_for_one(program: Program, whole: Whole, tensors: Sequence[Tensor]) -> bool:
    """Whether it is also right where each length is 1, of which torch.export says nothing."""
    shapes = [[1 if isinstance(size, str) else size for size in one["shape"]] for one in program.described["inputs"]]
    given = [one[tuple(map(slice, shape))] if isinstance(one, Tensor) else one for one, shape in zip(tensors, shapes)]
    close = (
        1e-3 if all(one.dtype != torch.int8 and one.dtype != torch.float16 for one in program.tensors.values()) else 1
    )
    try:
        with evaluating(whole), torch.no_grad():
            wanted = [one for one in pytree.tree_leaves(whole(*given)) if isinstance(one, Tensor)]
        made = list(program(*(one.cpu() for one in given)).values())
    except Exception:  # whatever it is, the model does not take so little
        return False
    alike = [one.shape == other.shape for one, other in zip(made, wanted)]
    return all(alike) and all(
        torch.allclose(one.float(), other.cpu().float(), close, close, equal_nan=True)
        for one, other in zip(made, wanted)
    )


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
    if not isinstance(axis, int) or not isinstance(said, str) or not said:
        raise TypeError(f"lengths of {name} are {{{axis!r}: {said!r}}}; give axes by number and their names")
    if not 0 <= axis < one.dim():
        raise ValueError(f"lengths names axis {axis} of {name}, which has {one.dim()} axes, counted from 0")
    if one.shape[axis] < 2:
        raise ValueError(
            f"{name} has {one.shape[axis]} {said!r} in the example; give one with 2 or more, so that it can be told "
            "apart from a size that never changes"
        )


def _exported(whole: Whole, example: Sequence[Any], shapes: tuple[Any, ...], said: str) -> ExportedProgram:
    with evaluating(whole), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaves = tuple(_alone(leaf) for leaf in pytree.tree_leaves(example))
            exported = torch.export.export(whole, leaves, dynamic_shapes=(shapes,), strict=False)
            exported.graph.eliminate_dead_code()
            return exported if plain(exported) else exported.run_decompositions({})
        except torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode as error:
            raise ValueError(f"{said} cannot travel: {DEPENDS}") from error
        except Exception as error:
            _check_called(whole, example, said)
            text = str(error)
            if "data-dependent" in text.lower() or "Data dependent" in text or "_local_scalar_dense" in text:
                raise ValueError(f"{said} cannot travel: {DEPENDS}") from error
            first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
            raise ValueError(f"{said} cannot travel: torch.export says: {first}") from error


def _check_called(whole: Whole, example: Sequence[Any], said: str) -> None:
    """What cannot be exported can be called, at least.

    Raises:
        ValueError: it cannot, and why.
    """
    try:
        whole(*pytree.tree_leaves(example))
    except Exception as error:  # whatever it is, the reader's own call would raise it
        raise ValueError(f"{said} cannot be called with these: {type(error).__name__}: {error}") from error


def _alone(leaf: Any) -> Any:
    """A copy: of a view, torch.export would ask what lies under it."""
    return leaf.detach().clone().contiguous() if isinstance(leaf, Tensor) else leaf


def _lengths(
    exported: ExportedProgram, names: Sequence[str], example: Sequence[Any], lengths: Mapping[str, Mapping[int, str]]
) -> tuple[dict[str, str], dict[str, list[int | None]]]:
    """What the reader calls each symbol of the graph, and how far each length goes."""
    kinds = {spec.arg.name: spec.kind for spec in exported.graph_signature.input_specs}
    nodes = [one for one in exported.graph.nodes if one.op == "placeholder" and kinds[one.name] == InputKind.USER_INPUT]
    symbols: dict[str, str] = {}
    ranges: dict[str, list[int | None]] = {}
    sizes: dict[str, int] = {}
    for node, name in zip(nodes, _leaves(names, example)):
        for axis, said in lengths.get(name, lengths.get(name.partition(".")[0], {})).items():
            extent = node.meta["val"].shape[axis]
            if isinstance(extent, int) or extent.node.expr.is_number:
                raise ValueError(
                    f"{said!r} cannot change: the model does something else for each length (a loop over it, or a size "
                    f"that must be {extent}); leave it out of lengths"
                )
            symbol = extent.node.expr
            if not symbol.is_Symbol:
                raise ValueError(
                    f"{said!r} cannot change by itself: the model makes it {symbol} of another length; leave it out of "
                    "lengths, or take an axis that is independent"
                )
            size = int(extent.node.hint)
            if sizes.setdefault(said, size) != size:
                raise ValueError(
                    f"{said!r} is {sizes[said]} and {size} in the example; axes of one name have one length"
                )
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
