"""`tfviz site`: the lessons alive, the guide, the reference and the measurements, as plain files of one look.

The tree of the site is that of the clone: `benchmarks/README.md` becomes `benchmarks/index.html`, and a lesson
`notebooks/12_gpt.html`. Nothing in it asks any host for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tfviz.suite import demo, gallery, notebooks
from tfviz.suite.run import run
from tfviz.suite.site import prose, reference
from tfviz.suite.site.frame import way


def build(
    names: Sequence[str], preset: str, out: Path, jobs: int = 1, tell: Callable[[str], None] = print
) -> list[str]:
    """Write the site into `out`; a lesson that has run there and has not changed is not run again.

    Args:
        names: lessons, all of them where none is named.
        jobs: lessons at a time.

    Returns:
        The lessons that failed; their pages are missing, all others stand.

    Raises:
        LookupError: a lesson or preset that does not exist.
        FileNotFoundError: this is no clone, or a text leads to a file that is not there.
        ImportError: pdoc is not installed.
        OSError: `out` cannot be written to.
    """
    clone = notebooks.folder().parent
    if not (clone / "README.md").is_file():
        raise FileNotFoundError("the guide and the measurements are not installed; run this from a clone of tfviz")
    reference.needed()
    results = run(names, preset, {}, out / "notebooks", jobs, False, tell)
    for result in results:
        if result.file(out / "notebooks", ".html").is_file():
            ran = notebooks.load(result.file(out / "notebooks", ".ipynb"))
            gallery.page(ran, result.file(out / "notebooks", ".html"), way("../", "Lessons"))
    gallery.write(results, out / "notebooks", way("../", "Lessons"))
    tell("the demo, the guide, the measurements ...")
    demo.page(out / "demo.html", False, lambda line: None)
    prose.write(clone, out)
    tell("the reference ...")
    reference.write(out / "api")
    (out / ".nojekyll").write_bytes(b"")  # or GitHub's pages leave out some files
    return [result.title for result in results if result.status == "failed"]
