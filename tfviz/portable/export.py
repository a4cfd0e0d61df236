"""`export`: convert a model or a function to a `Program`, by `torch.export`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from tfviz import checks
from tfviz.eval_mode import eval_mode
from tfviz.portable.arguments import DATA_DEPENDENT, INT32_MAX
from tfviz.portable.function_module import FunctionModule, wrap_function
from tfviz.portable.fx_graph import GraphReader, is_supported
from tfviz.portable.operators import decompositions
from tfviz.portable.program import Program
from tfviz.portable.validate import FORMAT
from tfviz.schema import describe

WEIGHT_DTYPES = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}
Lengths = Mapping[str, Mapping[int, str]]  # argument -> axis -> name of the length
PROGRESS_BAR_MIN_WEIGHTS = 20e6  # the export of a larger model shows a progress bar


def export(
    module: nn.Module | Callable[..., Any],
    *example: Any,
    lengths: Lengths | None = None,
    dtype: str = "float32",
) -> Program:
    """Export a model or function as a `Program`, which runs without Python.

    The model is exported in eval mode, without gradients. Its attention sites have the names that `look.capture` gives
    them.

    Args:
        module: a module, a method of one, or a function of tensors. Modules that the function calls are exported with
            it.
        *example: inputs with which the module is traced. An axis whose length may change must have size 2 or more.
        lengths: the axes whose length may change, by argument: `{"ids": {1: "positions"}}` for the second axis of the
            argument `ids`, or of each tensor in it if it is a list. Axes of the same name have the same length. None:
            all shapes are fixed.
        dtype: the storage format of the weights: "float32", "float16", or "int8" with a scale for each row.

    Raises:
        TypeError: `module` is not a module or function, or the examples hold no tensor.
        ValueError: the module cannot be exported, because its control flow depends on data or because the engine lacks
            operations, each of which is named with its module; `dtype` is not one of these formats; `lengths` names
            an argument or axis that does not exist, or an axis whose length cannot change.

    >>> program = export(lambda x: (x @ x.mT).softmax(-1), torch.randn(5, 3), lengths={"x": {0: "positions"}})
    >>> program.operations, program.spec["lengths"]
    (['mT', 'matmul', 'softmax.int'], {'positions': [1, None]})
    """
    if dtype not in WEIGHT_DTYPES:
        raise ValueError(f"dtype is {dtype!r}; it can be {', '.join(map(repr, WEIGHT_DTYPES))}")
    if isinstance(module, type):
        raise TypeError(
            f"module is {describe(module)}; give an instance, {module.__name__}(...), or a function of tensors"
        )
    if isinstance(module, nn.Module):
        checks.materialized(**dict(module.state_dict()))
    lengths = lengths or {}
    wrapped, arguments, name = wrap_function(module, example)
    leaves = _leaf_names(arguments, example)
    shapes = _dynamic_shapes(arguments, example, lengths)
    with _progress(wrapped, name) as advance:
        exported = _export(wrapped, example, shapes, name)
        advance("storing weights")
        symbols, ranges = _symbols_and_ranges(exported, leaves, lengths)
        reader = GraphReader(exported, leaves, symbols, wrapped.prefix, WEIGHT_DTYPES[dtype])
        spec = {"format": FORMAT, "name": name, "lengths": ranges, **reader.to_spec()}
        program = Program._of_model(spec, reader.tensors)
        advance("comparing with the model")
        if ranges and not _is_right_at_length_one(program, wrapped, pytree.tree_leaves(example)):
            for limits in ranges.values():
                limits[0] = max(2, limits[0] or 2)
        advance("done")
    return program


@contextmanager
def _progress(module: nn.Module, name: str) -> Iterator[Callable[[str], None]]:
    """Show the progress of exporting a large model; yield a function of the name of the next of three stages."""
    from tqdm import tqdm

    numbers = sum(tensor.numel() for tensor in (*module.parameters(), *module.buffers()))
    with tqdm(
        total=3, desc=f"exporting {name}: tracing", unit="stage", disable=numbers < PROGRESS_BAR_MIN_WEIGHTS
    ) as bar:

        def advance(stage: str) -> None:
            bar.set_description_str(f"exporting {name}: {stage}", refresh=False)
            bar.update()

        yield advance


def _is_right_at_length_one(program: Program, module: FunctionModule, tensors: Sequence[Tensor]) -> bool:
    """Return whether a program is also correct if each length is 1, a case that torch.export does not cover."""
    shapes = [[1 if isinstance(size, str) else size for size in each["shape"]] for each in program.spec["inputs"]]
    shortest = [
        tensor[tuple(map(slice, shape))] if isinstance(tensor, Tensor) else tensor
        for tensor, shape in zip(tensors, shapes)
    ]
    rounded = any(weight.dtype in (torch.int8, torch.float16) for weight in program.tensors.values())
    tolerance = 1 if rounded else 1e-3
    try:
        with eval_mode(module):
            leaves = pytree.tree_leaves(module(*shortest))
        expected = [leaf.cpu().float() for leaf in leaves if isinstance(leaf, Tensor)]
        results = [result.float() for result in program(*(tensor.cpu() for tensor in shortest)).values()]
    except Exception:  # any error means that the shortest input is unsupported
        return False
    return all(
        result.shape == reference.shape and torch.allclose(result, reference, tolerance, tolerance, equal_nan=True)
        for result, reference in zip(results, expected)
    )


def _dynamic_shapes(arguments: Sequence[str], example: Sequence[Any], lengths: Lengths) -> tuple[Any, ...]:
    """Return `dynamic_shapes` for torch.export: for each input tensor, which axes are dynamic."""
    if not any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(example)):
        raise TypeError("export traces the module with an example; give one tensor for each input")
    leaves = {name: pytree.tree_leaves(value) for name, value in zip(arguments, example)}
    for name, axes in lengths.items():
        tensors = [leaf for leaf in leaves.get(name, []) if isinstance(leaf, Tensor)]
        if not tensors:
            raise ValueError(f"lengths names {name!r}; the tensors given are {', '.join(leaves)}")
        for axis, length in axes.items():
            for tensor in tensors:
                _check_axis(name, tensor, axis, length)

    def dynamic(leaf: Any, axes: Mapping[int, str]) -> Any:
        if not isinstance(leaf, Tensor):
            return None
        return {axis: Dim.AUTO if axis in axes else Dim.STATIC for axis in range(leaf.dim())}

    return tuple(dynamic(leaf, lengths.get(name, {})) for name, tensors in leaves.items() for leaf in tensors)


def _check_axis(name: str, tensor: Tensor, axis: int, length: str) -> None:
    if not isinstance(axis, int) or not isinstance(length, str) or not length:
        raise TypeError(f"lengths of {name} are {{{axis!r}: {length!r}}}; give axes by number and their names")
    if not 0 <= axis < tensor.dim():
        raise ValueError(f"lengths names axis {axis} of {name}, which has {tensor.dim()} axes, counted from 0")
    if tensor.shape[axis] < 2:
        raise ValueError(
            f"{name} has {tensor.shape[axis]} {length!r} in the example; give one with 2 or more, so that it can be "
            "told apart from a size that never changes"
        )


def _export(module: FunctionModule, example: Sequence[Any], shapes: tuple[Any, ...], name: str) -> ExportedProgram:
    with eval_mode(module), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaves = tuple(_copy_leaf(leaf) for leaf in pytree.tree_leaves(example))
            exported = torch.export.export(module, leaves, dynamic_shapes=(shapes,), strict=False)
            exported.graph.eliminate_dead_code()
            return exported if is_supported(exported) else exported.run_decompositions(decompositions())
        except Exception as error:
            _check_called(module, example, name)
            message = str(error)
            if "data-dependent" in message.lower() or "data dependent" in message.lower() or "_local_scalar" in message:
                raise ValueError(f"{name} cannot be exported: {DATA_DEPENDENT}") from error
            first = next((line for line in message.splitlines() if line.strip()), type(error).__name__)
            raise ValueError(f"{name} cannot be exported: torch.export says: {first}") from error


def _check_called(module: FunctionModule, example: Sequence[Any], name: str) -> None:
    """Check that a function that cannot be exported can at least be called.

    Raises:
        ValueError: the call fails; the message gives the reason.
    """
    try:
        module(*pytree.tree_leaves(example))
    except Exception as error:  # report the caller's own error, not torch.export's
        raise ValueError(f"{name} cannot be called with the example inputs: {type(error).__name__}: {error}") from error


def _copy_leaf(leaf: Any) -> Any:
    """Return a copy of a tensor, since torch.export looks up the base tensor of a view; other values unchanged."""
    return leaf.detach().clone().contiguous() if isinstance(leaf, Tensor) else leaf


def _symbols_and_ranges(
    exported: ExportedProgram, leaves: Sequence[str], lengths: Lengths
) -> tuple[dict[str, str], dict[str, list[int | None]]]:
    """Return symbol of the graph -> name of its length, and name of a length -> its minimum and maximum."""
    kinds = {spec.arg.name: spec.kind for spec in exported.graph_signature.input_specs}
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    nodes = [node for node in placeholders if kinds[node.name] == InputKind.USER_INPUT]
    symbols: dict[str, str] = {}
    ranges: dict[str, list[int | None]] = {}
    examples: dict[str, int] = {}
    for node, leaf in zip(nodes, leaves):
        for axis, length in lengths.get(leaf, lengths.get(leaf.partition(".")[0], {})).items():
            extent = node.meta["val"].shape[axis]
            symbol = _symbol(extent, length)
            size = int(extent.node.hint)
            if examples.setdefault(length, size) != size:
                raise ValueError(
                    f"{length!r} is {examples[length]} and {size} in the example; axes of one name have one length"
                )
            symbols[symbol.name] = length
            limits = _range(exported.range_constraints.get(symbol))
            ranges[length] = _intersection(ranges.get(length, limits), limits)
    return symbols, ranges


def _symbol(extent: int | torch.SymInt, length: str) -> sympy.Symbol:
    """Return the symbol of a dynamic axis.

    Raises:
        ValueError: the model fixes the size of this axis, or makes it depend on another axis.
    """
    if isinstance(extent, int) or extent.node.expr.is_number:
        raise ValueError(
            f"{length!r} cannot change: the model does something else for each length (a loop over it, or a size "
            f"that must be {extent}); leave it out of lengths"
        )
    expression = extent.node.expr
    if not expression.is_Symbol:
        raise ValueError(
            f"{length!r} cannot change by itself: the model makes it {expression} of another length; leave it out of "
            "lengths, or take an axis that is independent"
        )
    return expression


def _range(limits: Any) -> list[int | None]:
    """Return the minimum and maximum of a symbol; torch.export never considers lengths of 0 and 1."""
    if limits is None:
        return [1, None]
    high = int(limits.upper) if limits.upper < INT32_MAX else None
    return [1 if limits.lower <= 2 else int(limits.lower), high]


def _intersection(first: Sequence[int | None], second: Sequence[int | None]) -> list[int | None]:
    (low, high), (other_low, other_high) = first, second
    return [max(low or 1, other_low or 1), min((limit for limit in (high, other_high) if limit), default=None)]


def _leaf_names(arguments: Sequence[str], example: Sequence[Any]) -> list[str]:
    """Return a name for each input tensor: that of its argument, with a number if the argument holds several."""
    counted = [(name, len(pytree.tree_leaves(value))) for name, value in zip(arguments, example)]
    return [name if count == 1 else f"{name}.{index}" for name, count in counted for index in range(count)]
