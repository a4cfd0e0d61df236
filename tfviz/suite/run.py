"""Run notebooks through papermill: several at once, each whole or not at all, finished ones once."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary

from tfviz.files import atomic
from tfviz.suite import gallery, grid, notebooks, work
from tfviz.suite.result import Result, cut

LONGEST = 2000  # characters of what went wrong


def run(
    names: Sequence[str],
    preset: str,
    given: dict[str, Any],
    out: Path,
    jobs: int = 1,
    force: bool = False,
    tell: Callable[[str], None] = print,
    *,
    over: Mapping[str, Sequence[Any]] | None = None,
    scheduler: str | None = None,
) -> list[Result]:
    """Run these notebooks (all, if none is named) into `out`, with a gallery that grows.

    A notebook that ran well with the same cells, parameters and package is not run again, unless `force`.

    Args:
        jobs: how many at a time, on this machine.
        over: values for parameters: each notebook is run with every combination of those that it has, in folders of
            their own, and `results.csv` and `results.html` hold them all.
        scheduler: address of a Dask scheduler, whose workers run them instead; if one dies, another begins anew.

    Raises:
        LookupError: a name, preset or parameter that does not exist; nothing was run.
        ValueError: two runs of one name; a parameter that has a value and is to be varied; nothing was run.
        OSError: `out` cannot be written to, or no scheduler answers.
    """
    paths, over = notebooks.find(names), over or {}
    notebooks.check(paths, {**given, **over})
    if both := given.keys() & over.keys():
        raise ValueError(f"{', '.join(sorted(both))}: given a value, and to be varied too; choose one")
    results = [result for path in paths for result in _plans(path, preset, given, over)]
    if twice := [title for title, count in Counter(result.title for result in results).items() if count > 1]:
        raise ValueError(f"asked for twice: {', '.join(twice)}; name each notebook and each value once")
    with work.pool(jobs, scheduler) as pool:
        _writable(out, results)
        show = partial(_show, results, list(over), out, tell)
        try:
            _all(pool, results, out, jobs, force, tell, show, here=scheduler is None)
        except BaseException:
            for result in results:
                result.status = "stopped" if result.status in ("waiting", "running") else result.status
            show()
            raise
    return results


def _all(
    pool: Executor,
    results: Sequence[Result],
    out: Path,
    jobs: int,
    force: bool,
    tell: Callable[[str], None],
    show: Callable[[], None],
    here: bool,
) -> None:
    for result in results:
        if not force:
            result.recall(out)
        if result.status == "unchanged":
            tell(f"{result.title}: unchanged since it ran in {result.seconds:.0f} s")
    show()
    tell(f"gallery: {out / 'index.html'}")
    waiting = {_submit(pool, result, out, jobs, here): result for result in results if result.status == "waiting"}
    for result in _ended(waiting, out, tell):
        tell(f"{result.title}: {result.status}, {result.seconds:.0f} s{'; ' + result.error if result.error else ''}")
        show()


def _show(results: Sequence[Result], varied: Sequence[str], out: Path, tell: Callable[[str], None]) -> None:
    """The gallery as it is now. What cannot be drawn or written stops nothing: notebooks that run are worth more."""
    try:
        gallery.write(results, out)
        if varied:
            grid.write(results, varied, out)
    except (OSError, ValueError) as error:
        tell(f"the gallery could not be written: {error}")


def _plans(path: Path, preset: str, given: dict[str, Any], over: Mapping[str, Sequence[Any]]) -> Iterable[Result]:
    notebook = notebooks.load(path)
    if (speaks := notebook.metadata.get("kernelspec", {}).get("language", "python")).lower() != "python":
        raise ValueError(f"{path} is written in {speaks}; only notebooks in Python can be run")
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in notebook.cells]
    for chosen in grid.combinations(over, list(notebooks.parameters(path))):
        values = notebooks.values(path, preset, {**given, **chosen})
        known = json.dumps([cells, values, _package(), version("torch")], default=str)
        fingerprint = hashlib.sha256(known.encode()).hexdigest()
        text = nbformat.writes(notebook)
        yield Result(path.stem, preset, values, fingerprint, grid.folder(chosen), source=text)


@cache
def _package() -> str:
    """What stands in this package, as a hash."""
    sources = [file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def _writable(out: Path, results: Sequence[Result]) -> None:
    """Say at once what would go wrong at the end; clear what runs that were killed have left."""
    try:
        with atomic(out / ".tfviz") as draft:
            draft.write_bytes(b" " * 4096)  # a full disk takes an empty file
        (out / ".tfviz").unlink()
    except OSError as error:
        raise OSError(f"cannot write to {out}: {error.strerror or error}; choose another folder with --out") from error
    for result in results:
        result.check(out)


def _submit(pool: Executor, result: Result, out: Path, jobs: int, here: bool) -> Future[work.Done]:
    cwd = result.file(out, "").parent if here else None
    if cwd:
        cwd.mkdir(parents=True, exist_ok=True)
    threads = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 and here else None
    bar = jobs == 1 and here and sys.stderr.isatty()  # then papermill's own goes to the terminal

    def begin() -> work.Done:
        result.status = "running"
        return perform()

    place = str(cwd) if cwd else None
    perform = partial(work.perform, result.name, result.source, result.parameters, threads, place, bar)
    return pool.submit(begin if here else perform)  # a cluster does not tell when it begins


def _ended(waiting: Mapping[Future[work.Done], Result], out: Path, tell: Callable[[str], None]) -> Iterable[Result]:
    """Results in the order in which they come; a notebook takes its place only when it has come to its end."""
    for future in as_completed(waiting):
        result = waiting[future]
        try:
            done = future.result()
            result.error, result.seconds = cut(done.error, LONGEST), done.seconds
            if done.text:
                _keep(result, notebooks.parse(done.text), out, tell)
        except Exception as error:  # whatever happened to a worker: it is said, and the others go on
            result.error = f"could not run: {error}"
        result.status = "failed" if result.error else "ok"
        try:
            result.write(out)
        except OSError as error:
            tell(f"{result.title}: no record was kept, so that it will run again: {error.strerror or error}")
        yield result


def _keep(result: Result, notebook: NotebookNode, out: Path, tell: Callable[[str], None]) -> None:
    """The notebook first; then what is nice to have beside it."""
    result.result = _said(notebook)
    text = nbformat.writes(notebook).encode("utf-8", "backslashreplace")  # half of a character, as JSON has it
    page = result.file(out, ".html")
    try:
        with atomic(result.file(out, ".ipynb")) as draft:
            draft.write_bytes(text)
    except OSError as error:
        result.error = f"ran, but {error.strerror or error}; {_elsewhere(result.name, text)}"
        return
    try:
        NotebookNotary().sign(notebook)
    except Exception as error:  # its keys lie in the reader's home, if there is one; its database may be anything
        tell(f"{result.title}: JupyterLab will ask whether it is to be trusted: {error}")
    try:
        back = {"All notebooks": "../" * bool(result.folder) + "index.html"}
        gallery.page(notebook, page, gallery.links(back))
    except Exception as error:  # what a notebook may hold, nbconvert may stumble over
        page.unlink(missing_ok=True)  # it showed another run
        tell(f"{result.title}: has no page: {error}")


def _elsewhere(name: str, text: bytes) -> str:
    """Keep what ran in another place, and say where."""
    for place in (tempfile.gettempdir, lambda: str(Path.home())):
        try:
            path = Path(tempfile.mkdtemp(prefix="tfviz-", dir=place())) / f"{name}.ipynb"
            path.write_bytes(text)
            return f"it is kept as {path}"
        except (OSError, RuntimeError):
            continue
    return "and there is no room for it elsewhere"


def _said(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebooks.tagged(notebook, "result") for output in cell.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join(text.strip().strip("'\"") for text in texts)
