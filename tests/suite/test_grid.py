"""Every combination of parameters, here and on a cluster that loses a worker."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
from test_suite import notebook, suite, tfviz  # noqa: F401

from tfviz.suite import grid, work

CELLS = [("import os\nos.environ['MARK'] = 'x'", []), ("print(steps * 10, word)", ["result"])]


def rows(out):
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def two(suite):  # noqa: F811
    for old in suite.glob("0*.ipynb"):
        old.unlink()
    notebook(suite, "01_good", *CELLS)
    notebook(suite, "02_bad", ("assert dim != 2", []), parameters="dim = 1  # how wide")
    return suite


def test_every_combination_of_what_a_notebook_has(two, tmp_path):
    out = tmp_path / "out"
    ended = tfviz("run", "--out", out, "--grid", "steps=1,2", "--grid", "dim=2,3", "-p", "word=b", "--jobs", 2)
    assert ended.exit_code == 1
    assert "failed: 02_bad (dim=2)" in ended.output
    assert "3 of 4 notebooks ran" in ended.output
    found = {(row["notebook"], row["steps"], row["dim"]): row for row in rows(out)}
    assert {key: (row["status"], row["result"]) for key, row in found.items()} == {
        ("01_good", "1", ""): ("ok", "10 b"),
        ("01_good", "2", ""): ("ok", "20 b"),
        ("02_bad", "", "2"): ("failed", ""),
        ("02_bad", "", "3"): ("ok", ""),
    }
    assert "AssertionError" in found["02_bad", "", "2"]["error"]
    assert (out / "steps=2" / "01_good.html").is_file()
    page = (out / "results.html").read_text()
    assert 'href="steps=2/01_good.html"' in page
    assert "AssertionError" in page
    assert 'href="results.html"' in (out / "index.html").read_text()


def test_started_again_it_does_the_rest_only(two, tmp_path):
    run = ["run", "01", "--out", tmp_path, "--grid"]
    tfviz(*run, "steps=1,2")
    ended = tfviz(*run, "steps=1,2,3")
    assert ended.output.count("unchanged since it ran") == 2
    assert ended.output.count(": ok,") == 1
    assert [row["result"] for row in rows(tmp_path)] == ["10 a", "20 a", "30 a"]
    assert [row["status"] for row in rows(tmp_path)] == ["unchanged", "unchanged", "ok"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps", "write it as KEY=V1,V2"),
        ("steps=", "write it as KEY=V1,V2"),
        ("stesp=1,2", "no notebook here has a parameter 'stesp'"),
        ("steps=1,1", "asked for twice: 01"),
        ("steps=1,two", "steps is a whole number, such as"),
        ("word='a", "write it as KEY=V1,V2"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(two, tmp_path, text, says):
    ended = tfviz("run", "--out", tmp_path / "out", "--grid", text)
    assert ended.exit_code == 1
    assert says in ended.output
    assert not (tmp_path / "out").exists()


def test_a_parameter_has_a_value_or_is_varied(two, tmp_path):
    ended = tfviz("run", "--out", tmp_path / "out", "--grid", "steps=1,2", "-p", "steps=9")
    assert ended.exit_code == 1
    assert "steps: given a value, and to be varied too" in ended.output


def test_no_two_values_share_a_folder():
    names = ["a!", "a?", "a_", "x" * 300, "x" * 301]
    folders = {grid.folder({"word": name}) for name in names}
    assert len(folders) == len(names)
    assert max(map(len, folders)) < 120


def test_combinations_and_their_folders():
    there = ["seed", "word"]
    assert grid.combinations({"seed": [1, 2], "word": ["a/b", "c"]}, there)[1] == {"seed": 1, "word": "c"}
    assert len(grid.combinations({"seed": [1, 2], "word": ["a/b", "c"], "dim": [1, 2, 3]}, there)) == 4
    assert grid.combinations({"dim": [1]}, there) == [{}]
    assert grid.folder({"seed": 1, "word": "ab"}) == "seed=1,word=ab"
    assert grid.folder({"seed": 1, "word": "a/b c"}).startswith("seed=1,word=a_b_c~")
    assert grid.folder({}) == ""


def test_no_scheduler_is_said_in_a_sentence(two, tmp_path):
    ended = tfviz("run", "01", "--out", tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    assert ended.exit_code == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in ended.output


def begin(running, *arguments):
    command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *map(str, arguments[1:])]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running.append(subprocess.Popen(command, start_new_session=True, **quiet))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler, and three workers with one thread each."""
    from distributed import Client

    folder, running = tmp_path_factory.mktemp("cluster"), []
    found = folder / "scheduler.json"
    try:
        begin(running, "scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", found)
        wait(found.is_file)
        options = ["--scheduler-file", found, "--nthreads", 1, "--no-nanny", "--no-dashboard"]
        for _ in range(3):
            begin(running, "worker", *options, "--local-directory", folder)
        with Client(scheduler_file=str(found), set_as_default=False) as client:
            client.wait_for_workers(3, timeout=120)
            address = client.scheduler.address
        yield address, running[1:]
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(there, most=120):
    deadline = time.monotonic() + most
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_notebook_that_fails_elsewhere_says_where(two, tmp_path, cluster):
    address, _ = cluster
    ended = tfviz("run", "02", "--out", tmp_path / "out", "--grid", "dim=2,5", "--scheduler", address)
    assert ended.exit_code == 1
    assert {row["dim"]: row["status"] for row in rows(tmp_path / "out")} == {"2": "failed", "5": "ok"}
    assert "cell In [" in rows(tmp_path / "out")[0]["error"]


def test_a_worker_that_dies_has_its_notebook_run_again_elsewhere(two, tmp_path, cluster):
    address, workers = cluster
    begun, out = tmp_path / "begun", tmp_path / "out"
    begun.mkdir()
    place = f"pathlib.Path({str(begun)!r}) / f'{{steps}}-{{os.getpid()}}'"
    note = f"import os, time, pathlib\n({place}).touch()"
    notebook(two, "01_good", (note, []), ("time.sleep(3)", []), ("print(steps * 10, word)", ["result"]))
    command = ["run", "01", "--out", str(out), "--grid", "steps=1,2,3,4,5,6,7,8", "--scheduler", address]
    code = f"""
from pathlib import Path
from tfviz.suite import notebooks
from tfviz.suite.cli import main
notebooks.folder = lambda: Path({str(two)!r})
main({command!r})
"""
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    wait(lambda: len(list(begun.iterdir())) >= 3)
    os.killpg(workers[0].pid, signal.SIGKILL)  # with the notebook that it runs
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert sorted(row["result"] for row in rows(out)) == [f"{steps}0 a" for steps in range(1, 9)]
    started = [path.name.split("-")[0] for path in begun.iterdir()]
    assert len(started) == 9  # one of the eight twice
    assert set(started) == set("12345678")


def test_without_dask_the_way_to_get_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"tfviz\[cluster\]"), work.pool(1, "tcp://127.0.0.1:9"):
        pass
