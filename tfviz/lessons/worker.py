"""Worker processes that run notebooks, each with one kernel at a time, and that end with the main process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, runtime_checkable

import nbformat
import papermill
import psutil
from nbformat.sign import NotebookNotary
from papermill.exceptions import PapermillExecutionError

from tfviz import files
from tfviz.lessons import gallery, lesson_page, notebooks
from tfviz.lessons.course import Lesson
from tfviz.lessons.runs import MAX_ERROR_LENGTH, Outcome, Run, outcome
from tfviz.text.corpora import CALLED_FROM

_reports: SimpleQueue[tuple[str, int, int]] | None = None  # of a worker process, to the main process


@runtime_checkable
class _Lifeline(Protocol):
    """The receiving end of a pipe, whose class differs on Windows."""

    def recv(self) -> Any: ...


def child_environment(threads: int | None = None) -> dict[str, str]:
    """Return the environment of kernel processes: this process's variables, and defaults for unset ones.

    Idle threads of PyTorch sleep (`OMP_WAIT_POLICY=PASSIVE`), so that several kernels can share the processor. Kernels
    run this Python rather than one from the user's home folder (`JUPYTER_PREFER_ENV_PATH`).

    Args:
        threads: number of PyTorch threads in each kernel; None for PyTorch's default.
    """
    defaults = {"OMP_WAIT_POLICY": "PASSIVE", "JUPYTER_PREFER_ENV_PATH": "1"}
    return {**defaults, **os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}


def init_worker(lifeline: _Lifeline, threads: int | None, reports: SimpleQueue[tuple[str, int, int]]) -> None:
    """Initialize a worker process, which ends when the main process does.

    Args:
        lifeline: a pipe whose other end only the main process holds.
        threads: number of PyTorch threads in each kernel.
        reports: a queue for (title of a run, number of the cell that starts, number of cells).
    """
    global _reports
    _reports = reports
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C in a terminal reaches the main process alone, which then ends the workers
    else:  # on Windows it reaches every process of the terminal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(child_environment(threads))
    os.environ[CALLED_FROM] = os.getcwd()  # base of relative paths in parameters; kernels run elsewhere
    signal.signal(signal.SIGTERM, _end_process)  # the pool sends it to all workers when one has ended
    threading.Thread(target=_end_with_main, args=[lifeline], daemon=True).start()


def _end_with_main(lifeline: _Lifeline) -> None:
    """Wait until the main process ends or closes its end of the pipe, then end the kernel and this worker."""
    with suppress(EOFError, OSError):
        lifeline.recv()
    if hasattr(signal, "pthread_kill"):  # the main thread starts the kernels: while it ends them, it starts none
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    else:
        _end_process()


def _end_process(number: int = 0, frame: FrameType | None = None) -> None:
    """End this process and all of its descendants."""
    try:
        kill_descendants(psutil.Process())
    finally:  # an error must not be reported as one of the notebook that is running
        os._exit(1)


def kill_descendants(process: psutil.Process) -> None:
    """Kill all descendants of a process; each is suspended first, so that it cannot start another."""
    descendants: set[psutil.Process] = set()
    while found := set(process.children(recursive=True)) - descendants:
        descendants |= found
        for each in found:
            with suppress(psutil.Error):
                each.suspend()
    for each in descendants:
        with suppress(psutil.Error):
            each.kill()


def execute(run: Run, out: Path, timeout: int | None = None, lessons: Sequence[Lesson] = ()) -> Outcome:
    """Run one notebook in a kernel, write it and its page below `out`, and return the outcome.

    The notebook's metadata record the fingerprint of a run that succeeded, or the error of a run that failed; `runner`
    reads them.

    Args:
        run: the notebook and its parameters.
        out: the folder of the results.
        timeout: maximum time of a cell, in seconds.
        lessons: the lessons that the page links to.
    """
    started, path, notebook, error = time.perf_counter(), run.path(out, ".ipynb"), run.notebook, ""
    draft = path.with_name(f".{run.name}.draft.ipynb")  # fixed name: the next run overwrites leftovers
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        try:
            notebook = _execute(run, draft, timeout)
        except Exception as failure:  # an error in a cell, a dead kernel, a timeout: keep what ran before it
            error = _describe(failure)
            notebook = notebooks.read(draft) if draft.is_file() else notebook
        seconds = round(time.perf_counter() - started, 1)
        try:
            index = "../" * bool(run.subfolder) + "index.html"
            navigation = gallery.navigation({"All notebooks": index})
            page = path.with_name(f"{run.name}.html")
            lesson_page.write(notebook, page, navigation, () if run.subfolder else lessons)
        except Exception as failure:  # a page that nbconvert cannot make
            error = error or _describe(failure)
        ended = {"error": error[:MAX_ERROR_LENGTH]} if error else {"fingerprint": run.fingerprint}
        notebook.metadata["tfviz"] = {**ended, "seconds": seconds}
        nbformat.write(notebook, draft)
        files.replace(draft, path)
        with suppress(OSError):  # without a home there is no key, and JupyterLab asks whether to trust the notebook
            NotebookNotary().sign(notebook)
    except Exception as failure:  # such as a full disk
        error = error or _describe(failure)
    return outcome(notebook, "failed" if error else "ok", time.perf_counter() - started, error)


def _execute(run: Run, draft: Path, timeout: int | None, again: bool = True) -> nbformat.NotebookNode:
    """Execute a notebook with papermill, and return it with its outputs.

    A kernel that does not start is started once more: its ports are chosen before it starts, and another process may
    have taken one of them in the meantime.
    """
    started = False

    def report(cell: nbformat.NotebookNode, cell_index: int) -> None:
        nonlocal started
        started = True
        _report(run, cell_index + 1)

    _report(run, 0)
    try:
        return papermill.execute_notebook(
            run.notebook, str(draft), run.parameters, kernel_name="python3", language="python",
            progress_bar=False, cwd=str(draft.parent), execution_timeout=timeout,
            extra_arguments=["--log-level=CRITICAL"], on_cell_start=report,
        )  # fmt: skip
    except Exception:
        if started or not again:
            raise
    return _execute(run, draft, timeout, again=False)


def _report(run: Run, cell: int) -> None:
    """Send the main process the number of the cell that starts, counted from 1; 0 is the start of the kernel."""
    if _reports is not None:
        count = len(run.notebook.cells) + bool(run.parameters)  # papermill adds a cell for parameters
        _reports.put((run.title, cell, count))


def _describe(error: Exception) -> str:
    """Return an error as one sentence, which begins with the cell if the error occurred in a cell."""
    if not isinstance(error, PapermillExecutionError):
        return f"{type(error).__name__}: {error}"
    first = (error.source.strip() or "an empty cell").splitlines()[0]
    return f"cell In [{error.exec_count}] ({first}): {error.ename}: {error.evalue}"
