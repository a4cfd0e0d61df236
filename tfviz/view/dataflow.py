"""Traces of the data flow in one function call: each tensor, the expression that computed it, and its operands.

`sys.settrace` reports the executed lines and the values of variables. The syntax tree tells which names each statement
reads and assigns.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tfviz.view.statement_names import COMPOUND_STATEMENTS, Names, definition, expression

Statement = TypeVar("Statement", bound=ast.stmt)
SIZE_TYPES = (int, str, torch.Size)  # types of shapes and settings, which carry no data


@dataclass(eq=False)
class Value:
    """A tensor, or a list of tensors, in a traced call.

    Attributes:
        name: the name of the variable, of the attribute, or of the part of the output.
        code: the expression that computed it; empty for an argument or a tensor from outside the function.
        shape: its shape; for tensors in a list, their number followed by their common shape, if they have one.
        learned: whether it is an `nn.Parameter`.
        parents: indices of the values that it was computed from.
        output: whether the function returned it.
    """

    name: str
    code: str
    shape: tuple[int, ...]
    learned: bool
    parents: tuple[int, ...]
    output: bool = False


def trace(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Value]:
    """Call a function, or the `forward` of a module, and return its tensors in the order in which they were computed.

    A loop, a `with` or a `try` counts as one statement; of its tensors, only those used later are listed. Plain numbers
    are not listed.

    Raises:
        ValueError: the source of the function is not available, it is not a plain `def`, or a line has two statements.
        Exception: the function raises an exception.
    """
    method: Any = function.forward if isinstance(function, nn.Module) else function
    inner = inspect.unwrap(getattr(method, "__func__", method))
    tracer = _Tracer(inner, getattr(method, "__self__", None))
    before = sys.gettrace()
    sys.settrace(tracer.on_call)
    try:
        method(*args, **kwargs)
    finally:
        sys.settrace(before)
    return tracer.values


class _Tracer:
    """A trace function for `sys.settrace` that collects the values of one call.

    Values are looked up by the names of variables. The name of an attribute of the module begins with a dot.
    """

    def __init__(self, function: Any, module: Any):
        tree = definition(function)
        self.code, self.module = function.__code__, module
        self.self_name = self.code.co_varnames[0] if module is not None and self.code.co_argcount else ""
        self.statements = list(_traced_statements(tree.body))
        self.returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
        self.locals = {*self.code.co_varnames, *self.code.co_cellvars}
        self.values: list[Value] = []
        self.sources: dict[str, tuple[Value, ...]] = {}  # name -> its own value, or those that it was computed from
        self.frame: FrameType | None = None
        # state of the running statement:
        self.statement: ast.stmt | None = None
        self.names = Names(self.self_name)
        self.parents: tuple[int, ...] = ()
        self.before: dict[str, tuple[Any, ...]] = {}

    def on_call(self, frame: FrameType, event: str, _: Any) -> Any:
        """Trace the first call of the function, and ignore all other calls."""
        if self.frame is not None or frame.f_code is not self.code:
            return None
        self.frame = frame
        for name in self.code.co_varnames:  # when the call begins, only arguments have values
            self._add_input(name)
        return self.on_event

    def on_event(self, frame: FrameType, event: str, result: Any) -> Any:
        statement = _statement_at(frame.f_lineno, self.statements)
        if event == "line" and statement is not self.statement:
            self._end()
            self._begin(statement)
        elif event == "return":
            self._end()
            self._return(_statement_at(frame.f_lineno, self.returns), result)
        return self.on_event

    def _begin(self, statement: ast.stmt | None) -> None:
        self.statement = statement
        if statement is not None and not isinstance(statement, ast.Return):
            self.names = Names.from_node(statement, self.self_name)
            self.parents = self._parents(self.names)
            self.before = {name: _value_state(self._lookup(name)) for name in [*self.names.assigned, *self.sources]}

    def _end(self) -> None:
        """Record the values that the statement assigned or modified in place."""
        statement, self.statement = self.statement, None
        if statement is None or isinstance(statement, ast.Return):
            return
        compound = isinstance(statement, COMPOUND_STATEMENTS)
        changed = [name for name, state in self.before.items() if _value_state(self._lookup(name))[-1] != state[-1]]
        assigned = [name for name in self.names.assigned if name in changed or not compound]
        for name in dict.fromkeys([*assigned, *changed]):
            value = self._lookup(name)
            if (shape := _shape(value)) is not None:
                traced = Value(
                    name.removeprefix("."), expression(statement, self.self_name), shape, False, self.parents
                )
                self.sources[name] = (traced,)
                if not compound:
                    self._index(traced)
            elif isinstance(value, SIZE_TYPES):
                self.sources.pop(name, None)
            else:
                self.sources[name] = tuple(self.values[parent] for parent in self.parents)

    def _return(self, statement: ast.Return | None, result: Any) -> None:
        """Mark the returned values as outputs, and add those that the return statement computes."""
        if statement is None or statement.value is None or result is None:
            return
        for name, node, value in _outputs(statement.value, result):
            if (shape := _shape(value)) is None:
                continue
            if isinstance(node, ast.Name) and node.id in self.sources:
                (traced,) = self.sources[node.id]
            else:
                parents = self._parents(Names.from_node(node, self.self_name))
                traced = Value(name, expression(node, self.self_name), shape, False, parents)
            self._index(traced)
            traced.output = True

    def _parents(self, names: Names) -> tuple[int, ...]:
        """Return the indices of the values that are read, after adding tensors from outside the function."""
        parents: dict[int, None] = {}
        for name in names.read:
            if name not in self.sources and name not in self.locals and isinstance(self._lookup(name), Tensor):
                self._add_input(name)
            parents |= dict.fromkeys(self._index(value) for value in self.sources.get(name, ()))
        return tuple(parents)

    def _lookup(self, name: str) -> Any:
        if name.startswith("."):
            return getattr(self.module, name[1:], None)
        assert self.frame is not None
        outside = None if name in self.locals else self.frame.f_globals.get(name)
        return self.frame.f_locals.get(name, outside)

    def _add_input(self, name: str) -> None:
        value = self._lookup(name)
        if (shape := _shape(value)) is not None:
            traced = Value(name.removeprefix("."), "", shape, isinstance(value, nn.Parameter), ())
            self.sources[name] = (traced,)
            self._index(traced)

    def _index(self, value: Value) -> int:
        """Return the index of a value in the list, after adding it if it is missing."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


def _traced_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that are traced one by one, including those in the branches of an `if`.

    Raises:
        ValueError: a line has two statements.
    """
    if crowded := [after.lineno for before, after in pairwise(body) if before.end_lineno == after.lineno]:
        raise ValueError(f"line {crowded[0]} has two statements; give each a line of its own")
    for statement in body:
        if isinstance(statement, ast.If) and statement.body[0].lineno > statement.lineno:
            yield from _traced_statements(statement.body)
            yield from _traced_statements(statement.orelse)
        else:
            yield statement


def _statement_at(line: int, statements: Sequence[Statement]) -> Statement | None:
    return next((one for one in statements if one.lineno <= line <= (one.end_lineno or line)), None)


def _outputs(node: ast.expr, result: Any) -> Iterator[tuple[str, ast.expr, Any]]:
    """Yield the name, the expression and the value of each part of the result."""
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [key.value for key in node.keys]  # type: ignore[union-attr]
        yield from ((str(key), part, result[key]) for key, part in zip(keys, node.values))
    elif isinstance(node, ast.Tuple | ast.List) and not any(isinstance(part, ast.Starred) for part in node.elts):
        names = ["output"] if len(node.elts) == 1 else [f"output {index + 1}" for index in range(len(node.elts))]
        yield from zip(names, node.elts, result)
    else:
        yield "output", node, result


def _value_state(value: Any) -> tuple[Any, ...]:
    """Return a tuple whose last item changes when a value is replaced, modified in place or extended.

    The other items are references that keep objects alive, so that their ids are not reused.
    """
    items = (
        tuple(value.values()) if isinstance(value, dict) else tuple(value) if isinstance(value, list | tuple) else ()
    )
    version = value._version if isinstance(value, Tensor) and not value.is_inference() else 0
    return value, items, (id(value), version, *map(id, items))


def _shape(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, list | tuple) and value and all(isinstance(part, Tensor) for part in value):
        shapes = {tuple(part.shape) for part in value}
        return (len(value), *shapes.pop()) if len(shapes) == 1 else (len(value),)
    return None
