"""JupyterLab on the notebooks; from an installed package, on copies that belong to the reader."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import tfviz
from tfviz import schema
from tfviz.files import atomic, read_json
from tfviz.suite import notebooks, work

COPIES = "tfviz-notebooks"
GIVEN = ".originals.json"  # in the copies' folder: the SHA-256 of each original that has been handed out


def open_lab(arguments: tuple[str, ...], tell: Callable[[str], None] = print) -> None:
    """Become JupyterLab; `arguments` go to it as they are."""
    where = notebooks.folder()
    if where.parent == Path(tfviz.__file__).parent:  # an installed package: give the reader copies to write in
        originals, where = where, Path(COPIES)
        for line in hand_out(originals, where):
            tell(line)
    command = [sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={where.resolve()}", *arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, work.environment())


def hand_out(originals: Path, to: Path) -> Iterator[str]:
    """Copy notebooks into a folder in which the reader works; yields what is to be said.

    A copy that the reader has changed, by running it, say, is never touched: a newer original is put beside it, as
    `12_gpt.new.ipynb`. A copy that is as it was handed out is renewed.

    Raises:
        OSError: the folder cannot be written.
    """
    given = _given(to)
    now = {original.name: original.read_bytes() for original in sorted(originals.glob("*.ipynb"))}
    for name, newest in now.items():
        copy = to / name
        yours = copy.exists() and _sum(copy) not in (given.get(name), _sum(newest))
        if yours and given.get(name) == _sum(newest):
            continue  # there is nothing newer
        if yours:
            copy = _beside(copy, newest)
            yield f"{to / name} is as you left it; the newer original is {copy}"
        if not copy.exists() or _sum(copy) != _sum(newest):
            with atomic(copy) as draft:
                draft.write_bytes(newest)
    with atomic(to / GIVEN) as draft:
        draft.write_text(json.dumps({name: _sum(newest) for name, newest in now.items()}))


def _given(to: Path) -> dict[str, str]:
    try:
        found = read_json(to / GIVEN)
        schema.dict_of(schema.string())(found, str(to / GIVEN))
        return found
    except (OSError, ValueError):
        return {}  # then every copy that differs is the reader's


def _sum(what: Path | bytes) -> str:
    """Of a file's content; of what is no file, nothing that another has."""
    if isinstance(what, Path):
        if not what.is_file():
            return "no file"
        what = what.read_bytes()
    return hashlib.sha256(what).hexdigest()


def _beside(copy: Path, newest: bytes) -> Path:
    """The first free name, or that of a copy of the same."""
    names = (copy.with_name(f"{copy.stem}.new{f'-{n}' if n > 1 else ''}.ipynb") for n in count(1))
    return next(path for path in names if not path.exists() or _sum(path) == _sum(newest))
