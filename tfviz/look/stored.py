"""Maps in one safetensors file, which opens without a model, a GPU or a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tfviz.files import atomic

FORMAT = "tfviz.AttentionMaps/1"
WORDS = ("rows", "cols", "sites", "provenance")


def write(path: str | Path, layers: Sequence[Tensor], mask: Tensor | None, words: Mapping[str, Any]) -> Path:
    """One file, whole or not at all; `words` are those of `WORDS`, anything JSON can hold."""
    tensors = {f"layer.{i}": layer.contiguous() for i, layer in enumerate(layers)}
    if mask is not None:
        tensors["mask"] = _narrow(mask).contiguous()
    metadata = {"format": FORMAT, **{name: json.dumps(words[name]) for name in WORDS}}
    with atomic(path) as draft:
        save_file(tensors, draft, metadata)
    return Path(path)


def read(path: str | Path) -> dict[str, Any]:
    """What was written, as the arguments of `AttentionMaps`; never unpickles.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is damaged, or something else.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no capture file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"{path} is a safetensors file, but no capture; AttentionMaps.save writes those")
            names = file.keys()
            layers = [file.get_tensor(f"layer.{i}") for i in range(sum(n.startswith("layer.") for n in names))]
            mask = file.get_tensor("mask") if "mask" in names else None
        words = {name: json.loads(metadata[name]) for name in WORDS}
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no capture file, or is damaged: {error}") from error
    return {"weights": layers, "mask": mask, **words}


def _narrow(mask: Tensor) -> Tensor:
    """Without the axes that an expansion made."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
