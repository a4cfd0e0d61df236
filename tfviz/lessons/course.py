"""The course: order and neighbours of lessons, and each lesson's title, summary, prerequisites and reading time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml
from nbformat import NotebookNode

from tfviz.lessons import install_cell, notebooks
from tfviz.lessons.clean import without_live_link
from tfviz.lessons.notebooks import tagged_cells

COURSE_FILE = "course.yaml"
QUESTIONS_PREFIX = "**Questions:**"  # of the paragraph in a notebook's first cell that lists its questions
PREREQUISITES_PREFIX = "You need "  # of the paragraph that names the lessons it builds on
WORDS_PER_MINUTE, LINES_PER_MINUTE = 200, 40  # reading speed of prose and of code


class Lesson(NamedTuple):
    """The description of a notebook on pages of the site.

    Attributes:
        promise: a line on what the lesson teaches; for a notebook outside the course, its first paragraph.
        minutes: reading time in minutes, a multiple of 5.
        needs: names of the lessons that it builds on.
        track: "line" in the main line of the course, "side" for its other lessons, "" for a notebook outside it.
    """

    name: str
    title: str
    promise: str
    minutes: int
    needs: tuple[str, ...]
    track: str

    @property
    def number(self) -> str:
        """The number at the beginning of the name, such as "12"; the whole name if there is none."""
        return match[0] if (match := re.match(r"\d+(?=_)", self.name)) else self.name

    @property
    def address(self) -> str:
        """The address of the notebook's page, relative to a page in the same folder."""
        return quote(f"{self.name}.html")


class Neighbours(NamedTuple):
    """The lessons before and after a lesson, and the next lesson of the main line, None if that is `next`."""

    previous: Lesson | None
    next: Lesson | None
    main_line: Lesson | None


def describe(notebook: NotebookNode, name: str) -> Lesson:
    """Return the description of a notebook, from its first cell and the course."""
    course = _course(notebooks.folder())
    title, paragraph = heading(notebook, name)
    promise = course["promises"].get(name)
    track = "" if promise is None else "line" if name in course["line"] else "side"
    return Lesson(name, title, promise or paragraph, _minutes(notebook), _needs(notebook), track)


@cache
def _course(folder: Path) -> dict[str, Any]:
    path = folder / COURSE_FILE
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {"line": [], "promises": {}}


def neighbours(lessons: Sequence[Lesson], name: str) -> Neighbours:
    """Return the lessons before and after the lesson `name`, in the order of `lessons`."""
    names = [lesson.name for lesson in lessons]
    if name not in names:
        return Neighbours(None, None, None)
    at = names.index(name)
    before, after = lessons[:at], lessons[at + 1 :]
    following = after[0] if after else None
    line = next((lesson for lesson in after if lesson.track == "line"), None)
    return Neighbours(before[-1] if before else None, following, line if line is not following else None)


def heading(notebook: NotebookNode, name: str) -> tuple[str, str]:
    """Return the title and the first paragraph of a notebook's first cell, without emphasis."""
    parts = _without_emphasis(without_live_link(_first_cell(notebook))).strip().split("\n\n")
    return parts[0].lstrip("# ") or name, parts[1].replace("\n", " ") if len(parts) > 1 else ""


def questions(notebook: NotebookNode) -> list[str]:
    """Return the questions that a notebook promises to answer, without emphasis."""
    line = _without_emphasis(_paragraph(notebook, QUESTIONS_PREFIX)).replace("\n", " ")
    return [question.strip() for question in re.findall(r"[^?]+\?", line)]


def _needs(notebook: NotebookNode) -> tuple[str, ...]:
    """Return the names of lessons in the first cell's sentence on prerequisites."""
    sentence = re.split(r"\.\s", _paragraph(notebook, PREREQUISITES_PREFIX))[0]
    return tuple(sorted(set(re.findall(r"`(\d\d_\w+)`", sentence))))


def _minutes(notebook: NotebookNode) -> int:
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    to_read = [cell for cell in notebook.cells if cell not in tagged_cells(notebook, install_cell.TAG)]
    lines = sum(len(cell.source.splitlines()) for cell in to_read if cell.cell_type == "code")
    return max(5, 5 * round((words / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE) / 5))


def _paragraph(notebook: NotebookNode, start: str) -> str:
    """Return the paragraph of the first cell that begins with `start`, without `start`."""
    paragraphs = _first_cell(notebook).split("\n\n")
    return next((each.removeprefix(start) for each in paragraphs if each.startswith(start)), "")


def _first_cell(notebook: NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def _without_emphasis(markdown: str) -> str:
    return re.sub(r"\*+|`", "", markdown)
