"""A program run in Python, step by step with torch's own operations: what the page's engine is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.portable.operations import LEFT_OUT
from tfviz.portable.sizes import bound, number

DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
Edit = Callable[[Tensor], Tensor]


@torch.no_grad()
def run(
    described: Mapping[str, Any], weights: Sequence[Tensor], inputs: Sequence[Tensor], edit: Mapping[str, Edit]
) -> dict[str, Tensor]:
    """The outputs by name; see `Program.__call__`, which says what is described."""
    sites = [node["pattern"] for node in described["nodes"] if "pattern" in node]
    for site in edit.keys() - set(sites):
        raise LookupError(f"no site {site!r} to edit; this program has {', '.join(sites) or 'none'}")
    if len(inputs) != len(described["inputs"]):
        names = ", ".join(one["name"] for one in described["inputs"])
        raise ValueError(f"{described['name']} takes {names}; {len(inputs)} were given")
    lengths: dict[str, int] = {}
    values: list[Tensor] = []
    for declared, given in zip(described["inputs"], inputs):
        bound(tuple(declared["shape"]), tuple(given.shape), lengths, declared["name"])
        values.append(given.to(DTYPES[declared["dtype"]]))
    for name, (least, most) in described["lengths"].items():
        if lengths[name] < least or (most is not None and lengths[name] > most):
            raise ValueError(f"{name!r} is {lengths[name]}; this program takes {least} to {most or 'any number'}")
    values += weights
    for node in described["nodes"]:
        made = _step(node, values, lengths, edit.get(node.get("pattern", "")))
        values += made if isinstance(made, tuple | list) else [made]
    return {one["name"]: values[one["t"]] for one in described["outputs"]}


def _step(node: Mapping[str, Any], values: list[Tensor], lengths: Mapping[str, int], edit: Edit | None) -> Any:
    packet, _, overload = node["op"].partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
    given = [_value(one, values, lengths) for one in node["args"]]
    if edit and packet == "scaled_dot_product_attention":
        return _attend(edit, *given)
    left_out = [one for one in operation._schema.arguments if one.name in _taken(node["args"], operation)]
    made = operation(
        *(one for one, said in zip(given, left_out) if not said.kwarg_only),
        **{said.name: one for one, said in zip(given, left_out) if said.kwarg_only and one is not None},
    )
    return edit(made) if edit else made


def _taken(args: list[Any], operation: Any) -> list[str]:
    """The arguments of a schema that a program keeps."""
    return [one.name for one in operation._schema.arguments if one.name not in LEFT_OUT]


def _value(argument: Any, values: list[Tensor], lengths: Mapping[str, int]) -> Any:
    if isinstance(argument, list):
        return [_value(one, values, lengths) for one in argument]
    if isinstance(argument, dict):
        if "t" in argument:
            return values[argument["t"]]
        return number(argument["s"], lengths) if "s" in argument else float(argument["f"])
    return DTYPES.get(argument, argument) if isinstance(argument, str) else argument


def _attend(
    edit: Edit, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, *more: Any
) -> Tensor:
    """Attention written out, so that its weights can be changed (Vaswani et al. 2017, equation 1)."""
    scale, grouped = more
    if grouped:
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], 1) for one in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return edit(scores.softmax(-1).nan_to_num(0.0)) @ value
