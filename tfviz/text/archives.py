"""What stands in files and archives, read without unpacking to disk and never without end; what is damaged is told."""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNPACKED = 2**30  # bytes: the most that is read out of one archive; of the corpora none has half of it

Part = Path | zipfile.Path  # a file, or a member of a zip archive: both can be read


@contextmanager
def intact(path: Part) -> Iterator[None]:
    """What the readers of archives say of a damaged one becomes a ValueError with the file's name."""
    try:
        yield
    except (
        *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
        *(RuntimeError, OverflowError),  # a zip that asks for a password, or is packed in a way that Python lacks
    ) as error:
        raise ValueError(f"{path} is damaged: {error}; delete it and get it again") from error


def text(part: Part) -> str:
    """All of a UTF-8 text, without a byte-order mark, its lines ended by a line feed."""
    return decoded(content(part), str(part)).replace("\r\n", "\n").replace("\r", "\n")


def content(part: Part) -> bytes:
    """All bytes of a file, out of its .gz, or of a member.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
        ValueError: it is damaged, or is larger than `UNPACKED` when unpacked.
    """
    if isinstance(part, zipfile.Path):
        with intact(part):
            _limit(part.root.getinfo(part.at).file_size, part)
            return part.read_bytes()
    check(part)
    if part.suffix != ".gz":
        return part.read_bytes()
    with intact(part), gzip.open(part) as stream:
        return _Limited(stream, part).read()


def decoded(content: bytes, where: str) -> str:
    """The text of bytes in UTF-8; a byte-order mark in front is no letter and is dropped.

    Raises:
        ValueError: they are not UTF-8; more than a tenth of the characters are NUL, as when UTF-16 is read as UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text: {error}; save it as UTF-8") from error
    if (nothing := text.count("\0")) > len(text) / 10:
        raise ValueError(
            f"{where} is not UTF-8 text: {nothing} of {len(text)} characters are NUL, as in UTF-16; save it as UTF-8"
        )
    return text


def member(archive: Path, name: str) -> zipfile.Path:
    """One file in a zip archive."""
    with intact(archive):
        found = zipfile.Path(archive, name)
        if found.is_file():
            return found
        held = ", ".join(found.root.namelist()) or "nothing"
    raise ValueError(f"{archive} has no member {name}; it holds: {held}")


def files(place: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Names in a .tar.gz or folder, and what reads each of them; of an archive in one pass, nothing is unpacked."""
    if place.is_dir():
        for path in filter(Path.is_file, place.rglob("*")):
            yield path.relative_to(place.parent).as_posix(), path.read_bytes
        return
    check(place)
    with intact(place), gzip.open(place) as stream:
        limited: Any = _Limited(stream, place)
        with tarfile.open(fileobj=limited, mode="r|") as tar:
            yield from _entries(tar, place)


def _entries(tar: tarfile.TarFile, place: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for entry in tar:
        _limit(entry.offset_data + entry.size, place)
        if entry.isfile():
            yield entry.name, lambda entry=entry: _entry(tar, entry, place)  # type: ignore[misc]
        elif not entry.isdir():
            raise ValueError(f"{place}: {entry.name} is a link, or no file; pack the files themselves")


def _entry(tar: tarfile.TarFile, entry: tarfile.TarInfo, place: Path) -> bytes:
    with intact(place):
        return tar.extractfile(entry).read()  # type: ignore[union-attr]


def check(path: Path) -> None:
    """A pipe would be waited for without end.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")


def _limit(size: int, place: Part) -> None:
    if size > UNPACKED:
        raise ValueError(f"{place} unpacks to more than {UNPACKED:,} bytes, the most that is read; get it again")


class _Limited:
    """A stream that ends in an error where more than `UNPACKED` bytes come out of it."""

    def __init__(self, stream: Any, place: Path):
        self.stream, self.place, self.taken = stream, place, 0

    def read(self, size: int = -1) -> bytes:
        left = UNPACKED - self.taken + 1
        content = self.stream.read(left if size < 0 else min(size, left))
        self.taken += len(content)
        _limit(self.taken, self.place)
        return content
