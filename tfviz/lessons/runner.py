"""Run notebooks with papermill, several at a time, and update a gallery of the results after each.

Each notebook runs in a worker process with its own kernel. A worker and its kernel end when the main process ends, be
it by Ctrl-C, an error, a signal, or `kill -9`.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import compress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import click
import psutil

from tfviz import files
from tfviz.lessons import answers, gallery, notebooks, worker
from tfviz.lessons.course import Lesson
from tfviz.lessons.progress import Progress
from tfviz.lessons.runs import Outcome, Run, combinations, earlier, folder_name, outcome, write_table

REPORT_SECONDS = 0.3  # between two updates of the progress
WINDOWS_MAX_WORKERS = 61  # limit of ProcessPoolExecutor on Windows
GRACE_SECONDS = 20.0  # for workers to end their kernels after Ctrl-C


def run(
    names: Sequence[str],
    preset: str,
    overrides: Mapping[str, Any],
    out: Path,
    jobs: int = 1,
    force: bool = False,
    *,
    varied: Mapping[str, Sequence[Any]] | None = None,
    timeout: int | None = None,
    without_answers: bool = False,
) -> list[Run]:
    """Run notebooks into `out`, and write a gallery of them.

    A notebook that succeeded before with the same cells, parameters and package is not run again, unless `force` is
    True. An error in one notebook does not stop the others.

    Args:
        names: names of notebooks, as for `notebooks.find`.
        preset: the name of a preset of parameters.
        overrides: values of parameters that replace the preset's.
        out: the folder of the results.
        jobs: number of notebooks that run at a time.
        force: whether to run unchanged notebooks again.
        varied: values of parameters, of which every combination is run in a folder of its own; `results.csv` then
            has a row for each run.
        timeout: maximum time of a cell, in seconds.
        without_answers: whether to leave out the answers of exercises and questions.

    Raises:
        LookupError: a notebook or preset does not exist.
        TypeError: a value has another type than the parameter's default.
        ValueError: two runs have the same name, or a lesson cannot use a value of `overrides` or `varied`.
        OSError: `out` cannot be written to.
    """
    varied, out = varied or {}, Path(os.path.realpath(out))
    runs = []
    for path in notebooks.find(names):
        planned = list(_plan(path, preset, overrides, varied, without_answers))
        if (overrides or varied) and path in notebooks.find():
            _check_values(planned, varied)
        runs += planned
    _check_titles(runs)
    there: list[Run] = []  # of earlier calls

    def show() -> None:
        if varied:
            write_table(runs, list(varied), out)
        gallery.write(sorted([*runs, *there], key=lambda each: each.name), out)

    show()
    _announce(runs, preset, overrides, out)
    if not force:
        for each in runs:
            _reuse(each, out)
    there += earlier(out, runs)
    show()
    try:
        waiting = [each for each in runs if each.outcome.status == "waiting"]
        for each in _execute(waiting, out, jobs, timeout, gallery.lessons(runs)):
            ended = each.outcome
            click.echo(f"{each.title}: {ended.status}, {ended.seconds:.0f} s{'; ' * bool(ended.error)}{ended.error}")
            show()
    except BaseException:
        for each in runs:
            each.outcome = Outcome("stopped") if each.outcome.status == "waiting" else each.outcome
        show()
        raise
    return runs


def _announce(runs: Sequence[Run], preset: str, overrides: Mapping[str, Any], out: Path) -> None:
    """Print what will be run, before the first notebook starts, since it may run for minutes."""
    given = "".join(f", {name}={value}" for name, value in overrides.items())
    listed = ", ".join(each.title for each in runs)
    click.echo(f"{len(runs)} to run with preset {preset}{given}: {listed}\ngallery: {out / 'index.html'}")
    if preset == "smoke":
        click.echo(
            "smoke is a test: models that are hardly trained do not bear out what the lessons say (✗ in the pages)"
        )


def _plan(
    path: Path, preset: str, overrides: Mapping[str, Any], varied: Mapping[str, Sequence[Any]], without: bool = False
) -> Iterator[Run]:
    """Yield a run for each combination of the notebook's varied parameters; `without` removes answers."""
    notebook = answers.without_answers(notebooks.read(path)) if without else notebooks.read(path)
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in notebook.cells]
    for combination in combinations(varied, notebooks.parameters(path)):
        values = notebooks.values(path, preset, {**overrides, **combination})
        content = json.dumps([cells, values, _package_hash(), version("torch")])
        fingerprint = hashlib.sha256(content.encode()).hexdigest()
        yield Run(path.stem, values, notebook, fingerprint, folder_name(combination))


def _check_values(runs: Sequence[Run], varied: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError if a lesson cannot use any of these runs, or any run with a certain value of a grid."""
    from tfviz.lessons import parameters  # loads PyTorch

    refusals: list[Exception | None] = []
    for each in runs if runs[0].name in parameters.LESSON_CHECKS else []:
        try:
            parameters.check(each.name, each.parameters)
            refusals.append(None)
        except (LookupError, TypeError, ValueError) as error:
            refusals.append(error)
    for each, refusal in zip(runs, refusals):
        alike = [[run.parameters.get(name) == each.parameters.get(name) for run in runs] for name in varied]
        if refusal and any(all(compress(refusals, chosen)) for chosen in alike or [[True]]):
            raise ValueError(f"{each.name}: {refusal.args[0]}") from refusal


@cache
def _package_hash() -> str:
    sources = [file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def _check_titles(runs: Sequence[Run]) -> None:
    """Raise ValueError if two runs would write the same file, or one would overwrite the gallery."""
    titles = Counter(each.title.casefold() for each in runs)
    if repeated := [title for title, count in titles.items() if count > 1]:
        raise ValueError(f"{', '.join(repeated)}: asked for twice; name each notebook and each value once")
    if "index" in titles:
        raise ValueError("the page of index.ipynb would take the place of the gallery; rename the notebook")


def _reuse(run: Run, out: Path) -> None:
    """Reuse the outcome of an earlier run that succeeded and had the same fingerprint."""
    with suppress(OSError, ValueError):
        executed = notebooks.read(run.path(out, ".ipynb"))
        record = executed.metadata.get("tfviz", {})
        if record.get("fingerprint") == run.fingerprint:
            run.outcome = outcome(executed, "unchanged", record["seconds"])
            click.echo(f"{run.title}: unchanged since it ran in {run.outcome.seconds:.0f} s")


def _execute(
    runs: Sequence[Run], out: Path, jobs: int, timeout: int | None, lessons: Sequence[Lesson]
) -> Iterator[Run]:
    """Execute runs in worker processes, and yield each run with its outcome when it ends."""
    jobs = min(jobs, WINDOWS_MAX_WORKERS) if files.WINDOWS else jobs
    threads = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 else None
    progress = Progress(sys.stderr)
    spawn, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    lifeline, other_end = spawn.Pipe(duplex=False)  # only this process holds the latter
    reports = spawn.SimpleQueue()
    with other_end, ProcessPoolExecutor(jobs, spawn, worker.init_worker, (lifeline, threads, reports)) as pool:
        try:
            futures = {pool.submit(worker.execute, each, out, timeout, lessons): each for each in runs}
            pending = set(futures)
            while pending:
                done, pending = wait(pending, REPORT_SECONDS, FIRST_COMPLETED)
                while not reports.empty():
                    progress.start(*reports.get())
                for future in done:
                    each, error = futures[future], future.exception()
                    each.outcome = Outcome("failed", error=f"its worker failed: {error}") if error else future.result()
                    progress.end(each.title)
                    yield each
                progress.show()
        except BaseException:
            workers = set(multiprocessing.active_children()) - others
            pool.shutdown(wait=False, cancel_futures=True)
            other_end.close()  # the workers end
            _kill(workers, GRACE_SECONDS)
            raise


def _kill(workers: Iterable[BaseProcess], grace: float) -> None:
    """Wait until `workers` have ended; after `grace` seconds or another Ctrl-C, kill the others and their kernels."""
    deadline = time.monotonic() + grace
    try:
        for each in workers:
            each.join(max(0.0, deadline - time.monotonic()))
    finally:
        for each in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill_descendants(psutil.Process(each.pid))
            each.kill()
