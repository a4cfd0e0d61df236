"""Real text by name.

A corpus is looked for in the folder that the environment variable `TFVIZ_DATA` names, then in the cache; then it is
downloaded, checked by its SHA-256 and put into the cache, a file at a time. `pydoc` comes with every Python.
What an archive holds may also stand unpacked where the archive would stand.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from tfviz.text import archives
from tfviz.text.archives import Part
from tfviz.text.catalogue import CORPORA, Corpus, File
from tfviz.text.downloads import download


def load(name: str) -> str:
    """The text of a corpus, downloaded at the first use; or of your own UTF-8 file, by its path.

    Lines end in a line feed, whatever ends them in the file; a byte-order mark in front is no letter and is dropped.

    >>> load("pydoc")[:26]
    'The "assert" statement\\n***'

    Raises:
        LookupError: no corpus and no file has this name.
        ValueError: it is not UTF-8, or UTF-16 without a mark; it is not one text (says what reads it); it is empty, or
            damaged.
        ConnectionError: it is not on this machine and could not be fetched; says where to put it by hand.
    """
    if name == "pydoc":
        return _pydoc()
    own = os.path.expanduser(name)
    found = archives.text(Path(own) if name not in CORPORA and os.path.isfile(own) else _text(name))
    if not found:
        raise ValueError(f"{name} is empty; there is nothing to learn from")
    return found


def split(text: str, share: float = 0.9) -> tuple[str, str]:
    """The first `share` of the text, to train on, and the rest, to measure on."""
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; it must lie between 0 and 1")
    cut = int(share * len(text))
    if not 0 < cut < len(text):
        raise ValueError(f"a text of {len(text)} characters cannot be split at {share}: one part would be empty")
    return text[:cut], text[cut:]


def paths(name: str, *only: str) -> list[Path]:
    """Where the files of a corpus stand, or where they would be put; `only` names some of them."""
    return [path for file in _files(name, only) for path in _places(file)]


def cache() -> Path:
    """The folder for downloads: `TFVIZ_CACHE`, or the one usual on this system."""
    if given := os.environ.get("TFVIZ_CACHE"):
        return Path(os.path.expanduser(given))
    import pooch

    return Path(pooch.os_cache("tfviz"))


def fetch(name: str, *only: str) -> list[Path]:
    """Bring the files of a corpus to this machine unless they are here; returns their paths."""
    return [path for file in _files(name, only) for path in _fetched(name, file)]


def parts(name: str) -> list[Part]:
    """What there is to read of a corpus, fetched: its files, and for a zip archive the members in question."""
    found: list[Part] = []
    for file in _files(name):
        for path in _fetched(name, file):
            found += [archives.member(path, member) for member in file.members] if path.suffix == ".zip" else [path]
    return found


def verify(name: str) -> str:
    """One word on the files of a corpus, by their published SHA-256.

    Returns:
        `ok`, `embedded` (no file), `absent`, `partly` (some files are absent), `differs` (a local folder still wins) or
        `unpacked` (only archives have a published sum).
    """
    states = {_state(file) for file in _find(name).files} or {"embedded"}
    if "absent" in states and len(states) > 1:
        states = states - {"absent"} | {"partly"}
    return next(state for state in ("differs", "partly", "unpacked", *states) if state in states)


def _state(file: File) -> str:
    path = _places(file)[0]
    if not _is_there(path):
        return "absent"
    if path.name != Path(file.path).name:
        return "unpacked"
    if path.is_dir():
        return "differs"
    with path.open("rb") as stream:
        return "ok" if hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256 else "differs"


def _find(name: str) -> Corpus:
    if name not in CORPORA:
        raise LookupError(f"no corpus and no file is called {name!r}; there are: {', '.join(CORPORA)}")
    return CORPORA[name]


def _files(name: str, only: tuple[str, ...] = ()) -> list[File]:
    files = {Path(file.path).name: file for file in _find(name).files}
    if not files:
        raise LookupError(f"{name} is part of Python and has no file; read it with load({name!r})")
    if unknown := set(only) - set(files):
        raise LookupError(f"{name} has no file {', '.join(sorted(unknown))}; it has: {', '.join(files)}")
    return [files[file] for file in only or files]


def _roots() -> Iterator[Path]:
    if local := os.environ.get("TFVIZ_DATA"):
        if not os.path.isdir(os.path.expanduser(local)):
            raise ValueError(f"TFVIZ_DATA is {local!r}, which is no folder; make it, name another, or unset it")
        yield Path(os.path.expanduser(local))
    yield cache()


def _places(file: File) -> list[Path]:
    """The file, or what is unpacked of it; if there is neither, the place where a download goes."""
    for root in _roots():
        path = root / file.path
        for names in (file.members, [Path(member).name for member in file.members]):
            unpacked = [path.parent / name for name in names]
            if unpacked and all(map(_is_there, unpacked)):
                return unpacked
        if path.is_file():
            return [path]
    return [cache() / file.path]


def _fetched(name: str, file: File) -> list[Path]:
    target = _places(file)[0]
    if target.is_dir() and target.name == Path(file.path).name:
        raise FileExistsError(f"{target} is a folder, and a file of {name} is to stand there; move it away")
    if not target.exists():
        download(name, file, target)
    return _places(file)


def _is_there(path: Path) -> bool:
    return path.is_file() or path.is_dir()  # and is no pipe, which would be waited for without end


def _text(name: str) -> Part:
    corpus = _find(name)
    if corpus.reader != Corpus.reader:
        raise ValueError(f"{name} is not one text; read it with tfviz.text.{corpus.reader}")
    return parts(name)[0]


def _pydoc() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[topic] for topic in sorted(topics))
