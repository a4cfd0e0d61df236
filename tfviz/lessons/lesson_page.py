"""Write notebooks as self-contained pages with contents, links to other lessons, and foldable code."""

from __future__ import annotations

import base64
import copy
import io
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import nbformat
from PIL import Image

from tfviz import files
from tfviz.lessons import clean, course, injected_parameters, install_cell, notebooks
from tfviz.lessons.course import Lesson
from tfviz.lessons.html_parts import (
    STYLE,
    TEMPLATES,
    code_colours,
    contents,
    description,
    picture,
    render,
    script,
    scrolling_table,
)

PROGRESS_BAR = re.compile(r"[^\r\n]*\d%\|[^|\r\n]*\|[^\r\n]*[\r\n]*")  # of tqdm
CONTENTS_PLACEHOLDER, TITLE_PLACEHOLDER = "<!-- contents -->", "<!-- title -->"  # in the template
OPENING_WIDTH, OPENING_QUALITY = 1520, 80  # of the file of the first picture: pixels, and WEBP quality
MAX_OPENING = 400_000  # letters of a view's data and picture that a page may have twice
VIEW = '<div class="tfviz" data-view='
LESSON_STYLE = (TEMPLATES / "lesson.css").read_text(encoding="utf-8")


def write(
    notebook: nbformat.NotebookNode,
    path: Path,
    navigation: str = "",
    lessons: Sequence[Lesson] = (),
    relink: Callable[[str], str] | None = None,
) -> None:
    """Write a notebook as an HTML page that needs no network, with formulas as MathML.

    Args:
        notebook: the notebook.
        path: the path of the page.
        navigation: HTML with links to other pages, for the top.
        lessons: the lessons whose pages are in the same folder, in the order of the course.
        relink: function from an address in the notebook to the address on the page; by default, links to notebooks
            become links to their pages.
    """
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor  # joins what was printed in pieces

    from tfviz.lessons.html_exporter import MathMLExporter

    addresses = {lesson.name: lesson.address for lesson in lessons if lesson.name != path.stem}
    exporter = MathMLExporter(
        template_name="lesson",
        extra_template_basedirs=[str(TEMPLATES)],
        embed_images=True,
        exclude_output_prompt=True,
        preprocessors=[CoalesceStreamsPreprocessor],
        **dict.fromkeys(("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url"), ""),
    )
    exporter.addresses = addresses
    exporter.relink = relink or (lambda url: _page_address(url, addresses))
    resources = {
        "navigation": navigation,
        "style": STYLE + LESSON_STYLE + code_colours(".highlight"),
        "script": script("lesson"),
        "description": description(course.describe(notebook, path.stem).promise),
        **_course_links(lessons, path.stem),
    }
    bundles: set[str] = set()  # keys of those that the page already has
    opening = _opening(notebook, bundles)
    body = exporter.from_notebook_node(_for_page(notebook, path.stem, bundles), resources)[0]
    title = "" if any(heading.level == 1 for heading in exporter.headings) else f"<h1>{escape(path.stem)}</h1>"
    body = body.replace(CONTENTS_PLACEHOLDER, contents(exporter.headings), 1).replace(TITLE_PLACEHOLDER, title, 1)
    after = body.index("</h1>") + len("</h1>")
    next_cell = body.find('<div class="jp-Cell ', after)
    paragraph = body.find("</p>", after, next_cell if next_cell > 0 else len(body))  # the first of the promise
    after = paragraph + len("</p>") if paragraph > 0 else after
    body = f"{body[:after]}{opening}{body[after:]}"
    draft = path.with_name(f".{path.name}.draft")  # `atomic` would remove drafts of other workers
    draft.write_text(body, encoding="utf-8", newline="\n", errors="replace")
    files.replace(draft, path)


def _opening(notebook: nbformat.NotebookNode, bundles: set[str]) -> str:
    """Return the HTML of the lesson's first view or picture, from the cell tagged `thumbnail`; empty if there is none.

    A view is there a second time, alive, unless it holds much data; then its picture stands for it. A link leads to the
    cell.
    """
    cells = [
        (cell, output) for cell in notebooks.tagged_cells(notebook, "thumbnail") for output in cell.get("outputs", [])
    ]
    pictures = [(cell, output) for cell, output in cells if "image/png" in output.get("data", {})]
    if not pictures:
        return ""
    cell, output = pictures[-1]
    view = _live_view(cell, bundles)
    is_picture_of_view = not view and any("text/html" in other.get("data", {}) for other in cell.outputs)
    return render(
        "opening.html.j2",
        shown=view or _small_picture(output),
        address=f"#cell-id={cell.id}",
        is_picture_of_view=is_picture_of_view,
    )


def _live_view(cell: nbformat.NotebookNode, bundles: set[str]) -> str:
    """Return the HTML of a cell's last view, with the bundles that are not there yet; empty if it is too long."""
    from tfviz.view.page.bundle import BUNDLE, deduplicate  # imports matplotlib

    views = [
        output["data"]["text/html"] for output in cell.outputs if VIEW in output.get("data", {}).get("text/html", "")
    ]
    if not views or len(BUNDLE.sub("", views[-1])) > MAX_OPENING:
        return ""
    return deduplicate(views[-1], bundles)


def _small_picture(output: nbformat.NotebookNode) -> str:
    """Return the HTML of an output's picture, with no more pixels than a page shows."""
    png, width = output["data"]["image/png"], output["metadata"].get("image/png", {}).get("width")
    image, made = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), io.BytesIO()
    image.thumbnail((OPENING_WIDTH, OPENING_WIDTH))
    image.save(made, "WEBP", quality=OPENING_QUALITY)
    return picture(f"data:image/webp;base64,{base64.b64encode(made.getvalue()).decode()}", "", width, "opening")


def _page_address(url: str, addresses: dict[str, str]) -> str:
    """Return the address of a notebook's page for a link to a notebook in the same folder; other links unchanged."""
    match = re.fullmatch(r"(?:\./)?([^/#:]+)\.ipynb(#.*)?", url)
    return addresses[match[1]] + (match[2] or "") if match and match[1] in addresses else url


def _course_links(lessons: Sequence[Lesson], name: str) -> dict[str, str]:
    """Return the HTML for the "top" and the "end" of a lesson's page, with its place and neighbours in the course."""
    around = course.neighbours(lessons, name)
    lesson = next((each for each in lessons if each.name == name), None)
    values = {"around": around, "lesson": lesson, "count": len(lessons)}
    return {part: render("lesson_links.html.j2", part=part, **values) for part in ("top", "end")}


def _for_page(notebook: nbformat.NotebookNode, name: str, bundles: set[str]) -> nbformat.NotebookNode:
    """Return a copy of a notebook prepared for a page, with views that need no kernel instead of widgets.

    The link to the interactive page is removed, since it leads to this page, and so is the cell that installs tfviz.
    Bundles are included once, unless their keys are in `bundles`, to which they are added. Parameters are merged into
    one cell. Tables scroll separately. Progress bars are removed.
    """
    from tfviz.view.page.bundle import deduplicate  # imports matplotlib

    page = copy.deepcopy(notebook)
    page.metadata.pop("widgets", None)
    page.metadata["title"] = course.heading(page, name)[0]
    install_cell.remove(page)
    injected_parameters.merge(page)
    if page.cells:
        page.cells[0].source = clean.without_live_link(page.cells[0].source)
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.outputs = _without_progress_bars(cell.outputs)
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            data.pop(clean.WIDGET_MIME_TYPE, None)
            if "text/html" in data:
                data["text/html"] = _scrolling(deduplicate(data["text/html"], bundles))
    return page


def _without_progress_bars(outputs: Sequence[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return outputs without the progress bars in stderr; an output that held nothing else is left out."""
    for output in outputs:
        if output.get("name") == "stderr":
            output["text"] = PROGRESS_BAR.sub("", output["text"])
    return [output for output in outputs if output.get("name") != "stderr" or output["text"].strip()]


def _scrolling(html: str) -> str:
    """Return an HTML output whose tables scroll separately; an output with scripts is unchanged."""
    if "<script" in html:
        return html
    return re.sub(r"<table\b.*?</table>", lambda table: scrolling_table(table[0]), html, flags=re.DOTALL)
