"""The first code cell of each lesson installs tfviz where it is missing, and does nothing where it is there."""

import json
import os
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import nbformat
import papermill
import pytest
import torch
from nbformat import v4
from small_notebooks import suite, tfviz  # noqa: F401

from tfviz import extras, look, view
from tfviz.lessons import install_cell, lesson_page, notebooks
from tfviz.lessons.clean import WIDGET_MIME_TYPE

CLONE = Path(__file__).parents[2]
# A module in place of pip, which notes what it was asked for and "installs" tfviz, as an empty module.
PIP = """import json, os, sys
folder = os.environ["FAKE_SITE"]
with open(os.path.join(folder, "asked.json"), "w", encoding="utf-8") as file:
    json.dump(sys.argv[1:], file)
if os.environ["FAILS"]:
    sys.exit("no network")
open(os.path.join(folder, "tfviz.py"), "w", encoding="utf-8").close()
"""
ASKED = ["install", "-q", "tfviz[lessons] @ git+https://github.com/tfviz/tfviz"]


@pytest.fixture
def no_tfviz(tmp_path, monkeypatch):
    """All that a plain Python sees besides its standard library: a pip that only notes its arguments."""
    (tmp_path / "pip.py").write_text(PIP, encoding="utf-8")
    for name, value in {"PYTHONPATH": tmp_path, "FAKE_SITE": tmp_path, "FAILS": ""}.items():
        monkeypatch.setenv(name, str(value))
    return tmp_path


def run_plain(code):
    """Run code without site-packages: `-S` hides tfviz however it was installed, PYTHONPATH still counts."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=os.environ["FAKE_SITE"],
    )


@pytest.mark.parametrize("clone", [False, True])
def test_where_tfviz_is_missing_pip_is_asked_for_it_once_and_it_can_be_imported_without_a_restart(no_tfviz, clone):
    """A clone in the working folder is no package, though Python finds a folder of that name: a namespace."""
    if clone:
        (no_tfviz / "tfviz" / "tfviz").mkdir(parents=True)
    twice = f"{install_cell.SOURCE}\nimport tfviz\nprint('there:', tfviz.__file__)\n{install_cell.SOURCE}\nprint('end')"
    ended = run_plain(twice)
    assert ended.stderr == ""
    first, there, end = ended.stdout.splitlines()
    assert first.startswith("installing tfviz")
    assert Path(there.removeprefix("there: ")) == no_tfviz / "tfviz.py"
    assert end == "end"
    assert json.loads((no_tfviz / "asked.json").read_text(encoding="utf-8")) == ASKED


def test_where_pip_fails_the_cell_fails(no_tfviz, monkeypatch):
    monkeypatch.setenv("FAILS", "1")
    ended = run_plain(f"{install_cell.SOURCE}\nprint('went on')")
    assert ended.returncode == 1
    assert "no network" in ended.stderr
    assert "CalledProcessError" in ended.stderr
    assert "went on" not in ended.stdout


def test_where_tfviz_is_there_nothing_is_run_printed_or_named(monkeypatch, capfd):
    def refuse(*arguments, **options):
        raise AssertionError(arguments)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    names = {}
    exec(install_cell.SOURCE, names)
    assert names.keys() - {"__builtins__"} == {"importlib"}
    assert capfd.readouterr() == ("", "")


def test_tfviz_is_not_imported_to_see_whether_it_is_there():
    """The cell of a lesson costs no import: that would take a second in the wrong place."""
    code = f"{install_cell.SOURCE}\nimport sys\nprint(sorted({{'tfviz', 'subprocess', 'torch'}} & sys.modules.keys()))"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True, cwd=CLONE
    )
    assert ended.stdout == "[]\n"


def test_what_it_installs_is_an_extra_of_this_package_from_its_repository():
    project = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"{project['name']}[lessons] @ git+{extras.REPOSITORY}" == extras.requirement("lessons") == ASKED[-1]
    assert "lessons" in project["optional-dependencies"]
    assert notebooks.WEBSITE == "https://tfviz.github.io/tfviz/"  # the same owner and name


# Colab's own versions, of which an upgrade would need a restart or break its widgets (ipywidgets 8 is not supported).
COLAB = {"ipywidgets": "7.7.1", "torch": "2.8.0", "numpy": "2.0.2", "matplotlib": "3.10.0", "typeguard": "4.4.4",
         "safetensors": "0.6.2", "tqdm": "4.67.1", "psutil": "5.9.5", "tokenizers": "0.22.1", "accelerate": "1.11.0",
         "PyYAML": "6.0.3", "nbformat": "5.10.4", "nbconvert": "7.16.6", "click": "8.3.0", "Babel": "2.17.0",
         "pooch": "1.8.2"}  # fmt: skip


def test_what_colab_has_is_not_upgraded():
    from packaging.requirements import Requirement

    project = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [Requirement(each) for each in project["dependencies"] + project["optional-dependencies"]["lessons"]]
    assert {each.name for each in needed} >= COLAB.keys()
    assert [str(each) for each in needed if each.name in COLAB and COLAB[each.name] not in each.specifier] == []


def test_clean_puts_one_such_cell_before_the_first_code_of_a_lesson(suite):  # noqa: F811
    file = suite / "01_good.ipynb"
    notebook = nbformat.read(file, as_version=4)
    notebook.cells.insert(2, v4.new_code_cell("an older text", metadata={"tags": ["install"]}))
    for number, cell in enumerate(notebook.cells[1:], 1):
        cell.execution_count = number
    nbformat.write(notebook, file)
    for _ in range(2):
        assert tfviz("clean", file).exit_code == 0
    cells = nbformat.read(file, as_version=4).cells
    assert [cell.metadata.get("tags") for cell in cells] == [None, ["install"], ["parameters"], ["result"]]
    assert cells[1].source == install_cell.SOURCE
    assert [cell.execution_count for cell in cells[1:]] == [1, 2, 3]


def test_clean_leaves_the_counts_of_a_lesson_that_did_not_run(suite):  # noqa: F811
    file = suite / "01_good.ipynb"
    tfviz("clean", file)
    cells = nbformat.read(file, as_version=4).cells
    assert [cell.execution_count for cell in cells[1:]] == [None, None, None]


def test_another_notebook_gets_no_such_cell(tmp_path):
    file = tmp_path / "mine.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("1")]), file)
    tfviz("clean", file)
    assert [cell.source for cell in nbformat.read(file, as_version=4).cells] == ["1"]


def test_papermill_puts_the_parameters_after_it_and_a_page_does_not_show_it(suite, tmp_path):  # noqa: F811
    file = suite / "01_good.ipynb"
    tfviz("clean", file)
    prepared = papermill.execute_notebook(file, None, {"steps": 7}, prepare_only=True, progress_bar=False)
    tags = [cell.metadata.get("tags") for cell in prepared.cells[1:4]]
    assert tags == [["install"], ["parameters"], ["injected-parameters"]]
    lesson_page.write(prepared, tmp_path / "01_good.html")
    page = (tmp_path / "01_good.html").read_text(encoding="utf-8")
    assert "steps" in page
    assert "git+" not in page
    assert "subprocess" not in page
    assert "install" in prepared.cells[1].metadata.tags  # the notebook itself keeps it


def test_colab_is_told_of_widgets_without_a_cell_for_it(monkeypatch):
    """anywidget does it; `output.enable_custom_widget_manager()` in a lesson would say it twice."""
    from anywidget import _util

    told = []
    output = types.SimpleNamespace(
        enable_custom_widget_manager=lambda: told.append(True),
        _widgets=types.SimpleNamespace(_installed_url="manager.js"),
    )
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    _util.enable_custom_widget_manager_once.cache_clear()
    weights = torch.ones(2, 3, 4, 4).tril() / torch.arange(1, 5)[:, None]
    live = view.live(look.AttentionMaps(weights, ["a", "b", "c", "d"]))
    data, metadata = live._repr_mimebundle_()
    assert told == [True]
    assert metadata[WIDGET_MIME_TYPE] == {"colab": {"custom_widget_manager": {"url": "manager.js"}}}
    assert {WIDGET_MIME_TYPE, "image/png"} <= data.keys()
    _util.enable_custom_widget_manager_once.cache_clear()
