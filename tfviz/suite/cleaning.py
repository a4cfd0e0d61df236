"""Notebook files reduced to what a commit keeps: all of those named, or none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tfviz.files import atomic
from tfviz.suite import committed, notebooks
from tfviz.suite.darkened import darkened


def clean(
    files: Sequence[Path],
    to: Path | None = None,
    pictures: Path | None = None,
    check: bool = False,
    tell: Callable[[str], None] = print,
) -> bool:
    """Clean notebooks where they stand, or into the folder `to`; returns whether something changed, or would.

    Args:
        pictures: a folder for their tagged pictures, each for light pages and for dark ones.
        check: change nothing.

    Raises:
        FileNotFoundError: one of them is no file.
        ValueError: one of them is no notebook, or two have one name; nothing was written.
    """
    files = list(dict.fromkeys(files))
    if to:
        _once((file.name, file) for file in files)
    before = {file: _text(file) for file in files}
    cleaned = {file: _cleaned(file, text) for file, text in before.items()}
    after = {file: nbformat.writes(notebook) + "\n" for file, notebook in cleaned.items()}
    drawn = _drawn(cleaned) if pictures else {}
    changed = [file for file in files if to or after[file] != before[file]]
    for file in changed:
        if not check:
            _write((to or file.parent) / file.name, after[file].encode(), like=file)
        tell(f"{'would change' if check else 'cleaned'} {file}")
    for name, png in () if check else drawn.items():
        _write(pictures / name, png)  # type: ignore[operator]
    return bool(changed)


def _text(file: Path) -> str:
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        return file.read_text(encoding="utf-8")
    except ValueError as error:
        raise ValueError(f"{file} is not a notebook: {error}") from error


def _cleaned(file: Path, text: str) -> NotebookNode:
    try:
        notebook = committed.clean(notebooks.parse(text))
        if file.stem in (path.stem for path in notebooks.find()):  # a lesson, wherever it has run
            notebook = committed.linked(notebook, file.stem)
        nbformat.writes(notebook).encode()  # half of a character cannot be written
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(f"{file} is not a notebook: {str(error).splitlines()[0]}") from error
    return notebook


def _drawn(cleaned: Mapping[Path, NotebookNode]) -> dict[str, bytes]:
    """file name -> PNG, of all these notebooks"""
    found = []
    for file, notebook in cleaned.items():
        try:
            drawn = committed.pictures(notebook)
            found += [(f"{name}.png", file, png) for name, png in drawn.items()]
            found += [(f"{name}-dark.png", file, darkened(png)) for name, png in drawn.items()]
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
    _once((name, file) for name, file, _ in found)
    return {name: png for name, _, png in found}


def _once(named: Iterable[tuple[str, Path]]) -> None:
    """No two of one name, whose one would replace the other; some file systems do not tell A from a."""
    found: dict[str, Path] = {}
    for name, file in named:
        if (other := found.setdefault(name.casefold(), file)) != file:
            raise ValueError(
                f"{other} and {file} would both become {name}; clean them one by one, to folders of their own"
            )


def _write(path: Path, content: bytes, like: Path | None = None) -> None:
    with atomic(path) as draft:
        draft.write_bytes(content)
        if like:
            shutil.copymode(like, draft)
