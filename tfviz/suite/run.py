"""Run notebooks through papermill: several at once, each whole or not at all, finished ones once."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary

from tfviz.files import atomic
from tfviz.suite import gallery, grid, notebooks, work


@dataclass
class Result:
    """One notebook's run.

    Attributes:
        status: waiting, running, ok, unchanged or failed.
        result: what the notebook says of itself: the text of its cell tagged `result`.
        error: what went wrong, and in which cell.
        folder: where it lies below the folder of all, when there are several of one notebook.
    """

    name: str
    preset: str
    parameters: dict[str, Any]
    fingerprint: str
    folder: str = ""
    status: str = "waiting"
    seconds: float = 0.0
    result: str = ""
    error: str = ""
    source: Path = field(default=Path(), compare=False)

    @property
    def title(self) -> str:
        """The notebook and what sets this run of it apart."""
        return f"{self.name} ({self.folder})" if self.folder else self.name

    @property
    def page(self) -> str:
        """Its page, from the folder of all."""
        return f"{self.folder}/{self.name}.html" if self.folder else f"{self.name}.html"

    def file(self, out: Path, ending: str) -> Path:
        """One of its files: `.ipynb`, `.html` or `.json`."""
        return out / self.folder / f"{self.name}{ending}"

    def write(self, out: Path) -> None:
        """Keep it beside the notebook, for the next run and for the gallery."""
        with atomic(self.file(out, ".json")) as draft:
            draft.write_text(json.dumps({**asdict(self), "source": None}, indent=1))


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
    _writable(out)

    def show() -> None:
        gallery.write(results, out)
        if over:
            grid.write(results, list(over), out)

    for result in results:
        if not force:
            _recall(result, out)
        if result.status == "unchanged":
            tell(f"{result.title}: unchanged since it ran in {result.seconds:.0f} s")
    show()
    tell(f"gallery: {out / 'index.html'}")
    with work.pool(jobs, scheduler) as pool:
        waiting = {
            _submit(pool, result, out, jobs, scheduler): result for result in results if result.status == "waiting"
        }
        for result in _ended(waiting, out):
            tell(
                f"{result.title}: {result.status}, {result.seconds:.0f} s{'; ' + result.error if result.error else ''}"
            )
            show()
    return results


def _plans(path: Path, preset: str, given: dict[str, Any], over: Mapping[str, Sequence[Any]]) -> Iterable[Result]:
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in nbformat.read(path, 4).cells]
    package = Path(__file__).parents[1]
    sources = [file.read_text() for file in sorted(package.rglob("*.py"))]
    for chosen in grid.combinations(over, list(notebooks.parameters(path))):
        values = notebooks.values(path, preset, {**given, **chosen})
        known = json.dumps([cells, values, sources, version("torch")], default=str)
        fingerprint = hashlib.sha256(known.encode()).hexdigest()
        yield Result(path.stem, preset, values, fingerprint, grid.folder(chosen), source=path)


def _writable(out: Path) -> None:
    try:
        with atomic(out / ".tfviz") as draft:
            draft.write_text("")
        (out / ".tfviz").unlink()
    except OSError as error:
        raise OSError(f"cannot write to {out}: {error.strerror or error}; choose another folder with --out") from error


def _recall(result: Result, out: Path) -> None:
    try:
        old = json.loads(result.file(out, ".json").read_text())
        same = old["fingerprint"] == result.fingerprint and old["status"] == "ok"
        if same and result.file(out, ".ipynb").is_file():
            result.status, result.seconds, result.result = "unchanged", old["seconds"], old["result"]
    except (OSError, ValueError, KeyError):
        pass  # nothing to recall


def _submit(pool: Executor, result: Result, out: Path, jobs: int, scheduler: str | None) -> Future[work.Done]:
    here = result.file(out, "").parent if scheduler is None else None
    if here:
        here.mkdir(parents=True, exist_ok=True)
    threads = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 and here else None
    bar = jobs == 1 and here is not None and sys.stderr.isatty()  # then papermill's own goes to the terminal
    source, cwd = result.source.read_text(encoding="utf-8"), str(here) if here else None

    def begin() -> work.Done:
        result.status = "running"
        return perform()

    perform = partial(work.perform, result.name, source, result.parameters, threads, cwd, bar)
    return pool.submit(begin if here else perform)  # a cluster does not tell when it begins


def _ended(waiting: Mapping[Future[work.Done], Result], out: Path) -> Iterable[Result]:
    """Results in the order in which they come; a notebook takes its place only when it has come to its end."""
    for future in as_completed(waiting):
        result = waiting[future]
        try:
            done = future.result()
            result.error, result.seconds = done.error, done.seconds
            if done.text:
                _keep(result, nbformat.reads(done.text, as_version=4), out)
        except Exception as error:  # whatever happened to a worker: it is said, and the others go on
            result.error = f"could not run: {error}"
        result.status = "failed" if result.error else "ok"
        result.write(out)
        yield result


def _keep(result: Result, notebook: nbformat.NotebookNode, out: Path) -> None:
    result.result = _said(notebook)
    with atomic(result.file(out, ".ipynb")) as draft:
        nbformat.write(notebook, draft)
        NotebookNotary().sign(notebook)
    gallery.page(notebook, result.file(out, ".html"), home="../" * bool(result.folder) + "index.html")


def _said(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebooks.tagged(notebook, "result") for output in cell.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join(text.strip().strip("'\"") for text in texts)
