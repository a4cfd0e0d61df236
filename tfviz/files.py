"""Writing that never leaves half a file, and one writer at a time."""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

ROOM = ".tfviz-draft"  # how a hidden folder is called in which something is being written: .NAME.RANDOM.tfviz-draft
OLD, OWNER = ".old", ".owner"  # in it, beside the draft: what the draft replaces; a file that its writer has locked
LOCK = ".tfviz-lock"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of a disk, which name no file


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a fresh path beside `path`; what is written there takes its place when the block ends well.

    It may become a file or a folder. After an error nothing is left, and what stood at `path` still stands; after a
    kill so it is as soon as something is written beside it, or `tidy` is called. A power cut is outlasted by what was
    sent `to_disk` before the block ended. A link is followed.

    Raises:
        OSError: it cannot be written there, or a folder stands where a file is meant.

    >>> with atomic("/tmp/tfviz-note.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> Path("/tmp/tfviz-note.txt").read_text()
    'whole'
    """
    path = _target(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(f"{path} is no file (a device, a pipe or a socket); give the name of one")
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        tidy(path.parent)
        room, owner = _room(path)
    draft = room / path.name
    try:
        with _named(path, draft):
            yield draft
        if path.exists() and path.is_dir() != draft.is_dir():
            kind, other = ("folder", "file") if path.is_dir() else ("file", "folder")
            raise FileExistsError(f"{path} is a {kind}; give the name of a {other}")
        with _told(path):
            if path.is_dir():
                os.replace(path, room / (path.name + OLD))  # killed here, `_recover` goes on
            os.replace(draft, path)
    finally:
        _recover(room, path)
        _clear(room, owner)


def home(path: str | os.PathLike) -> Path:
    """The path with the user's home in place of `~`; as it is where nobody has this home."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {path!r}; give a string or a path")
    return Path(os.path.expanduser(path))


def tidy(folder: str | os.PathLike) -> None:
    """Clear what killed writers left in a folder; what was whole takes its place. Those that live are left alone."""
    for room in Path(folder).glob(f".*{ROOM}"):
        name = re.fullmatch(rf"\.(.+)\.\w{{8}}{re.escape(ROOM)}", room.name)
        if name and room.is_dir():
            with suppress(OSError):  # it is in use, or not ours to remove
                owner = _owned(room, name[1], wait=False)
                _recover(room, room.with_name(name[1]))
                _clear(room, owner)


def to_disk(path: Path) -> None:
    """Wait until a file, or a folder and what it holds, would outlast a power cut: 2 ms a file, 200 on a busy disk."""
    for part in [*path.rglob("*"), path]:
        if os.name == "nt" and part.is_dir():
            continue
        handle = os.open(part, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such wish for a folder
                raise
        finally:
            os.close(handle)


def discard(folder: Path) -> None:
    """Remove a folder; a kill leaves either all of it or nothing."""
    with _told(folder):
        room, owner = _room(folder)
        try:
            os.replace(folder, room / folder.name)
        finally:
            _clear(room, owner)


@contextmanager
def alone(folder: str | os.PathLike) -> Iterator[None]:
    """While this lasts, no other holds this folder; the system ends it when its process ends, however that ends.

    Raises:
        OSError: another one holds it, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            lock = None  # type: ignore[assignment]
    if lock is None:
        raise BlockingIOError(f"{folder} is in use by another training: wait until it ends, or give another folder")
    try:
        yield
    finally:
        lock.release()


def _target(path: str | os.PathLike) -> Path:
    """Where to write; `~` is the home of the user."""
    target = Path(path)
    if target.name in ("", "..") or "\0" in str(target):
        raise ValueError(f"path is {os.fspath(path)!r}; give the name of a file")
    target = home(target)
    with _told(target):
        return target.resolve() if target.is_symlink() else target


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be written: {error.strerror or error}") from error
    except RecursionError as error:
        raise OSError(errno.ENAMETOOLONG, f"{path} cannot be written: it lies in too many folders") from error
    except RuntimeError as error:  # as Python below 3.13 says it
        raise OSError(errno.ELOOP, f"{path} cannot be written: it is a link to itself") from error


@contextmanager
def _named(path: Path, draft: Path) -> Iterator[None]:
    """What cannot be written into a draft cannot be written to the path, which is the name that the user knows."""
    try:
        yield
    except OSError as error:
        if str(draft) not in str(error) and error.errno not in NO_ROOM:
            raise
        said = error.strerror or str(error).replace(str(draft), path.name)
        raise OSError(error.errno, f"{path} cannot be written: {said}") from error


def _room(path: Path) -> tuple[Path, "BaseFileLock"]:
    room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=ROOM, dir=path.parent))
    return room, _owned(room, path.name, wait=True)


def _owned(room: Path, name: str, wait: bool) -> "BaseFileLock":
    from filelock import FileLock

    owner = FileLock(room / (name + OWNER))
    owner.acquire(blocking=wait)
    return owner


def _recover(room: Path, path: Path) -> None:
    """A folder that was being replaced when its writer was stopped: the new one, which was whole by then."""
    old, draft = room / (path.name + OLD), room / path.name
    if old.exists() and not path.exists():
        os.replace(draft if draft.exists() else old, path)


def _clear(room: Path, owner: "BaseFileLock") -> None:
    owner.release()
    shutil.rmtree(room, ignore_errors=True)
