"""Maps in one safetensors file, which opens without a model, a GPU or a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import sealed
from tfviz.files import atomic
from tfviz.look.call import Call
from tfviz.look.ingredients import Ingredients
from tfviz.look.spans import Spans

FORMAT = "tfviz.AttentionMaps/2"
MADE = "tfviz.AttentionMaps/3"  # where some weights are kept as what they are made of
WORDS = ("rows", "cols", "sites", "provenance")


def write(
    path: str | Path, layers: Sequence[Tensor | Ingredients], mask: Tensor | None, words: Mapping[str, Any]
) -> Path:
    """One file, whole or not at all; `words` are those of `WORDS`, anything JSON can hold.

    Raises:
        ValueError: the provenance is nothing that JSON can hold; scores are changed by a function, which no file can.
    """
    tensors = {f"layer.{i}": layer for i, layer in enumerate(layers) if isinstance(layer, Tensor)}
    made: list[dict[str, Any] | None] = [None] * len(layers)
    rules: dict[object, int] = {}
    for i, layer in enumerate(layers):
        if isinstance(layer, Ingredients):
            made[i] = told = _told(layer.call, rules)
            tensors |= _written(f"layer.{i}", layer.call, told)
    if mask is not None:
        tensors["mask"] = _narrow(mask)
    try:
        metadata = {"format": MADE if any(made) else FORMAT, **{name: json.dumps(words[name]) for name in WORDS}}
        if any(made):
            metadata["made"] = json.dumps(made)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"provenance can hold text, numbers and lists of them, as JSON does: {error}") from error
    path = Path(path).expanduser()
    with atomic(path) as draft:
        sealed.save(draft, tensors, metadata)
    return path


def read(path: str | Path) -> dict[str, Any]:
    """What was written, as the arguments of `AttentionMaps`; never unpickles.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is damaged, was altered, or is something else.
    """
    path = Path(path).expanduser()
    tensors, metadata = sealed.load(path)
    if metadata.get("format") not in (FORMAT, MADE):
        raise ValueError(f"{path} is a file of tfviz, but holds no attention maps; AttentionMaps.save writes those")
    mask = tensors.pop("mask", None)
    made = json.loads(metadata.get("made", "null")) or [None] * len(tensors)
    layers = [
        tensors[f"layer.{i}"] if one is None else _ingredients(tensors, f"layer.{i}", **one)
        for i, one in enumerate(made)
    ]
    return {"weights": layers, "mask": mask, **{name: json.loads(metadata[name]) for name in WORDS}}


def _narrow(mask: Tensor) -> Tensor:
    """Without the axes that an expansion made."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]


def _told(call: Call, rules: dict[object, int]) -> dict[str, Any]:
    """What stands beside the tensors of a layer; `rules` numbers the masks, which layers share.

    Raises:
        ValueError: its scores are changed by a function.
    """
    if call.change is not None:
        raise ValueError(
            "these scores are changed by a function (FlexAttention), which no file can hold: capture them whole, as "
            "capture(model, dtype=torch.float16) does"
        )
    if call.mask is None:
        return {"scale": call.scale, "rule": None}
    place = call.mask.first if isinstance(call.mask, Spans) else call.mask
    return {"scale": call.scale, "rule": rules.setdefault((place.data_ptr(), place.shape), len(rules))}


def _written(name: str, call: Call, told: Mapping[str, Any]) -> dict[str, Tensor]:
    tensors = {f"{name}.query": call.query[0], f"{name}.key": call.key[0]}
    rule = f"rule.{told['rule']}"
    if isinstance(call.mask, Spans):
        first, stop, keys = call.mask
        return tensors | {f"{rule}.first": first, f"{rule}.stop": stop, f"{rule}.keys": torch.tensor(keys)}
    return tensors if call.mask is None else tensors | {rule: call.mask}


def _ingredients(tensors: Mapping[str, Tensor], name: str, scale: float, rule: int | None) -> Ingredients:
    query, key = (tensors[f"{name}.{part}"][None] for part in ("query", "key"))
    mask: Tensor | Spans | None = tensors.get(f"rule.{rule}")
    if rule is not None and mask is None:
        first, stop, keys = (tensors[f"rule.{rule}.{part}"] for part in ("first", "stop", "keys"))
        mask = Spans(first, stop, int(keys))
    return Ingredients(Call(query, key, key[..., :0], mask, scale))
