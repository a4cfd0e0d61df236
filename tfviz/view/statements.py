"""What a statement of Python reads, writes and says, as far as its syntax tells."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from types import CodeType
from typing import Any

REMEDY = "give a function or a module that is written down in a file or a cell, such as def attend(x): ..."
GROWING = {"add", "append", "extend", "insert", "setdefault", "update"}  # methods that put something in
SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef)


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax of a function.

    Raises:
        ValueError: its source is not there, or it is no plain `def`.
    """
    name = getattr(function, "__name__", function)
    try:
        source = inspect.getsource(function)
        indented = source[:1].isspace()  # that of a method; what its docstring holds may stand further left
        tree = ast.parse(f"if 1:\n{source}" if indented else source)
    except (OSError, TypeError, SyntaxError) as error:
        raise ValueError(f"the source of {name} is not at hand; {REMEDY}") from error
    first: Any = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if not isinstance(first, ast.FunctionDef):
        raise ValueError(f"{name} is no plain def; {REMEDY}")
    return first


def compiled(tree: Any) -> CodeType:
    """A statement or an expression, to be run.

    Raises:
        ValueError: it can be run only inside its function, such as `yield`.
    """
    kind = "eval" if isinstance(tree, ast.Expression) else "exec"
    try:
        return compile(ast.fix_missing_locations(tree), "<followed>", kind)
    except SyntaxError as error:
        raise ValueError(f"the function cannot be followed line by line: {error.msg}; {REMEDY}") from error


def reads(node: ast.AST, own: str, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names that are looked at; those of the module's own begin with a dot.

    Args:
        own: what the module is called, such as `self`; empty where there is none.
        hidden: names that belong to a comprehension, a lambda or an inner function around the node.
    """
    if isinstance(node, SCOPES):
        hidden |= _bound(node)
    if isinstance(node, ast.For):  # what runs through a loop is its own, not what an earlier loop left behind
        yield from reads(node.iter, own, hidden)
        hidden |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
        for part in (*node.body, *node.orelse):
            yield from reads(part, own, hidden)
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in hidden:
            yield node.id
    elif _is_own(node, own):
        yield f".{node.attr}"  # type: ignore[attr-defined]
    else:
        yield from (base for base in _changed(node, own) if base not in hidden)  # what is changed was there before
        for child in ast.iter_child_nodes(node):
            yield from reads(child, own, hidden)


def writes(node: ast.AST, own: str) -> Iterator[str]:
    """Names that are given a value, or changed in part; those of the module's own begin with a dot."""
    if isinstance(node, ast.FunctionDef):
        yield node.name
    if isinstance(node, SCOPES):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif _is_own(node, own) and isinstance(node.ctx, ast.Store):  # type: ignore[attr-defined]
        yield f".{node.attr}"  # type: ignore[attr-defined]
    yield from _changed(node, own)
    for child in ast.iter_child_nodes(node):
        yield from writes(child, own)


def returns(node: ast.AST) -> bool:
    """Whether a statement can end the function, an inner function aside."""
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, SCOPES))
    return isinstance(node, ast.Return) or any(returns(child) for child in inner)


def said(statement: ast.stmt, own: str) -> str:
    """The expression that made a value; of a statement that holds others its lines."""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.AugAssign):
        value = ast.BinOp(ast.Name(ast.unparse(statement.target), ast.Load()), statement.op, statement.value)
    tree = deepcopy(value if isinstance(value, ast.expr) else statement)
    return ast.unparse(ast.fix_missing_locations(_Bare(own).visit(tree)))


class _Bare(ast.NodeTransformer):
    """Without `self.`"""

    def __init__(self, own: str):
        self.own = own

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr, node.ctx) if _is_own(node, self.own) else self.generic_visit(node)


def _is_own(node: ast.AST, own: str) -> bool:
    inside = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return bool(own) and inside and node.value.id == own  # type: ignore[attr-defined]


def _bound(scope: ast.AST) -> frozenset[str]:
    """Names that a comprehension, a lambda or an inner function makes for itself."""
    nodes = list(ast.walk(scope))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(names | {node.arg for node in nodes if isinstance(node, ast.arg)})


def _changed(node: ast.AST, own: str) -> Iterator[str]:
    """The variable of which a part is assigned, `y` in `y[i] = ...`, that is added to, `y += ...`, or put into."""
    target: Any = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
        target = node.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif target is not None and _is_own(target, own):
        yield f".{target.attr}"
