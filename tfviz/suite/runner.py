"""The process in which one notebook runs, through papermill: it ends when the one that began it does.

It is told what to do in a line of JSON on its standard input, which stays open as long as the one that began it lives,
and writes the notebook to its standard output. Its end of file is the one message that reaches it whatever ended the
other: a signal, a crash, `kill -9`. Nothing here imports tfviz: the kernel does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from threading import Thread
from typing import Any

SAFE = "PYTHONSAFEPATH"
# The folder in which it runs comes last on a kernel's path: the reader's own modules are found there, and none of them
# takes the place of one that is installed.
PATH = f"__import__('sys').path.append(''); __import__('os').environ.pop({SAFE!r}, None)"


class Kept:
    """Papermill's place for a notebook: in memory, as it was after its latest cell, so that no disk can be too full."""

    def __init__(self, text: str) -> None:
        self.given, self.text = text, ""

    def read(self, path: str) -> str:
        return self.given

    def write(self, text: str, path: str) -> None:
        self.text = text

    def pretty_path(self, path: str) -> str:
        return path


def main() -> int:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1  # the one that began it has ended already
    result = os.dup(1)  # to which no kernel writes
    os.dup2(2, 1)
    room = tempfile.mkdtemp(prefix="tfviz-")
    Thread(target=_watch, args=[room], daemon=True).start()
    try:
        ended, text = _run(json.loads(line), room)
        with os.fdopen(result, "wb") as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))
        return ended
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _run(order: dict[str, Any], room: str) -> tuple[int, str]:
    """0 if papermill came to an end of its own, be it an error in a cell; the notebook as far as it came."""
    os.environ["JUPYTER_RUNTIME_DIR"] = tempfile.tempdir = room  # a kernel's key goes when we do, and needs no home
    from papermill.exceptions import PapermillExecutionError
    from papermill.execute import execute_notebook
    from papermill.iorw import papermill_io

    papermill_io.register("kept:", kept := Kept(order["source"]))
    kernel = ["--IPKernelApp.ignore_cwd=True"]
    if SAFE not in os.environ:
        os.environ[SAFE] = "1"
        kernel.append(f"--IPKernelApp.exec_lines={PATH}")
    place = "kept://notebook.ipynb"
    try:
        execute_notebook(place, place, order["values"], kernel_name="python3", language="python",
                         progress_bar=order["bar"], cwd=order["cwd"] or room, extra_arguments=kernel)  # fmt: skip
    except PapermillExecutionError:
        pass  # stands in the notebook
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1, kept.text
    return 0, kept.text


def _watch(room: str) -> None:
    """Wait for the end of the one that began it; then end the kernel, all that it began, and this process."""
    import psutil

    while os.read(0, 1):
        pass
    while children := psutil.Process().children(recursive=True):
        for child in children:
            child.kill()  # psutil knows a process by more than its number: never another one
        psutil.wait_procs(children, timeout=3)
    shutil.rmtree(room, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
