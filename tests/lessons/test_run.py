"""`tfviz run`: results, errors, grids, reuse of earlier runs, and termination."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from operator import methodcaller

import nbformat
import psutil
import pytest
from default_signals import DEFAULT_SIGNALS
from nbformat.sign import NotebookNotary
from operating_systems import posix
from small_notebooks import tfviz, write

from tfviz.lessons import notebooks, progress, runner, runs
from tfviz.lessons.worker import child_environment

pytest_plugins = ["small_notebooks"]


def test_relative_path_of_a_text_begins_where_the_command_is_given(suite, tmp_path, monkeypatch):
    write(
        suite, "03_text", "from tfviz.text import corpora\nprint(corpora.load(corpus))", parameters="corpus = 'pydoc'"
    )
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "my.txt").write_text("a text of my own", encoding="utf-8")
    monkeypatch.chdir(mine)
    ended = tfviz("run", "03", "-p", "corpus=my.txt", "--out", tmp_path / "elsewhere")
    assert ended.exit_code == 0, ended.output
    assert "a text of my own" in (tmp_path / "elsewhere" / "03_text.ipynb").read_text(encoding="utf-8")


def test_failing_notebooks_are_reported_and_do_not_stop_others(suite, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    environment = dict(os.environ)
    told = "import os\nprint(os.environ['OMP_WAIT_POLICY'], os.environ['OMP_NUM_THREADS'])"
    write(suite, "03_kernel", (told, ["result"]))
    write(suite, "04_slow", "print('before')", "import time; time.sleep(60)")
    write(suite, "05_dead", "import os; os._exit(1)")
    out = tmp_path / "out"
    ended = tfviz("run", "--out", out, "--jobs", 2, "--timeout", 5)
    assert ended.exit_code == 1
    assert "2 of 5 notebooks ran" in ended.output
    assert "02_bad: failed" in ended.output
    assert "cell In [4] (raise RuntimeError('on purpose')): RuntimeError: on purpose" in ended.output
    assert "04_slow: failed" in ended.output
    assert "imeout" in ended.output
    assert "DeadKernelError" in ended.output
    assert "failed: 02_bad, 04_slow, 05_dead" in ended.output
    assert '"before\\n"' in (out / "04_slow.ipynb").read_text(encoding="utf-8")  # what ran before is kept
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "About 01_good &lt;b&gt;" in page
    assert "RuntimeError: on purpose" in page
    assert "did 30 a" in page
    assert f"PASSIVE {max(1, os.cpu_count() // 2)}" in page
    assert "refresh" not in page
    assert NotebookNotary().check_signature(nbformat.read(out / "01_good.ipynb", as_version=4))
    for page in (out / "index.html", out / "01_good.html"):
        assert not any(sign in page.read_text(encoding="utf-8") for sign in ('src="http', 'href="http', "@import"))
    assert dict(os.environ) == environment
    again = tfviz("run", "01", "02", "--out", out)
    assert "01_good: unchanged since it ran" in again.output
    assert "02_bad: failed" in again.output


def test_grid_runs_every_combination(suite, tmp_path):
    write(suite, "02_bad", "assert dim != 2", parameters="dim = 1")
    command = ["run", "--out", tmp_path, "--grid", "dim=2,3", "-p", "word=b", "--jobs", 2]
    ended = tfviz(*command, "--grid", "steps=1")
    assert ended.exit_code == 1
    assert "failed: 02_bad (dim=2)" in ended.output
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {(row["notebook"], row["steps"], row["dim"]): (row["status"], row["result"]) for row in rows}
    assert found == {
        ("01_good", "1", ""): ("ok", "did 10 b"),
        ("02_bad", "", "2"): ("failed", ""),
        ("02_bad", "", "3"): ("ok", ""),
    }
    assert "AssertionError" in rows[1]["error"]
    assert 'href="steps=1/01_good.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="../index.html"' in (tmp_path / "steps=1" / "01_good.html").read_text(encoding="utf-8")


def cards(page):
    """Title, shown state and result or error of each card of a gallery."""
    found = page.read_text(encoding="utf-8").split("<article>")[1:]
    state = re.compile(r'<p class="(?:muted|failed)">(ok|unchanged|failed|waiting|stopped)\b')
    titles = [re.search(r"About (\w+)", card)[1] + ", dim=2" * ("dim=2" in card) for card in found]
    return {title: state.search(card)[1] for title, card in zip(titles, found)}


def test_gallery_lists_what_earlier_calls_left_in_its_folder(suite, tmp_path):
    """Runs that failed are no runs that ended well, in this call or an earlier one; other files are left out."""
    out, index = tmp_path / "out", tmp_path / "out" / "index.html"
    assert tfviz("run", "02", "--out", out).exit_code == 1
    assert "0 of 1 notebooks have run, 1 failed" in index.read_text(encoding="utf-8")
    write(out, "07_foreign")
    (out / "08_damaged.ipynb").write_text("{", encoding="utf-8")
    (out / ".ipynb_checkpoints").mkdir()
    (out / ".ipynb_checkpoints" / "02_bad.ipynb").write_bytes((out / "02_bad.ipynb").read_bytes())
    assert tfviz("run", "01", "--out", out).exit_code == 0
    text = index.read_text(encoding="utf-8")
    assert "1 of 2 notebooks have run, 1 failed" in text
    assert cards(index) == {"01_good": "ok", "02_bad": "failed"}
    assert text.index("About 01_good") < text.index("About 02_bad")
    assert "RuntimeError: on purpose" in text
    assert 'href="02_bad.html"' in text
    assert "results.csv" not in text
    assert tfviz("run", "02", "--out", out, "--grid", "dim=2").exit_code == 1
    assert cards(index) == {"01_good": "ok", "02_bad": "failed", "02_bad, dim=2": "failed"}
    assert "results.csv" in index.read_text(encoding="utf-8")
    again = tfviz("run", "01", "--out", out)
    assert "unchanged" in again.output
    assert cards(index) == {"01_good": "unchanged", "02_bad": "failed", "02_bad, dim=2": "failed"}


def test_run_says_first_what_it_runs_then_at_which_cells_it_is(suite, tmp_path, monkeypatch):
    write(suite, "03_long", *["import time; time.sleep(0.1)"] * 9)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    ended = tfviz("run", "01", "03", "--preset", "smoke", "-p", "word=b", "--out", tmp_path / "out")
    lines = ended.output.splitlines()
    assert lines[0] == "2 to run with preset smoke, word=b: 01_good, 03_long"
    assert lines[1].startswith("gallery: ")
    assert lines[2].startswith("smoke is a test: ")
    cells = [int(line.split()[2]) for line in lines if re.fullmatch(r"03_long: cell \d+ of 12", line)]
    assert cells == sorted(set(cells))
    assert len(cells) > 1
    assert max(cells) <= 12
    assert (
        lines.index("01_good: starting")
        < lines.index("03_long: starting")
        < lines.index(f"03_long: cell {cells[0]} of 12")
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_renews_one_line_in_a_terminal_and_adds_few_elsewhere(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    clock, terminal, log = [0.0], Terminal(), io.StringIO()
    both = [progress.Progress(stream, lambda: clock[0]) for stream in (terminal, log)]
    for clock[0], cell in ((1.0, 0), (14.0, 3), (15.0, 4), (20.0, 5), (31.0, 5), (32.0, 6)):
        for each in both:
            each.start("01_a", cell, 70)
            each.show()
    assert log.getvalue() == "01_a: cell 4 of 70\n01_a: cell 5 of 70\n"
    assert terminal.getvalue().split("\r")[-1] == "01_a: cell 6 of 70"
    assert "\n" not in terminal.getvalue()
    for each in both:
        each.start("a title that is wide", 1, 2)
        each.show()
        assert max(len(line) for line in terminal.getvalue().split("\r")) < 20
        each.end("01_a"), each.end("a title that is wide")
        each.show()
    assert terminal.getvalue().endswith(f"\r{' ' * 19}\r")
    clock[0] = 99.0
    both[1].show()
    assert log.getvalue().count("\n") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["positions"], "no notebook 'positions'; there are: 01_.*; did you mean '04_positions'[?]$"),
        (["12_gtp"], "did you mean '12_gpt'[?]$"),
        (["12", "--preset", "smok"], "no preset 'smok'; there are: .*; did you mean 'smoke'[?]$"),
        (["12", "-p", "corpos=pydoc"], "a parameter 'corpos': 12_gpt has corpus, .*; did you mean 'corpus'[?]$"),
        (
            ["12", "-p", "corpus=pydocs"],
            "12_gpt: no corpus .* 'pydocs'; there are: pydoc, .*; did you mean 'pydoc'[?]$",
        ),
        (["07", "-p", "task=number"], "07_transformer: task is 'number'; it must be one of: numbers, dates, multi30k"),
        (["01", "12", "-p", "dim=7"], "01_attention_from_nothing: dim is 7; it must be a multiple of 6"),
        (["12", "--grid", "heads=2,0"], "12_gpt: heads is 0; it must be from 1"),
        (["12", "--grid", "corpus=pydoc,pydocs", "--grid", "heads=2,4"], "12_gpt: no corpus .* 'pydocs'"),
    ],
)
def test_value_that_a_lesson_cannot_use_fails_before_anything_runs(tmp_path, monkeypatch, arguments, says):
    """The lessons themselves, whose setup would refuse it only after the kernel has loaded everything."""
    monkeypatch.setattr(runner, "_execute", None)
    ended = tfviz("run", *arguments, "--out", tmp_path / "out")
    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ")
    assert re.search(says, ended.output.strip()), ended.output
    assert not (tmp_path / "out").exists()


def test_combination_of_a_grid_that_a_lesson_cannot_use_fails_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_execute", lambda *_: iter(()))
    given = {"heads": [2, 3], "dim": [4, 6]}  # 3 heads have no width of 4, 2 of these four cannot be run
    assert len(runner.run(["12"], "smoke", {}, tmp_path, varied=given)) == 4


def fingerprint(path, preset="cpu", **overrides):
    (planned,) = runner._plan(path, preset, overrides, {})
    return planned.fingerprint


def test_fingerprint_depends_on_cells_parameters_and_package(suite, monkeypatch):
    path = suite / "01_good.ipynb"
    first = fingerprint(path)
    assert fingerprint(path, gone=1) == fingerprint(path, steps=3) == first
    changed = {fingerprint(path, "smoke"), fingerprint(path, steps=4)}
    monkeypatch.setattr(runner, "_package_hash", lambda: "another")
    changed.add(fingerprint(path))
    monkeypatch.undo()
    changed |= {fingerprint(write(suite, "01_good", cell)) for cell in ("1", "2", ("1", ["result"]))}
    assert len({first, *changed}) == 7


def test_finished_run_is_reused_unless_forced_or_changed(suite, tmp_path, monkeypatch):
    """A run that ended well is taken over with its results, unless it is forced or something of it is missing."""
    notebook = notebooks.read(suite / "01_good.ipynb")
    notebook.metadata["tfviz"] = {"fingerprint": fingerprint(suite / "01_good.ipynb"), "seconds": 7.0}
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text="as before\n")]
    executed = []
    monkeypatch.setattr(runner, "_execute", lambda runs, *_: executed.extend(runs) or iter(()))

    def status(**more):
        executed.clear()
        (run,) = runner.run(["01"], "cpu", {}, tmp_path, **more)
        assert executed == ([run] if run.outcome.status == "waiting" else [])
        return run.outcome.status, run.outcome.seconds, run.outcome.summary

    nbformat.write(notebook, tmp_path / "01_good.ipynb")
    assert status() == ("unchanged", 7.0, "as before")
    assert status(force=True)[0] == "waiting"
    notebook.metadata["tfviz"]["fingerprint"] = "another"
    nbformat.write(notebook, tmp_path / "01_good.ipynb")
    assert status()[0] == "waiting"
    (tmp_path / "01_good.ipynb").write_text("{", encoding="utf-8")
    assert status()[0] == "waiting"


def test_page_failure_keeps_executed_notebook(suite, tmp_path):
    book = nbformat.read(suite / "01_good.ipynb", as_version=4)
    book.cells[0].source = "# ![lost](attachment:gone.png)"
    nbformat.write(book, suite / "01_good.ipynb")
    ended = tfviz("run", "01", "--out", tmp_path)
    assert "01_good: failed" in ended.output
    assert "missing attachment" in ended.output
    assert "did 30 a" in nbformat.read(tmp_path / "01_good.ipynb", as_version=4).cells[-1].outputs[0].text
    assert "01_good: failed" in tfviz("run", "01", "--out", tmp_path).output  # without a page it is not finished


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["09"], "no notebook '09'; there are: 01_good, 02_bad"),
        ([""], "no notebook ''"),
        (["0"], "no notebook '0'"),
        (["gone/01_good.ipynb"], "no notebook 'gone/01_good.ipynb'"),
        (["--preset", "huge"], "no preset 'huge'; there are: cpu, smoke"),
        (["01", "-p", "stesp=3"], "no notebook here has a parameter 'stesp': 01_good has steps, word"),
        (["01", "-p", "steps"], "KEY=VALUE"),
        (["01", "-p", "=3"], "KEY=VALUE"),
        (["01", "-p", "steps=1.5"], "steps is '1.5'; give an integer, such as 3"),
        (["01", "-p", "steps=1", "-p", "steps=2"], "steps is given twice"),
        (["--grid", "steps"], "KEY=V1,V2"),
        (["--grid", "steps="], "KEY=V1,V2|steps is ''"),
        (["--grid", "stesp=1,2"], "no notebook here has a parameter 'stesp'"),
        (["--grid", "steps=1,two"], "steps is 'two'; give an integer"),
        (["--grid", "steps=1,1"], "asked for twice"),
        (["--grid", "steps=1", "-p", "steps=2"], "steps: .*choose one"),
        (["01", "01_good"], "asked for twice"),
        (["01", "--out", f"{__file__}{os.sep}below"], "below"),
    ],
)  # fmt: skip
def test_invalid_arguments_fail_before_anything_runs(suite, tmp_path, monkeypatch, arguments, says):
    monkeypatch.setattr(runner, "_execute", None)
    ended = tfviz("run", "--out", tmp_path / "out", *arguments)
    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ")
    assert re.search(says, ended.output)
    assert not (tmp_path / "out").exists()


def test_notebook_named_index_is_rejected(tmp_path):
    ended = tfviz("run", write(tmp_path, "Index"), "--out", tmp_path)
    assert ended.exit_code == 1
    assert "rename the notebook" in ended.output


def test_values_come_from_cell_then_preset_then_command(suite):
    path = suite / "01_good.ipynb"
    assert notebooks.values(path, "cpu", {}) == {"steps": 3, "word": "a"}
    assert notebooks.values(path, "smoke", {}) == {"steps": 1, "word": "a"}
    assert notebooks.values(path, "smoke", {"steps": 7, "gone": 8}) == {"steps": 7, "word": "a"}
    with pytest.raises(TypeError, match="steps is True"):
        notebooks.values(path, "cpu", {"steps": True})
    assert notebooks.find([str(path)]) == [path]


KINDS = "steps: int = 3\nword = 'a'\nrate = .1\nfew = [1]\nsmall = False\nany = None"


@pytest.mark.parametrize(
    ("text", "value"),
    [("word=ROMEO:", "ROMEO:"), ("word=a # b", "a # b"), ("word=no", "no"), ("word=010", "010"), ("steps=010", 10),
     ("rate=1e-2", 0.01), ("rate=2", 2.0), ("few=[4, 5]", [4, 5]), ("small=true", True), ("any=3", 3)],
)  # fmt: skip
def test_value_is_parsed_as_type_of_default(tmp_path, text, value):
    (read,) = notebooks.parse_values([text], [write(tmp_path, "x", parameters=KINDS)]).values()
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", ["steps=abc", "steps=2.5", "rate=fast", "few=3", "few=[1", "small=1", "small=*a*"])
def test_value_of_wrong_type_raises(tmp_path, text):
    with pytest.raises(ValueError, match=rf"^{text.partition('=')[0]} is .*, such as "):
        notebooks.parse_values([text], [write(tmp_path, "x", parameters=KINDS)])


def test_grid_values_are_parsed_as_csv(tmp_path):
    path = write(tmp_path, "x", parameters=KINDS)
    assert notebooks.parse_grid(["steps=1,2", 'word=no,"b, c"'], [path]) == {"steps": [1, 2], "word": ["no", "b, c"]}


@pytest.mark.parametrize(
    ("cell", "line"),
    [("a = 1\nb = 5 * x", 2), ("a, b = 1, 2", 1), ("a = 1\n\nb = = 2", 3), ("a = {1}", 1), ("%pylab", 1)],
)
def test_non_literal_parameters_raise_with_line_number(tmp_path, cell, line):
    with pytest.raises(ValueError, match=rf"x.ipynb, parameters, line {line}: "):
        notebooks.parameters(write(tmp_path, "x", parameters=cell))


FOREIGN = ["", "{}", "[]", "null", "junk", b"\xff\xfe", '{"cells": 3}', "[" * 100_000]
FOREIGN.append('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}')


@pytest.mark.parametrize("content", FOREIGN)
@pytest.mark.parametrize("command", ["run", "clean"])
def test_invalid_notebook_is_reported_and_unchanged(tmp_path, command, content):
    file = tmp_path / "x.ipynb"
    file.write_bytes(content := content if isinstance(content, bytes) else content.encode())
    ended = tfviz(command, file)
    assert ended.exit_code == 1
    assert "x.ipynb is not a notebook: " in ended.output
    assert file.read_bytes() == content


def test_grid_folder_names_are_safe_and_unique():
    assert runs.folder_name({"seed": 1, "word": "ab"}) == "seed=1,word=ab"
    assert runs.folder_name({}) == ""
    names = ["a!", "a?", "a_", "../../a", "a/b", "語" * 300, "x" * 300, "x" * 301, "a", "a."]
    folders = {runs.folder_name({"word": name}) for name in names}
    assert len(folders) == len(names)
    assert not any("/" in name or len(name.encode()) > 120 for name in folders)
    assert not any(name.endswith(".") for name in folders)  # Windows takes `a.` for `a`
    assert len(runs.combinations({"seed": [1, 2], "word": ["a", "b"], "dim": [1, 2, 3]}, ["seed", "word"])) == 4


@pytest.mark.parametrize("policy", [None, "ACTIVE"])
def test_child_environment_defaults_to_passive_wait_policy(monkeypatch, policy):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if policy:
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    assert child_environment(3)["OMP_WAIT_POLICY"] == (policy or "PASSIVE")
    assert child_environment(3)["OMP_NUM_THREADS"] == "3"
    assert os.environ.get("OMP_WAIT_POLICY") == policy


ENDLESS = """import pathlib, subprocess, sys, time
other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
pathlib.Path('begun').touch()
while not pathlib.Path(go).exists(): time.sleep(0.05)
other.kill()
print('done')"""
COMMAND = f"""{DEFAULT_SIGNALS}
import sys
from pathlib import Path
from tfviz.lessons import notebooks, runner
from tfviz.lessons.cli import main
books = Path(sys.argv.pop(1))
notebooks.folder = lambda: books
"""


def start_run(books, out, mark, changes=""):
    code = f"{COMMAND}\n{changes}\nmain()"
    command = [sys.executable, "-c", code, str(books), "run", "--out", str(out), "--jobs", "2"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    environment = {**os.environ, "TFVIZ_MARK": mark, "PYTHONFAULTHANDLER": "1"}
    return subprocess.Popen(command, env=environment, **options)


def marked_processes(mark):
    """All processes that descend from the run, whosoever's children they are by now, and their commands."""
    found = {}
    for process in psutil.process_iter():
        try:  # it may end between two questions
            if process.environ().get("TFVIZ_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found[process] = " ".join(process.cmdline())
        except psutil.Error:
            continue
    return found


def report_and_kill(mark, run):
    """End what is left of a run, and return its processes and the stacks of their threads."""
    left = marked_processes(mark)
    for end in (methodcaller("send_signal", signal.SIGABRT), methodcaller("kill")):  # the first prints the stacks
        for process in marked_processes(mark):
            with suppress(psutil.NoSuchProcess):
                end(process)
        time.sleep(5)
    return left, run.communicate()[0]


def wait_until(condition):
    deadline = time.monotonic() + 180  # on a machine that does other things, too
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def endless_run(tmp_path, changes=""):
    """A run of one lesson that has begun and does not end, and the mark of its processes."""
    books, out = tmp_path / "books", tmp_path / "out"
    books.mkdir()
    (books / "presets.yaml").write_text("cpu: {}", encoding="utf-8")
    write(books, "01_one", (ENDLESS, ["result"]), parameters=f"go = {str(tmp_path / 'go')!r}")
    mark = uuid.uuid4().hex
    run = start_run(books, out, mark, changes)
    wait_until(lambda: (out / "begun").exists() or run.poll() is not None)
    return run, mark


def workers(run):
    return [child for child in psutil.Process(run.pid).children() if child.children()]  # the resource tracker has none


@posix
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT"])
def test_ended_run_leaves_no_processes_and_can_be_repeated(tmp_path, name):
    how = getattr(signal, name)
    books, out, go = (tmp_path / name for name in ("books", "out", "go"))
    books.mkdir()
    (books / "presets.yaml").write_text("cpu: {}", encoding="utf-8")
    write(books, "01_one", (ENDLESS, ["result"]), parameters=f"go = {str(go)!r}")
    write(books, "02_two", "1", parameters="a = 1")
    mark = uuid.uuid4().hex
    run = start_run(books, out, mark)
    wait_until(lambda: (out / "begun").exists() or run.poll() is not None)
    assert run.poll() is None, run.stdout.read()
    for timeout in (90, 180):  # on a very busy machine: a user presses Ctrl-C again
        run.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            said, _ = run.communicate(timeout=timeout)
            break
    else:
        pytest.fail(f"{name} does not end the run; still there: {report_and_kill(mark, run)}")
    assert ("run the same command again" in said) == (how is signal.SIGINT)
    wait_until(lambda: not marked_processes(mark))
    assert run.returncode == (1 if how is signal.SIGINT else -how)
    assert not (out / "01_one.ipynb").exists()
    if how is signal.SIGINT:
        assert "stopped" in (out / "index.html").read_text(encoding="utf-8")
        assert "refresh" not in (out / "index.html").read_text(encoding="utf-8")
        go.touch()
        run = start_run(books, out, mark)
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        assert "2 of 2 notebooks ran" in output
        assert "done" in json.dumps(nbformat.read(out / "01_one.ipynb", as_version=4))
        assert [path.name for path in out.glob(".*")] == []
        wait_until(lambda: not marked_processes(mark))


@posix
def test_run_that_is_interrupted_while_it_reports_leaves_no_processes(tmp_path, monkeypatch):
    """Ctrl-C may come between two outcomes as well; whoever handles the exception holds its frames."""
    books, mark = tmp_path / "books", uuid.uuid4().hex
    books.mkdir()
    (books / "presets.yaml").write_text("cpu: {}", encoding="utf-8")
    write(books, "01_one", (ENDLESS, ["result"]), parameters=f"go = {str(tmp_path / 'go')!r}")
    write(books, "02_two", "1", parameters="a = 1")
    monkeypatch.setattr(notebooks, "folder", lambda: books)
    monkeypatch.setenv("TFVIZ_MARK", mark)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))

    def interrupt(line):
        if line.startswith("02_two"):
            raise KeyboardInterrupt

    monkeypatch.setattr(runner.click, "echo", interrupt)
    with pytest.raises(KeyboardInterrupt) as held:
        runner.run([], "cpu", {}, tmp_path / "out", jobs=2)
    kernels = (
        "ipykernel_launcher",
        "time.sleep(600)",
    )  # multiprocessing's resource tracker lives on, as these tests do
    wait_until(lambda: not [one for one in marked_processes(mark).values() if any(name in one for name in kernels)])
    assert held.tb is not None
    assert "stopped" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@posix
def test_interrupt_kills_worker_that_does_not_end(tmp_path):
    run, mark = endless_run(tmp_path, "runner.GRACE_SECONDS = 0.5")
    for worker in workers(run):
        worker.suspend()  # it reads no pipe and handles no signal
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=180)
    assert "run the same command again" in output
    wait_until(lambda: not marked_processes(mark))


@posix
def test_terminated_worker_ends_its_kernel_and_subprocesses(tmp_path):
    run, mark = endless_run(tmp_path)
    for worker in workers(run):
        worker.terminate()
    output, _ = run.communicate(timeout=180)
    assert "01_one: failed" in output
    assert "worker failed" in output
    wait_until(lambda: not marked_processes(mark))
