"""Write the gallery page of executed notebooks, with a picture, the parameters and the result of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tfviz.files import atomic
from tfviz.lessons import course
from tfviz.lessons.html_parts import STYLE, render
from tfviz.lessons.runs import Run


def navigation(links: Mapping[str, str], current: str = "", search: str = "") -> str:
    """Return the HTML for the top of a page: a link that skips to the text, links to other pages, and the search.

    Args:
        links: name -> address of each page.
        current: the name of this page in `links`.
        search: the path from the page's folder to the folder of the search script, such as "./"; "" for no search.
    """
    return render("navigation.html.j2", links=links, current=current, search=search)


def lessons(runs: Sequence[Run]) -> list[course.Lesson]:
    """Return the lessons of runs without varied parameters, whose pages are in one folder, sorted by name."""
    return sorted(course.describe(run.notebook, run.name) for run in runs if not run.subfolder)


def write(runs: Sequence[Run], out: Path, navigation: str = "") -> Path:
    """Write the gallery of runs as `out/index.html` and return its path.

    Args:
        runs: the runs to show.
        out: the folder of the gallery.
        navigation: HTML with links to other pages, for the top; not empty for the gallery of the site.
    """
    first = {run.name: run for run in reversed(runs)}  # first run of each notebook
    cards = [_card(run, out) for run in runs]
    numbers = {card["lesson"].name: card for card in cards}
    page = render(
        "gallery.html.j2",
        style=STYLE,
        navigation=navigation,
        runs=runs,
        count=Counter(run.outcome.status for run in runs),
        table=any(run.subfolder for run in runs) and (out / "results.csv").is_file(),
        questions=[
            (question, _address(first[name], out, ".html"))
            for name in sorted(first)
            for question in course.questions(first[name].notebook)
        ],
        cards=cards,
        numbers=numbers,
        whole=all(card["lesson"].track for card in cards),
    )
    with atomic(out / "index.html") as draft:
        draft.write_text(page, encoding="utf-8", newline="\n", errors="replace")
    return out / "index.html"


def _card(run: Run, out: Path) -> dict[str, Any]:
    addresses = {"page": _address(run, out, ".html"), "notebook": _address(run, out, ".ipynb")}
    return {"run": run, "lesson": course.describe(run.notebook, run.name), **addresses}


def _address(run: Run, out: Path, suffix: str) -> str:
    """Return the address of a run's file, relative to the gallery; empty if it has not been written."""
    path = run.path(out, suffix)
    if run.outcome.status in ("waiting", "stopped") or not path.is_file():
        return ""
    return quote(path.relative_to(out).as_posix(), safe="/=,+~")
