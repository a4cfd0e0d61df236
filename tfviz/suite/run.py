"""Run notebooks through papermill: several at once, each whole or not at all, finished ones once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat.sign import NotebookNotary

from tfviz.files import atomic
from tfviz.suite import gallery, notebooks


@dataclass
class Result:
    """One notebook's run.

    Attributes:
        status: waiting, running, ok, unchanged or failed.
        result: what the notebook says of itself: the text of its cell tagged `result`.
        error: what went wrong, and in which cell.
    """

    name: str
    preset: str
    parameters: dict[str, Any]
    fingerprint: str
    status: str = "waiting"
    seconds: float = 0.0
    result: str = ""
    error: str = ""
    source: Path = field(default=Path(), compare=False)

    def write(self, out: Path) -> None:
        """Keep it beside the notebook, for the next run and for the gallery."""
        with atomic(out / f"{self.name}.json") as draft:
            draft.write_text(json.dumps({**asdict(self), "source": None}, indent=1))


def run(
    names: Sequence[str],
    preset: str,
    given: dict[str, Any],
    out: Path,
    jobs: int = 1,
    force: bool = False,
    tell: Callable[[str], None] = print,
) -> list[Result]:
    """Run these notebooks (all, if none is named) into `out`, with a gallery that grows.

    A notebook that ran well with the same cells, parameters and package is not run again, unless `force`.

    Raises:
        LookupError: a name, preset or parameter that does not exist; nothing was run.
        OSError: `out` cannot be written to.
    """
    paths = notebooks.find(names)
    notebooks.check(paths, given)
    results = [_plan(path, preset, given) for path in paths]
    _writable(out)
    for result in results:
        if not force:
            _recall(result, out)
    gallery.write(results, out)
    tell(f"gallery: {out / 'index.html'}")
    waiting = [result for result in results if result.status == "waiting"]
    for result in results:
        if result.status == "unchanged":
            tell(f"{result.name}: unchanged since it ran in {result.seconds:.0f} s")
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_execute, result, out, jobs): result for result in waiting}
        for future in as_completed(futures):
            future.result()
            result = futures[future]
            tell(f"{result.name}: {result.status}, {result.seconds:.0f} s{'; ' + result.error if result.error else ''}")
            gallery.write(results, out)
    return results


def _plan(path: Path, preset: str, given: dict[str, Any]) -> Result:
    values = notebooks.values(path, preset, given)
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in nbformat.read(path, 4).cells]
    package = Path(__file__).parents[1]
    sources = [file.read_text() for file in sorted(package.rglob("*.py"))]
    known = json.dumps([cells, values, sources, version("torch")], default=str)
    return Result(path.stem, preset, values, hashlib.sha256(known.encode()).hexdigest(), source=path)


def _writable(out: Path) -> None:
    try:
        with atomic(out / ".tfviz") as draft:
            draft.write_text("")
        (out / ".tfviz").unlink()
    except OSError as error:
        raise OSError(f"cannot write to {out}: {error.strerror or error}; choose another folder with --out") from error


def _recall(result: Result, out: Path) -> None:
    try:
        old = json.loads((out / f"{result.name}.json").read_text())
        same = old["fingerprint"] == result.fingerprint and old["status"] == "ok"
        if same and (out / f"{result.name}.ipynb").is_file():
            result.status, result.seconds, result.result = "unchanged", old["seconds"], old["result"]
    except (OSError, ValueError, KeyError):
        pass  # nothing to recall


def _execute(result: Result, out: Path, jobs: int) -> None:
    """papermill writes to a draft, cell by cell; only a notebook that has come to its end takes its place."""
    result.status = "running"
    target, started = out / f"{result.name}.ipynb", time.perf_counter()
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    watched = jobs == 1 and sys.stderr.isatty()  # then papermill's progress bar goes to the terminal
    environment = {"JUPYTER_PREFER_ENV_PATH": "1", **({"OMP_NUM_THREADS": threads} if jobs > 1 else {})}
    try:
        with atomic(target) as draft:
            command = [sys.executable, "-m", "papermill", str(result.source), str(draft), "--cwd", str(out), "--kernel",
                       "python3", "--progress-bar" if watched else "--no-progress-bar",
                       "-y", yaml.safe_dump(result.parameters)]  # fmt: skip
            ended = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=None if watched else subprocess.PIPE)  # fmt: skip
            if not draft.is_file():
                raise OSError((ended.stderr or "papermill ended early").strip()[-2000:])
            notebook = nbformat.read(draft, as_version=4)
            result.error = _error(notebook) or ("papermill ended with an error" if ended.returncode else "")
            result.result = _said(notebook)
            NotebookNotary().sign(notebook)
        gallery.page(notebook, out / f"{result.name}.html")
    except OSError as error:
        result.error = f"could not run: {error}"
    result.seconds = round(time.perf_counter() - started, 1)
    result.status = "failed" if result.error else "ok"
    result.write(out)


def _error(notebook: nbformat.NotebookNode) -> str:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                first = cell.source.strip().splitlines()[0]
                return f"cell In [{cell.execution_count}] ({first}): {output.ename}: {output.evalue}"
    return ""


def _said(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebooks.tagged(notebook, "result") for output in cell.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join(text.strip().strip("'\"") for text in texts)
