"""`tfviz site`: write lessons, guide, reference and measurements as static HTML pages of one style.

The site has the same folders as the clone: `benchmarks/README.md` becomes `benchmarks/index.html`, and a lesson
becomes `notebooks/12_gpt.html`. No page requests anything from another host.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from tfviz.lessons import claims, demo, gallery, lesson_page, notebooks
from tfviz.lessons.runner import run
from tfviz.lessons.runs import Run
from tfviz.lessons.site import markdown_pages, reference, search_index
from tfviz.lessons.site.markdown_pages import site_navigation


def build(names: Sequence[str], preset: str, out: Path, jobs: int = 1) -> list[str]:
    """Write the site into `out`; unchanged lessons that already ran there are not run again.

    Args:
        names: names of lessons; empty: all lessons.
        preset: the preset with which the lessons are run.
        out: the folder of the site.
        jobs: number of lessons that run at a time.

    Returns:
        The lessons that failed, whose pages may be missing, and the lessons with a statement that does not hold.

    Raises:
        LookupError: a lesson or preset does not exist.
        FileNotFoundError: this is not a clone, or a text links to a file that does not exist.
        ImportError: pdoc is not installed.
        OSError: `out` cannot be written to.
    """
    clone = notebooks.folder().parent
    if not (clone / "README.md").is_file():
        raise FileNotFoundError("the guide and the measurements are not installed; run this from a clone of tfviz")
    reference.check_installed()
    runs = run(names, preset, {}, out / "notebooks", jobs)
    _write_lessons(runs, clone, out)
    click.echo("the demo, the guide, the measurements ...")
    demo.page(out / "demo.html", False)
    markdown_pages.write(clone, out)
    search_index.write(out)
    click.echo("the reference ...")
    reference.write(out / "api")
    (out / ".nojekyll").touch()  # otherwise GitHub Pages omits some files
    failed = [each for each in runs if each.outcome.status == "failed"]
    # with the preset "smoke", models are hardly trained, so statements need not hold
    checked = [] if preset == "smoke" else [each for each in runs if each not in failed]
    wrong = [each for each in checked if _report_claims(each, out / "notebooks")]
    return [each.title for each in (*failed, *wrong)]


def _report_claims(lesson: Run, folder: Path) -> list[str]:
    """Print and return the statements of a lesson that do not hold in its run."""
    wrong = claims.failed(notebooks.read(lesson.path(folder, ".ipynb")))
    for statement in wrong:
        click.echo(f"{lesson.title}: does not hold in this run: {statement}", err=True)
    return wrong


def _write_lessons(runs: Sequence[Run], clone: Path, out: Path) -> None:
    """Write the pages of lessons that ran, with links to the rest of the site, and the gallery."""
    folder, navigation = out / "notebooks", site_navigation("../", "Lessons")
    there = [each for each in runs if each.path(folder, ".html").is_file()]
    linked: set[Path] = set()
    for each in there:
        page, source = each.path(folder, ".html"), clone / "notebooks" / f"{each.name}.ipynb"
        relink = partial(markdown_pages.site_address, source=source, clone=clone, linked=linked)
        lesson_page.write(notebooks.read(page.with_suffix(".ipynb")), page, navigation, gallery.lessons(there), relink)
    markdown_pages.copy_linked(linked, clone, out)
    gallery.write(runs, folder, navigation)
