"""Text corpora by name, from the folder `TFVIZ_DATA`, the download cache, or the network, in this order.

The SHA-256 of each downloaded file is checked, and the file is kept in the cache. The folder of an archive may hold its
unpacked content instead. `pydoc` comes with Python and needs no file.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tfviz.extras import extra
from tfviz.suggestions import did_you_mean
from tfviz.text import archives
from tfviz.text.archives import Part
from tfviz.text.catalogue import CORPORA, Corpus, File

__all__ = ["CORPORA", "cache", "fetch", "load", "paths", "readable_files", "split", "verify"]

FILE_STATES = (  # a corpus has the first of these states that any of its files has
    "differs",
    "partly",
    "unpacked",
    "ok",
    "absent",
    "embedded",
)

CALLED_FROM = "TFVIZ_CALLED_FROM"  # environment variable of kernels: the folder in which `tfviz run` was called


def load(name: str) -> str:
    """Return the text of a corpus, which is downloaded on first use, or of a UTF-8 file, given its path.

    A relative path is looked up in the current folder, in the folder in which `tfviz run` was called (lessons run in
    another one), and in the folder `TFVIZ_DATA`. Line endings are converted to line feeds, and a leading byte-order
    mark is dropped.

    >>> load("pydoc")[:26]
    'The "assert" statement\\n***'

    Raises:
        LookupError: no corpus and no file has this name.
        ValueError: the file is not UTF-8, is empty or damaged; or the corpus is not a single text, and the message
            names the function that reads it.
        ConnectionError: the corpus is not on this machine and could not be downloaded; the message says where to put
            it.
    """
    if name == "pydoc":
        from pydoc_data.topics import topics

        return "\n".join(topics[topic] for topic in sorted(topics))
    if name not in CORPORA and (own := _own_text(name)):
        part: Part = own
    elif _find_corpus(name).reader == Corpus.reader:
        part = readable_files(name)[0]
    else:
        raise ValueError(f"{name} is not one text; read it with tfviz.text.{CORPORA[name].reader}")
    text = archives.read_text(part).replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        raise ValueError(f"{name} is empty; there is nothing to learn from")
    return text


def split(text: str, train_fraction: float = 0.9) -> tuple[str, str]:
    """Return the first `train_fraction` of the text for training and the rest for evaluation.

    Raises:
        ValueError: `train_fraction` is not between 0 and 1, or leaves one part empty.
    """
    if not 0 < train_fraction < 1:
        raise ValueError(f"train_fraction is {train_fraction}; it must lie between 0 and 1")
    cut = int(train_fraction * len(text))
    if not 0 < cut < len(text):
        raise ValueError(
            f"a text of {len(text)} characters cannot be split at {train_fraction}: one part would be empty"
        )
    return text[:cut], text[cut:]


def paths(name: str, *only: str) -> list[Path]:
    """Return the paths of a corpus's files, or where absent files may be put; `only` selects files by name."""
    return [path for file in _select_files(name, only) for path in _locate(file)]


def cache() -> Path:
    """Return the folder for downloads: `TFVIZ_CACHE`, or the operating system's default."""
    with extra("lessons"):
        import pooch

    return Path(os.path.expanduser(os.environ.get("TFVIZ_CACHE") or pooch.os_cache("tfviz")))


def fetch(name: str, *only: str) -> list[Path]:
    """Download the missing files of a corpus and return the paths of all; `only` selects files by name."""
    return [path for file in _select_files(name, only) for path in _fetch(name, file)]


def readable_files(name: str) -> list[Part]:
    """Download a corpus if it is missing, and return its readable files, or the listed members of its zip archives."""
    found: list[Part] = []
    for file in _select_files(name):
        for path in _fetch(name, file):
            zipped = path.suffix == ".zip"
            found += [archives.zip_member(path, member) for member in file.members] if zipped else [path]
    return found


def verify(name: str) -> str:
    """Compare the files of a corpus with their published SHA-256.

    Returns:
        `ok`, `embedded` (the corpus has no file), `absent`, `partly` (some files are absent), `differs` (a file has
            another sum, and is used nevertheless) or `unpacked` (only the archive has a published sum).
    """
    states = {_file_state(file) for file in _find_corpus(name).files} or {"embedded"}
    if "absent" in states and len(states) > 1:
        states.add("partly")
    return min(states, key=FILE_STATES.index)


def _file_state(file: File) -> str:
    with extra("lessons"):
        import pooch

    path = _locate(file)[0]
    if path.name != Path(file.path).name:
        return "unpacked"
    if not path.is_file():
        return "absent"
    return "ok" if pooch.file_hash(path) == file.sha256 else "differs"


def _find_corpus(name: str) -> Corpus:
    if name not in CORPORA:
        raise LookupError(
            f"no corpus and no file is called {name!r}; there are: {', '.join(CORPORA)}{did_you_mean(name, CORPORA)}"
        )
    return CORPORA[name]


def _select_files(name: str, only: tuple[str, ...] = ()) -> list[File]:
    files = {Path(file.path).name: file for file in _find_corpus(name).files}
    if not files:
        raise LookupError(f"{name} is part of Python and has no file; read it with load({name!r})")
    if unknown := set(only) - set(files):
        raise LookupError(f"{name} has no file {', '.join(sorted(unknown))}; it has: {', '.join(files)}")
    return [files[file] for file in only or files]


def _own_text(name: str) -> Path | None:
    """Return the path of a user's text: here, where `tfviz run` was called, or in `TFVIZ_DATA`; None if absent."""
    path = Path(os.path.expanduser(name))
    for candidate in (path, os.environ.get(CALLED_FROM, "") / path):
        if os.path.isfile(candidate):
            return candidate
    inside = (_own_folder() or Path()) / path
    return inside if os.path.isfile(inside) else None


def _own_folder() -> Path | None:
    """Return the folder `TFVIZ_DATA`, if that is set."""
    local = os.environ.get("TFVIZ_DATA")
    if local and not os.path.isdir(os.path.expanduser(local)):
        raise ValueError(f"TFVIZ_DATA is {local!r}, which is not a folder; make it, name another, or unset it")
    return Path(os.path.expanduser(local)) if local else None


def _folders() -> Iterator[Path]:
    """Yield the folders to search, the user's own first."""
    if own := _own_folder():
        yield own
    yield cache()


def _locate(file: File) -> list[Path]:
    """Return the path of a file or its unpacked members; if it is absent, the path where it may be put."""
    return _find(file) or [next(_folders()) / file.path]


def _find(file: File) -> list[Path]:
    """Return the path of a file or its unpacked members; an empty list if it is absent."""
    for folder in _folders():
        path = folder / file.path
        for names in (file.members, [Path(member).name for member in file.members]):
            unpacked = [path.parent / name for name in names]
            if unpacked and all(part.is_file() or part.is_dir() for part in unpacked):  # reading a pipe would block
                return unpacked
        if path.is_file():
            return [path]
    return []


def _fetch(name: str, file: File) -> list[Path]:
    target = (_find(file) or [cache() / file.path])[0]  # a download never goes to the user's folder
    if target.is_dir() and target.name == Path(file.path).name:
        raise FileExistsError(f"{target} is a folder, but {name} needs a file of that name; move the folder")
    if not target.exists():
        _download(name, file, target)
    return _locate(file)


def _download(name: str, file: File, target: Path) -> None:
    """Download one file to `target`; a failed download leaves no file behind."""
    with extra("lessons"):
        import pooch

    advice = f"to go without it, get the file elsewhere and put it at {target}"
    showing = sys.stderr.isatty()
    try:
        pooch.retrieve(file.url, f"sha256:{file.sha256}", target.name, target.parent, progressbar=showing)
    except ValueError as error:  # pooch's error for a wrong hash
        raise ValueError(f"what {file.url} sent is not {name}: {error}; {advice}") from error
    except OSError as error:  # requests' errors are OSErrors, and so is a full disk
        raise ConnectionError(f"could not fetch {name} from {file.url}: {error}; {advice}") from error
