"""`tfviz clean`: reduce notebooks to the content that is committed, and extract their pictures for the README."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

import click
import nbformat
import numpy as np
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from PIL import Image

from tfviz.files import atomic
from tfviz.lessons import install_cell, notebooks
from tfviz.lessons.notebooks import WEBSITE, tagged_cells

KERNEL_SPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET_MIME_TYPE = "application/vnd.jupyter.widget-view+json"
PICTURE_TAG = "picture:"  # prefix of the tag of a cell whose picture the README shows
PARAMETERS_LINE = "The outputs below were made with: "
MAX_LINE_LENGTH = 100  # characters of a line that a page shows whole
DARK_PAGE_BRIGHTNESS = 0.07  # of the dark background, from CSS invert(93%)
LUMINANCE = np.array([0.213, 0.715, 0.072])  # of red, green, blue
LIVE_LINK = "[Open the interactive page of this lesson]("  # prefix of a line in a committed lesson


def clean(
    files: Sequence[Path],
    to: Path | None = None,
    pictures: Path | None = None,
) -> None:
    """Clean notebooks in place, or into the folder `to`.

    Args:
        files: the notebooks.
        to: the folder for the cleaned notebooks; None: in place.
        pictures: a folder for the tagged pictures, each in a light and a dark version.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a file is not a notebook, or two would be written to the same file; nothing has been written.
    """
    files = list(dict.fromkeys(files))
    targets = [(to or file.parent) / file.name for file in files]
    if len({str(target).casefold() for target in targets}) < len(files):  # Windows and macOS ignore case
        raise ValueError(f"two of these notebooks would be written to one file in {to}")
    lessons = {path.stem for path in notebooks.find()}
    contents: dict[Path, bytes] = {}
    for file, target in zip(files, targets):
        notebook = notebooks.read(file)
        if file.stem in lessons:
            link_live_page(notebook, file.stem)
            install_cell.insert(notebook)
        notebook = clean_notebook(notebook)
        content = (nbformat.writes(notebook) + "\n").encode()
        if to or content != file.read_bytes():
            contents[target] = content
            click.echo(f"cleaned {file}")
        if pictures:
            contents |= _pictures(notebook, pictures)
    for target, content in contents.items():
        with atomic(target) as draft:
            draft.write_bytes(content)


def clean_notebook(notebook: NotebookNode) -> NotebookNode:
    """Reduce a notebook, in place, to text and PNG outputs, numbered in order, and a line on its parameters.

    Progress bars, widget state, timestamps and papermill's metadata are removed. If an output has a PNG, its HTML and
    widget are removed, too.
    """
    injected = tagged_cells(notebook, "injected-parameters")
    notebook.cells = [cell for cell in notebook.cells if cell not in injected]
    notebook.metadata = NotebookNode(kernelspec=KERNEL_SPEC, language_info={"name": "python"})
    count = 0
    for cell in notebook.cells:
        metadata = {key: value for key, value in cell.metadata.items() if value and key in ("tags", "jupyter")}
        cell.metadata = NotebookNode(metadata)
        if cell.cell_type == "code":
            count += cell.execution_count is not None
            cell.execution_count = count if cell.execution_count is not None else None
            cell.outputs = [_clean_output(each, cell.execution_count) for each in cell.outputs if _is_static(each)]
            CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, count)
    for cell in tagged_cells(notebook, "parameters") if injected else []:
        lines = [line for line in injected[0].source.splitlines() if not line.startswith("#")]
        cell.outputs = [nbformat.v4.new_output("stream", text=_parameters_text(lines))]
    return notebook


def _parameters_text(lines: list[str]) -> str:
    """Say which parameters a copy was made with, in lines that break between two of them."""
    joined = ", ".join(line.replace(" ", "\0") for line in lines)
    wrapped = fill(
        joined, MAX_LINE_LENGTH, initial_indent=PARAMETERS_LINE, break_long_words=False, break_on_hyphens=False
    )
    return wrapped.replace("\0", " ") + "\n"


def _is_static(output: NotebookNode) -> bool:
    if output.output_type == "stream":
        return output.name != "stderr"
    data = output.get("data", {})
    return WIDGET_MIME_TYPE not in data or "image/png" in data


def _clean_output(output: NotebookNode, count: int | None) -> NotebookNode:
    if output.output_type == "execute_result":
        output.execution_count = count
    if "image/png" in output.get("data", {}):
        for interactive in ("text/html", WIDGET_MIME_TYPE):
            output.data.pop(interactive, None)
    output.pop("transient", None)
    return output


def link_live_page(notebook: NotebookNode, name: str) -> None:
    """Insert a link to the lesson's page on the site below its title."""
    if notebook.cells and notebook.cells[0].cell_type == "markdown":
        first = notebook.cells[0]
        title, *rest = without_live_link(first.source).split("\n\n", 1)
        link = (
            f"{LIVE_LINK}{WEBSITE}notebooks/{name}.html): type, drag and switch things there, with nothing to install."
        )
        first.source = "\n\n".join([title, link, *rest])


def without_live_link(source: str) -> str:
    """Return the text of a lesson's first cell without the line that `link_live_page` adds."""
    return "\n\n".join(part for part in source.split("\n\n") if not part.startswith(LIVE_LINK))


def tagged_pictures(notebook: NotebookNode) -> dict[str, bytes]:
    """Return the PNG outputs of cells tagged `picture:NAME`, by name.

    Raises:
        ValueError: NAME is not a valid file name.
    """
    pictures = {}
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []) if tag.startswith(PICTURE_TAG) else []:
                if "image/png" in output.get("data", {}):
                    name = tag.removeprefix(PICTURE_TAG)
                    if not re.fullmatch(r"\w[\w.-]{0,99}", name):  # a path would lead out of the folder
                        raise ValueError(f"the tag {tag!r} names no file; give letters, digits, '-', '_' and '.'")
                    pictures[name] = base64.b64decode(output.data["image/png"])
    return pictures


def _pictures(notebook: NotebookNode, folder: Path) -> Mapping[Path, bytes]:
    """Return the files of a notebook's tagged pictures, light and dark: path -> content."""
    drawn = tagged_pictures(notebook)
    light = {folder / f"{name}.png": png for name, png in drawn.items()}
    return {**light, **{folder / f"{name}-dark.png": darken(png) for name, png in drawn.items()}}


def darken(png: bytes) -> bytes:
    """Return a PNG filtered as by CSS `invert(93%) hue-rotate(180deg)` (Filter Effects 1, section 6).

    Raises:
        OSError: the bytes are not a picture.
    """
    image: Image.Image = Image.open(io.BytesIO(png))
    if image.mode == "P":  # a palette stays one, which keeps the file small
        image.putpalette(_dark_filter(np.array(image.getpalette()).reshape(-1, 3)).tobytes())
    else:
        image = Image.fromarray(_dark_filter(np.array(image.convert("RGB"))))
    dark = io.BytesIO()
    image.save(dark, "PNG", optimize=True)
    return dark.getvalue()


def _dark_filter(colours: np.ndarray) -> np.ndarray:
    inverted = colours / 255 * (2 * DARK_PAGE_BRIGHTNESS - 1) + 1 - DARK_PAGE_BRIGHTNESS
    rotated = 2 * (inverted @ LUMINANCE)[..., None] - inverted  # hue rotated by 180 degrees
    return (255 * rotated.clip(0, 1)).round().astype(np.uint8)
