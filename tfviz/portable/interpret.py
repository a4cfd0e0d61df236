"""A program run in Python, step by step with torch's own operations: what the page's engine is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.bounds import readable
from tfviz.doors import what
from tfviz.editing import Edit, apply_edit, takes_site
from tfviz.kinds import coerce
from tfviz.portable.limits import Limits, sketch
from tfviz.portable.operators import call, operator
from tfviz.portable.sizes import bound, number
from tfviz.portable.validate import DTYPES


@torch.no_grad()
def run(
    described: Mapping[str, Any],
    weights: Sequence[Tensor],
    inputs: Sequence[Tensor],
    edit: Mapping[str, Edit],
    known: set[tuple[int, ...]] | None,
) -> dict[str, Tensor]:
    """The outputs by name; see `Program.__call__`, which says what is described.

    Args:
        known: lengths for which the machine is known to have the memory, to which these are added; None: for all.
    """
    _check_edits(described, edit)
    values, lengths = _inputs(described, inputs)
    values += weights
    if known is not None and (sizes := tuple(lengths.values())) not in known:
        with Limits():
            _steps(described, [sketch(one) for one in values], lengths, {}, "meta")
        known.add(sizes)
    _steps(described, values, lengths, edit, "cpu")
    return {one["name"]: values[one["t"]] for one in described["outputs"]}


def _check_edits(described: Mapping[str, Any], edit: Mapping[str, Edit]) -> None:
    sites = [node["pattern"] for node in described["nodes"] if "pattern" in node]
    for site, function in edit.items():
        if site not in sites:
            raise LookupError(f"no site {site!r} to edit; this program has {', '.join(sites) or 'none'}")
        if not callable(function):
            raise TypeError(f"edit[{site!r}] is {what(function)}; give a function")
        takes_site(function)


def _inputs(described: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[list[Tensor], dict[str, int]]:
    """What is given, in the program's dtypes, and the lengths that its shapes say."""
    if len(inputs) != len(described["inputs"]):
        names = ", ".join(one["name"] for one in described["inputs"])
        raise ValueError(f"{described['name']} takes {names}; {len(inputs)} were given")
    lengths: dict[str, int] = {}
    values = [_input(declared, given, lengths) for declared, given in zip(described["inputs"], inputs)]
    for name, (least, most) in described["lengths"].items():
        if lengths[name] < least or (most is not None and lengths[name] > most):
            raise ValueError(f"{name!r} is {lengths[name]}; this program takes {least} to {most or 'any number'}")
    return values, lengths


def _input(declared: Mapping[str, Any], given: Any, lengths: dict[str, int]) -> Tensor:
    name, dtype = declared["name"], DTYPES[declared["dtype"]]
    tensor = coerce(given, Tensor)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {what(given)}; give a tensor")
    if tensor.is_nested:
        raise ValueError(f"{name} is a nested tensor; give a padded one, tensor.to_padded_tensor(0)")
    readable(**{name: tensor})
    bound(tuple(declared["shape"]), tuple(tensor.shape), lengths, name)
    if tensor.is_complex() or (tensor.is_floating_point() and dtype != torch.float32):
        raise ValueError(f"{name} is {tensor.dtype}; this program takes {declared['dtype']}")
    return tensor.detach().to("cpu", dtype)


def _steps(
    described: Mapping[str, Any],
    values: list[Tensor],
    lengths: Mapping[str, int],
    edit: Mapping[str, Edit],
    device: str,
) -> None:
    """Add the results of all steps to the values."""
    for place, node in enumerate(described["nodes"]):
        made = _step(node, values, lengths, edit.get(node.get("pattern", "")), device, f"program.nodes[{place}]")
        results = list(made) if isinstance(made, tuple | list) else [made]
        wanted = [[number(side, lengths) for side in shape] for shape in node["out"]]
        if [list(one.shape) for one in results] != wanted:
            shapes = ", ".join(str(list(one.shape)) for one in results)
            raise ValueError(
                f"program.nodes[{place}]: {node['op']} makes {shapes}; out says {', '.join(map(str, wanted))}"
            )
        if any(one.dtype != DTYPES[kind] for one, kind in zip(results, node["dtype"])):
            kinds = ", ".join(str(one.dtype) for one in results)
            raise ValueError(
                f"program.nodes[{place}]: {node['op']} makes {kinds}; dtype says {', '.join(node['dtype'])}"
            )
        values += results


def _step(
    node: Mapping[str, Any],
    values: list[Tensor],
    lengths: Mapping[str, int],
    edit: Edit | None,
    device: str,
    key: str,
) -> Any:
    given = [
        _value(one, values, lengths, "ScalarType" in parameter.kind)
        for one, parameter in zip(node["args"], operator(node["op"]).parameters)
    ]
    if edit and node["op"] == "scaled_dot_product_attention":
        return _attend(lambda weights: _edited(node["pattern"], weights, edit, values), *given)
    try:
        made = call(node["op"], given, device)
    except Exception as error:  # whatever torch raises: the step cannot be done
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{key}: {node['op']} cannot be computed: {lines[0]}") from error
    return _edited(node["pattern"], made, edit, values) if edit else made


def _edited(site: str, weights: Tensor, edit: Edit, values: Sequence[Tensor]) -> Tensor:
    """As in `look.capture`; what has batch and heads in one axis, as torch's MultiheadAttention, is parted first."""
    texts = values[0].shape[0] if values[0].dim() else 0
    if weights.dim() != 3 or not texts or weights.shape[0] % texts:
        return apply_edit(site, weights, edit)
    return apply_edit(site, weights.unflatten(0, (texts, -1)), edit).flatten(0, 1)


def _value(argument: Any, values: list[Tensor], lengths: Mapping[str, int], is_dtype: bool) -> Any:
    if isinstance(argument, list):
        return [_value(one, values, lengths, False) for one in argument]
    if isinstance(argument, dict):
        if "t" in argument:
            return values[argument["t"]]
        return number(argument["s"], lengths) if "s" in argument else float(argument["f"])
    return DTYPES[argument] if is_dtype and argument is not None else argument


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
