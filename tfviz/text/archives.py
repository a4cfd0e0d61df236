"""Readers of plain, gzipped, zipped and tarred files, which unpack nothing to disk.

No member of an archive can therefore be written outside its folder.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Part = Path | zipfile.Path  # a file, or a member of a zip archive: both can be read


@contextmanager
def report_damage(path: Part) -> Iterator[None]:
    """Turn the errors of the archive readers into a ValueError that names the file.

    Raises:
        ValueError: the archive is damaged.
    """
    try:
        yield
    except (
        *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
        RuntimeError,  # an encrypted zip, or a compression method that Python lacks
    ) as error:
        raise ValueError(f"{path} is damaged: {error}; delete it and get it again") from error


def read_bytes(part: Part) -> bytes:
    """Return the content of a file (decompressed if it is a .gz) or of a zip member.

    Raises:
        FileNotFoundError: the path is not a regular file.
        ValueError: the file is damaged.
    """
    if not part.is_file():
        raise FileNotFoundError(f"there is no file {part}")
    with report_damage(part):
        content = part.read_bytes()
        return gzip.decompress(content) if part.suffix == ".gz" else content


def read_text(part: Part) -> str:
    """Return the content of a UTF-8 text file or member; see `decode`."""
    return decode(read_bytes(part), str(part))


def decode(content: bytes, source: str) -> str:
    """Decode UTF-8 bytes; a leading byte-order mark is dropped.

    Raises:
        ValueError: the bytes are not UTF-8, or look like UTF-16: more than a tenth of the characters are NUL.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{source} is not UTF-8 text: {error}; save it as UTF-8") from error
    if text.count("\0") > len(text) / 10:
        raise ValueError(f"{source} is not UTF-8 text: it is full of NUL, as UTF-16 is; save it as UTF-8")
    return text


def zip_member(archive: Path, name: str) -> zipfile.Path:
    """Return one member of a zip archive.

    Raises:
        ValueError: the archive is damaged, or has no such member.
    """
    with report_damage(archive):
        member = zipfile.Path(archive, name)
        if member.is_file():
            return member
        names = ", ".join(member.root.namelist()) or "nothing"
    raise ValueError(f"{archive} has no member {name}; it holds: {names}")


def iter_files(location: Path, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file in a folder or a .tar.gz archive.

    Args:
        location: the folder, whose files are named relative to its parent, or the archive.
        wanted: function of a name, true if the file is to be read; the content of other files is empty.

    Raises:
        ValueError: the archive is damaged, or holds a link or a device.
    """
    if location.is_dir():
        for path in filter(Path.is_file, location.rglob("*")):
            name = path.relative_to(location.parent).as_posix()
            yield name, path.read_bytes() if wanted(name) else b""
        return
    with report_damage(location), tarfile.open(location, "r:gz") as archive:
        for entry in archive:
            if entry.isfile():
                yield entry.name, archive.extractfile(entry).read() if wanted(entry.name) else b""  # type: ignore[union-attr]
            elif not entry.isdir():
                raise ValueError(f"{location}: {entry.name} is a link or a device; pack the files themselves")
