"""`GraphReader`: convert an exported graph to the plain data of a program, node by node."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from tfviz.portable.arguments import DATA_DEPENDENT, check_int32, dtype_name, encode_args, encode_shape
from tfviz.portable.program import quantize
from tfviz.portable.supported_operators import SUPPORTED_OPERATORS

IDENTITY_OPS = {  # tensors of a page are never modified in place
    "clone",
    "alias",
    "detach",
    "contiguous",
    "lift_fresh_copy",
    "dropout",
}
RESHAPE_OPS = {"view", "_unsafe_view", "reshape"}
CHECK_OPS = (  # prefixes of assertions, which are left out: they hold for all lengths that a program allows
    "_assert",
    "sym_constrain",
    "sym_size",
)


def is_supported(exported: ExportedProgram) -> bool:
    """Return whether the engine has all operations of a graph, never in place or in training mode.

    Otherwise the graph must be decomposed, which makes the export take half as long again.
    """
    return all(_is_supported(node) for node in exported.graph.nodes if node.op == "call_function")


def _is_supported(node: fx.Node) -> bool:
    name = operation_name(node)
    if name not in SUPPORTED_OPERATORS:
        return not name
    names = (argument.name for argument in node.target._schema.arguments)  # type: ignore[union-attr]
    arguments = dict(zip(names, node.args)) | node.kwargs
    # dropout and batch statistics in training mode are not supported
    return not (arguments.get("train") or arguments.get("training"))


def operation_name(node: fx.Node) -> str:
    """Return the name of a node's operation; empty for a size, one of several results, or an assertion."""
    if isinstance(node.meta.get("val"), torch.SymInt | int) and not isinstance(node.meta["val"], bool):
        return ""
    name = getattr(node.target, "__name__", str(node.target))
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return "" if name == "getitem" or "assert" in name or name.startswith(CHECK_OPS) else str(node.target)
    name = str(node.target).removeprefix("aten.").removesuffix(".default")
    if name.startswith(CHECK_OPS):
        return ""
    return "reshape" if name in RESHAPE_OPS else name


def output_names(structure: Any) -> list[str]:
    """Return a name for each leaf of a nested output: its keys, joined by dots; "output" without keys."""
    paths, _ = pytree.tree_flatten_with_path(structure)
    keys = (
        [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path] for path, _ in paths
    )
    return [".".join(path) or "output" for path in keys]


class GraphReader:
    """A converter of an exported graph to the specification of a program.

    Args:
        exported: the exported graph.
        names: the names of the input tensors.
        symbols: symbol of the graph -> the name of the dynamic length.
        prefix: the beginning of the module paths, which is removed.
        dtype: the storage dtype of the weights.

    Attributes:
        tensors: name -> weight in its storage format, after `to_spec`.
    """

    def __init__(
        self,
        exported: ExportedProgram,
        names: Sequence[str],
        symbols: Mapping[str, str],
        prefix: str,
        dtype: torch.dtype,
    ):
        self.exported, self.names, self.symbols, self.prefix, self.dtype = exported, names, symbols, prefix, dtype
        self.tensors: dict[str, Tensor] = {}
        self.value_ids: dict[fx.Node, int | list[int]] = {}
        self.count = 0

    def to_spec(self) -> dict[str, Any]:
        """Return the inputs, weights, nodes and outputs of the program; fill `tensors`.

        Raises:
            ValueError: the engine lacks an operation; an argument cannot be encoded; the graph changes a buffer or an
                input in place, or returns no tensor.
        """
        nodes = [node for node in self.exported.graph.nodes if node.op == "call_function"]
        self._check_supported(nodes)
        signature = self.exported.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        placeholders = [(node, specs[node.name]) for node in self.exported.graph.nodes if node.op == "placeholder"]
        inputs = self._inputs([node for node, spec in placeholders if spec.kind == InputKind.USER_INPUT])
        constants = [(node, str(spec.target)) for node, spec in placeholders if spec.kind != InputKind.USER_INPUT]
        weights = self._weights([(node, target) for node, target in constants if node.users])
        steps = [step for node in nodes if (step := self._step(node))]
        return {"inputs": inputs, "weights": weights, "nodes": steps, "outputs": self._outputs()}

    def _check_supported(self, nodes: Sequence[fx.Node]) -> None:
        missing: dict[str, set[str]] = {}
        for node in nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.SymFloat | torch.SymBool):
                raise ValueError(DATA_DEPENDENT.capitalize())
            for result in pytree.tree_leaves(value):
                if isinstance(result, Tensor):  # first, since these errors are clearer
                    dtype_name(result.dtype), encode_shape(result, self.symbols)
            if not _is_supported(node):
                missing.setdefault(operation_name(node), set()).add(self._path(node) or "the function")
        if missing:
            names = "; ".join(f"{name} (in {', '.join(sorted(paths))})" for name, paths in missing.items())
            raise ValueError(
                f"the page's engine lacks {len(missing)} of the operations it needs: {names}; write these with "
                "operations it has (tfviz.portable.SUPPORTED_OPERATORS)"
            )

    def _inputs(self, nodes: Sequence[fx.Node]) -> list[dict[str, Any]]:
        inputs = []
        for node, name in zip(nodes, self.names):
            value = node.meta.get("val")
            if isinstance(value, Tensor):
                shape = encode_shape(value, self.symbols)
                inputs.append({"name": name, "shape": shape, "dtype": dtype_name(value.dtype)})
                self._assign_id(node)
        return inputs

    def _weights(self, nodes: Sequence[tuple[fx.Node, str]]) -> list[dict[str, Any]]:
        weights = []
        numbers: dict[int, int] = {}
        for node, target in nodes:
            tensor = self._constant(target)
            if id(tensor) in numbers:  # tied: one weight under two names
                self.value_ids[node] = numbers[id(tensor)]
                continue
            numbers[id(tensor)] = self._assign_id(node)
            if tensor.dtype == torch.int64 and tensor.numel():
                check_int32(int(tensor.abs().max()))
            name = target.removeprefix("model.") if self.prefix == "model." else target
            value, scale = quantize(tensor, self.dtype)
            self.tensors[name] = value
            if scale is not None:
                self.tensors[f"{name}:scale"] = scale
            weights.append({"name": name, "shape": list(value.shape), "dtype": dtype_name(tensor.dtype)})
        return weights

    def _constant(self, target: str) -> Tensor:
        for table in (self.exported.state_dict, self.exported.constants):
            if target in table:
                return table[target]
        raise ValueError(f"{target} is not a tensor: a program holds only tensors")

    def _assign_id(self, node: fx.Node) -> int:
        number = self.count
        self.value_ids[node] = number
        self.count += 1
        return number

    def _step(self, node: fx.Node) -> dict[str, Any] | None:
        """Return a node as plain data; None for a size, an assertion, a copy or one of several results."""
        value: Any = node.meta.get("val")
        name, path = operation_name(node), self._path(node)
        source: Any = node.args[0] if node.args else None
        if not name:
            if getattr(node.target, "__name__", "") == "getitem" and isinstance(value, Tensor):
                self.value_ids[node] = self.value_ids[source][node.args[1]]  # type: ignore[index]
            return None
        if name in IDENTITY_OPS or (name == "to.dtype" and source.meta["val"].dtype == value.dtype):
            self.value_ids[node] = self.value_ids[source]
            return None
        several = isinstance(value, list | tuple)
        results = list(value) if several else [value]
        numbers = list(range(self.count, self.count + len(results)))
        self.value_ids[node] = numbers if several else numbers[0]
        self.count += len(results)
        return {
            "op": name,
            "args": encode_args(node, self.value_ids, self.symbols),
            "module": path,
            "out": [encode_shape(result, self.symbols) for result in results],
            "dtype": [dtype_name(result.dtype) for result in results],
            **self._site(name, node, path),
        }

    def _site(self, name: str, node: fx.Node, path: str) -> dict[str, str]:
        """Return {"site": site}, named as by `look.capture`, if the node computes attention; else an empty dict."""
        rank = node.meta["val"].dim() if name == "softmax.int" else 0
        over_keys = rank >= 3 and node.args[1] in (-1, rank - 1)
        return {"site": f"{path}.pattern".removeprefix(".")} if over_keys or "scaled_dot_product" in name else {}

    def _path(self, node: fx.Node) -> str:
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path = stack[-1][0] if stack else ""
        return "" if f"{path}." == self.prefix else path.removeprefix(self.prefix)

    def _outputs(self) -> list[dict[str, Any]]:
        kinds = {spec.kind for spec in self.exported.graph_signature.output_specs}
        if kinds & {OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION}:
            raise ValueError(
                "it changes a buffer or an input in place, which a program cannot keep; return the new value instead"
            )
        spec = self.exported.call_spec.out_spec
        names = output_names(pytree.tree_unflatten(list(range(spec.num_leaves)), spec))
        (nodes,) = next(node for node in self.exported.graph.nodes if node.op == "output").args
        outputs, skipped = [], []
        for name, node in zip(names, nodes):
            if isinstance(node, fx.Node) and node in self.value_ids:
                outputs.append({"name": name, "value": self.value_ids[node]})
            elif node is not None:
                skipped.append(f"{name} ({node})")
        if not outputs:
            raise ValueError("the function returns no tensor: return at least one")
        if skipped:
            warnings.warn(f"results that are not tensors are left out: {', '.join(skipped)}", stacklevel=6)
        return outputs
