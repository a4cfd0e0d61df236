"""Notebooks as files: which there are, their parameters and presets, and what a commit keeps of them."""

from __future__ import annotations

import ast
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

PRESETS = "presets.yaml"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"
SHOWN_WITH = "The outputs below were made with: "


def folder() -> Path:
    """Where the notebooks are: in the clone, or in the installed package."""
    package = Path(__file__).parents[1]
    places = (package.parent / "notebooks", package / "notebooks")
    return next((place for place in places if (place / PRESETS).is_file()), places[0])


def find(names: Sequence[str] = ()) -> list[Path]:
    """The notebooks of these names (`10_gpt`, `10`, or a path); all of them where no name is given.

    Raises:
        LookupError: a name means no notebook; lists what there is.
    """
    there = {path.stem: path for path in sorted(folder().glob("[0-9]*.ipynb"))}
    return [_find(name, there) for name in names] if names else list(there.values())


def _find(name: str, there: dict[str, Path]) -> Path:
    path, stem = Path(name), Path(name).name.removesuffix(".ipynb")
    if path.suffix == ".ipynb" and path.is_file():
        return path  # the reader's own, whatever it is called
    if path.name != name:
        raise LookupError(f"there is no file {name!r}; a notebook of the suite is named without a folder: {stem}")
    if stem in there:
        return there[stem]
    begins = [path for key, path in there.items() if key.startswith(f"{stem}_")]
    if len(begins) == 1:
        return begins[0]
    raise LookupError(f"there is no notebook {name!r}; there are: {', '.join(there)}")


def tagged(notebook: NotebookNode, tag: str) -> list[NotebookNode]:
    """The cells that carry a tag."""
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def parameters(path: Path) -> dict[str, Any]:
    """Names and defaults in the cell tagged `parameters`, which holds plain literals only.

    Raises:
        ValueError: something else stands there; names the line.
    """
    cells = tagged(nbformat.read(path, as_version=4), "parameters")
    line, found = 1, {}
    try:
        for statement in ast.parse(cells[0].source).body if cells else []:
            line = statement.lineno
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                (target,) = statement.targets if isinstance(statement, ast.Assign) else (statement.target,)
                if not isinstance(target, ast.Name):
                    raise ValueError("not one name")
                found[target.id] = ast.literal_eval(statement.value)
    except (ValueError, SyntaxError) as error:
        line = getattr(error, "lineno", None) or line
        raise ValueError(f"{path}, parameters, line {line}: write NAME = literal, such as steps = 400") from error
    return found


def presets() -> dict[str, dict[str, dict[str, Any]]]:
    """preset -> notebook -> parameter -> value"""
    return yaml.safe_load((folder() / PRESETS).read_text())


def values(path: Path, preset: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters a notebook runs with: its defaults, then the preset's, then those given that it has."""
    known = presets()
    if preset not in known:
        raise LookupError(f"there is no preset {preset!r}; there are: {', '.join(known)}")
    mine = parameters(path)
    return {**mine, **known[preset].get(path.stem, {}), **{name: v for name, v in given.items() if name in mine}}


def check(paths: Sequence[Path], given: dict[str, Any]) -> None:
    """Refuse a parameter that none of these notebooks has: papermill alone would only warn."""
    there = {path.stem: parameters(path) for path in paths}
    for name in given:
        if not any(name in mine for mine in there.values()):
            lists = "; ".join(f"{stem} has {', '.join(mine)}" for stem, mine in there.items())
            raise LookupError(f"no notebook here has a parameter {name!r}: {lists}")


def defaults(paths: Sequence[Path]) -> dict[str, tuple[str, Any]]:
    """parameter -> the first of these notebooks that has it, and its default there"""
    return {name: (path.stem, value) for path in reversed(paths) for name, value in parameters(path).items()}


def read(known: Mapping[str, tuple[str, Any]], name: str, text: str) -> Any:
    """A parameter's value, of the kind that its default is; a text stands for itself, whatever it looks like.

    Args:
        known: from `defaults`.

    Raises:
        ValueError: it is not of that kind.
    """
    home, default = known.get(name, ("", text))
    if isinstance(default, str):
        return text
    try:
        kind = type(default)
        value = kind(text) if kind in (int, float) else yaml.safe_load(text)
        if default is None or type(value) is kind:
            return value
    except (ValueError, yaml.YAMLError):
        pass
    what = {int: "a whole number", float: "a number", bool: "true or false"}.get(type(default), type(default).__name__)
    raise ValueError(f"{name}={text}: in {home} {name} is {what}, such as {default!r}")


def clean(notebook: NotebookNode) -> NotebookNode:
    """What a commit keeps: text and PNG outputs in order, and which parameters they were made with.

    Progress bars, widget state, timestamps and papermill's marks go; HTML and widgets go where a PNG
    stands beside them.
    """
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    injected = tagged(notebook, "injected-parameters")
    notebook.cells = [cell for cell in notebook.cells if cell not in injected]
    notebook.metadata = NotebookNode(kernelspec=KERNEL, language_info={"name": "python"})
    count = 0
    for cell in notebook.cells:
        cell.metadata = NotebookNode(
            {key: value for key, value in cell.metadata.items() if value and key in ("tags", "jupyter")}
        )
        if cell.cell_type != "code":
            continue
        if ran := cell.execution_count is not None:
            count += 1
        cell.execution_count = count if ran else None
        cell.outputs = [_cleaned(output, cell.execution_count) for output in cell.outputs if _stays(output)]
        CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, count)  # what was printed piece by piece is one piece
    if injected:
        said = SHOWN_WITH + ", ".join(line for line in injected[0].source.splitlines() if not line.startswith("#"))
        for cell in tagged(notebook, "parameters"):
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=said + "\n")]
    return notebook


def pictures(notebook: NotebookNode) -> dict[str, bytes]:
    """The PNGs of cells tagged `picture:NAME`, by name: the README shows them."""
    named = [
        (tag.partition(":")[2], cell) for cell in notebook.cells for tag in cell.metadata.get("tags", []) if ":" in tag
    ]
    return {
        name: base64.b64decode(output.data["image/png"])
        for name, cell in named
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    }


def _stays(output: NotebookNode) -> bool:
    if output.output_type == "stream":
        return output.name != "stderr"
    data = output.get("data", {})
    return WIDGET not in data or "image/png" in data


def _cleaned(output: NotebookNode, count: int | None) -> NotebookNode:
    if output.output_type == "execute_result":
        output.execution_count = count
    if "image/png" in output.get("data", {}):
        for alive in ("text/html", WIDGET):
            output.data.pop(alive, None)
    output.pop("transient", None)
    return output
