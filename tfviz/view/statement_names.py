"""The names that a Python statement reads and assigns, and the expression that it computes, from its syntax tree."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any

REMEDY = "give a function or a module that is written down in a file or a cell, such as def attend(x): ..."
COMPOUND_STATEMENTS = (ast.For, ast.While, ast.With, ast.Try, ast.If, ast.Match)
SCOPE_NODES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef)


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function, with the line numbers of its file.

    Raises:
        ValueError: the source is not available, or the function is not a plain `def`.
    """
    name = getattr(function, "__name__", function)
    try:
        lines, start = inspect.getsourcelines(function)
        indented = lines[0][:1].isspace()  # a method; dedent fails if its docstring is less indented than its code
        tree = ast.parse("".join(["if 1:\n"] * indented + lines))
    except (OSError, TypeError, SyntaxError) as error:
        raise ValueError(f"the source code of {name} is not available; {REMEDY}") from error
    first: Any = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if not isinstance(first, ast.FunctionDef):
        raise ValueError(f"{name} is not a plain def; {REMEDY}")
    return ast.increment_lineno(first, start - 1 - indented)


class Names(ast.NodeVisitor):
    """The names that a statement reads and assigns, in order; an attribute of `self` is listed as ".name".

    Names bound inside a comprehension, a lambda or an inner function are omitted.
    """

    def __init__(self, self_name: str):
        self.self_name = self_name
        self.read: list[str] = []
        self.assigned: list[str] = []
        self._hidden: frozenset[str] = frozenset()
        self._inner = False

    @classmethod
    def from_node(cls, node: ast.AST, self_name: str) -> Names:
        """Collect the names of a statement or an expression.

        Args:
            node: the syntax tree of the statement.
            self_name: the name by which the code refers to the module, such as `self`; empty if there is none.
        """
        names = cls(self_name)
        names.visit(node)
        return names

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            self._note(node.name, ast.Store())
        if isinstance(node, SCOPE_NODES):
            hidden, inner = self._hidden, self._inner
            self._hidden, self._inner = hidden | _bound(node), True
            self.generic_visit(node)
            self._hidden, self._inner = hidden, inner
        else:
            super().visit(node)

    def visit_For(self, node: ast.For) -> None:
        """Treat loop variables as local to the loop, even if an earlier loop assigned the same names."""
        self.visit(node.iter)
        self.visit(node.target)
        hidden = self._hidden
        self._hidden |= _bound(node.target)
        for part in (*node.body, *node.orelse):
            self.visit(part)
        self._hidden = hidden

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(ast.parse(ast.unparse(node.target), mode="eval"))  # x += 1 also reads x
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._note(node.id, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if is_attribute_of(node, self.self_name):
            self._note(f".{node.attr}", node.ctx)
        else:
            self.generic_visit(node)

    def _note(self, name: str, context: ast.expr_context) -> None:
        if isinstance(context, ast.Load) and name not in self._hidden:
            self.read.append(name)
        elif isinstance(context, ast.Store) and not self._inner:
            self.assigned.append(name)


def expression(node: ast.AST, self_name: str) -> str:
    """Return the source of the expression that a statement assigns, or else of the statement, without `self.`."""
    value = getattr(node, "value", node) if isinstance(node, ast.stmt) else node
    if isinstance(node, ast.AugAssign):
        value = ast.BinOp(ast.Name(ast.unparse(node.target), ast.Load()), node.op, node.value)
    tree = deepcopy(value if isinstance(value, ast.expr) else node)
    return ast.unparse(ast.fix_missing_locations(_WithoutSelf(self_name).visit(tree)))


class _WithoutSelf(ast.NodeTransformer):
    def __init__(self, self_name: str):
        self.self_name = self_name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr, node.ctx) if is_attribute_of(node, self.self_name) else self.generic_visit(node)


def is_attribute_of(node: ast.Attribute, self_name: str) -> bool:
    return bool(self_name) and isinstance(node.value, ast.Name) and node.value.id == self_name


def _bound(scope: ast.AST) -> frozenset[str]:
    """Return the names that a comprehension, a lambda, an inner function or a loop target binds."""
    nodes = list(ast.walk(scope))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(names | {node.arg for node in nodes if isinstance(node, ast.arg)})
