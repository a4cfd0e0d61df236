"""What a worker does, on this machine or on another: one notebook through papermill, from text to text."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import nbformat

RUNNER = str(Path(__file__).with_name("runner.py"))
RUNNING: set[subprocess.Popen] = set()  # of this process, in any of its threads
PATIENCE = 1.5  # seconds for a scheduler's answer


class Done(NamedTuple):
    """How a notebook ended: its text, empty if papermill made none; what went wrong, and in which cell; seconds."""

    text: str
    error: str
    seconds: float


@contextmanager
def pool(jobs: int, scheduler: str | None) -> Iterator[Executor]:
    """Workers: threads here, each waiting for a papermill of its own, or those of a Dask cluster that runs already.

    Left by an exception, also Ctrl-C, they end at once, and their kernels with them; those of a cluster begin nothing
    new, and end what they have begun.

    Raises:
        OSError: there is no scheduler at this address.
        ValueError: this is no address.
        ImportError: `distributed` is not installed.
    """
    if scheduler is None:
        with ThreadPoolExecutor(jobs) as threads:
            try:
                yield threads
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                _end(threads)
                raise
        return
    _answers(scheduler)
    from distributed import Client

    with Client(scheduler, timeout=10, set_as_default=False) as client:
        cluster = client.get_executor(pure=False, retries=0)
        try:
            yield cluster
        except BaseException:
            cluster.shutdown(wait=False)
            raise
        cluster.shutdown()


def environment(threads: int | None = None) -> dict[str, str]:
    """Return the environment of a process that trains: its waiting threads sleep, unless the user's variables differ.

    Args:
        threads: for OpenMP; None leaves that to the machine.
    """
    variables = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "JUPYTER_PREFER_ENV_PATH": "1"}
    return {**variables, "OMP_NUM_THREADS": str(threads)} if threads else variables


def perform(name: str, source: str, values: dict[str, Any], threads: int | None, cwd: str | None, bar: bool) -> Done:
    """Run a notebook in a process of its own, which ends when this one does.

    Args:
        name: of the notebook.
        source: the notebook, as text.
        values: its parameters.
        threads: for OpenMP; None leaves that to the machine.
        cwd: where it runs; None: in a folder of its own, as on another machine.
        bar: let papermill's progress bar through.
    """
    started = time.perf_counter()
    order = json.dumps({"source": source, "values": values, "cwd": cwd, "bar": bar})
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-P", RUNNER]  # no module of the current folder stands before an installed one
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if bar else said,
                              env=environment(threads), start_new_session=True) as begun:  # fmt: skip
            text = _result(begun, order)
        said.seek(0)
        last = said.read().decode("utf-8", "replace").strip()[-2000:]
    error = (_error(text) if text else "") or ((last or "papermill ended early") if begun.returncode else "")
    return Done(text, error, round(time.perf_counter() - started, 1))


def _result(begun: subprocess.Popen, order: str) -> str:
    """What it writes until it ends. Its standard input stays open so long: see `runner`."""
    RUNNING.add(begun)
    try:
        with suppress(OSError, ValueError):  # it has ended, or is to end, before it began
            begun.stdin.write(order.encode() + b"\n")  # type: ignore[union-attr]
            begun.stdin.flush()  # type: ignore[union-attr]
        text = begun.stdout.read().decode("utf-8")  # type: ignore[union-attr]
        begun.wait()
        return text
    finally:
        RUNNING.discard(begun)


def _end(threads: Executor) -> None:
    """End what runs, and wait until it has ended; a thread may be about to begin one more."""
    waiting = Thread(target=threads.shutdown)
    waiting.start()
    while waiting.is_alive() or RUNNING:
        for begun in list(RUNNING):
            with suppress(OSError):
                begun.stdin.close()  # type: ignore[union-attr]
        waiting.join(0.1)


def _answers(scheduler: str) -> None:
    try:
        from distributed import Security
        from distributed.comm import connect, parse_address
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install 'tfviz[cluster]', here and on its workers") from error

    async def greet() -> None:
        keys = Security().get_connection_args("client")
        async with asyncio.timeout(PATIENCE + 0.2):  # also for one that connects and then keeps silent
            (await connect(scheduler, timeout=PATIENCE, **keys)).abort()

    try:
        parse_address(scheduler)
        with ThreadPoolExecutor(1) as thread:  # of its own: a notebook's has a loop that runs
            thread.submit(asyncio.run, greet()).result()
    except ValueError as error:
        raise ValueError(f"--scheduler {scheduler} is no address: {error}; write it as tcp://HOST:PORT") from error
    except Exception as error:  # what is no scheduler may send anything
        why = str(error.__cause__ or error) or f"it said nothing for {PATIENCE} s"
        raise OSError(f"no Dask scheduler answers at {scheduler}: {why}") from error


def _error(text: str) -> str:
    for cell in nbformat.reads(text, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                first = (cell.source.strip() or "an empty cell").splitlines()[0]
                return f"cell In [{cell.execution_count}] ({first}): {output.ename}: {output.evalue}"
    return ""
