"""Files that tell when they were altered: safetensors and JSON with a SHA-256 over all they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # torch loads where tensors are written or read; the command line does neither
    from torch import Tensor

SEAL = "sha256"


def save(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and texts into one safetensors file, sealed; not atomic by itself, see `files.atomic`.

    Raises:
        OSError: it cannot be written, such as on a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    kept = _apart(tensors)
    said = dict(metadata or {})
    try:
        save_file(kept, path, {**said, SEAL: _seal(kept, said)})
    except SafetensorError as error:  # the disk is full, say: it has no number and names no file
        raise OSError(f"{path}: {error}") from error
    _in_order(path)


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors, none of which shares memory with another, which safetensors refuses."""
    kept: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        one = tensor.contiguous()
        place = one.untyped_storage().data_ptr()
        kept[name] = one.clone() if place in places else one
        places.add(place)
    return kept


def _in_order(path: str | Path) -> None:
    """Sort the header, which safetensors writes in an order of chance: the same content gives the same bytes."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        text = json.dumps(header, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) <= size:
            file.seek(8)
            file.write(text.ljust(size))


def load(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and texts of a file that `save` wrote; never unpickles.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
        ValueError: the file is damaged, was altered, or is something else.
    """
    from safetensors import SafetensorError, safe_open

    _is_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            said = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from error
    seal = said.pop(SEAL, None)
    if seal is None:
        raise ValueError(f"{path} has no checksum: it is not a file that tfviz wrote, or it is damaged")
    if seal != _seal(tensors, said):
        raise ValueError(f"{path} was altered or is damaged: its checksum is another one; take a copy, or make it anew")
    return tensors, said


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write a dictionary as JSON, sealed; not atomic by itself.

    Raises:
        ValueError: it holds what JSON cannot, such as a number that is not finite.
    """
    try:
        text = json.dumps({**value, SEAL: _of_json(value)}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be written: its value holds what JSON cannot: {error}") from error
    Path(path).write_text(text, encoding="utf-8")


def read_json(path: str | Path) -> dict[str, Any]:
    """What `write_json` wrote.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
        ValueError: the file is damaged, was altered, or is something else.
    """
    value = plain_json(path)
    try:
        whole = isinstance(value, dict) and value.pop(SEAL, None) == _of_json(value)
    except (RecursionError, ValueError):  # what can be read need not be what can be written
        whole = False
    if not whole:
        raise ValueError(f"{path} was altered or is damaged: its checksum is another one; take a copy, or make it anew")
    return value


def plain_json(path: str | Path) -> Any:
    """What any JSON file holds, without a checksum: of others, such as a model's `config.json`.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
        ValueError: it is not JSON in UTF-8, or nested too deep to be read.
    """
    _is_file(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deep to be read; it is damaged, or no file of this kind") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or no JSON: {error}") from error


def _is_file(path: str | Path) -> None:
    if not Path(path).is_file():  # a pipe would be waited for without end
        raise FileNotFoundError(f"there is no file {path}")


def _seal(tensors: Mapping[str, Tensor], said: Mapping[str, str]) -> str:
    parts: list[Any] = [json.dumps(sorted(said.items())).encode()]
    for name, tensor in sorted(tensors.items()):
        parts += [json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode(), _bytes(tensor)]
    return _hash(parts)


def _of_json(value: Any) -> str:
    return _hash([json.dumps(value, sort_keys=True).encode()])


def _bytes(tensor: Tensor) -> memoryview:
    import torch

    return memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]


def _hash(parts: Iterable[Any]) -> str:
    """Of the lengths, too, so that what ends one part cannot begin the next."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
