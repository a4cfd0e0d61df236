"""Find and read notebooks, and determine their parameters from defaults, presets and command-line options."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from tfviz.suggestions import did_you_mean

PRESETS_FILE = "presets.yaml"
WEBSITE = "https://tfviz.github.io/tfviz/"  # the address of the published pages
TYPE_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string", list: "a list"}


def folder() -> Path:
    """Return the folder of the lessons, in the clone or in the installed package."""
    package = Path(__file__).parents[1]
    folders = (package.parent / "notebooks", package / "notebooks")
    return next((each for each in folders if (each / PRESETS_FILE).is_file()), folders[0])


def find(names: Sequence[str] = ()) -> list[Path]:
    """Return the paths of the named notebooks (`12_gpt`, `12`, or a path), or of all lessons if none is named.

    Raises:
        LookupError: there is no notebook of this name; the message lists the lessons.
    """
    lessons = sorted(folder().glob("[0-9]*.ipynb"))
    return [_find(name, lessons) for name in names] if names else lessons


def _find(name: str, lessons: Sequence[Path]) -> Path:
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name)
    matches = [path for path in lessons if name and (path.stem == name or path.stem.startswith(f"{name}_"))]
    if len(matches) != 1:
        names = [path.stem for path in lessons]
        raise LookupError(f"there is no notebook {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")
    return matches[0]


def read(path: Path) -> NotebookNode:
    """Read a notebook, converted to version 4 of the format.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: the file is not a notebook.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook, relax_add_props=True)
    except OSError:
        raise
    except Exception as error:  # nbformat fails in many ways on JSON of something else
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ValueError(f"{path} is not a notebook: {reason}") from error
    return notebook


def tagged_cells(notebook: NotebookNode, tag: str) -> list[NotebookNode]:
    """Return the cells that carry a tag."""
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def parameters(path: Path) -> dict[str, Any]:
    """Return the names and defaults of a notebook's parameters, from the assignments in its cell tagged `parameters`.

    Raises:
        ValueError: an assignment is not of a literal to a name; the message names the line.
    """
    cells = tagged_cells(read(path), "parameters")
    line, defaults = 1, {}
    try:
        for statement in ast.parse(cells[0].source).body if cells else []:
            line = statement.lineno
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                (target,) = statement.targets if isinstance(statement, ast.Assign) else (statement.target,)
                if not isinstance(target, ast.Name):
                    raise ValueError("the target is not one name")
                defaults[target.id] = ast.literal_eval(statement.value)
                json.dumps(defaults)  # papermill passes only JSON values
    except (ValueError, TypeError, SyntaxError) as error:
        line = getattr(error, "lineno", None) or line
        raise ValueError(f"{path}, parameters, line {line}: write NAME = literal, such as steps = 400") from error
    return defaults


def presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the presets of the lessons as {preset: {notebook: {parameter: value}}}."""
    return yaml.safe_load((folder() / PRESETS_FILE).read_text(encoding="utf-8"))


def values(path: Path, preset: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a run of a notebook: its defaults, updated by the preset and then by `overrides`.

    Names that the notebook does not have are ignored, since several notebooks may be run with the same overrides.

    Raises:
        LookupError: there is no such preset.
        TypeError: a value is of another type than the notebook's default.
    """
    known = presets()
    if preset not in known:
        raise LookupError(f"there is no preset {preset!r}; there are: {', '.join(known)}{did_you_mean(preset, known)}")
    defaults = parameters(path)
    chosen = {**known[preset].get(path.stem, {}), **overrides}
    chosen = {name: value for name, value in chosen.items() if name in defaults}
    for name, value in chosen.items():
        check_type(name, value, defaults[name])
    return {**defaults, **chosen}


def check_type(name: str, value: Any, default: Any) -> None:
    """Raise TypeError unless a value has the type of the parameter's default; an int is valid for a float.

    Raises:
        TypeError: the types differ; the message names the parameter, the type and the default.
    """
    types = (int, float) if type(default) is float else (type(default),)
    if default is not None and type(value) not in types:
        raise TypeError(f"{name} is {value!r}; {_expected(default)}")


def parse_values(texts: Iterable[str], paths: Sequence[Path]) -> dict[str, Any]:
    """Parse `KEY=VALUE` options, with values converted to the type of the parameter's default in these notebooks.

    Raises:
        LookupError: no notebook has such a parameter; the message lists the parameters.
        ValueError: a text cannot be parsed, or a parameter is set twice.
    """
    return {name: values[0] for name, values in _parse(texts, paths, several=False).items()}


def parse_grid(texts: Iterable[str], paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Parse `KEY=V1,V2,...` options as lists of values, like `parse_values`; values with a comma are double-quoted."""
    return _parse(texts, paths, several=True)


def _parse(texts: Iterable[str], paths: Sequence[Path], several: bool) -> dict[str, list[Any]]:
    known = {path.stem: parameters(path) for path in paths}
    defaults = {name: default for each in reversed(known.values()) for name, default in each.items()}
    parsed: dict[str, list[Any]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        values = next(csv.reader([value]), []) if several else [value]
        if "=" not in text or not name or not values:
            raise ValueError(f"{text!r}: write it as " + ("KEY=V1,V2,..." if several else "KEY=VALUE"))
        if name in parsed:
            raise ValueError(f"{name} is given twice")
        if name not in defaults:
            choices = "; ".join(f"{stem} has {', '.join(each) or 'none'}" for stem, each in known.items())
            raise LookupError(f"no notebook here has a parameter {name!r}: {choices}{did_you_mean(name, defaults)}")
        parsed[name] = [_convert(name, each, defaults[name]) for each in values]
    return parsed


def _convert(name: str, text: str, default: Any) -> Any:
    """Return a text converted to the type of `default`.

    Raises:
        ValueError: the text does not represent a value of this type.
    """
    if isinstance(default, str):
        return text
    try:
        value = type(default)(text) if type(default) in (int, float) else yaml.safe_load(text)
        check_type(name, value, default)
    except (ValueError, TypeError, yaml.YAMLError):
        raise ValueError(f"{name} is {text!r}; {_expected(default)}") from None
    return value


def _expected(default: Any) -> str:
    return f"give {TYPE_NAMES.get(type(default), 'another type')}, such as {default!r}"
