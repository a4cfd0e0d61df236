"""A function run line by line: which value came from which, by what expression, and how large it is."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import Tensor, nn

REMEDY = "give a function or a module that is written down in a file or a cell, such as def attend(x): ..."


@dataclass
class Value:
    """A tensor, or several alike, that a line has made or that was given.

    Attributes:
        code: the expression that made it; empty where it was given.
        shape: its sizes; of a list of tensors how many there are comes first.
        learned: whether training changes it.
        parents: the numbers of the values that it was made of.
    """

    name: str
    code: str
    shape: tuple[int, ...]
    learned: bool
    parents: tuple[int, ...]
    output: bool = False


def follow(function: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]) -> list[Value]:
    """The values of one run, in the order they were made.

    Of an `if` the branch is followed that the run takes; another statement that holds statements, such as a loop,
    counts as one. Numbers are no values.

    Raises:
        TypeError: the function takes other arguments.
        ValueError: the source is not there; the function is no plain `def`, or returns from inside a loop.
        Whatever the function raises.
    """
    asked = function.forward if isinstance(function, nn.Module) else function
    plain: Any = inspect.unwrap(getattr(asked, "__func__", asked))
    run = _Run(getattr(asked, "__self__", None), _definition(plain))
    bound = _bound(asked, given, named)
    outside = inspect.getclosurevars(plain)
    run.begin({**outside.builtins, **outside.globals, **outside.nonlocals}, bound.arguments, plain.__globals__)
    run.through(run.statements)
    return run.values


def _bound(asked: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]) -> inspect.BoundArguments:
    try:
        bound = inspect.signature(asked).bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{asked.__name__} cannot be run: {error}; give what it takes after its name") from error
    bound.apply_defaults()
    return bound


def _definition(function: Any) -> ast.FunctionDef:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise ValueError(f"the source of {getattr(function, '__name__', function)} is not at hand; {REMEDY}") from error
    if not isinstance(tree.body[0], ast.FunctionDef):
        raise ValueError(f"{getattr(function, '__name__', function)} is no plain def; {REMEDY}")
    return tree.body[0]


class _Run:
    """What is known while the lines are run: the variables, and the value that each of them is."""

    def __init__(self, module: Any, definition: ast.FunctionDef):
        self.module = module
        arguments = definition.args.posonlyargs + definition.args.args
        self.own = arguments[0].arg if module is not None and arguments else ""
        documented = ast.get_docstring(definition) is not None
        self.statements = definition.body[documented:]
        self.values: list[Value] = []
        self.now: dict[str, int] = {}  # name, of the module's own with a dot -> the number of the value that it means
        self.space: dict[str, Any] = {}

    def begin(self, outside: dict[str, Any], arguments: dict[str, Any], everything: dict[str, Any]) -> None:
        self.space = {**everything, **outside, **arguments}
        if self.own:
            self.space[self.own] = self.module
        for name, value in arguments.items():
            self._given(name, value)

    def through(self, statements: Sequence[ast.stmt]) -> bool:
        """Run statements one by one; whether one of them returned."""
        for statement in statements:
            if isinstance(statement, ast.If):
                chosen = (
                    statement.body if eval(_compiled(ast.Expression(statement.test)), self.space) else statement.orelse
                )
                if self.through(chosen):
                    return True
            else:
                self.step(statement)
                if isinstance(statement, ast.Return):
                    return True
        return False

    def step(self, statement: ast.stmt) -> None:
        """Run a statement and note what it made."""
        ends = isinstance(statement, ast.Return)
        if not ends and any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            raise ValueError("the function returns from inside a loop or a with; let it return in a line of its own")
        if isinstance(statement, ast.Return):
            if statement.value is not None and self._passes(statement.value):
                return
            target: ast.expr = ast.Name("output", ast.Store())
            statement = ast.Assign([target], statement.value or ast.Constant(None), lineno=1)
        read = tuple(dict.fromkeys(self._read(statement)))
        exec(_compiled(ast.Module([statement], [])), self.space)
        for name in dict.fromkeys(_written(statement)):
            if (shape := _shape(self.space.get(name))) is not None:
                code = self._code(statement)
                self._add(Value(name, code, shape, False, read, ends), name)

    def _passes(self, value: ast.expr) -> bool:
        """Whether a return only hands on what there is; that is then marked."""
        parts = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [value])
        names = [part.id for part in parts if isinstance(part, ast.Name) and part.id in self.now]
        for name in names if len(names) == len(parts) else ():
            self.values[self.now[name]].output = True
        return len(names) == len(parts)

    def _read(self, statement: ast.stmt) -> Iterator[int]:
        """The numbers of the values that a statement looks at; what comes from outside is noted now."""
        for node in ast.walk(statement):
            name, value = None, None
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name, value = node.id, self.space.get(node.id)
            elif self._is_own(node):  # with its dot: a variable may have the same name
                name, value = f".{node.attr}", getattr(self.module, node.attr, None)  # type: ignore[attr-defined]
            if base := _changed(node):  # what is changed in part was there before
                name, value = base, self.space.get(base)
            if name is not None and name not in self.now and isinstance(value, Tensor):
                self._given(name, value)
            if name in self.now:
                yield self.now[name]

    def _is_own(self, node: ast.AST) -> bool:
        inside = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        return bool(self.own) and inside and node.value.id == self.own  # type: ignore[attr-defined]

    def _given(self, name: str, value: Any) -> None:
        if (shape := _shape(value)) is not None:
            self._add(Value(name.removeprefix("."), "", shape, isinstance(value, nn.Parameter), ()), name)

    def _add(self, value: Value, name: str) -> None:
        self.now[name] = len(self.values)
        self.values.append(value)

    def _code(self, statement: ast.stmt) -> str:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.AugAssign):
            value = ast.BinOp(ast.Name(ast.unparse(statement.target), ast.Load()), statement.op, statement.value)
        code = ast.unparse(ast.fix_missing_locations(value) if isinstance(value, ast.expr) else statement)
        return code.replace(f"{self.own}.", "") if self.own else code


def _compiled(tree: Any) -> CodeType:
    return compile(
        ast.fix_missing_locations(tree), "<followed>", "eval" if isinstance(tree, ast.Expression) else "exec"
    )


def _written(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if base := _changed(node):
            yield base


def _changed(node: ast.AST) -> str | None:
    """The variable of which a part is assigned, `y` in `y[i] = ...`, or that is added to, as in `y += ...`."""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.target, ast.Name) else None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
        return node.value.id
    return None


def _shape(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, list | tuple) and value and all(isinstance(part, Tensor) for part in value):
        shapes = {tuple(part.shape) for part in value}
        return (len(value), *shapes.pop()) if len(shapes) == 1 else (len(value),)
    return None
