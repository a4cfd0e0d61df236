"""`tfviz run` ended at any moment, by anything: nothing half-written, nothing left running, and the next run finishes.

`python tests/suite/test_killed.py 20` does it 20 times.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import nbformat
import psutil
import pytest

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
PRESETS = "presets.yaml"
ENDLESS = """import pathlib, subprocess, sys, time
other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
pathlib.Path('begun').touch()
while not pathlib.Path(go).exists(): time.sleep(0.05)
other.kill()
print('done')"""
COMMAND = """
import sys
from pathlib import Path
from tfviz.suite import notebooks
from tfviz.suite.cli import main
books = Path(sys.argv.pop(1))
notebooks.folder = lambda: books
main()
"""


class House:
    """Two notebooks that go on until a file is there; what runs of them is known by a mark in its environment."""

    def __init__(self, folder):
        self.books, self.out, self.temp, self.go = (folder / name for name in ("books", "out", "temp", "go"))
        for made in (self.books, self.out, self.temp):
            made.mkdir()
        (self.books / PRESETS).write_text("cpu: {}")
        cells = [
            nbformat.v4.new_code_cell(f"go = {str(self.go)!r}", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(ENDLESS, metadata={"tags": ["result"]}),
        ]
        for name in ("01_one", "02_two"):
            nbformat.write(nbformat.v4.new_notebook(cells=cells), self.books / f"{name}.ipynb")

    def begin(self):
        self.mark = uuid.uuid4().hex
        command = [sys.executable, "-c", COMMAND, str(self.books), "run", "--out", str(self.out), "--jobs", "2"]
        environment = {**os.environ, "TFVIZ_MARK": self.mark, "TMPDIR": str(self.temp)}
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, env=environment, preexec_fn=heed, **quiet)

    def running(self):
        """Every process that descends from the run, whosoever's child it is by now."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("TFVIZ_MARK") == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def whole(self):
        """What stands in the folder of results is whole."""
        for path in self.out.glob("*.json"):
            assert json.loads(path.read_text())["status"] in ("ok", "failed")
        for path in self.out.glob("*.ipynb"):
            nbformat.validate(nbformat.read(path, as_version=4))
        for path in self.out.glob("*.html"):
            assert path.read_text().rstrip().endswith("</html>")

    def finish(self):
        """The next run does the rest, and leaves nothing of those before."""
        self.go.touch()
        run = self.begin()
        said, _ = run.communicate(timeout=300)
        assert run.returncode == 0, said
        assert "2 of 2 notebooks ran" in said
        assert {json.loads(path.read_text())["result"] for path in self.out.glob("*.json")} == {"done"}
        self.whole()
        assert [path.name for path in self.out.glob(".*")] == []
        assert self.running() == []
        self.go.unlink()

    def kill(self, how, after):
        run = self.begin()
        if after is None:
            until(lambda: (self.out / "begun").exists() or run.poll() is not None)
        else:
            time.sleep(after)
        assert run.poll() is None, run.stdout.read()
        run.send_signal(how)
        run.communicate(timeout=60)
        until(lambda: not self.running(), self.running)
        assert run.returncode == {signal.SIGKILL: -9, signal.SIGINT: 1}.get(how, 128 + how) or run.returncode == -how
        assert not list(self.out.glob("*.json"))
        assert not list(self.out.glob("*.ipynb"))
        self.whole()
        assert [path.name for path in self.temp.iterdir()] == []
        (self.out / "begun").unlink(missing_ok=True)


def heed():
    """Whoever started the tests may have them ignore some: `nohup`, or a shell's `&`; tfviz would, too."""
    for how in SIGNALS[1:]:
        signal.signal(how, signal.SIG_DFL)


def until(there, left=lambda: ""):
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline, left()
        time.sleep(0.05)


@pytest.mark.parametrize("how", SIGNALS, ids=lambda how: how.name)
def test_whatever_ends_it_ends_its_kernels_and_their_processes(tmp_path, how):
    House(tmp_path).kill(how, None)


def test_killed_at_random_moments_it_finishes_the_next_time(tmp_path):
    house, moments = House(tmp_path), random.Random(7)
    for _ in range(4):
        house.kill(signal.SIGKILL, moments.uniform(0, 8))
    house.finish()


if __name__ == "__main__":
    moments = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for index in range(int(sys.argv[1])):
        with tempfile.TemporaryDirectory() as folder:
            house, how, after = House(Path(folder)), SIGNALS[index % len(SIGNALS)], moments.uniform(0, 12)
            house.kill(how, after)
            house.finish()
            print(f"{index + 1}: {how.name} after {after:.2f} s: nothing half-written, nothing running; then finished")
