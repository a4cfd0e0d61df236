"""Interrupted training resumes from its checkpoint with the same losses; checkpoints of other runs are rejected."""

import gc
import itertools
import random
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from default_signals import DEFAULT_SIGNALS
from operating_systems import posix
from torch import nn
from trainings import TEXT, equal_states, gpt, run, state_of, train, windows

import tfviz
from tfviz.learn import checkpoint, losses, muon, schedule
from tfviz.text import Windows

STEPS = 8
momentum = partial(torch.optim.SGD, lr=1.0, momentum=0.9, foreach=False)  # one weight after the other
TRACED = [str(Path(tfviz.__file__).parent / "learn"), str(Path(torch.optim.__file__).parent)]


def last_step(folder):
    return int(checkpoint.list_checkpoints(folder)[-1].name.removeprefix("step-"))


def resume(folder, model, steps=6, **options):
    nn.init.zeros_(model.tokens.weight)
    return run(model, steps, checkpoint_dir=folder, **options)


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_stopped_run_resumes_with_the_same_losses(tmp_path, stop):
    whole, stopped, resumed = gpt(), gpt(), gpt()
    expected = run(whole)
    for step in train(stopped, windows(), 6, checkpoint_dir=tmp_path, checkpoint_every=2):
        if step.step + 1 == stop:
            break
    gc.collect()
    assert last_step(tmp_path) == stop
    torch.manual_seed(99)
    assert resume(tmp_path, resumed, checkpoint_every=2) == expected
    assert equal_states(state_of(resumed), state_of(whole))
    assert not equal_states(state_of(resumed), state_of(stopped))


def test_finished_run_is_replayed_without_writing(tmp_path, monkeypatch):
    model, again = gpt(), gpt()
    first = list(train(model, windows(), 3, checkpoint_dir=tmp_path))
    monkeypatch.setattr(checkpoint, "save", None)
    assert list(train(again, windows(), 3, checkpoint_dir=tmp_path)) == first
    assert equal_states(state_of(again), state_of(model))


def interrupted(folder, line):
    """Train, raise Ctrl-C at the n-th line that Python executes below `fit` in steps 2 and 3; count the lines."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if event == "line" and any(part in frame.f_code.co_filename for part in TRACED):
            lines += 1
            if lines == line:
                signal.raise_signal(signal.SIGINT)
        return trace

    model = gpt()
    optimizer = momentum(model.parameters())
    steps = train(model, windows(), STEPS, optimizer=optimizer, checkpoint_dir=folder, checkpoint_every=2)
    try:
        for step in steps:
            if step.step == 1:
                sys.settrace(trace)
            if step.step == 3:
                break
    finally:
        sys.settrace(None)
    return lines


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt: whoever started the tests may have them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_run_resumes_after_ctrl_c_at_any_line(tmp_path, ctrl_c):
    whole = gpt()
    expected = run(whole, STEPS, optimizer=momentum(whole.parameters()))
    lines = interrupted(tmp_path / "counted", None)
    for line in random.Random(2).sample(range(1, lines * 9 // 10), 8):  # a run may take some lines fewer
        folder, model = tmp_path / str(line), gpt()
        with pytest.raises(KeyboardInterrupt):
            interrupted(folder, line)
        gc.collect()
        assert last_step(folder) >= 2, line
        assert resume(folder, model, STEPS, optimizer=momentum(model.parameters())) == expected
        assert equal_states(state_of(model), state_of(whole))
        assert not list(folder.glob(".*"))


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


@pytest.mark.parametrize("where", ["batch", "loss", "backward", "body", "schedule", "save"])
def test_error_keeps_the_last_complete_step(tmp_path, monkeypatch, where):
    """At step 5, of which neither weights nor gradients may keep a trace."""
    armed = {"moment": ""}

    def at(moment):
        if armed["moment"] == moment:
            armed["moment"] = ""
            raise Stop(moment)

    class Batches(Windows):
        def __getitem__(self, step):
            if step == 5:
                at("batch")
            return super().__getitem__(step)

    def loss(model, batch):
        total, count = losses.next_token(model, batch)
        at("loss")
        total.register_hook(lambda _: at("backward"))
        return total, count

    def rule(step, steps):
        at("schedule")
        return schedule.linear()(step, steps)

    save_tensors = checkpoint.files.save_tensors
    monkeypatch.setattr(checkpoint.files, "save_tensors", lambda *args: (at("save"), save_tensors(*args)))
    model, whole, other = gpt(), gpt(), gpt()
    options = {"loss": loss, "schedule": rule, "batches": Batches(TEXT, length=7, batch_size=4)}
    expected = run(whole, STEPS, optimizer=momentum(whole.parameters()), **options)
    steps = train(model, steps=STEPS, optimizer=momentum(model.parameters()), checkpoint_dir=tmp_path,
                  checkpoint_every=5 if where == "save" else 100, **options)  # fmt: skip
    with pytest.raises(Stop, match=where):  # noqa: PT012
        for step in steps:
            if step.step == (3 if where == "save" else 4):
                armed["moment"] = where
                at("body")
    del steps
    gc.collect()
    assert last_step(tmp_path) == 5
    checkpoint.load(tmp_path, other)
    assert equal_states(state_of(other), state_of(model))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert resume(tmp_path, other, STEPS, optimizer=momentum(other.parameters()), **options) == expected
    assert equal_states(state_of(other), state_of(whole))


def test_batch_norm_statistics_exclude_incomplete_steps(tmp_path):
    def norms():
        torch.manual_seed(1)
        return nn.Sequential(nn.Embedding(11, 6), nn.Flatten(0, 1), nn.BatchNorm1d(6), nn.Linear(6, 11))

    def loss(model, batch):
        total = nn.functional.cross_entropy(model(batch[0]), batch[1].flatten(), reduction="sum")
        if fails and next(calls) == 2:
            raise MemoryError
        return total, batch[1].numel()

    fails, calls, whole, broken = False, itertools.count(), norms(), norms()
    list(train(whole, windows(), 4, loss=loss))
    fails = True
    with pytest.raises(MemoryError) as error:
        list(train(broken, windows(), 4, loss=loss, checkpoint_dir=tmp_path))
    assert f"the same call goes on from {tmp_path / 'step-000000002'}" in error.value.__notes__
    list(train(broken, windows(), 4, loss=loss, checkpoint_dir=tmp_path))
    assert broken[2].num_batches_tracked == 4
    assert equal_states(state_of(broken), state_of(whole))


def test_incomplete_step_is_not_saved(tmp_path):
    class Breaks(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            self.calls += 1
            with torch.no_grad():
                self.param_groups[0]["params"][0].add_(1.0)
            if self.calls == 4:
                raise MemoryError
            return super().step(closure)

    model = gpt()
    options = {"optimizer": Breaks(model.parameters()), "checkpoint_dir": tmp_path, "checkpoint_every": 2}
    with pytest.raises(MemoryError) as error:
        list(train(model, windows(), STEPS, **options))
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000002"]
    assert "the model is in the middle of step 3" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steps": 7}, "steps 4"),
        ({"lr": 0.1}, r"lr 0\.003"),
        ({"seed": 3}, "seed 0"),
        ({"model": {"heads": 2}}, "heads is 3 there and 2 here"),
        ({"model": {"dropout": 0.2}}, r"dropout\.p 0\.1"),
        ({"batches": windows(seed=1)}, r"batches\.seed 0"),
        ({"batches": windows(batch=5)}, r"batches\.batch_size 4"),
        ({"batches": Windows(TEXT.flip(0), length=7, batch_size=4)}, r"batches\.ids int64 \[300\] "),
        ({"batches": [windows()[step + 1] for step in range(4)]}, "batches Windows"),
        ({"loss": losses.squared_error}, "loss default"),
        ({"max_grad_norm": 0.5}, r"max_grad_norm 1\.0"),
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps 1"),
        ({"precision": "bfloat16"}, "precision None"),
        ({"schedule": schedule.constant}, r"schedule\(2, 4\) 0\.666667"),
        ({"optimizer": lambda model: muon(model, 3e-3, weight_decay=0.2)}, r"optimizer\.0\.weight_decay 0\.1"),
        ({"optimizer": lambda model: torch.optim.SGD(model.parameters())}, "of another optimizer: Muon, not SGD"),
    ],
)
def test_changed_settings_raise_and_change_nothing(tmp_path, changed, says):
    run(gpt(), 4, checkpoint_dir=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    model = gpt(**changed.get("model", {}))
    started = state_of(model)
    options = {"batches": windows(), "steps": 4, **changed}
    options.pop("model", None)
    if "optimizer" in changed:
        options["optimizer"] = changed["optimizer"](model)
    with pytest.raises(ValueError, match=says):
        next(train(model, checkpoint_dir=tmp_path, **options))
    assert equal_states(state_of(model), started)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_run_resumes_with_recreated_functions(tmp_path):
    """Functions made by functions: their settings are compared and no addresses."""

    def weighted(share):
        return lambda model, batch: (losses.next_token(model, batch)[0] * (1 - share), batch[1].numel())

    def begin(share):
        options = {"schedule": schedule.cosine(3), "loss": weighted(share), "checkpoint_dir": tmp_path}
        return train(gpt(), windows(), STEPS, **options)

    next(begin(0.25))
    gc.collect()
    assert [step.step for step in begin(0.25)] == list(range(STEPS))
    with pytest.raises(ValueError, match=r"loss\.share 0\.25"):
        next(begin(0.5))


SCRIPT = """
    import sys, time, torch
    from tfviz.learn import fit
    from tfviz.models import GPT
    from tfviz.text import Windows

    torch.manual_seed(1)
    model = GPT(11, context=7, layers=2, heads=3, dim=6, dropout=0.1)
    batches = Windows(torch.arange(300) % 11, length=7, batch_size=4)
    options = {"checkpoint_dir": sys.argv[1], "checkpoint_every": 3, "device": "cpu", "progress": False}
    for step in fit(model, batches, 60, **options):
        print(step.step, flush=True)
        time.sleep(0.01)  # so that the signal comes before the end
"""


def kill(folder, number, seed):
    """Train in a process that gets a signal at a random moment; return the number of steps it reported."""
    chance = random.Random(seed)
    command = [sys.executable, "-c", DEFAULT_SIGNALS + textwrap.dedent(SCRIPT), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        for _ in range(chance.randrange(5, 50)):
            steps = int(process.stdout.readline()) + 1
        time.sleep(chance.random() / 50)
        process.send_signal(number)
        steps = max([steps, *(int(line) + 1 for line in process.stdout.read().split())])
        process.stderr.read()
    assert process.returncode != 0, "it ended before it was killed"
    return steps


@posix
@pytest.mark.parametrize(("name", "seed"), [("SIGTERM", 2), ("SIGKILL", 3)])
def test_killed_process_resumes_with_the_same_losses(tmp_path, name, seed):
    steps = kill(tmp_path, getattr(signal, name), seed)
    assert last_step(tmp_path) >= steps - steps % 3 - 3 * (name == "SIGKILL")
    for path in checkpoint.list_checkpoints(tmp_path):
        assert checkpoint.load(path, gpt())["step"] == int(path.name[5:])
    whole, resumed = gpt(), gpt()
    assert run(resumed, 60, checkpoint_dir=tmp_path, checkpoint_every=3) == run(whole, 60)
    assert equal_states(state_of(resumed), state_of(whole))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000057", "step-000000060"]
