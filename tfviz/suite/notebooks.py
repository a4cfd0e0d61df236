"""Notebooks as files: which there are, their parameters and presets, and what a commit keeps of them."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

PRESETS = "presets.yaml"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"
PICTURE = "picture:"
SHOWN_WITH = "The outputs below were made with: "
SITE = "https://tfviz.github.io/tfviz/"  # where the pages of `tfviz site` stand: the one place that says it
LIVE = "[Open the living page of this lesson]("  # begins the line of a committed lesson that leads there


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
    """preset -> notebook -> parameter -> value"""
    return yaml.safe_load((folder() / PRESETS).read_text(encoding="utf-8"))


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
            lists = "; ".join(f"{stem} has {', '.join(mine) or 'none'}" for stem, mine in there.items())
            raise LookupError(f"no notebook here has a parameter {name!r}: {lists}")


def defaults(paths: Sequence[Path]) -> dict[str, tuple[str, Any]]:
    """parameter -> the first of these notebooks that has it, and its default there"""
    return {name: (path.stem, value) for path in reversed(paths) for name, value in parameters(path).items()}


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


def linked(notebook: NotebookNode, name: str = "") -> NotebookNode:
    """The notebook, under its title a line that leads to the page `name` of the site; no line where that is empty."""
    if notebook.cells and notebook.cells[0].cell_type == "markdown":
        first = notebook.cells[0]
        title, *rest = unlinked(first.source).split("\n\n", 1)
        link = f"{LIVE}{SITE}notebooks/{name}.html): type, drag and switch in it, with nothing to install."
        first.source = "\n\n".join([title, *([link] if name else []), *rest])
    return notebook


def unlinked(source: str) -> str:
    """The text of a first cell without that line."""
    return "\n\n".join(part for part in source.split("\n\n") if not part.startswith(LIVE))


def pictures(notebook: NotebookNode) -> dict[str, bytes]:
    """The PNGs of cells tagged `picture:NAME`, by name: the README shows them.

    Raises:
        ValueError: a name that is not the plain name of a file, or a picture that is none.
    """
    found = {}
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags") or []:
            for output in cell.get("outputs", []) if tag.startswith(PICTURE) else []:
                if "image/png" in output.get("data", {}):
                    found[_plain(tag)] = _png(tag, output.data["image/png"])
    return found


def _plain(tag: str) -> str:
    """The name in a tag, which never leads out of the folder."""
    if re.fullmatch(r"\w[\w.-]{0,99}", name := tag.removeprefix(PICTURE)):
        return name
    raise ValueError(
        f"the tag {tag[:200]!r} names no picture: give it letters, digits, '-', '_', '.', as in {PICTURE}heads"
    )


def _png(tag: str, text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the picture of the tag {tag!r} is damaged: {error}") from error


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
