"""An exported graph, read node by node into plain data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from tfviz.portable.arguments import DEPENDS, given, kind, shape, whole
from tfviz.portable.operations import OPERATIONS
from tfviz.portable.program import stored

SOFTMAX = {"softmax.int", "_softmax"}
SAME = {"clone", "alias", "detach", "contiguous", "lift_fresh_copy", "dropout"}  # in a page no tensor ever changes
RESHAPE = {"view", "_unsafe_view", "reshape"}
CHECKS = ("_assert", "sym_constrain", "sym_size")  # what such steps ask holds for the lengths that a program allows


def plain(exported: ExportedProgram) -> bool:
    """Whether a graph can be read as it is: the engine has all its operations, of which none changes a tensor in place.

    Otherwise torch.export is to write it anew, which takes twice as long again.
    """
    return all(_plain(node) for node in exported.graph.nodes if node.op == "call_function")


def _plain(node: fx.Node) -> bool:
    name = _needed(node)
    if name not in OPERATIONS:
        return not name
    names = (one.name for one in node.target._schema.arguments)  # type: ignore[union-attr]
    arguments = dict(zip(names, node.args)) | node.kwargs
    trains = arguments.get("train") or arguments.get("training")  # a dropout that drops, a norm by the batch at hand
    return not trains


def _needed(node: fx.Node) -> str:
    """The operation that a step asks of the engine; empty where it gives a size, one result of several, or a check."""
    if isinstance(node.meta.get("val"), torch.SymInt | int) and not isinstance(node.meta["val"], bool):
        return ""
    name = getattr(node.target, "__name__", str(node.target))
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return "" if name == "getitem" or "assert" in name or name.startswith(CHECKS) else str(node.target)
    name = str(node.target).removeprefix("aten.").removesuffix(".default")
    if name.startswith(CHECKS):
        return ""
    return "reshape" if name in RESHAPE else name


class Graph:
    """An exported graph, read node by node."""

    def __init__(
        self,
        exported: ExportedProgram,
        names: Sequence[str],
        symbols: Mapping[str, str],
        prefix: str,
        dtype: torch.dtype,
    ):
        self.names = names
        self.exported, self.symbols, self.prefix, self.dtype = exported, symbols, prefix, dtype
        self.tensors: dict[str, Tensor] = {}
        self.numbers: dict[fx.Node, int | list[int]] = {}
        self.count = 0
        self.missing: dict[str, set[str]] = {}

    def described(self) -> dict[str, Any]:
        inputs, weights = self._placeholders()
        nodes = [one for one in self.exported.graph.nodes if one.op == "call_function"]
        described = [made for node in nodes if (made := self._node(node))]
        if self.missing:
            listed = "; ".join(f"{name} (in {', '.join(sorted(paths))})" for name, paths in self.missing.items())
            raise ValueError(
                f"the page's engine lacks {len(self.missing)} of the operations it needs: {listed}; write these with "
                "operations it has (tfviz.portable.OPERATIONS)"
            )
        return {"inputs": inputs, "weights": weights, "nodes": described, "outputs": self._outputs()}

    def _placeholders(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        signature = self.exported.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        inputs: list[dict[str, Any]] = []
        kept: list[dict[str, Any]] = []
        nodes = [one for one in self.exported.graph.nodes if one.op == "placeholder"]
        own = [one for one in nodes if specs[one.name].kind == InputKind.USER_INPUT]
        for node, name in zip(own, self.names):
            value = node.meta.get("val")
            if isinstance(value, Tensor):
                inputs.append({"name": name, "shape": shape(value, self.symbols), "dtype": kind(value.dtype)})
                self._number(node)
        used: dict[int, int] = {}
        for node in nodes:
            spec = specs[node.name]
            if spec.kind == InputKind.USER_INPUT or not node.users:
                continue
            tensor = self._constant(spec.target)
            if id(tensor) in used:  # tied: one weight under two names
                self.numbers[node] = used[id(tensor)]
                continue
            name = str(spec.target).removeprefix("model.") if self.prefix == "model." else str(spec.target)
            used[id(tensor)] = self._number(node)
            if tensor.dtype == torch.int64 and tensor.numel():
                whole(int(tensor.abs().max()))
            value, scale = stored(tensor, self.dtype)
            self.tensors[name] = value
            if scale is not None:
                self.tensors[f"{name}:scale"] = scale
            kept.append({"name": name, "shape": list(value.shape), "dtype": kind(tensor.dtype)})
        return inputs, kept

    def _constant(self, target: Any) -> Tensor:
        for table in (self.exported.state_dict, self.exported.constants):
            if target in table:
                return table[target]
        raise ValueError(f"{target} is not a tensor: a program holds only tensors")

    def _number(self, node: fx.Node) -> int:
        self.numbers[node] = self.count
        self.count += 1
        return self.count - 1

    def _node(self, node: fx.Node) -> dict[str, Any] | None:
        """A step as plain data; None for what only names a size or one of several results."""
        value: Any = node.meta.get("val")
        if isinstance(value, torch.SymFloat | torch.SymBool):
            raise ValueError(DEPENDS.capitalize())
        name, path = _needed(node), self._path(node)
        if not name:
            if getattr(node.target, "__name__", "") == "getitem" and isinstance(value, Tensor):
                several = self.numbers[node.args[0]]  # type: ignore[index]
                self.numbers[node] = several[node.args[1]]  # type: ignore[index]
            return None
        if name in SAME or (name == "to.dtype" and node.args[0].meta["val"].dtype == value.dtype):  # type: ignore[union-attr]
            self.numbers[node] = self.numbers[node.args[0]]  # type: ignore[index]
            return None
        if name not in OPERATIONS:
            self.missing.setdefault(name, set()).add(path or "the function")
            if not isinstance(value, Tensor | list | tuple):
                return None
        results = list(value) if isinstance(value, list | tuple) else [value]
        arguments = [] if name not in OPERATIONS else given(node, self.numbers, self.symbols)
        numbers = [self.count + i for i in range(len(results))]
        self.numbers[node] = numbers if isinstance(value, list | tuple) else numbers[0]
        self.count += len(results)
        return {
            "op": name,
            "args": arguments,
            "site": path,
            "out": [shape(one, self.symbols) for one in results],
            "dtype": [kind(one.dtype) for one in results],
            **self._pattern(name, node, path),
        }

    def _pattern(self, name: str, node: fx.Node, path: str) -> dict[str, str]:
        """The name of the attention that this step is, if it is one, by the rule of `look.capture`."""
        soft = name in SOFTMAX and node.meta["val"].dim() >= 3
        last = soft and node.args[1] in (-1, node.meta["val"].dim() - 1)
        return {"pattern": f"{path}.pattern".removeprefix(".")} if last or "scaled_dot_product" in name else {}

    def _path(self, node: fx.Node) -> str:
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path = stack[-1][0] if stack else ""
        return "" if f"{path}." == self.prefix else path.removeprefix(self.prefix)

    def _outputs(self) -> list[dict[str, Any]]:
        signature = self.exported.graph_signature
        output = next(one for one in self.exported.graph.nodes if one.op == "output")
        kinds = [spec.kind for spec in signature.output_specs]
        if any(kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION) for kind in kinds):
            raise ValueError(
                "it changes a buffer or an input in place, which a program cannot keep; return the new value instead"
            )
        spec = self.exported.call_spec.out_spec
        tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        paths, _ = pytree.tree_flatten_with_path(tree)
        named = []
        left = []
        for (path, _), node in zip(paths, output.args[0]):
            said = ".".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path)
            if isinstance(node, fx.Node) and node in self.numbers:
                named.append({"name": said or "output", "t": self.numbers[node]})
            elif node is not None:
                left.append(f"{said} ({node})")
        if not named:
            raise ValueError("it returns no tensor: there would be nothing to see")
        if left:
            warnings.warn(f"results that are no tensors are left out: {', '.join(left)}", stacklevel=6)
        return named
