"""Windows and macOS, as far as Linux can tell: what they lack, what they refuse, and how they differ in files."""

import ast
import multiprocessing
import os
import posixpath
import re
import signal
import subprocess
import sys
import types
from concurrent.futures import Future
from pathlib import Path, PureWindowsPath

import nbformat
import pytest
import torch

from tfviz import checks, files
from tfviz.learn import checkpoint
from tfviz.lessons import clean, doctor, lab, notebooks, runner, worker
from tfviz.lessons.site import markdown_pages

CLONE = Path(__file__).parents[1]
SOURCES = [
    path for folder in ("tfviz", "tests", "benchmarks", "docs") for path in sorted((CLONE / folder).rglob("*.py"))
]
# What Windows has not, by module. In `tfviz` itself `mypy --platform win32` finds such names, here those of tests.
POSIX_ONLY = {
    "os": "fork forkpty setsid mkfifo mknod getuid geteuid getgid getegid getpgid killpg setpgid sched_getaffinity "
    "sched_setaffinity uname getloadavg nice sysconf chown lchown chroot wait3 wait4 WNOHANG pread sendfile "
    "posix_spawn ttyname statvfs getrusage O_NONBLOCK",
    "signal": "SIGKILL SIGHUP SIGSTOP SIGCONT SIGUSR1 SIGUSR2 SIGALRM SIGPIPE SIGCHLD SIGQUIT alarm setitimer "
    "pthread_kill pthread_sigmask sigwait",
    "time": "tzset",
    "select": "poll epoll kqueue",
}
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "readline"}


def calls_without_encoding(source):
    """Yield the lines that read or write text in the system's encoding, which is cp1252 on Windows."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function, options = node.func, {each.arg: each.value for each in node.keywords}
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if "encoding" in options:
            continue
        as_text = [options[key] for key in ("text", "universal_newlines") if key in options]
        if any(isinstance(value, ast.Constant) and value.value is True for value in as_text):
            yield node.lineno
        elif name in ("read_text", "write_text") and isinstance(function, ast.Attribute):
            if len(node.args) < (1 if name == "read_text" else 2) and not ast.unparse(function).startswith("archives."):
                yield node.lineno
        elif name == "open" and opens_text(node, options):
            yield node.lineno


def opens_text(node, options):
    """Whether a call of a function or method `open` opens a file as text."""
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if owner in ("Image", "tarfile", "webbrowser", "self._tracer", "zipfile"):
        return False
    index = 0 if owner else 1
    mode = options.get("mode") or (node.args[index] if len(node.args) > index else None)
    return not (isinstance(mode, ast.Constant) and "b" in mode.value)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("path.read_text()", True), ("path.read_text('utf-8')", False), ("path.read_text(encoding='utf-8')", False),
        ("path.write_text(text)", True), ("path.write_text(text, 'utf-8')", False), ("open(path)", True),
        ("open(path, 'rb')", False), ("open(path, mode='wb')", False), ("open(path, 'w', newline='')", True),
        ("path.open('a')", True), ("path.open('rb')", False), ("Image.open(path)", False),
        ("run(command, text=True)", True), ("run(command, text=True, encoding='utf-8')", False),
        ("run(command)", False), ("archives.read_text(part)", False),
    ],
)  # fmt: skip
def test_the_search_for_encodings_finds_what_it_should(source, found):
    assert bool(list(calls_without_encoding(source))) == found


def findings(search, paths):
    """Return path -> what a search finds in its source, for the files in which it finds something."""
    found = {path.relative_to(CLONE).as_posix(): list(search(path.read_text(encoding="utf-8"))) for path in paths}
    return {path: lines for path, lines in found.items() if lines}


def test_text_files_are_opened_with_a_named_encoding():
    assert findings(calls_without_encoding, SOURCES) == {}
    for book in notebooks.find():
        cells = [cell.source for cell in nbformat.read(book, as_version=4).cells if cell.cell_type == "code"]
        assert [cell for cell in cells if list(calls_without_encoding(cell))] == [], book.stem


def posix_names(source):
    """Yield names that Windows has not, outside a function or condition that asks for the system or the name.

    What a decorator itself is given is read on every system.
    """
    tree = ast.parse(source)
    guarded = set()
    for node in ast.walk(tree):
        conditions = [node.test] if isinstance(node, ast.If | ast.IfExp) else getattr(node, "decorator_list", [])
        if re.search(r"hasattr\(|platform|WINDOWS|os\.name|posix", " ".join(map(ast.unparse, conditions))):
            body = node.body if isinstance(node.body, list) else [node.body]
            guarded |= {id(inner) for part in body for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_ONLY.get(node.value.id, "").split():
                yield f"line {node.lineno}: {node.value.id}.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from (f"line {node.lineno}: {each.name}" for each in node.names if each.name in POSIX_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in POSIX_MODULES:
            yield f"line {node.lineno}: {node.module}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("os.fork()", ["line 1: os.fork"]), ("import fcntl", ["line 1: fcntl"]), ("os.getpid()", []),
        ("if hasattr(os, 'setsid'):\n    os.setsid()", []), ("x = os.fork if os.name == 'posix' else None", []),
        ("@posix\ndef test_a():\n    os.mkfifo('x')", []),
        ("def test_a():\n    signal.SIGKILL", ["line 2: signal.SIGKILL"]),
        ("@posix\n@parametrize(os.mkfifo)\ndef test_a():\n    pass", ["line 2: os.mkfifo"]),
    ],
)  # fmt: skip
def test_the_search_for_posix_names_finds_what_it_should(source, found):
    assert list(posix_names(source)) == found


def test_posix_only_names_are_guarded_in_tests():
    tests = [path for path in SOURCES if path.is_relative_to(CLONE / "tests")]  # a benchmark measures on Linux
    assert findings(posix_names, tests) == {}


# What Windows does, put in the place of what Linux does.


@pytest.fixture
def windows(monkeypatch):
    """This system as Windows, as far as tfviz asks."""
    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setattr(sys, "platform", "win32")
    for module, names in ((os, ["setsid", "sysconf"]), (signal, ["pthread_kill"])):
        for name in names:
            monkeypatch.delattr(module, name)


def mapped(path):
    """Whether this process has mapped a file."""
    return str(path) in Path("/proc/self/maps").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_tensors_that_were_read_do_not_hold_their_file_open_on_windows(tmp_path, monkeypatch):
    file = tmp_path / "values.safetensors"
    files.save_tensors(file, {"values": torch.arange(5000.0)})
    read = files.load_tensors(file)[0]
    assert mapped(file)  # so that elsewhere reading costs no memory
    del read
    assert not mapped(file)
    monkeypatch.setattr(files, "WINDOWS", True)
    read = files.load_tensors(file)[0]
    assert not mapped(file)
    assert read["values"].equal(torch.arange(5000.0))


class Busy:
    """`os.replace` while another program has the file open, for as many calls as are named."""

    def __init__(self, monkeypatch, count):
        self.left, self.waited, self.real = count, [], os.replace
        monkeypatch.setattr(os, "replace", self)
        monkeypatch.setattr(files.time, "sleep", self.waited.append)

    def __call__(self, source, target):
        if self.left:
            self.left -= 1
            raise PermissionError(13, "Access is denied", str(source))
        self.real(source, target)


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced_on_windows(tmp_path, windows, monkeypatch):
    (tmp_path / "note.txt").write_text("old", encoding="utf-8")
    busy = Busy(monkeypatch, 3)
    with files.atomic(tmp_path / "note.txt") as draft:
        draft.write_text("new", encoding="utf-8")
    assert (tmp_path / "note.txt").read_text(encoding="utf-8") == "new"
    assert busy.waited == [0.01, 0.05, 0.2]
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_file_that_stays_open_elsewhere_is_named_and_unchanged(tmp_path, windows, monkeypatch):
    (tmp_path / "note.txt").write_text("old", encoding="utf-8")
    busy = Busy(monkeypatch, 99)
    refused = pytest.raises(PermissionError, match=r"note\.txt cannot be written: Access is denied")
    with refused, files.atomic(tmp_path / "note.txt") as draft:
        draft.write_text("new", encoding="utf-8")
    assert sum(busy.waited) < 2
    assert (tmp_path / "note.txt").read_text(encoding="utf-8") == "old"


def test_elsewhere_a_refusal_is_told_at_once(tmp_path, monkeypatch):
    busy = Busy(monkeypatch, 1)
    with pytest.raises(PermissionError), files.atomic(tmp_path / "note.txt") as draft:
        draft.write_text("new", encoding="utf-8")
    assert busy.waited == []


def test_a_long_name_does_not_stand_twice_in_whole_in_the_path_of_a_draft(tmp_path):
    name = "a" * 120 + ".html"
    with files.atomic(tmp_path / name) as draft:
        draft.write_text("", encoding="utf-8")
        assert len(str(draft)) < len(str(tmp_path)) + len(name) + 80
    assert (tmp_path / name).is_file()


def test_an_old_checkpoint_that_is_open_elsewhere_stops_no_training_on_windows(tmp_path, windows, monkeypatch):
    model = torch.nn.Linear(2, 3)
    for step in (1, 2):
        checkpoint.save(tmp_path, model, step=step, keep=2)

    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Access is denied", str(path))

    monkeypatch.setattr(Path, "rename", refuse)
    checkpoint.save(tmp_path, model, step=3, keep=2)
    names = [path.name for path in checkpoint.list_checkpoints(tmp_path)]
    assert names == ["step-000000001", "step-000000002", "step-000000003"]
    monkeypatch.undo()
    checkpoint.save(tmp_path, model, step=4, keep=2)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000003", "step-000000004"]


def test_memory_is_unknown_on_windows(windows):
    assert checks.total_memory() == checks.UNKNOWN_MEMORY


def test_a_worker_on_windows_leaves_ctrl_c_to_the_main_process(windows, monkeypatch):
    handlers, started = {}, []
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(worker.threading, "Thread", lambda **options: started.append(options) or types.SimpleNamespace(
        start=lambda: None))  # fmt: skip
    monkeypatch.setattr(os, "environ", dict(os.environ))
    reports = multiprocessing.get_context("spawn").SimpleQueue()
    worker.init_worker(multiprocessing.Pipe(duplex=False)[0], None, reports)
    assert handlers == {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: worker._end_process}
    assert [options["target"] for options in started] == [worker._end_with_main]


def test_a_worker_on_windows_ends_when_the_main_process_does(windows, monkeypatch):
    ended = []
    monkeypatch.setattr(worker, "_end_process", lambda: ended.append(True))
    receiving, sending = multiprocessing.Pipe(duplex=False)
    sending.close()
    worker._end_with_main(receiving)
    assert ended == [True]


@pytest.mark.parametrize(("asked", "given"), [(2, 2), (61, 61), (100, 61)])
def test_no_more_workers_are_asked_for_than_windows_can_wait_for(windows, monkeypatch, asked, given):
    counts = []

    class Pool:
        def __init__(self, workers, *_):
            counts.append(workers)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, *_):
            return Future()

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)
    list(runner._execute([], Path("runs"), asked, None, ()))
    assert counts == [given]


class JupyterLab(subprocess.Popen):
    """A process that Ctrl-C reaches twice, and that goes on after the first."""

    def __init__(self, command, env):
        self.command, self.waits = command, iter([KeyboardInterrupt(), 3])
        JupyterLab.last = self

    def wait(self):
        said = next(self.waits)
        if isinstance(said, BaseException):
            raise said
        return said


def test_lab_waits_for_jupyterlab_on_windows_and_exits_as_it_does(windows, monkeypatch):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("the terminal would go on beside it"))
    monkeypatch.setattr(subprocess, "Popen", JupyterLab)
    monkeypatch.setattr(
        sys, "exit", lambda status: setattr(JupyterLab, "status", status) or (_ for _ in ()).throw(SystemExit)
    )
    with pytest.raises(SystemExit):
        lab.open_lab(("--port", "8 888"))
    assert JupyterLab.status == 3
    assert JupyterLab.last.command[-2:] == ["--port", "8 888"]


def test_addresses_have_slashes_on_windows(tmp_path, monkeypatch):
    """`os.path.relpath` gives backslashes there; a path's own parts become slashes by `as_posix`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("", encoding="utf-8")
    (tmp_path / "LICENSE").write_text("", encoding="utf-8")

    def relpath(path, start):
        return posixpath.relpath(path, start).replace("/", "\\")

    path = types.SimpleNamespace(relpath=relpath, normpath=os.path.normpath)
    monkeypatch.setattr(markdown_pages, "os", types.SimpleNamespace(path=path))
    source = tmp_path / "docs" / "a.md"
    given = [f"{notebooks.WEBSITE}notebooks/12_gpt.html", "../LICENSE", "a.md#x"]
    found = [markdown_pages.site_address(url, source, tmp_path, set()) for url in given]
    assert found == ["../notebooks/12_gpt.html", "../LICENSE.txt", "a.html#x"]
    assert PureWindowsPath("docs\\a.md").as_posix() == "docs/a.md"


@pytest.mark.parametrize(
    ("system", "browser"), [("win32", "the system's"), ("darwin", "the system's"), ("linux", None)]
)
def test_a_browser_that_is_no_command_counts_where_every_system_has_one(monkeypatch, system, browser):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", system)
    well, value = next((well, value) for well, what, value in doctor.examine() if what == "browser")
    assert well == bool(browser)
    assert value == (browser or "none; notebooks and pages need one")


def test_two_notebooks_whose_names_differ_in_capitals_are_not_written_to_one_file(tmp_path):
    """On Windows and macOS they are one file."""
    paths = [tmp_path / "a" / "x.ipynb", tmp_path / "b" / "X.ipynb"]
    for path in paths:
        path.parent.mkdir()
        nbformat.write(nbformat.v4.new_notebook(), path)
    with pytest.raises(ValueError, match="one file"):
        clean.clean(paths, to=tmp_path / "to")


def test_a_clone_has_lines_that_end_alike_on_every_system():
    """Else Git turns them into those of Windows, and notebooks, scripts and pictures differ from what is built."""
    rules = (CLONE / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert "* text=auto eol=lf" in rules
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=CLONE, capture_output=True, encoding="utf-8", check=False).stdout.split("\0")
    names = [name for name in listed if name]
    assert len({name.casefold() for name in names}) == len(names)
    reserved = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$")
    parts = {part for name in names for part in name.split("/")}
    assert [part for part in parts if re.search(r'[<>:"|?*\\]|[ .]$', part) or reserved.match(part)] == []
    assert max(map(len, names), default=0) < 120


@pytest.mark.parametrize("folder", ["tfviz"])
def test_what_is_written_has_lines_that_end_alike_on_every_system(folder):
    """`write_text` ends lines as the system does, unless `newline` is named; a page's scripts have a hash."""
    wrong = [
        f"{path.relative_to(CLONE)}, line {node.lineno}"
        for path in sorted((CLONE / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".write_text")
        if "newline" not in {each.arg for each in node.keywords}
    ]
    assert wrong == []
