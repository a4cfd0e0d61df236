"""Run a program in Python by PyTorch's operators: the reference implementation for the page's engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.apply_edit import Edit, apply_edit, takes_site
from tfviz.checks import materialized
from tfviz.coercion import coerce
from tfviz.portable.limits import CostLimit, to_meta
from tfviz.portable.operators import call_operator, operator
from tfviz.portable.symbolic_sizes import bind_dims, evaluate_size
from tfviz.portable.validate import DTYPES
from tfviz.schema import describe


@torch.no_grad()
def run(
    spec: Mapping[str, Any],
    weights: Sequence[Tensor],
    inputs: Sequence[Tensor],
    edit: Mapping[str, Edit],
    known: set[tuple[int, ...]] | None,
) -> dict[str, Tensor]:
    """Run the nodes of a program and return its outputs by name; see `Program.__call__`.

    Args:
        spec: the specification of the program.
        weights: the weights of the program, in its order.
        inputs: the inputs, in the order of the program.
        edit: site -> edit of its attention weights.
        known: combinations of lengths whose memory and work are known to be affordable; those of this run are added.
            None: nothing is checked.
    """
    _check_edits(spec, edit)
    values, lengths = _convert_inputs(spec, inputs)
    values += weights
    if known is not None and (sizes := tuple(lengths.values())) not in known:
        with CostLimit():
            _run_steps(spec, [to_meta(value) for value in values], lengths, {}, "meta")
        known.add(sizes)
    _run_steps(spec, values, lengths, edit, "cpu")
    return {output["name"]: values[output["value"]] for output in spec["outputs"]}


def _check_edits(spec: Mapping[str, Any], edit: Mapping[str, Edit]) -> None:
    sites = [node["site"] for node in spec["nodes"] if "site" in node]
    for site, function in edit.items():
        if site not in sites:
            raise LookupError(f"no site {site!r} to edit; this program has {', '.join(sites) or 'none'}")
        if not callable(function):
            raise TypeError(f"edit[{site!r}] is {describe(function)}; give a function")
        takes_site(function)


def _convert_inputs(spec: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[list[Tensor], dict[str, int]]:
    """Return the inputs in the program's dtypes, and the dynamic lengths, by name, from their shapes."""
    if len(inputs) != len(spec["inputs"]):
        names = ", ".join(declared["name"] for declared in spec["inputs"])
        raise ValueError(f"{spec['name']} takes {names}; {len(inputs)} were given")
    lengths: dict[str, int] = {}
    values = [_convert_input(declared, value, lengths) for declared, value in zip(spec["inputs"], inputs)]
    for name, (least, most) in spec["lengths"].items():
        if lengths[name] < least or (most is not None and lengths[name] > most):
            raise ValueError(f"{name!r} is {lengths[name]}; this program takes {least} to {most or 'any number'}")
    return values, lengths


def _convert_input(declared: Mapping[str, Any], value: Any, lengths: dict[str, int]) -> Tensor:
    name, dtype = declared["name"], DTYPES[declared["dtype"]]
    tensor = coerce(value, Tensor)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {describe(value)}; give a tensor")
    if tensor.is_nested:
        raise ValueError(f"{name} is a nested tensor; give a padded one, tensor.to_padded_tensor(0)")
    materialized(**{name: tensor})
    bind_dims(tuple(declared["shape"]), tuple(tensor.shape), lengths, name)
    if tensor.is_complex() or (tensor.is_floating_point() and dtype != torch.float32):
        raise ValueError(f"{name} is {tensor.dtype}; this program takes {declared['dtype']}")
    return tensor.detach().to("cpu", dtype)


def _run_steps(
    spec: Mapping[str, Any],
    values: list[Tensor],
    lengths: Mapping[str, int],
    edit: Mapping[str, Edit],
    device: str,
) -> None:
    """Compute all nodes in order, and append their results to `values`."""
    for index, node in enumerate(spec["nodes"]):
        key = f"program.nodes[{index}]"
        result = _run_step(node, values, lengths, edit.get(node.get("site", "")), device, key)
        results = list(result) if isinstance(result, tuple | list) else [result]
        shapes = [[evaluate_size(side, lengths) for side in shape] for shape in node["out"]]
        if (actual := [list(result.shape) for result in results]) != shapes:
            raise ValueError(f"{key}: {node['op']} makes {actual}; out says {shapes}")
        if (dtypes := [result.dtype for result in results]) != [DTYPES[name] for name in node["dtype"]]:
            raise ValueError(f"{key}: {node['op']} makes {dtypes}; dtype says {node['dtype']}")
        values += results


def _run_step(
    node: Mapping[str, Any],
    values: list[Tensor],
    lengths: Mapping[str, int],
    edit: Edit | None,
    device: str,
    key: str,
) -> Any:
    args = [
        _resolve_argument(argument, values, lengths, "ScalarType" in parameter.kind)
        for argument, parameter in zip(node["args"], operator(node["op"]).parameters)
    ]
    if edit and node["op"] == "scaled_dot_product_attention":
        return _attend(lambda weights: _edit_weights(node["site"], weights, edit, values), *args)
    try:
        result = call_operator(node["op"], args, device)
    except Exception as error:  # any error of torch means that the step cannot be computed
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{key}: {node['op']} cannot be computed: {lines[0]}") from error
    return _edit_weights(node["site"], result, edit, values) if edit else result


def _edit_weights(site: str, weights: Tensor, edit: Edit, values: Sequence[Tensor]) -> Tensor:
    """Return edited weights; an axis of batch x heads, as in `nn.MultiheadAttention`, is split for the edit."""
    texts = values[0].shape[0] if values[0].dim() else 0
    if weights.dim() != 3 or not texts or weights.shape[0] % texts:
        return apply_edit(site, weights, edit)
    return apply_edit(site, weights.unflatten(0, (texts, -1)), edit).flatten(0, 1)


def _resolve_argument(argument: Any, values: list[Tensor], lengths: Mapping[str, int], is_dtype: bool) -> Any:
    if isinstance(argument, list):
        return [_resolve_argument(item, values, lengths, False) for item in argument]
    if isinstance(argument, dict):
        if "value" in argument:
            return values[argument["value"]]
        return evaluate_size(argument["size"], lengths) if "size" in argument else float(argument["float"])
    return DTYPES[argument] if is_dtype and argument is not None else argument


def _attend(
    edit: Edit, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, *more: Any
) -> Tensor:
    """Return attention's output with edited weights (Vaswani et al. 2017, equation 1)."""
    scale, grouped = more
    if grouped:
        key, value = (tensor.repeat_interleave(query.shape[1] // tensor.shape[1], 1) for tensor in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return edit(scores.softmax(-1).nan_to_num(0.0)) @ value
