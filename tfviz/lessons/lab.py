"""`tfviz lab`: open JupyterLab on the lessons, or with an installed package, on copies for the reader."""

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

NO_NEWS = "--LabApp.news_url=None"  # JupyterLab would ask over the lesson whether to fetch any
COPIES_FOLDER = f"tfviz-notebooks-{tfviz.__version__}"


def open_lab(arguments: tuple[str, ...]) -> None:
    """Replace this process by JupyterLab, with these arguments; on Windows, wait for it and exit as it does.

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
    if files.WINDOWS:  # which would go on in the terminal beside JupyterLab, and cut arguments at spaces
        sys.exit(_wait(subprocess.Popen(command, env=worker.child_environment())))
    os.execve(sys.executable, command, worker.child_environment())


def _wait(process: subprocess.Popen) -> int:
    """Return the exit status of a process that Ctrl-C reaches too, and that decides itself what to do then."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def copy_lessons(originals: Path, to: Path) -> Path:
    """Copy notebooks into the reader's folder; existing copies are kept unchanged.

    The folder is named after the version of tfviz, so that a newer version makes new copies.
    """
    to.mkdir(parents=True, exist_ok=True)
    for original in originals.glob("*.ipynb"):
        if not (to / original.name).exists():
            shutil.copyfile(original, to / original.name)
    return to
