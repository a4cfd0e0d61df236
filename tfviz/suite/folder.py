"""A checkpoint's folder, looked at before any library opens it: plain files of its own, and a config that is data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfviz import files, schema
from tfviz.models.checkpoint_files import SHARD

MOST = 2000  # layers; one of 1,000,000,000 would take all of the memory to build
LAYERS = re.compile(r"(^|_)(layers?|blocks?|depths?)$")
CHOOSES = ("attn_implementation", "experts_implementation")
WRITES = "its folder must hold config.json, weights and tokenizer, as save_pretrained writes them"


def checked(path: Path) -> Path:
    """The folder.

    Raises:
        FileNotFoundError: it is none, or has no config.json.
        ValueError: a file in it is a link out of it, a pipe or the like; its index of shards names other files; it
            holds an adapter.
    """
    if not path.is_dir() or not (path / "config.json").is_file():
        raise FileNotFoundError(
            f"{path} is no checkpoint: give a folder with config.json and its weights, as save_pretrained writes it"
        )
    home = path.resolve()
    # Hugging Face's cache has links: models--NAME/snapshots/REVISION/FILE leads to models--NAME/blobs/SUM
    homes = [home, *([home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [])]
    for file in sorted(path.iterdir()):
        if not any(Path(os.path.realpath(file)).is_relative_to(inside) for inside in homes):
            raise ValueError(
                f"{file} is a link out of its folder, to {os.path.realpath(file)}; put the file itself there"
            )
        if not (file.is_file() or file.is_dir()):
            raise ValueError(f"{file} is neither a file nor a folder; {WRITES}")
    if (path / "adapter_config.json").exists():
        raise ValueError(
            f"{path} holds an adapter, which changes another model: merge it into that, and save the whole"
        )
    for index in path.glob("*.index.json"):
        _index(index)
    return path


def _index(file: Path) -> None:
    found = files.read_json(file)
    with schema.errors_name(file):
        shards = found.get("weight_map") if isinstance(found, dict) else None
        schema.dict_of(schema.string(1000))(shards, "weight_map")
    for name in set(shards.values()):  # type: ignore[union-attr]
        if not SHARD.fullmatch(name.removesuffix(".bin") + ".safetensors" * name.endswith(".bin")):
            raise ValueError(
                f"{file} names {name!r}; shards are files beside it, called NAME.safetensors: get it again"
            )


def data(config: Any, name: str) -> None:
    """A config chooses sizes and settings, and no code.

    Raises:
        ValueError: it is no dictionary; names kernels of the Hub, quantised weights, or an architecture that is none;
            asks for more layers than any model has.
    """
    where = f"config.json of {name}"
    if not isinstance(config, dict):
        raise ValueError(f"{where} holds {schema.brief(config)}; it must be a dictionary")
    schema.json_value(config, where)
    schema.optional(schema.list_of(schema.string(200), maximum=9))(
        config.get("architectures"), f"{where}: architectures"
    )
    for key, value in _settings(config):
        if key.strip("_").removesuffix("_internal") in CHOOSES and _of_hub(value):
            raise ValueError(f"{where}: {key} is {schema.brief(value)}, code from elsewhere, which is not run here")
        if key == "quantization_config" and value is not None:
            raise ValueError(f"{where}: its weights are quantised, which needs code from elsewhere; give plain weights")
        if LAYERS.search(key) and type(value) is int and value > MOST:
            raise ValueError(f"{where}: {key} is {value}; no model here has more than {MOST:,}")


def _of_hub(value: Any) -> bool:
    texts = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(one, str) and re.search(r"[/@:]", one) for one in texts)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All keys, also those of configs inside."""
    for key, value in config.items():
        yield key, value
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping):
                yield from _settings(inner)
