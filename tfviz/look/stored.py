"""Maps in one safetensors file, which opens without a model, a GPU or a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from tfviz import sealed
from tfviz.files import atomic

FORMAT = "tfviz.AttentionMaps/2"
WORDS = ("rows", "cols", "sites", "provenance")


def write(path: str | Path, layers: Sequence[Tensor], mask: Tensor | None, words: Mapping[str, Any]) -> Path:
    """One file, whole or not at all; `words` are those of `WORDS`, anything JSON can hold.

    Raises:
        ValueError: the provenance is nothing that JSON can hold.
    """
    tensors = {f"layer.{i}": layer for i, layer in enumerate(layers)}
    if mask is not None:
        tensors["mask"] = _narrow(mask)
    try:
        metadata = {"format": FORMAT, **{name: json.dumps(words[name]) for name in WORDS}}
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
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is a file of tfviz, but holds no attention maps; AttentionMaps.save writes those")
    mask = tensors.pop("mask", None)
    layers = [tensors[f"layer.{i}"] for i in range(len(tensors))]
    return {"weights": layers, "mask": mask, **{name: json.loads(metadata[name]) for name in WORDS}}


def _narrow(mask: Tensor) -> Tensor:
    """Without the axes that an expansion made."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
