"""Maps in one safetensors file, which opens without a model, a GPU or a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import schema
from tfviz.files import atomic, expand_user, load_tensors, save_tensors
from tfviz.look.call import Call
from tfviz.look.ingredients import Ingredients
from tfviz.look.spans import Spans

FORMAT = "tfviz.AttentionMaps/2"
MADE = "tfviz.AttentionMaps/3"  # where some weights are kept as what they are made of
WORDS = ("rows", "cols", "sites", "provenance")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
WEIGHTS = (*FLOATS, torch.uint8)
WHOLE = (torch.int32, torch.int64)
_LAYER = schema.object_of({"scale": schema.number, "rule": schema.optional(schema.integer(0))})
_NAMES = schema.list_of(schema.string(10**7))
HELD = schema.object_of(
    {"rows": _NAMES, "cols": _NAMES, "sites": _NAMES, "provenance": schema.dict_of(schema.json_value)},
    {"made": schema.list_of(schema.optional(_LAYER), 1)},
)


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
    schema.json_value(words["provenance"], "provenance")
    try:
        metadata = {"format": MADE if any(made) else FORMAT, **{name: json.dumps(words[name]) for name in WORDS}}
        if any(made):
            metadata["made"] = json.dumps(made)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"provenance can hold text, numbers and lists of them, as JSON does: {error}") from error
    with atomic(path) as draft:
        save_tensors(draft, tensors, metadata)
    return expand_user(path)


def read(path: str | Path) -> dict[str, Any]:
    """What was written, as the arguments of `AttentionMaps`; never unpickles.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is damaged, or is something else; names what in it is wrong.
    """
    path = expand_user(path)
    tensors, metadata = load_tensors(path)
    if metadata.get("format") not in (FORMAT, MADE):
        raise ValueError(f"{path} is a file of tfviz, but holds no attention maps; AttentionMaps.save writes those")
    with schema.errors_name(path):
        said = {name: schema.parse(text, name) for name, text in metadata.items() if name != "format"}
        HELD(said, "metadata")
        made = said.pop("made", None) or [None] * sum(name.startswith("layer.") for name in tensors)
        given = {"weights": _layers(tensors, made), "mask": tensors.pop("mask", None), **said}
        if tensors:
            raise ValueError(f"there is a tensor {min(tensors)!r}, which no layer has")
        _fit(given)
    return given


def _layers(tensors: dict[str, Tensor], made: Sequence[Mapping[str, Any] | None]) -> list[Tensor | Ingredients]:
    """The weights of each layer, or what they are made of; takes these tensors out."""
    layers: list[Tensor | Ingredients] = []
    rules: set[str] = set()
    for place, one in enumerate(made):
        name = f"layer.{place}"
        if one is None:
            layers.append(_tensor(tensors, name, 3, WEIGHTS))
            tensors.pop(name)
        else:
            query, key = (_tensor(tensors, f"{name}.{part}", 3, FLOATS) for part in ("query", "key"))
            if not len(key) or len(query) % len(key) or query.shape[2] != key.shape[2] or query.dtype != key.dtype:
                said = f"{list(query.shape)} and {list(key.shape)}, {query.dtype} and {key.dtype}"
                raise ValueError(f"{name}.query and {name}.key are {said}; they do not fit each other")
            shape = (len(query), query.shape[1], key.shape[1])
            mask = None if one["rule"] is None else _rule(tensors, f"rule.{one['rule']}", shape, rules)
            layers.append(Ingredients(Call(query[None], key[None], key[None, ..., :0], mask, float(one["scale"]))))
            del tensors[f"{name}.query"], tensors[f"{name}.key"]
    for name in rules:
        del tensors[name]
    return layers


def _rule(tensors: Mapping[str, Tensor], name: str, shape: tuple[int, int, int], used: set[str]) -> Tensor | Spans:
    """Where queries may look: a mask, or spans of keys, for a layer of this shape, head query key."""
    if name in tensors:
        used.add(name)
        return _broad(_tensor(tensors, name, 4, (*FLOATS, torch.bool)), name, (1, *shape))
    parts = [f"{name}.{part}" for part in ("first", "stop", "keys")]
    first, stop = (_tensor(tensors, part, 3, WHOLE) for part in parts[:2])
    keys = int(_tensor(tensors, parts[2], 0, WHOLE))
    for part, one in zip(parts, (first, stop)):
        if (
            one.shape[0] != 1
            or one.shape[1] not in (1, shape[0])
            or one.shape[2] not in (1, shape[1])
            or one.shape != first.shape
        ):
            raise ValueError(f"{part} is {list(one.shape)}; it does not fit {[1, *shape[:2]]}")
        if one.numel() and not 0 <= int(one.min()) <= int(one.max()) <= keys:
            raise ValueError(f"{part} goes from {int(one.min())} to {int(one.max())}; it must be from 0 to {keys}")
    if keys != shape[2]:
        raise ValueError(f"{parts[2]} is {keys}; the layer has {shape[2]} keys")
    used.update(parts)
    return Spans(first.expand(-1, -1, shape[1]), stop.expand(-1, -1, shape[1]), keys)


def _fit(given: Mapping[str, Any]) -> None:
    """All layers have one shape, and mask and words fit it."""
    shapes = [tuple(layer.shape) for layer in given["weights"]]
    if not shapes or len(set(shapes)) > 1:
        raise ValueError(f"its layers have the shapes {sorted(set(shapes))}; there must be one, head query key")
    counts = {"sites": len(shapes), "rows": shapes[0][1], "cols": shapes[0][2]}
    for name, count in counts.items():
        if len(given[name]) != count:
            raise ValueError(f"{name} has {len(given[name])} members; the maps have {count}")
    if (mask := given["mask"]) is not None:
        if mask.dtype != torch.bool or mask.dim() > 4:
            raise ValueError(f"mask is {mask.dtype} of {mask.dim()} axes; it must be torch.bool of at most 4")
        _broad(mask, "mask", (len(shapes), *shapes[0]))


def _tensor(tensors: Mapping[str, Tensor], name: str, axes: int, dtypes: tuple[torch.dtype, ...]) -> Tensor:
    tensor = tensors.get(name)
    if tensor is None:
        raise ValueError(f"there is no tensor {name!r}")
    if tensor.dim() != axes or tensor.dtype not in dtypes:
        kinds = ", ".join(str(one).removeprefix("torch.") for one in dtypes)
        raise ValueError(f"{name} is {tensor.dtype} of {tensor.dim()} axes; it must have {axes}, of {kinds}")
    return tensor


def _broad(tensor: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """The tensor, each of whose axes is 1 or that of the shape."""
    if any(side not in (1, whole) for side, whole in zip(reversed(tensor.shape), reversed(shape))):
        raise ValueError(f"{name} is {list(tensor.shape)}; it does not fit {list(shape)}")
    return tensor


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
