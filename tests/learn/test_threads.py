"""PyTorch's threads beside others: how they wait, how many they are."""

import json
import os
import re
import subprocess
import sys
from collections import deque

import pytest
import torch
from torch import nn

from tfviz.learn import fit, threads
from tfviz.suite import notebooks
from tfviz.text import Windows

BOOKS = notebooks.find()
VARIABLES = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS"}
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
WATCH = """
import os, sys
class Watch:  # ends the process when torch is about to load
    def find_spec(self, name, *rest):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), "tfviz" in sys.modules, flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
"""


def python(code, **variables):
    """What a new process says, with no other variables of OpenMP than these."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=kept | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() + done.stderr


def setup(book):
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return next(source for source in sources if "tfviz" in source or "torch" in source)


@pytest.mark.parametrize("book", BOOKS, ids=[book.stem for book in BOOKS])
def test_every_notebook_imports_tfviz_before_torch(book):
    assert python(WATCH + setup(book)) == "PASSIVE True"


@pytest.mark.parametrize(
    ("code", "given", "policy", "spins"),
    [
        ("import tfviz, torch", {}, "PASSIVE", "300000"),
        ("import tfviz, torch", {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE", "30000000000"),
        ("import tfviz, torch", {"OMP_WAIT_POLICY": "PASSIVE"}, "PASSIVE", "0"),
        ("import tfviz, torch", {"GOMP_SPINCOUNT": "77"}, "PASSIVE", "77"),
        ("import torch, tfviz", {}, "PASSIVE", "300000"),  # so does GNU's OpenMP call it that nothing is asked for
    ],
)
@ON_LINUX
def test_openmp_reads_what_tfviz_or_its_user_asks_for(code, given, policy, spins):
    said = python(code, OMP_DISPLAY_ENV="VERBOSE", **given)
    assert re.findall(r"OMP_WAIT_POLICY = '(\w+)'", said) == [policy]
    assert re.findall(r"GOMP_SPINCOUNT = '(\d+)'", said) == [spins]


@pytest.mark.parametrize(
    ("most", "counts"),
    [
        (2, {2: 2, 1.6: 2, 1.4: 1, 1: 1, 0.6: 1, 0.4: 1, 0: 1, -7: 1}),
        (4, {9: 4, 4: 4, 3: 3, 2: 2, 1: 4, 0: 4}),
        (7, {7: 7, 5: 5, 3: 3, 2: 7}),
    ],
)
def test_as_many_threads_as_there_is_room_for(most, counts):
    assert {free: threads.room(free, most) for free in counts} == counts


def test_those_who_wait_are_counted_without_our_own(tmp_path, monkeypatch):
    for number, (name, state) in enumerate([("python", "R"), ("a) R (b", "S"), ("pt) S", "R"), ("x", "D")]):
        (tmp_path / f"self/task/{number}").mkdir(parents=True)
        (tmp_path / f"self/task/{number}/stat").write_text(f"{number} ({name}) {state} 1 2 3 R")
    (tmp_path / "self/task/9").mkdir()  # a thread that has ended
    monkeypatch.setattr(threads, "PROC", tmp_path)
    for line, others in {"0.20 0.18 0.12 7/80 11206": 5, "9.20 8.18 7.12 2/80 1": 0, "0 0 0 0/0 0": 0}.items():
        (tmp_path / "loadavg").write_text(line + "\n")
        assert threads.waiting() == others


@ON_LINUX
def test_a_process_that_computes_is_seen():
    code = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as spinner:
        try:
            spinner.stdout.readline()
            assert threads.waiting() >= 1
        finally:
            spinner.kill()


class Machine(threads._Machine):
    """One with as many others as the test says."""

    def __init__(self, *others):
        super().__init__()
        self.script, self.spun = deque(others), []

    def others(self):
        return self.script[0] if len(self.script) == 1 else self.script.popleft()

    def let_spin(self, spin):
        self.spun.append(spin)


@pytest.fixture
def beside(monkeypatch):
    """On two cores, with two threads: beside so many others."""

    def make(*others):
        machine = Machine(*others)
        monkeypatch.setattr(threads, "_machine", lambda: machine)
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        return machine

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield make
    torch.set_num_threads(before)


def used(steps, **given):
    """How many threads each step of training has, while it runs and after it."""
    model, counts = nn.Embedding(5, 3), []

    def loss(model, batch):
        counts.append(torch.get_num_threads())
        return model(batch[0]).square().sum(), batch[0].numel()

    batches = Windows(torch.arange(40) % 5, length=7, batch=2)
    for _ in fit(model, batches, steps, loss=loss, device="cpu", progress=False, **given):
        counts.append(torch.get_num_threads())
    return counts


def test_training_takes_the_threads_there_is_room_for_and_gives_them_back(beside):
    machine = beside(0, 0, 1, 1, 2, 2, 0.4)  # a step asks twice: for the gradients, and to move the weights
    assert used(4) == [2, 2, 1, 2, 1, 2, 2, 2]
    assert machine.spun == [True, True, True, True, False, False, False, False]


def test_threads_are_given_back_after_an_error(beside):
    beside(1)
    with pytest.raises(ZeroDivisionError), threads.share():
        1 / (torch.get_num_threads() - 1)
    assert torch.get_num_threads() == 2


def test_compiled_code_keeps_its_number_of_threads(beside):
    machine = beside(0, 1, 2)
    for _ in range(3):
        with threads.share(fixed=True):
            assert torch.get_num_threads() == 2
    assert machine.spun == [True, False, False]


def test_one_thread_waits_for_nobody(beside):
    machine = beside(2)
    torch.set_num_threads(1)
    assert used(1) == [1, 1]
    assert machine.spun == []


CROWDED = """
import time, torch
from pathlib import Path
from tfviz.learn import threads
def slept():  # how often each thread of the process went to sleep
    switches = {}
    for task in Path("/proc/self/task").iterdir():
        lines = dict(line.split(":") for line in (task / "status").read_text().splitlines())
        switches[task.name] = int(lines["voluntary_ctxt_switches"])
    return switches
torch.set_num_threads(2)
x = torch.ones(1 << 20)
machine = threads._Machine()
def work():  # the second thread is asked 40 times
    for _ in range(5):
        x.add_(1)
    before = slept()
    for _ in range(40):
        x.add_(1)
        time.sleep(0.005)
    return sorted(now - before.get(task, now) for task, now in slept().items())[:-1]  # not the first's 40
def count():
    return len(list(Path("/proc/self/task").iterdir()))
alone = count()
spun = work()
few = count()
machine.let_spin(False)
while count() < few + 1 + torch.get_num_threads():  # the crowd comes
    time.sleep(0.001)
slept_while = work()
machine.let_spin(True)
while count() > few:  # and goes
    time.sleep(0.001)
print(sum(spun), sum(slept_while))
"""


@ON_LINUX
def test_where_there_is_a_crowd_those_that_wait_sleep():
    spun, asleep = map(int, python(CROWDED, OMP_WAIT_POLICY="ACTIVE").split())
    assert spun == 0
    assert asleep >= 20


def test_where_nobody_can_be_counted_a_busy_machine_is_told(tmp_path, monkeypatch):
    import psutil

    monkeypatch.setattr(threads, "PROC", tmp_path)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setattr(psutil, "getloadavg", lambda: ((os.cpu_count() or 1) + 1.0, 0.0, 0.0))
    with pytest.warns(RuntimeWarning, match="import tfviz before torch, or set OMP_WAIT_POLICY=PASSIVE"):
        assert threads._Machine().others() == 0
