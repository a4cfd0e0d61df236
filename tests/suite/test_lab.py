"""What a reader's machine may be like: strange folders, no home, a full disk, few letters; nothing is lost."""

import errno
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from test_suite import notebook, suite, tfviz  # noqa: F401

from tfviz.suite import gallery, lab, run, work

HIJACK = "raise SystemExit('a file of the folder was executed')"
NAMES = ["nbformat", "yaml", "papermill", "psutil", "ipykernel_launcher", "ipykernel", "traitlets", "json"]
SAFE = """import yaml, own, os, sys
print(own.said, yaml.safe_load('3'), os.environ.get('PYTHONSAFEPATH'), os.environ['OMP_WAIT_POLICY'])"""


def test_no_file_of_a_folder_stands_before_an_installed_module(suite, tmp_path, monkeypatch):  # noqa: F811
    """Neither where the command is given nor where the notebook runs; the reader's own modules are found there."""
    notebook(suite, "01_good", (SAFE, ["result"]))
    out = tmp_path / "out"
    for folder in (here := tmp_path / "here", out):
        folder.mkdir()
        for name in NAMES:
            (folder / f"{name}.py").write_text(HIJACK)
    (out / "own.py").write_text("said = 'mine'")
    monkeypatch.chdir(here)
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    ended = tfviz("run", "01", "--out", out)
    assert ended.exit_code == 0, ended.output
    assert json.loads((out / "01_good.json").read_text())["result"] == "mine 3 None PASSIVE"


def test_without_a_home_and_with_few_letters(suite, tmp_path):  # noqa: F811
    notebook(suite, "01_good", ("print('né 語')", ["result"]), ("raise ValueError('語')", []))
    code = f"""
import sys
from pathlib import Path
from tfviz.suite import notebooks
from tfviz.suite.cli import main
notebooks.folder = lambda: Path({str(suite)!r})
main(["run", "01", "--out", {str(tmp_path / "out")!r}])
"""
    poor = {"HOME": "/dev/null/none", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1", "COLUMNS": "10"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    strict = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning:tfviz", "-c", code]
    ended = subprocess.run(strict, env=kept | poor, capture_output=True, encoding="latin-1", timeout=300)
    assert ended.returncode == 1, ended.stderr
    assert r"ValueError: \u8a9e" in ended.stdout
    assert "JupyterLab will ask whether it is to be trusted" in ended.stdout
    assert json.loads((tmp_path / "out" / "01_good.json").read_text())["result"] == "né 語"


def full(path, whole):
    """`atomic` on a disk that has no room for notebooks."""

    @contextmanager
    def atomic(target):
        if target.suffix == ".ipynb":
            raise OSError(errno.ENOSPC, f"{target} cannot be written: no space left")
        with whole(target) as draft:
            yield draft

    return atomic


def test_what_ran_is_kept_elsewhere_when_the_disk_is_full(suite, tmp_path, monkeypatch):  # noqa: F811
    elsewhere = tmp_path / "temp"
    elsewhere.mkdir()
    monkeypatch.setattr(run.tempfile, "tempdir", str(elsewhere))
    monkeypatch.setattr(run, "atomic", full(tmp_path, run.atomic))
    ended = tfviz("run", "01", "--out", tmp_path / "out")
    (kept,) = elsewhere.glob("tfviz-*/01_good.ipynb")
    assert f"it is kept as {kept}" in ended.output
    assert "did 3 a" in nbformat.read(kept, as_version=4).cells[-1].outputs[0].text
    assert ended.exit_code == 1


def test_a_gallery_that_cannot_be_written_stops_no_notebook(suite, tmp_path, monkeypatch):  # noqa: F811
    def write(results, out):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(gallery, "write", write)
    ended = tfviz("run", "01", "--out", tmp_path / "out")
    assert "the gallery could not be written: " in ended.output
    assert json.loads((tmp_path / "out" / "01_good.json").read_text())["status"] == "ok"


def test_a_page_that_cannot_be_made_costs_no_notebook(suite, tmp_path):  # noqa: F811
    book = nbformat.read(suite / "01_good.ipynb", as_version=4)
    book.cells[0].source = "# $x^$ and ![lost](attachment:gone.png)"
    nbformat.write(book, suite / "01_good.ipynb")
    ended = tfviz("run", "01", "--out", tmp_path)
    assert "01_good: has no page: missing attachment" in ended.output
    assert ended.exit_code == 0
    assert 'href="01_good.ipynb"' in (tmp_path / "index.html").read_text()


def test_a_notebook_called_index_keeps_its_page(suite, tmp_path):  # noqa: F811
    notebook(tmp_path, "index", ("print('mine')", ["result"]))
    tfviz("run", tmp_path / "index.ipynb", "--out", tmp_path / "out")
    assert "mine" in (tmp_path / "out" / "index.ipynb.html").read_text()
    assert '<a href="index.ipynb.html">' in (tmp_path / "out" / "index.html").read_text()


def test_a_long_title_is_cut_with_a_sign_of_it(suite, tmp_path):  # noqa: F811
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# " + "long" * 2500)])
    one = run.Result("x", "cpu", {"word": "a" * 10_000}, "", source=nbformat.writes(book))
    gallery.write([one], tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "long…</h2>" in page or "lon…</h2>" in page
    assert len(page) < 10_000


def test_pictures_of_formulas_stand_where_they_were_written(tmp_path):
    cells = [nbformat.v4.new_markdown_cell("## About $a$\n\n\uf8fe and $b$, `$c$`"), nbformat.v4.new_raw_cell("\uf8fe")]
    gallery.page(nbformat.v4.new_notebook(cells=cells), tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "<mi>b</mi></mrow></math>, <code>$c$</code>" in page
    assert page.count("\uf8fe") == 2
    assert page.count("<math") == 2


@pytest.mark.parametrize("given", [None, {"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_how_threads_wait_is_said_unless_the_user_says_it(monkeypatch, given):
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in (given or {}).items():
        monkeypatch.setenv(name, value)
    made = work.environment(3)
    found = {name: made[name] for name in names if name in made}
    assert found == (given or {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "300000"})
    assert made["OMP_NUM_THREADS"] == "3"


@pytest.fixture
def originals(tmp_path):
    (folder := tmp_path / "originals").mkdir()
    for name in ("01_a", "02_b"):
        (folder / f"{name}.ipynb").write_text(f"{name}, first edition")
    return folder


def test_copies_that_the_reader_changed_are_never_written_over(originals, tmp_path):
    mine = tmp_path / "mine"
    assert list(lab.hand_out(originals, mine)) == []
    (mine / "01_a.ipynb").write_text("my own")
    assert list(lab.hand_out(originals, mine)) == []  # there is nothing newer
    for original in originals.iterdir():
        original.write_text(f"{original.stem}, second edition")
    (said,) = lab.hand_out(originals, mine)
    assert said == f"{mine / '01_a.ipynb'} is as you left it; the newer original is {mine / '01_a.new.ipynb'}"
    (mine / "01_a.new.ipynb").write_text("my own, too")
    assert list(lab.hand_out(originals, mine)) == []  # said once
    (originals / "01_a.ipynb").write_text("third edition")
    assert len(list(lab.hand_out(originals, mine))) == 1
    assert {path.name: path.read_text() for path in sorted(mine.glob("*.ipynb"))} == {
        "01_a.ipynb": "my own",
        "01_a.new-2.ipynb": "third edition",
        "01_a.new.ipynb": "my own, too",
        "02_b.ipynb": "02_b, second edition",
    }


@pytest.mark.parametrize("record", [None, "{}", "junk"])
def test_without_a_record_every_copy_that_differs_is_the_readers(originals, tmp_path, record):
    mine = tmp_path / "mine"
    list(lab.hand_out(originals, mine))
    (mine / "01_a.ipynb").write_text("my own")
    (mine / lab.GIVEN).unlink()
    if record:
        (mine / lab.GIVEN).write_text(record)
    assert len(list(lab.hand_out(originals, mine))) == 1
    assert (mine / "01_a.ipynb").read_text() == "my own"
    assert not (mine / "02_b.new.ipynb").exists()


def test_copies_of_a_package_that_cannot_be_written_can(originals, tmp_path):
    for path in (*originals.iterdir(), originals):
        path.chmod(path.stat().st_mode & ~0o222)
    list(lab.hand_out(originals, tmp_path / "mine"))
    assert (tmp_path / "mine").stat().st_mode & 0o200
    assert (tmp_path / "mine" / "01_a.ipynb").stat().st_mode & 0o200


def test_lab_becomes_jupyterlab_and_no_file_of_the_folder_does(monkeypatch):
    became = []
    monkeypatch.setattr(os, "execve", lambda *arguments: became.append(arguments))
    lab.open_lab(("--no-browser",))
    ((program, command, environment),) = became
    assert command[:4] == [program, "-P", "-m", "jupyterlab"]
    assert command[-1] == "--no-browser"
    assert environment == work.environment()
    assert Path(command[4].removeprefix("--ServerApp.root_dir=")).is_dir()
