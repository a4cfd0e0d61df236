"""Readers of untrusted checkpoint folders of transformers, which open no file outside the folder and check sizes."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import files, schema
from tfviz.models.checkpoint_names import Family

# masks and position counters, which are not learned
BUFFER_SUFFIXES = (".attn.bias", ".attn.masked_bias", "embeddings.position_ids")


def read_config(folder: Path, family: Family) -> dict[str, Any]:
    """Return the settings in `config.json`, after checking them.

    Raises:
        FileNotFoundError: the folder has no `config.json`.
        ValueError: a setting has a value that our models do not support, or a size or fraction is invalid.
    """
    file = _existing(folder / "config.json", family)
    settings = _read_json(file)
    for name, value in {"model_type": family.model_type, **family.required}.items():
        if settings.get(name, value) != value:
            raise ValueError(f"{name} is {settings[name]!r} in {file}; only checkpoints with {value!r} can be read")
    for name in family.sizes:
        if type(settings.get(name)) is not int or settings[name] < 1:
            raise ValueError(f"{name} is {settings.get(name)!r} in {file}; it must be an integer, at least 1")
    for name, default in family.fractions.items():
        value = settings.setdefault(name, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise ValueError(f"{name} is {value!r} in {file}; it must be a number, at least 0 and below 1")
    return settings


def read_tensors(folder: Path, family: Family) -> dict[str, Tensor]:
    """Return the weights in float32, by their names without the prefix; a tied tensor is included once.

    Raises:
        FileNotFoundError: the folder has no `model.safetensors`.
        ValueError: a file is damaged; a tensor is stored twice, differs from the one it is tied to, or is not finite.
    """
    path, tensors = _existing(folder / "model.safetensors", family), dict[str, Tensor]()
    for stored_name, tensor in files.load_tensors(path)[0].items():
        name = stored_name.removeprefix(family.prefix)
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if name in tensors:
            raise ValueError(f"{stored_name} in {path} comes twice; get the file again")
        if name.endswith(BUFFER_SUFFIXES):
            continue
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise ValueError(f"{stored_name} in {path} is {tensor.dtype}, or holds NaN or infinity; get it again")
        tensors[name] = tensor.float()
    for alias, name in family.aliases.items():
        other = tensors.pop(alias, None)
        if other is not None and not torch.equal(tensors.setdefault(name, other), other):
            raise ValueError(f"{alias} and {name} differ in {folder}; they must be one tensor (tied embeddings)")
    return tensors


def check_sizes(settings: dict[str, Any], tensors: dict[str, Tensor], folder: Path, family: Family) -> None:
    """Raise ValueError for a size that exceeds both the longest axis of the tensors and their number.

    Sizes are checked before a model is built, since a model of 1,000,000,000 layers would exhaust the memory.
    """
    largest = max([len(tensors), *(side for tensor in tensors.values() for side in tensor.shape)])
    for name in family.sizes:
        if settings[name] > largest:
            raise ValueError(
                f"{name} is {settings[name]} in {folder / 'config.json'}, and its weights have {len(tensors)} tensors "
                f"with no side over {largest}; the two do not belong to one model"
            )


def _existing(file: Path, family: Family) -> Path:
    """Return the file, after checking that it exists and is inside its folder.

    Raises:
        FileNotFoundError: the path is not a regular file; the message says how to get it.
        ValueError: the file is a link out of its folder.
    """
    folder = file.parent
    if not os.path.isfile(file):
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        raise FileNotFoundError(
            f"there is no {file.name} in {folder}, which holds {', '.join(names) or 'nothing'}; get one with: "
            f"hf download {family.example} config.json model.safetensors tokenizer.json --local-dir {folder}"
        )
    home = folder.resolve()
    # Hugging Face's cache has links: models--NAME/snapshots/REVISION/FILE leads to models--NAME/blobs/SUM
    homes = [home, *([home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [])]
    if not any(file.resolve().is_relative_to(inside) for inside in homes):
        raise ValueError(f"{file} is a link out of its folder, to {file.resolve()}; put the file itself there")
    return file


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = files.read_json(file)
        schema.dict_of(schema.json_value)(content, "config")
        return content
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is not what transformers writes: {error}; get it again") from error
