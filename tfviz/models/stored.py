"""A folder as transformers writes it: its settings and its tensors, looked at before anything is built or read."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from tfviz import files, schema
from tfviz.models.families import Family

BUFFERS = (".attn.bias", ".attn.masked_bias", "embeddings.position_ids")  # masks and counters: nothing learned
FLOATS = ("F64", "F32", "F16", "BF16")
SHARD = re.compile(r"\w[\w.-]{0,200}\.safetensors")  # a file beside the index: no folder, no way up


class Stored(NamedTuple):
    """One tensor of a file, of which only the shape has been read."""

    shape: list[int]
    file: Any  # an open safetensors file
    path: Path
    name: str  # in the file

    def read(self) -> Tensor:
        """The tensor itself.

        Raises:
            ValueError: it holds whole numbers, or numbers that are not finite.
        """
        kind = self.file.get_slice(self.name).get_dtype()
        if kind not in FLOATS:
            raise ValueError(f"{self.name} in {self.path} is of {kind}; weights are of {', '.join(FLOATS)}")
        tensor = self.file.get_tensor(self.name)
        if not tensor.isfinite().all():
            raise ValueError(f"{self.name} in {self.path} holds NaN or infinity; get the file again")
        return tensor


def tensors(folder: Path, family: Family) -> dict[str, Stored]:
    """Each tensor by its name, without prefix and in today's spelling; of several names of one only the first."""
    stored: dict[str, Stored] = {}
    for path in _files(folder, family):
        try:
            file = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is damaged, or only a pointer to a large file: {error}; get it again") from error
        for name in file.keys():  # noqa: SIM118 (not a dictionary)
            plain = name.removeprefix(family.prefix)
            plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if plain in stored:
                raise ValueError(f"{name} in {path} stands in {stored[plain].path}, too; get the files again")
            if not plain.endswith(BUFFERS):
                stored[plain] = Stored(file.get_slice(name).get_shape(), file, path, name)
    for alias, name in family.aliases.items():
        other = stored.pop(alias, None)
        if other and not torch.equal(stored.setdefault(name, other).read().float(), other.read().float()):
            raise ValueError(f"{alias} and {name} differ in {folder}; here they are one tensor (tied embeddings)")
    return stored


def config(folder: Path, family: Family) -> dict[str, Any]:
    """The settings in `config.json`: those that the model here cannot have are refused, sizes are whole numbers."""
    file = _there(folder / "config.json", family)
    settings = _json(file)
    for name, value in {"model_type": family.kind, **family.settings}.items():
        if settings.get(name, value) != value:
            only = f"of {family.kind} checkpoints only those with {value!r} can be read"
            raise ValueError(f"{name} is {settings[name]!r} in {file}; {only}")
    for name in family.sizes:
        if type(settings.get(name)) is not int or settings[name] < 1:
            raise ValueError(f"{name} is {settings.get(name)!r} in {file}; it must be a whole number, at least 1")
    for name, (usual, below) in family.numbers.items():
        value = settings.setdefault(name, usual)
        if type(value) not in (int, float) or not 0 <= value < below:
            raise ValueError(f"{name} is {value!r} in {file}; it must be a number, at least 0 and below {below}")
    return settings


def fits(settings: dict[str, Any], stored: dict[str, Stored], folder: Path, family: Family) -> None:
    """No size is larger than the files can bear out: each is a side of a tensor, or how often some of them come.

    Looked at before a model is built, since one of 1,000,000,000 layers would take all of the memory.
    """
    largest = max([len(stored), *(side for one in stored.values() for side in one.shape)])
    for name in family.sizes:
        if settings[name] > largest:
            raise ValueError(
                f"{name} is {settings[name]} in {folder / 'config.json'}, and its weights have {len(stored)} tensors "
                f"with no side over {largest}; the two are not of one model"
            )


def _files(folder: Path, family: Family) -> list[Path]:
    """The one file, or the shards that the index names."""
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if whole.is_file() or not index.is_file():
        return [_there(whole, family)]
    names = set(map(str, _json(index, "weight_map").values()))
    if odd := [name for name in names if not SHARD.fullmatch(name)]:
        raise ValueError(f"{index} names {odd[0]!r}; shards are files beside it, called NAME.safetensors: get it again")
    return [_there(folder / name, family) for name in sorted(names)]


def _there(file: Path, family: Family) -> Path:
    folder = file.parent
    if not os.path.isfile(file):  # neither a folder nor a pipe, which would be waited for without end
        if folder.is_file():
            raise NotADirectoryError(f"{folder} is a file; give the folder that it lies in")
        there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        raise FileNotFoundError(
            f"there is no {file.name} in {folder}, which holds {', '.join(there) or 'nothing'}; get one with: "
            f"hf download {family.example} config.json model.safetensors tokenizer.json --local-dir {folder}"
        )
    home = folder.resolve()
    # Hugging Face's cache has links: models--NAME/snapshots/REVISION/FILE leads to models--NAME/blobs/SUM
    homes = [home, *([home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [])]
    if not any(file.resolve().is_relative_to(inside) for inside in homes):
        raise ValueError(f"{file} is a link out of its folder, to {file.resolve()}; put the file itself there")
    return file


def _json(file: Path, *keys: str) -> dict[str, Any]:
    try:
        content = files.read_json(file)
        for key in keys:
            content = content[key]
        schema.dict_of(schema.json_value)(content, keys[-1] if keys else "config")
        return content
    except KeyError as error:
        raise ValueError(f"{file} is not what transformers writes: it has no {error}; get it again") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is not what transformers writes: {error}; get it again") from error
