"""`tfviz lab`: open the lessons in JupyterLab; with an installed package, copies of the lessons."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

import tfviz
from tfviz import files
from tfviz.lessons import notebooks, worker

NO_NEWS = "--LabApp.news_url=None"  # otherwise JupyterLab asks whether to fetch news
COPIES_FOLDER = f"tfviz-notebooks-{tfviz.__version__}"


def open_lab(arguments: tuple[str, ...]) -> None:
    """Replace this process with JupyterLab; on Windows, wait for JupyterLab and exit with its status.

    Args:
        arguments: arguments for JupyterLab.

    Raises:
        ModuleNotFoundError: JupyterLab is not installed.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise ModuleNotFoundError("lab opens JupyterLab", name="jupyterlab")
    folder = notebooks.folder()
    if folder.parent == Path(tfviz.__file__).parent:  # an installed package, which an update would replace
        folder = copy_lessons(folder, Path(COPIES_FOLDER))
        click.echo(f"the lessons are copied to {folder}")
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.resolve()}", NO_NEWS, *arguments]
    sys.stdout.flush()
    if files.WINDOWS:  # where exec returns to the terminal at once and splits arguments at spaces
        sys.exit(_wait(subprocess.Popen(command, env=worker.child_environment())))
    os.execve(sys.executable, command, worker.child_environment())


def _wait(process: subprocess.Popen) -> int:
    """Wait for a process and return its exit status, ignoring Ctrl-C, which the process receives and handles itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def copy_lessons(originals: Path, to: Path) -> Path:
    """Copy notebooks into the reader's folder, without changing existing copies, and return that folder.

    `COPIES_FOLDER` contains the version of tfviz, so that a newer version makes new copies.
    """
    to.mkdir(parents=True, exist_ok=True)
    for original in originals.glob("*.ipynb"):
        if not (to / original.name).exists():
            shutil.copyfile(original, to / original.name)
    return to
