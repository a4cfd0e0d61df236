"""Real text by name.

A corpus is looked for in the folder that the environment variable `TFVIZ_DATA` names, then in the cache; then it is
downloaded, checked by its SHA-256 and put into the cache in one step. `pydoc` comes with every Python.
"""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Corpus:
    """Where a text comes from and what may be done with it."""

    name: str
    about: str
    licence: str
    source: str
    file: str = ""  # below the data folder; empty for what is embedded
    url: str = ""
    sha256: str = ""


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            name="pydoc",
            about="the Python manual's topics, as every Python carries them; 465,000 characters of English",
            licence="PSF License Agreement",
            source="the module pydoc_data.topics",
        ),
        Corpus(
            name="shakespeare",
            about="tiny Shakespeare; 1,115,394 characters",
            licence="public domain text",
            source="https://github.com/karpathy/char-rnn",
            file="shakespeare/input.txt",
            url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        ),
    )
}


def load(name: str) -> str:
    """The text of a corpus, downloaded at the first use; or of your own UTF-8 file, by its path.

    >>> load("pydoc")[:26]
    'The "assert" statement\\n***'

    Raises:
        LookupError: no corpus and no file has this name.
        ConnectionError: it is not on this machine and could not be fetched; says where to put it by hand.
    """
    if name == "pydoc":
        return _pydoc()
    own = Path(name).expanduser()
    path = own if name not in CORPORA and own.is_file() else fetch(name)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error


def split(text: str, share: float = 0.9) -> tuple[str, str]:
    """The first `share` of the text, to train on, and the rest, to measure on."""
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; it must lie between 0 and 1")
    cut = int(share * len(text))
    return text[:cut], text[cut:]


def path(name: str) -> Path:
    """Where the file of a corpus stands, or where it would be put."""
    corpus = _find(name)
    if not corpus.file:
        raise LookupError(f"{name} is part of Python and has no file; read it with load({name!r})")
    local = os.environ.get("TFVIZ_DATA")
    if local and (here := Path(local).expanduser() / corpus.file).is_file():
        return here
    return cache() / corpus.file


def cache() -> Path:
    """The folder for downloads: `TFVIZ_CACHE`, or the one usual on this system."""
    if given := os.environ.get("TFVIZ_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("tfviz"))


def fetch(name: str) -> Path:
    """Bring the file of a corpus to this machine unless it is here; returns its path."""
    target = path(name)
    if target.is_file():
        return target
    import pooch

    corpus = _find(name)
    by_hand = f"to go without it, get the file elsewhere and put it at {target}"
    try:
        pooch.retrieve(
            corpus.url,
            f"sha256:{corpus.sha256}",
            fname=target.name,
            path=target.parent,
            progressbar=sys.stderr.isatty(),
        )
    except ValueError as error:  # pooch's word for a wrong hash
        raise ValueError(f"what {corpus.url} sent is not {name}: {error}; {by_hand}") from error
    except OSError as error:  # requests' errors are OSErrors, a full disk is one too
        raise ConnectionError(f"could not fetch {name} from {corpus.url}: {error}; {by_hand}") from error
    return target


def verify(name: str) -> str:
    """`ok`, `embedded`, `absent`, or `differs` (its SHA-256 is not the published one; a local folder still wins)."""
    corpus = _find(name)
    if not corpus.file:
        return "embedded"
    if not (file := path(name)).is_file():
        return "absent"
    with file.open("rb") as stream:
        return "ok" if hashlib.file_digest(stream, "sha256").hexdigest() == corpus.sha256 else "differs"


def _find(name: str) -> Corpus:
    if name not in CORPORA:
        raise LookupError(f"no corpus and no file is called {name!r}; there are: {', '.join(CORPORA)}")
    return CORPORA[name]


def _pydoc() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[topic] for topic in sorted(topics))
