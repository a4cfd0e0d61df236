"""`tfviz site`: lessons, guide, reference and measurements as plain HTML files of one style.

The tree of the site is that of the clone: `benchmarks/README.md` becomes `benchmarks/index.html`, and a lesson
`notebooks/12_gpt.html`. No page requests anything from another host.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tfviz.suite import demo, gallery, notebooks
from tfviz.suite.runner import run
from tfviz.suite.site import markdown_pages, reference
from tfviz.suite.site.markdown_pages import site_navigation


def build(names: Sequence[str], preset: str, out: Path, jobs: int = 1) -> list[str]:
    """Write the site into `out`; a lesson that has run there and has not changed is not run again.

    Args:
        names: lessons, all of them if none is named.
        jobs: how many lessons run at a time.

    Returns:
        The lessons that failed, whose pages may be missing.

    Raises:
        LookupError: a lesson or preset that does not exist.
        FileNotFoundError: this is not a clone, or a text links to a file that does not exist.
        ImportError: pdoc is not installed.
        OSError: `out` cannot be written to.
    """
    clone = notebooks.folder().parent
    if not (clone / "README.md").is_file():
        raise FileNotFoundError("the guide and the measurements are not installed; run this from a clone of tfviz")
    reference.check_installed()
    lessons, navigation = out / "notebooks", site_navigation("../", "Lessons")
    runs = run(names, preset, {}, lessons, jobs)
    for each in runs:
        if each.path(lessons, ".html").is_file():
            gallery.page(notebooks.read(each.path(lessons, ".ipynb")), each.path(lessons, ".html"), navigation)
    gallery.write(runs, lessons, navigation)
    click.echo("the demo, the guide, the measurements ...")
    demo.page(out / "demo.html", False)
    markdown_pages.write(clone, out)
    click.echo("the reference ...")
    reference.write(out / "api")
    (out / ".nojekyll").touch()  # or GitHub's pages leave out some files
    return [each.title for each in runs if each.outcome.status == "failed"]
