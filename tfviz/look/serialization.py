"""Reading and writing of `AttentionMaps` as one safetensors file, which opens without a model, a GPU or a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import schema
from tfviz.files import atomic, expand_user, load_tensors, save_tensors
from tfviz.look.attention_call import AttentionCall
from tfviz.look.key_ranges import KeyRanges
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_arguments import memory_view, unexpanded

FORMAT = "tfviz.AttentionMaps/2"
LAZY_FORMAT = "tfviz.AttentionMaps/3"  # for maps with lazy layers
LABEL_KEYS = ("query_tokens", "key_tokens", "sites", "provenance")
FLOAT_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGER_DTYPES = (torch.int32, torch.int64)
_LAYER_SCHEMA = schema.object_of({"scale": schema.number, "rule": schema.optional(schema.integer(0))})
_NAMES_SCHEMA = schema.list_of(schema.string(10**7))
METADATA_SCHEMA = schema.object_of(
    {
        "query_tokens": _NAMES_SCHEMA,
        "key_tokens": _NAMES_SCHEMA,
        "sites": _NAMES_SCHEMA,
        "provenance": schema.dict_of(schema.json_value),
    },
    {"made": schema.list_of(schema.optional(_LAYER_SCHEMA), 1)},
)


def write(
    path: str | Path, layers: Sequence[Tensor | LazyAttention], mask: Tensor | None, labels: Mapping[str, Any]
) -> Path:
    """Write layers, mask and labels to one file, atomically, and return its path.

    Args:
        path: the path of the file.
        layers: the weights of each layer, [head, query, key].
        mask: True where a query may attend, [layer, head, query, key]; None: no mask.
        labels: a value for each of `LABEL_KEYS`, which JSON can hold.

    Raises:
        ValueError: JSON cannot hold the provenance, or scores are changed by a `score_mod`, which cannot be stored.
    """
    tensors: dict[str, Tensor] = {}
    lazy: list[dict[str, Any] | None] = []
    masks: dict[object, int] = {}  # shared by layers
    for index, layer in enumerate(layers):
        if isinstance(layer, Tensor):
            tensors[f"layer.{index}"] = layer
            lazy.append(None)
        else:
            call, mask_number = layer.call, _mask_number(layer.call, masks)
            lazy.append({"scale": call.scale, "rule": mask_number})
            tensors |= {f"layer.{index}.query": call.query[0], f"layer.{index}.key": call.key[0]}
            tensors |= _mask_tensors(f"rule.{mask_number}", call.mask)
    if mask is not None:
        tensors["mask"] = unexpanded(mask)
    schema.json_value(labels["provenance"], "provenance")
    try:
        metadata = {"format": LAZY_FORMAT if any(lazy) else FORMAT}
        metadata |= {name: json.dumps(labels[name]) for name in LABEL_KEYS} | (
            {"made": json.dumps(lazy)} if any(lazy) else {}
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"provenance can hold text, numbers and lists of them, as JSON does: {error}") from error
    with atomic(path) as draft:
        save_tensors(draft, tensors, metadata)
    return expand_user(path)


def _mask_number(call: AttentionCall, masks: dict[object, int]) -> int | None:
    if call.score_mod is not None:
        raise ValueError(
            "these scores are changed by a function (FlexAttention), which cannot be saved; capture the weights, as in "
            "capture(model, dtype=torch.float16) does"
        )
    if call.mask is None:
        return None
    tensors = call.mask[:2] if isinstance(call.mask, KeyRanges) else [call.mask]
    return masks.setdefault(tuple(map(memory_view, tensors)), len(masks))


def _mask_tensors(name: str, mask: Tensor | KeyRanges | None) -> dict[str, Tensor]:
    if isinstance(mask, KeyRanges):
        return {f"{name}.first": mask.first, f"{name}.stop": mask.stop, f"{name}.keys": torch.tensor(mask.keys)}
    return {} if mask is None else {name: mask}


def read(path: str | Path) -> dict[str, Any]:
    """Read a file and return the arguments of `AttentionMaps`, without unpickling.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, was altered, or does not hold maps; the message names the wrong part.
    """
    path = expand_user(path)
    tensors, metadata = load_tensors(path)
    if metadata.get("format") not in (FORMAT, LAZY_FORMAT):
        raise ValueError(f"{path} is a file of tfviz, but holds no attention maps; AttentionMaps.save writes those")
    with schema.prefix_errors(path):
        labels = {name: schema.parse(text, name) for name, text in metadata.items() if name != "format"}
        METADATA_SCHEMA(labels, "metadata")
        lazy = labels.pop("made", None) or [None] * sum(name.startswith("layer.") for name in tensors)
        reader = _LayerReader(tensors)
        arguments = {
            "weights": [reader.layer(f"layer.{at}", description) for at, description in enumerate(lazy)],
            **labels,
        }
        arguments["mask"] = tensors.get("mask")
        if unknown := set(tensors) - reader.used - {"mask"}:
            raise ValueError(f"there is a tensor {min(unknown)!r}, which no layer has")
        _check_fit(arguments)
    return arguments


class _LayerReader:
    """A reader of layers from the tensors of a file, which records the names of the tensors that it used."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors
        self.used: set[str] = set()

    def tensor(self, name: str, axes: int, dtypes: tuple[torch.dtype, ...]) -> Tensor:
        """Return a tensor, and mark it as used.

        Raises:
            ValueError: it is missing, or has other axes or another dtype.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ValueError(f"there is no tensor {name!r}")
        if tensor.dim() != axes or tensor.dtype not in dtypes:
            kinds = ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
            raise ValueError(f"{name} is {tensor.dtype} of {tensor.dim()} axes; it must have {axes}, of {kinds}")
        self.used.add(name)
        return tensor

    def layer(self, name: str, lazy: Mapping[str, Any] | None) -> Tensor | LazyAttention:
        """Return the weights of a layer, [head, query, key]: stored ones, or lazy ones computed from query and key.

        Raises:
            ValueError: query and key do not fit each other.
        """
        if lazy is None:
            return self.tensor(name, 3, (*FLOAT_DTYPES, torch.uint8))
        query, key = (self.tensor(f"{name}.{part}", 3, FLOAT_DTYPES) for part in ("query", "key"))
        if not len(key) or len(query) % len(key) or query.shape[2] != key.shape[2] or query.dtype != key.dtype:
            sizes = f"{list(query.shape)} and {list(key.shape)}, {query.dtype} and {key.dtype}"
            raise ValueError(f"{name}.query and {name}.key are {sizes}; they do not fit each other")
        shape = (len(query), query.shape[1], key.shape[1])
        mask = None if lazy["rule"] is None else self.mask(f"rule.{lazy['rule']}", shape)
        return LazyAttention(AttentionCall(query[None], key[None], key[None, ..., :0], mask, float(lazy["scale"])))

    def mask(self, name: str, shape: tuple[int, int, int]) -> Tensor | KeyRanges:
        """Read the mask or the key ranges of a layer, [head, query, key].

        Raises:
            ValueError: the key ranges do not fit the layer.
        """
        if name in self.tensors:
            mask = self.tensor(name, 4, (*FLOAT_DTYPES, torch.bool))
            _check_broadcast(mask, name, (1, *shape))
            return mask
        first, stop = (self.tensor(f"{name}.{part}", 3, INTEGER_DTYPES) for part in ("first", "stop"))
        keys = int(self.tensor(f"{name}.keys", 0, INTEGER_DTYPES))
        if keys != shape[2]:
            raise ValueError(f"{name}.keys is {keys}; the layer has {shape[2]} keys")
        for part, tensor in (("first", first), ("stop", stop)):
            _check_broadcast(tensor, f"{name}.{part}", (1, *shape[:2]))
            if tensor.numel() and not 0 <= int(tensor.min()) <= int(tensor.max()) <= keys:
                ends = f"{int(tensor.min())} to {int(tensor.max())}"
                raise ValueError(f"{name}.{part} goes from {ends}; it must be from 0 to {keys}")
        first, stop = (part.expand(-1, -1, shape[1]) for part in torch.broadcast_tensors(first, stop))
        return KeyRanges(first, stop, keys)


def _check_fit(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError unless all layers have one shape that mask and labels fit."""
    shapes = {tuple(layer.shape) for layer in arguments["weights"]}
    if len(shapes) != 1:
        raise ValueError(f"its layers have the shapes {sorted(shapes)}; there must be one, head query key")
    shape = (len(arguments["weights"]), *shapes.pop())
    for name, count in {"sites": shape[0], "query_tokens": shape[2], "key_tokens": shape[3]}.items():
        if len(arguments[name]) != count:
            raise ValueError(f"{name} has {len(arguments[name])} members; the maps have {count}")
    if (mask := arguments["mask"]) is not None:
        if mask.dtype != torch.bool or mask.dim() > 4:
            raise ValueError(f"mask is {mask.dtype} of {mask.dim()} axes; it must be torch.bool of at most 4")
        _check_broadcast(mask, "mask", shape)


def _check_broadcast(tensor: Tensor, name: str, shape: tuple[int, ...]) -> None:
    if any(side not in (1, full) for side, full in zip(reversed(tensor.shape), reversed(shape))):
        raise ValueError(f"{name} is {list(tensor.shape)}; it does not fit {list(shape)}")
