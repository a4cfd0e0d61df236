"""Notebooks as files: which there are, their parameters and presets."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tfviz.suite.presets import check as check_preset
from tfviz.suite.presets import read as read_presets

PRESETS = "presets.yaml"
SITE = "https://tfviz.github.io/tfviz/"  # where the pages of `tfviz site` stand: the one place that says it


def folder() -> Path:
    """Where the notebooks are: in the clone, or in the installed package."""
    package = Path(__file__).parents[1]
    places = (package.parent / "notebooks", package / "notebooks")
    return next((place for place in places if (place / PRESETS).is_file()), places[0])


def find(names: Sequence[str] = ()) -> list[Path]:
    """The notebooks of these names (`12_gpt`, `12`, or a path); all of them where no name is given.

    Raises:
        LookupError: a name means no notebook; lists what there is.
    """
    there = {path.stem: path for path in sorted(folder().glob("[0-9]*.ipynb"))}
    return [_find(name, there) for name in names] if names else list(there.values())


def _find(name: str, there: dict[str, Path]) -> Path:
    path, stem = Path(name), Path(name).name.removesuffix(".ipynb")
    if path.suffix == ".ipynb" and path.is_file():
        return path  # the reader's own, whatever it is called
    if path.exists() and (path.name != name or path.suffix == ".ipynb"):
        raise LookupError(f"{name} is no notebook, but {'a folder' if path.is_dir() else 'something else'}")
    if path.name != name:
        raise LookupError(f"there is no file {name!r}; a notebook of the suite is named without a folder: {stem}")
    if stem in there:
        return there[stem]
    begins = [path for key, path in there.items() if key.startswith(f"{stem}_")]
    if len(begins) == 1:
        return begins[0]
    raise LookupError(f"there is no notebook {name!r}; there are: {', '.join(there)}")


def load(path: Path) -> NotebookNode:
    """A notebook, in the fourth version of the format.

    Raises:
        FileNotFoundError: there is none, but perhaps a folder, or a pipe, which could be waited for without end.
        ValueError: it is something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return parse(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a notebook: {error}") from error


def parse(text: str) -> NotebookNode:
    """A notebook from its JSON.

    Raises:
        ValueError: it is none; says why in a line.
    """
    wrong: dict[str, Exception] = {}
    try:
        notebook = nbformat.reads(text, as_version=4, capture_validation_error=wrong)
        if wrong:
            nbformat.validate(notebook, relax_add_props=True)  # more than the format knows does no harm
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except AttributeError as error:
        raise ValueError("it is JSON of something else") from error
    except Exception as error:  # nbformat trusts the parts to be of their kinds, and fails on them in any way
        raise ValueError((str(error).strip() or type(error).__name__).splitlines()[0][:200]) from error
    return notebook


def tagged(notebook: NotebookNode, tag: str) -> list[NotebookNode]:
    """The cells that carry a tag."""
    return [cell for cell in notebook.cells if tag in (cell.metadata.get("tags") or [])]


def parameters(path: Path) -> dict[str, Any]:
    """Names and defaults in the cell tagged `parameters`, which holds plain literals only.

    Raises:
        ValueError: something else stands there; names the line.
    """
    cells = tagged(load(path), "parameters")
    line, found = 1, {}
    try:
        for statement in ast.parse(cells[0].source).body if cells else []:
            line = statement.lineno
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                (target,) = statement.targets if isinstance(statement, ast.Assign) else (statement.target,)
                if not isinstance(target, ast.Name):
                    raise ValueError("not one name")
                found[target.id] = ast.literal_eval(statement.value)
                json.dumps(found)  # papermill knows no other kinds
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or line
        raise ValueError(f"{path}, parameters, line {line}: write NAME = literal, such as steps = 400") from error
    return found


def presets() -> dict[str, dict[str, dict[str, Any]]]:
    """preset -> notebook -> parameter -> value

    Raises:
        FileNotFoundError, ValueError: as `presets.read`.
    """
    return read_presets(folder() / PRESETS, [path.stem for path in folder().glob("*.ipynb")])


def values(path: Path, preset: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters a notebook runs with: its defaults, then the preset's, then those given that it has.

    Raises:
        LookupError: there is no such preset, or it names a parameter that the notebook does not have.
        ValueError: the presets are damaged, or a value in them is of another kind than the notebook's own.
    """
    known = presets()
    if preset not in known:
        raise LookupError(f"there is no preset {preset!r}; there are: {', '.join(known)}")
    mine, own = parameters(path), known[preset].get(path.stem, {})
    if path.parent == folder():
        check_preset(folder() / PRESETS, preset, path.stem, own, mine)
    else:  # the reader's own copy of a lesson may have fewer parameters
        own = {name: value for name, value in own.items() if name in mine}
    return {**mine, **own, **{name: v for name, v in given.items() if name in mine}}


def check(paths: Sequence[Path], given: dict[str, Any]) -> None:
    """Refuse a parameter that none of these notebooks has: papermill alone would only warn."""
    there = {path.stem: parameters(path) for path in paths}
    for name in given:
        if not any(name in mine for mine in there.values()):
            lists = "; ".join(f"{stem} has {', '.join(mine) or 'none'}" for stem, mine in there.items())
            raise LookupError(f"no notebook here has a parameter {name!r}: {lists}")


def defaults(paths: Sequence[Path]) -> dict[str, tuple[str, Any]]:
    """parameter -> the first of these notebooks that has it, and its default there"""
    return {name: (path.stem, value) for path in reversed(paths) for name, value in parameters(path).items()}
