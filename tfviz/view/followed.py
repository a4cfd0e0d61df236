"""A function run line by line: which value came from which, by what expression, and how large it is."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.view.statements import compiled, definition, reads, returns, said, writes

SIZES = (int, str, torch.Size)  # made of shapes and settings: no data flows through them


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
    run = _Run(getattr(asked, "__self__", None), plain)
    run.begin(plain, _bound(asked, given, named).arguments)
    quiet = any("no_grad" in ast.unparse(one) or "inference_mode" in ast.unparse(one) for one in run.decorators)
    with torch.no_grad() if quiet else nullcontext():
        run.through(run.statements)
    return run.values


def _bound(asked: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]) -> inspect.BoundArguments:
    try:
        bound = inspect.signature(asked).bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{asked.__name__} cannot be run: {error}; give what it takes after its name") from error
    bound.apply_defaults()
    return bound


class _Run:
    """What is known while the lines are run: the variables, and the value that each of them is.

    A name with a dot before it is the module's own.
    """

    def __init__(self, module: Any, function: Any):
        tree = definition(function)
        self.module, self.decorators = module, tree.decorator_list
        arguments = tree.args.posonlyargs + tree.args.args
        self.own = arguments[0].arg if module is not None and arguments else ""
        self.statements = tree.body[ast.get_docstring(tree) is not None :]
        self.local = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        self.values: list[Value] = []
        self.now: dict[str, int] = {}  # name -> the number of the value that it means
        self.carried: dict[str, tuple[int, ...]] = {}  # of what is no tensor, such as a dict -> what it was made of
        self.space: dict[str, Any] = {}

    def begin(self, function: Any, arguments: dict[str, Any]) -> None:
        outside = inspect.getclosurevars(function)
        self.space = {**function.__globals__, **outside.builtins, **outside.globals, **outside.nonlocals, **arguments}
        if self.own:
            kind = outside.nonlocals.get("__class__", type(self.module))
            self.space |= {self.own: self.module}
            self.space["super"] = lambda *named: builtins.super(*(named or (kind, self.module)))
        for name, value in arguments.items():
            self._given(name, value)

    def through(self, statements: Sequence[ast.stmt], later: frozenset[str] = frozenset()) -> bool:
        """Run statements one by one; whether one of them returned.

        Args:
            later: names that are looked at after them.
        """
        for place, statement in enumerate(statements):
            after = later.union(*(reads(one, self.own) for one in statements[place + 1 :]))
            if isinstance(statement, ast.If):
                taken = eval(compiled(ast.Expression(statement.test)), self.space)
                if self.through(statement.body if taken else statement.orelse, after):
                    return True
            elif isinstance(statement, ast.Return):
                self._end(statement.value)
                return True
            else:  # of what a loop makes for itself nothing is noted
                self.step(statement, only=after if hasattr(statement, "body") else None)
        return False

    def step(self, statement: ast.stmt, output: bool = False, only: frozenset[str] | None = None) -> None:
        """Run a statement and note what it made."""
        if not isinstance(statement, ast.FunctionDef) and returns(statement):
            raise ValueError("the function returns from inside a loop or a with; let it return in a line of its own")
        read = tuple(dict.fromkeys(self._read(reads(statement, self.own))))
        before = {name: _version(self._value(name)) for name in self.now}
        exec(compiled(ast.Module([statement], [])), self.space)
        in_place = [name for name, old in before.items() if old and _moved(old, _version(self._value(name)))]
        for name in dict.fromkeys([*writes(statement, self.own), *in_place]):
            if only is not None and name not in only:
                continue
            self._made(name, said(statement, self.own), read, output)

    def _made(self, name: str, code: str, read: tuple[int, ...], output: bool) -> None:
        value = self._value(name)
        self.now.pop(name, None)
        if (shape := _shape(value)) is not None:
            self._add(Value(name.removeprefix("."), code, shape, False, read, output), name)
        elif not isinstance(value, SIZES):
            self.carried[name] = read

    def _end(self, value: ast.expr | None) -> None:
        """What is returned: values that there are, which are marked, or new ones."""
        parts = getattr(value, "elts", [value])
        names = ["output"] if len(parts) == 1 else [f"output {number}" for number in range(1, len(parts) + 1)]
        if isinstance(value, ast.Dict) and all(isinstance(key, ast.Constant) for key in value.keys):
            names, parts = [str(key.value) for key in value.keys], value.values  # type: ignore[union-attr]
        if any(isinstance(part, ast.Starred) for part in parts):
            names, parts = ["output"], [value]
        for name, part in zip(names, parts):
            if isinstance(part, ast.Name) and part.id in self.now:
                self.values[self.now[part.id]].output = True
            elif part is not None and not isinstance(part, ast.Constant):
                self.step(ast.Assign([ast.Name(name, ast.Store())], part, lineno=1), output=True)

    def _read(self, names: Iterable[str]) -> Iterator[int]:
        """The numbers of the values that are looked at; what comes from outside is noted now."""
        for name in names:
            if name not in self.now and name not in self.carried and name not in self.local:
                value = self._value(name)
                if isinstance(value, Tensor):
                    self._given(name, value)
            yield from (self.now[name],) if name in self.now else self.carried.get(name, ())

    def _value(self, name: str) -> Any:
        return getattr(self.module, name[1:], None) if name.startswith(".") else self.space.get(name)

    def _given(self, name: str, value: Any) -> None:
        if (shape := _shape(value)) is not None:
            self._add(Value(name.removeprefix("."), "", shape, isinstance(value, nn.Parameter), ()), name)

    def _add(self, value: Value, name: str) -> None:
        self.now[name] = len(self.values)
        self.values.append(value)


def _version(value: Any) -> tuple[int, int] | None:
    """Which tensor it is, and how often it was changed in place."""
    return (id(value), value._version) if isinstance(value, Tensor) and not value.is_inference() else None


def _moved(old: tuple[int, int], new: tuple[int, int] | None) -> bool:
    return new is not None and new[0] == old[0] and new[1] != old[1]


def _shape(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, list | tuple) and value and all(isinstance(part, Tensor) for part in value):
        shapes = {tuple(part.shape) for part in value}
        return (len(value), *shapes.pop()) if len(shapes) == 1 else (len(value),)
    return None
