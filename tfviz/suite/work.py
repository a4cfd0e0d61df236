"""What a worker does, on this machine or on another: one notebook through papermill, from text to text."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml


class Done(NamedTuple):
    """How a notebook ended: its text, empty if papermill wrote none; what went wrong, and in which cell; seconds."""

    text: str
    error: str
    seconds: float


@contextmanager
def pool(jobs: int, scheduler: str | None) -> Iterator[Executor]:
    """Workers: threads here, each waiting for a papermill of its own, or those of a Dask cluster that runs already.

    Raises:
        OSError: there is no scheduler at this address.
        ImportError: `distributed` is not installed.
    """
    if scheduler is None:
        with ThreadPoolExecutor(jobs) as threads:
            yield threads
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install 'tfviz[cluster]', here and on its workers") from error
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except OSError as error:
        raise OSError(f"no Dask scheduler answers at {scheduler}: {error}") from error
    with client, client.get_executor(pure=False, retries=0) as cluster:
        yield cluster


def perform(name: str, source: str, values: dict[str, Any], threads: int | None, cwd: str | None, bar: bool) -> Done:
    """Run a notebook. It is written cell by cell in a folder that is gone afterwards, whatever happens.

    Args:
        source: the notebook, as text.
        values: its parameters.
        threads: for OpenMP; None leaves that to the machine.
        cwd: where it runs; None: in a folder of its own, as on another machine.
        bar: let papermill's progress bar through.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=cwd, ignore_cleanup_errors=True) as room:
        given, made = Path(room) / "given.ipynb", Path(room) / f"{name}.ipynb"
        given.write_text(source, encoding="utf-8")
        shown = "--progress-bar" if bar else "--no-progress-bar"
        command = [sys.executable, "-m", "papermill", str(given), str(made), shown, "--cwd", cwd or room,
                   "--kernel", "python3", "-y", yaml.safe_dump(values)]  # fmt: skip
        environment = {**os.environ, "JUPYTER_PREFER_ENV_PATH": "1"}
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                               stderr=None if bar else subprocess.PIPE)  # fmt: skip
        text = made.read_text(encoding="utf-8") if made.is_file() else ""
    said = (ended.stderr or "").strip()[-2000:] or "papermill ended early"
    error = (_error(text) if text else said) or (said if ended.returncode else "")
    return Done(text, error, round(time.perf_counter() - started, 1))


def _error(text: str) -> str:
    for cell in nbformat.reads(text, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                first = cell.source.strip().splitlines()[0]
                return f"cell In [{cell.execution_count}] ({first}): {output.ename}: {output.evalue}"
    return ""
