"""A suite of small notebooks in place of the lessons, and the command `tfviz` on them.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import nbformat
import pytest
import yaml
from click.testing import CliRunner

from tfviz.lessons import clean, notebooks
from tfviz.lessons.cli import main

v4 = nbformat.v4


def write(folder, name, *cells, parameters="steps = 3  # how many\nword = 'a'"):
    """Write a notebook with a title, parameters and cells, each a source or a pair of source and tags."""
    pairs = [(parameters, ["parameters"]), *(cell if isinstance(cell, tuple) else (cell, []) for cell in cells)]
    code = [v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in pairs]
    questions = "**Questions:** Why *could* `x` < y? And then?"
    title = v4.new_markdown_cell(f"# About {name} <b>\n\nA promise & more.\n\n{questions}")
    path = folder / f"{name}.ipynb"
    nbformat.write(v4.new_notebook(cells=[title, *code], metadata={"kernelspec": clean.KERNEL_SPEC}), path)
    return path


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A folder of two notebooks in place of the lessons, one of which fails."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / notebooks.PRESETS_FILE).write_text(
        yaml.safe_dump({"cpu": {}, "smoke": {"01_good": {"steps": 1, "gone": 1}}}),
        encoding="utf-8",
    )
    write(folder, "01_good", ("print('did', steps * 10, word)", ["result"]))
    write(folder, "02_bad", "first = 1\nfirst", "raise RuntimeError('on purpose')", parameters="dim = 1")
    monkeypatch.setattr(notebooks, "folder", lambda: folder)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return folder


def tfviz(*arguments, **variables):
    return CliRunner(env=variables).invoke(main, [str(each) for each in arguments], catch_exceptions=False)
