"""Find the quantities (numbers) and comparisons in the prose of a lesson, and what supports each of them.

A quantity is bound if it occurs in the lesson's code (as a parameter, or in a checked statement), in an output that is
the same for any parameters, or in a cell tagged `fixed`. Figures in such a cell do not depend on a run: they are
defined, derived in the text, or cited. Quantities in words (twice, half, three times) are bound by this tag, or by
`claims.check` in the same section. `tests/notebooks` rejects lessons with unbound quantities.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from nbformat import NotebookNode

FIXED_TAG, SAME_OUTPUT_TAG = "fixed", "nbval-check-output"  # tags
COUNT_WORDS = "two|three|four|five|six|seven|eight|nine|ten|twenty|hundred"
# Code, formulas, links, citations, names of lessons, numbers of headings and lists, and years do not depend on a run.
SKIPPED_PATTERN = re.compile(
    r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|\[\d[\d, -]*\]|\b\d\d_\w+|^#+ .*$|^\s*\d+\. |\b(?:19|20)\d\d\b|</?\w+>",
    flags=re.MULTILINE | re.DOTALL,
)
NUMBER_PATTERN = re.compile(r"(?<![\w.])\d+(?:[_,]\d+)*(?:\.\d+)?(?:e[-+]?\d+)?(?:\s?%)?(?!\.?\w)")
RANGE_PATTERN = re.compile(r"(\d+)(?=\s?(?:to|and|or|–|-|,)\s?\d+(?:\.\d+)?\s?%)")  # the first share of "32 to 64%"
WORDS_PATTERN = re.compile(
    rf"\b(?:twice|thrice|half (?:of|as|the)|a third of|a quarter of|(?:{COUNT_WORDS}) (?:times|percent|points))\b"
)
COMPARISON_PATTERN = re.compile(
    r"\b(?:\w+er than|more|less|fewer|better|worse|best|worst|most|least|largest|smallest|hardly|nearly|almost)\b"
)
MAX_COUNTED = 12  # integers up to this one count things that the text shows: heads, layers, exercises


class Quantity(NamedTuple):
    """A number or comparison in the prose of a lesson.

    Attributes:
        cell: the index of the cell.
        text: the number as it is written.
        sentence: the words around it.
        bound: what it is bound by: "code", "output", "fixed" or "check"; empty if it is unbound.
    """

    cell: int
    text: str
    sentence: str
    bound: str


def quantities(notebook: NotebookNode, comparisons: bool = False) -> list[Quantity]:
    """Return the quantities in the Markdown cells of a lesson and in the titles of its pictures.

    Args:
        notebook: the lesson, with its outputs.
        comparisons: whether to add comparisons (better, most, hardly), which only a reader can check.
    """
    code = {value for cell in notebook.cells if cell.cell_type == "code" for value in _literals(cell.source)}
    outputs = _numbers("\n".join(_same_outputs(notebook)))
    checked = _checked_sections(notebook)
    found = []
    for index, (cell, section) in enumerate(zip(notebook.cells, _sections(notebook))):
        fixed, is_checked = FIXED_TAG in cell.metadata.get("tags", []), section in checked
        for text in _passages(cell):
            for match, kind in _matches(text, comparisons):
                if fixed:
                    bound = "fixed"
                elif kind is NUMBER_PATTERN:
                    value = _value(match[0])
                    bound = "code" if value in code else "output" if value in outputs else ""
                else:
                    bound = "check" if is_checked else ""
                found.append(Quantity(index, match[0].strip(), _around(text, match), bound))
    return found


def _matches(text: str, comparisons: bool) -> Iterator[tuple[re.Match[str], re.Pattern[str]]]:
    for kind in (NUMBER_PATTERN, WORDS_PATTERN, *((COMPARISON_PATTERN,) if comparisons else ())):
        for match in kind.finditer(text):
            if kind is not NUMBER_PATTERN or not _counts(match[0]):
                yield match, kind


def _counts(text: str) -> bool:
    """Return whether a number is an integer up to `MAX_COUNTED`, which counts things that the text shows."""
    return text.isdigit() and int(text) <= MAX_COUNTED


def _passages(cell: NotebookNode) -> list[str]:
    """Return the prose of a Markdown cell without skipped parts, or the titles in the code of a code cell."""
    if cell.cell_type == "code":
        return _titles(cell.source)
    if cell.source.startswith("## References"):
        return []
    prose = SKIPPED_PATTERN.sub(lambda match: " " * len(match[0]), cell.source)
    return [RANGE_PATTERN.sub(r"\1%", prose)]


def _literals(source: str) -> set[float]:
    """Return the numbers in code and in its strings that are not titles."""
    titles, values = _titles(source), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            values.add(float(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in titles:
            values |= _numbers(node.value)
    return values


def _titles(source: str) -> list[str]:
    """Return the titles in code that are plain strings; numbers in an f-string are computed."""
    titles = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "title" for target in node.targets):
            titles.append(node.value)
        elif isinstance(node, ast.Call):
            titles += [keyword.value for keyword in node.keywords if keyword.arg == "title"]
    return [title.value for title in titles if isinstance(title, ast.Constant) and isinstance(title.value, str)]


def _same_outputs(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        if SAME_OUTPUT_TAG in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                yield "".join(output.get("text", "")) + "".join(output.get("data", {}).get("text/plain", ""))


def _sections(notebook: NotebookNode) -> Iterator[int]:
    """Yield the index of each cell's section; a section begins at a heading of level 2."""
    section = 0
    for cell in notebook.cells:
        section += cell.cell_type == "markdown" and cell.source.startswith("## ")
        yield section


def _checked_sections(notebook: NotebookNode) -> set[int]:
    cells = zip(notebook.cells, _sections(notebook))
    return {section for cell, section in cells if cell.cell_type == "code" and "claims.check(" in cell.source}


def _numbers(text: str) -> set[float]:
    """Return the values of the numbers in a text."""
    return {_value(match[0]) for match in NUMBER_PATTERN.finditer(RANGE_PATTERN.sub(r"\1%", text))}


def _value(text: str) -> float:
    """Return the value of a number; a percentage as a fraction."""
    value = float(re.sub(r"[,_%\s]", "", text))
    return round(value / 100, 9) if "%" in text else value


def _around(text: str, match: re.Match[str]) -> str:
    """Return the words around a match, on one line."""
    start, end = max(0, match.start() - 60), match.end() + 50
    return " ".join(text[start:end].split())
