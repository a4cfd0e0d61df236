"""Atomic writing of files and folders, and safe reading of safetensors and JSON."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line does not import torch, which is slow
    from torch import Tensor

DRAFT_SUFFIX = ".tfviz-draft"  # a file is written in a hidden folder .NAME.RANDOM.tfviz-draft first
MAX_DRAFT_NAME_LENGTH = 40  # of NAME, since a path on Windows is limited to 260 characters
OTHER_FORMATS = (  # suffixes that are refused for safetensors files
    *(".csv", ".tsv", ".txt", ".md", ".json", ".html", ".png", ".svg", ".xlsx", ".parquet"),
    *(".pt", ".pth", ".npy", ".npz", ".pkl", ".pickle"),
)
WINDOWS = sys.platform == "win32"  # there, a file that is open or mapped can be neither replaced nor deleted
REPLACE_PAUSES = (0.01, 0.05, 0.2, 0.5, 1)  # seconds to wait while a virus scanner has the file open


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path; the file or folder written there replaces `path` if the block ends without an error.

    After an error, the temporary file is deleted and `path` is unchanged. Symbolic links are followed.

    Raises:
        OSError: the path cannot be written, or is a folder instead of a file or the reverse.
        ValueError: the path is not the name of a file.

    >>> note = Path(tempfile.gettempdir()) / "tfviz-note.txt"
    >>> with atomic(note) as draft:
    ...     _ = draft.write_text("all of it", encoding="utf-8")
    >>> note.read_text(encoding="utf-8")
    'all of it'
    """
    path = _resolve(path)
    with _name_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name[:MAX_DRAFT_NAME_LENGTH]}."
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=DRAFT_SUFFIX, dir=path.parent))
        draft = folder / path.name
        try:
            yield draft
            if path.exists() and path.is_dir() != draft.is_dir():
                kind, other = ("folder", "file") if path.is_dir() else ("file", "folder")
                raise FileExistsError(errno.EEXIST, f"it is a {kind}; give the name of a {other}")
            if path.is_dir():  # os.replace cannot replace a folder that is not empty
                replace(path, folder / "old")
            replace(draft, path)
        finally:
            if (folder / "old").exists() and not path.exists():
                replace(folder / "old", path)
            shutil.rmtree(folder, ignore_errors=True)


def check_safetensors_name(path: str | os.PathLike, what: str, otherwise: str = "") -> None:
    """Raise ValueError if the path of a safetensors file has the suffix of another format.

    Args:
        path: the path of the file.
        what: the subject of the message, such as "maps are".
        otherwise: the end of the message, which may explain how to write the other format.
    """
    if Path(path).suffix.lower() in OTHER_FORMATS:
        raise ValueError(
            f"{os.fspath(path)}: {what} written as safetensors; give a name that ends in .safetensors{otherwise}"
        )


def replace(source: Path, target: Path) -> None:
    """Rename a file or folder as `os.replace` does; on Windows, retry while another program has it open.

    Raises:
        OSError: the file or folder cannot be renamed.
    """
    for pause in REPLACE_PAUSES if WINDOWS else ():
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def expand_user(path: str | os.PathLike) -> Path:
    """Return the path with `~` replaced by the user's home folder; unchanged if there is no such user.

    Raises:
        TypeError: the path is neither a string nor a path.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {path!r}; give a string or a path")
    return Path(os.path.expanduser(path))


def save_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and metadata to a safetensors file; equal content gives equal bytes.

    Raises:
        OSError: the file cannot be written, for example on a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(_without_shared_memory(tensors), path, dict(metadata) if metadata else None)
    except SafetensorError as error:  # has no errno and no file name, such as for a full disk
        raise OSError(f"{path}: {error}") from error
    _sort_header(path)


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a safetensors file.

    Raises:
        FileNotFoundError: the path is not a regular file.
        ValueError: the file is damaged, or not a safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    _check_is_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            # The tensors map the file into memory, so on Windows it could be neither replaced nor deleted.
            return {name: each.clone() if WINDOWS else each for name, each in tensors.items()}, file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged, or not a safetensors file: {error}") from error


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        FileNotFoundError: the path is not a regular file.
        ValueError: the file is not JSON in UTF-8, or is nested too deeply.
    """
    _check_is_file(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path} is nested too deep to be read; it is damaged, or not JSON") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or not JSON: {error}") from error


def _check_is_file(path: str | Path) -> None:
    if not Path(path).is_file():  # reading a pipe would block
        raise FileNotFoundError(f"there is no file {path}")


def _resolve(path: str | os.PathLike) -> Path:
    """Return the path to write to, with `~` and symbolic links resolved.

    Raises:
        OSError: the path is neither a file nor a folder.
        ValueError: the path is not the name of a file.
    """
    target = Path(path)
    if target.name in ("", "..") or "\0" in str(target):
        raise ValueError(f"path is {os.fspath(path)!r}; give the name of a file")
    target = expand_user(target)
    with _name_in_errors(target):
        target = target.resolve() if target.is_symlink() else target
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise OSError(errno.EINVAL, "it is not a file (a device, a pipe or a socket)")
    return target


@contextmanager
def _name_in_errors(path: Path) -> Iterator[None]:
    """Re-raise OS errors with the target path instead of that of a temporary file."""
    try:
        yield
    except OSError as error:
        elsewhere = (
            error.filename is not None and DRAFT_SUFFIX not in str(error.filename) and str(error.filename) != str(path)
        )
        reason = f"{error.strerror or error}{f' ({error.filename})' if elsewhere else ''}"
        raise OSError(error.errno, f"{path} cannot be written: {reason}") from error
    except RuntimeError as error:
        if "ymlink loop" not in str(error):  # Python below 3.13 raises it for a link to itself
            raise
        raise OSError(errno.ELOOP, f"{path} cannot be written: it is a link to itself") from error


def _without_shared_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors without shared memory, which safetensors does not allow."""
    separate: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        contiguous = tensor.contiguous()
        storage = contiguous.untyped_storage().data_ptr()
        separate[name] = contiguous.clone() if storage in storages else contiguous
        storages.add(storage)
    return separate


def _sort_header(path: str | Path) -> None:
    """Sort the keys in the header of a safetensors file, which safetensors writes in random order."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.dumps(json.loads(file.read(size)), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        if len(header.encode()) <= size:
            file.seek(8)
            file.write(header.encode().ljust(size))
