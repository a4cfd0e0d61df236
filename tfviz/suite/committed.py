"""What a commit keeps of a notebook, and what a page brings of it."""

from __future__ import annotations

import base64
import re

import nbformat
from nbformat import NotebookNode

from tfviz.suite.notebooks import SITE, tagged

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"
PICTURE = "picture:"
SHOWN_WITH = "The outputs below were made with: "
LIVE = "[Open the living page of this lesson]("  # begins the line of a committed lesson that leads there


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
