"""Whatever ends a training, what stands after its last whole step is kept; and told what is another run's.

`python tests/learn/test_kept.py 20` kills as many trainings as it is told, each at another moment.
"""

import gc
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from test_learn import TEXT, gpt, run, same, train, weights, windows
from torch import nn

import tfviz
from tfviz import files
from tfviz.learn import checkpoint, losses, muon, schedule, signals
from tfviz.text import Windows

STEPS = 8
momentum = partial(torch.optim.SGD, lr=1.0, momentum=0.9, foreach=False)  # one weight after the other


BELOW = [str(Path(tfviz.__file__).parent / "learn"), str(Path(torch.optim.__file__).parent)]


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


def last(folder):
    return int(checkpoint.list_checkpoints(folder)[-1].name.removeprefix("step-")) if checkpoint.list_checkpoints(folder) else 0


def expected(**given):
    model = gpt()
    optimizer = momentum(model.parameters())
    return run(model, STEPS, optimizer=optimizer, **given), weights(model)


def goes_on(folder, found, **given):
    """The run in this folder, gone on with by another model, is `found`."""
    model = gpt()
    nn.init.zeros_(model.tokens.weight)
    assert run(model, STEPS, optimizer=momentum(model.parameters()), checkpoint_dir=folder, **given) == found[0]
    assert same(weights(model), found[1])
    assert not list(folder.glob(".*draft"))


class At:
    """Does something at the so-manyth line that Python executes below `fit`."""

    def __init__(self, place, act):
        self.place, self.act, self.lines = place, act, 0

    def __call__(self, frame, event, _):
        if event == "line" and any(part in frame.f_code.co_filename for part in BELOW):
            self.lines += 1
            if self.lines == self.place:
                self.act()
        return self


def traced(folder, place, act):
    """Train until `act`; the steps seen and the lines counted. Steps 2 and 3 are looked at, with a checkpoint."""
    model, seen, at = gpt(), [], At(place, act)
    steps = train(model, windows(), STEPS, optimizer=momentum(model.parameters()), checkpoint_dir=folder, checkpoint_every=3)
    try:
        for step in steps:
            seen.append((step.step, step.loss, step.lr))
            if step.step == 1:
                sys.settrace(at)
            if step.step == 3:
                break
    finally:
        sys.settrace(None)
    return seen, at.lines


def test_ctrl_c_at_any_line_loses_no_step(tmp_path):
    found = expected(checkpoint_every=3)
    _, lines = traced(tmp_path / "whole", None, None)
    places = random.Random(2).sample(range(1, lines), 20)
    for place in places:
        folder = tmp_path / str(place)
        with pytest.raises(KeyboardInterrupt):
            traced(folder, place, partial(signal.raise_signal, signal.SIGINT))
        assert last(folder) >= 2, place
        goes_on(folder, found, checkpoint_every=3)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("where", ["batch", "loss", "backward", "body", "schedule", "save"])
def test_an_error_anywhere_keeps_the_last_whole_step(tmp_path, monkeypatch, where):
    """At step 5, of which neither weights nor the running means of a norm may keep a trace."""
    found, here = expected(checkpoint_every=100), {"now": ""}

    def at(place):
        if here["now"] == place:
            here["now"] = ""
            raise Stop(place)

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

    write = checkpoint._write
    monkeypatch.setattr(checkpoint, "_write", lambda *given: (at("save"), write(*given)))
    model = gpt()
    batches, optimizer = Batches(TEXT, length=7, batch=4), momentum(model.parameters())
    every = 5 if where == "save" else 100
    steps = train(model, batches, STEPS, optimizer=optimizer, loss=loss, schedule=rule, checkpoint_dir=tmp_path, checkpoint_every=every)
    with pytest.raises(Stop, match=where) as stopped:  # noqa: PT012
        for step in steps:
            if step.step == (3 if where == "save" else 4):
                here["now"] = where
                at("body")
    del steps
    gc.collect()
    assert last(tmp_path) == 5, stopped
    there = gpt()
    checkpoint.load(tmp_path, there)
    assert same(weights(there), weights(model))
    assert all(parameter.grad is None for parameter in model.parameters())
    other = gpt()
    steps = train(other, Batches(TEXT, length=7, batch=4), STEPS, optimizer=momentum(other.parameters()), loss=loss,
                  schedule=rule, checkpoint_dir=tmp_path)  # fmt: skip
    assert [(step.step, step.loss, step.lr) for step in steps] == found[0]
    assert same(weights(other), found[1])


def test_running_means_are_of_whole_steps(tmp_path):
    def norms():
        torch.manual_seed(1)
        return nn.Sequential(nn.Embedding(11, 6), nn.Flatten(0, 1), nn.BatchNorm1d(6), nn.Linear(6, 11))

    def loss(model, batch):
        total = nn.functional.cross_entropy(model(batch[0]), batch[1].flatten(), reduction="sum")
        if stop and next(calls) == 2:
            raise MemoryError
        return total, batch[1].numel()

    stop, calls, whole, broken = False, itertools.count(), norms(), norms()
    list(train(whole, windows(), 4, loss=loss))
    stop = True
    with pytest.raises(MemoryError) as error:
        list(train(broken, windows(), 4, loss=loss, checkpoint_dir=tmp_path))
    assert f"the same call goes on from {tmp_path / 'step-000000002'}" in error.value.__notes__
    list(train(broken, windows(), 4, loss=loss, checkpoint_dir=tmp_path))
    assert broken[2].num_batches_tracked == 4
    assert same(weights(broken), weights(whole))


def test_half_a_step_is_not_kept(tmp_path):
    class Breaks(torch.optim.SGD):
        def step(self, closure=None):
            self.steps = getattr(self, "steps", 0) + 1
            with torch.no_grad():
                self.param_groups[0]["params"][0].add_(1.0)
            if self.steps == 4:
                raise MemoryError
            return super().step(closure)

    model = gpt()
    with pytest.raises(MemoryError) as error:
        list(train(model, windows(), STEPS, optimizer=Breaks(model.parameters()), checkpoint_dir=tmp_path, checkpoint_every=2))
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000002"]
    assert "the model is half of step 3" in error.value.__notes__[0]


def test_a_loop_that_a_variable_holds_is_left_when_the_program_ends(tmp_path):
    script = """
        import sys, torch
        from tfviz import learn, models, text
        model = models.GPT(11, context=7, layers=1, heads=2, dim=4)
        steps = learn.fit(model, text.Windows(torch.arange(300) % 11, 7, 4), 9, folder=sys.argv[1], progress=False)
        next(steps), next(steps)
        raise ValueError("in the loop's body")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert "in the loop's body" in done.stderr
    assert last(tmp_path) == 2


def test_a_second_training_into_one_folder_is_told(tmp_path):
    first = train(gpt(), windows(), STEPS, checkpoint_dir=tmp_path)
    next(first)
    with pytest.raises(OSError, match=r"in use by another training.*give another folder"):
        run(gpt(), STEPS, checkpoint_dir=tmp_path)
    script = f"""
        from tfviz import files
        try:
            with files.alone({str(tmp_path)!r}):
                raise SystemExit("it was free")
        except BlockingIOError:
            pass
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=300)
    first.close()
    assert last(tmp_path) == 1
    assert len(run(gpt(), STEPS, checkpoint_dir=tmp_path)) == STEPS


def test_a_finished_run_is_read_by_many_and_in_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    found = run(gpt(), 3, checkpoint_dir=tmp_path)
    monkeypatch.setattr(files, "alone", None)
    one, other = (train(gpt(), windows(), 3, checkpoint_dir=tmp_path) for _ in range(2))
    assert [(step.step, step.loss, step.lr) for step, _ in zip(one, other, strict=True)] == found


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"model": {"heads": 2}}, r"its heads is 3 there and 2 here; build the model as it was"),
        ({"model": {"dropout": 0.2}}, r"a run with model\.dropout\.p 0\.1, this one asks for 0\.2"),
        ({"batches": windows(seed=1)}, r"with batches\.seed 0, this one asks for 1"),
        ({"batches": windows(batch=5)}, r"with batches\.batch 4, this one asks for 5"),
        ({"batches": Windows(TEXT.flip(0), length=7, batch=4)}, r"with batches\.ids int64 \[300\] "),
        ({"batches": [windows()[step + 1] for step in range(4)]}, r"with batches Windows, this one asks for list of 4"),
        ({"loss": losses.squared_error}, r"with loss next_token, this one asks for squared"),
        ({"max_grad_norm": 0.5}, r"with clip 1\.0, this one asks for 0\.5"),
        ({"gradient_accumulation_steps": 2}, r"with accumulate 1, this one asks for 2"),
        ({"precision": "bfloat16"}, r"with precision None, this one asks for bfloat16"),
        ({"schedule": schedule.constant}, r"with schedule\(2, 4\) 0\.666667, this one asks for 1"),
        ({"weight_decay": 0.2}, r"with optimizer\.0\.weight_decay 0\.1, this one asks for 0\.2"),
        ({"optimizer": torch.optim.SGD}, r"is of another optimizer: its class is Muon there and SGD here"),
    ],
)
def test_another_run_is_told_and_nothing_is_touched(tmp_path, other, says):
    run(gpt(), 4, checkpoint_dir=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    model = gpt(**other.pop("model", {}))
    started = weights(model)
    batches = other.pop("batches", windows())
    if "weight_decay" in other:
        other["optimizer"] = muon(model, 3e-3, weight_decay=other.pop("weight_decay"))
    if "optimizer" in other and isinstance(other["optimizer"], type):
        other["optimizer"] = other["optimizer"](model.parameters())
    with pytest.raises(ValueError, match=says):
        next(train(model, batches, 4, checkpoint_dir=tmp_path, **other))
    assert same(weights(model), started)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_goes_on_with_the_same_parts_made_anew(tmp_path):
    """Functions made by functions, batches that count how often they are asked: neither address nor count matters."""

    class Counted(Windows):
        asked = 0

        def __getitem__(self, step):
            self.asked += 1
            return super().__getitem__(step)

    def smoothed(share):
        return lambda model, batch: (losses.next_token(model, batch)[0] * (1 - share), batch[1].numel())

    def begun(batches):
        how = {"schedule": schedule.cosine(3), "loss": smoothed(0.25), "checkpoint_dir": tmp_path}
        return train(gpt(), batches, STEPS, **how)

    used = Counted(TEXT, 7, 4)
    for step in begun(used):
        if step.step == 4:
            break
    assert used.asked == 5
    for step in begun(used):
        if step.step == 6:
            break
    assert [step.step for step in begun(Counted(TEXT, 7, 4))] == list(range(STEPS))


def test_batches_by_chance_are_told(tmp_path):
    class Drawn:
        chance = torch.Generator()

        def __getitem__(self, step):
            ids = torch.randint(11, (4, 8), generator=self.chance)
            return ids[:, :-1], ids[:, 1:]

    next(train(gpt(), Drawn(), 3, checkpoint_dir=tmp_path))
    with pytest.warns(UserWarning, match=r"batches\[0\]\.0 is another one each time"):
        assert len(list(train(gpt(), Drawn(), 3, checkpoint_dir=tmp_path))) == 3


@pytest.mark.parametrize("what", ["step", "history", "bits", "another's weights"])
def test_what_does_not_fit_in_a_checkpoint_is_told(tmp_path, what):
    run(gpt(), 4, checkpoint_dir=tmp_path, checkpoint_every=2)
    path = checkpoint.list_checkpoints(tmp_path)[-1]
    earlier = checkpoint.list_checkpoints(tmp_path)[0]
    state = json.loads((path / "state.json").read_text())
    del state["sha256"]
    if what == "step":
        path.rename(path := path.with_name("step-000000009"))
        says = "step-000000009 is not a whole checkpoint: what it holds is of step 4"
    elif what == "history":
        state["state"]["history"][0].pop()
        tfviz.files.write_json(path / "state.json", state)
        says = r"history of \[3, 4, 4\] numbers for 4 steps"
    elif what == "bits":
        damaged = bytearray((path / "model.safetensors").read_bytes())
        damaged[-7] ^= 1
        (path / "model.safetensors").write_bytes(damaged)
        says = r"model\.safetensors was altered or is damaged"
    else:
        (path / "model.safetensors").write_bytes((earlier / "model.safetensors").read_bytes())
        says = r"model\.safetensors was altered or is damaged"
    with pytest.raises(ValueError, match=rf"{says}.*delete it"):
        run(gpt(), 4, checkpoint_dir=tmp_path)


def test_every_flipped_bit_of_a_checkpoint_is_told(tmp_path):
    model = nn.Linear(3, 2)
    path = checkpoint.save(tmp_path, model, muon(model, 0.1))
    draw = random.Random(1)
    for name in (checkpoint.MODEL, checkpoint.OPTIMIZER, checkpoint.STATE):
        whole = (path / name).read_bytes()
        for place in draw.sample(range(len(whole) * 8), 60):
            damaged = bytearray(whole)
            damaged[place // 8] ^= 1 << place % 8
            (path / name).write_bytes(damaged)
            with pytest.raises(ValueError, match="is not a whole checkpoint"):
                checkpoint.load(path, model)
        (path / name).write_bytes(whole)
    checkpoint.load(path, model)


def test_weights_that_are_no_numbers_are_not_kept(tmp_path):
    model = gpt()
    checkpoint.save(tmp_path, model, step=1)
    nn.init.constant_(model.norm.bias, torch.nan)
    with pytest.raises(FloatingPointError, match=r"norm\.bias is not finite after 2 steps"):
        checkpoint.save(tmp_path, model, step=2, keep=1)
    assert last(tmp_path) == 1


def test_gradients_of_another_hand_do_not_count():
    model, other = gpt(), gpt()
    for parameter in other.parameters():
        parameter.grad = torch.ones_like(parameter)
    assert run(model, 2) == run(other, 2)
    assert same(weights(model), weights(other))


def test_signals_wait_and_come_all_the_same():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("TERM"))
    try:
        with pytest.raises(KeyboardInterrupt), signals.deferred() as came:  # noqa: PT012
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            heard.append("end")
            assert came == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert heard[0] == "end"
        assert heard[-1] == "TERM"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.extend(run(gpt(), 3, checkpoint_dir=tmp_path)))
    thread.start()
    thread.join()
    assert found == run(gpt(), 3)


@pytest.fixture(autouse=True)
def handlers():
    """Those of a fresh process, whatever the test before was interrupted in."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def test_sigterm_ends_a_training_as_a_closing_program_does(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:  # noqa: PT012
        for step in train(gpt(), windows(), STEPS, checkpoint_dir=tmp_path):
            if step.step == 2:
                signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    gc.collect()
    assert last(tmp_path) == 3
    assert signal.getsignal(signal.SIGTERM) is before


SCRIPT = """
    import sys, torch
    from tfviz.learn import fit
    from tfviz.models import GPT
    from tfviz.text import Windows

    torch.manual_seed(1)
    model = GPT(11, context=7, layers=2, heads=3, dim=6, dropout=0.1)
    batches = Windows(torch.arange(300) % 11, length=7, batch=4)
    for step in fit(model, batches, 60, folder=sys.argv[1], checkpoint_every=3, device="cpu", progress=False):
        print(step.step, flush=True)
"""


def killed(folder, number, seed):
    """Train in a process that gets a signal at a moment drawn by chance; the number of steps it had told of."""
    draw = random.Random(seed)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        told = 0
        for _ in range(draw.randrange(1, 50)):
            told = int(process.stdout.readline()) + 1
        time.sleep(draw.random() / 50)
        process.send_signal(number)
        told = max([told, *(int(line) + 1 for line in process.stdout.read().split())])
        error = process.stderr.read()
    return told, process.returncode, error


@pytest.mark.parametrize(
    ("number", "seed"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGKILL, 3), (signal.SIGKILL, 4)]
)
def test_a_killed_training_goes_on(tmp_path, number, seed):
    check_kill(tmp_path, number, seed)


def check_kill(folder, number, seed):
    told, code, error = killed(folder, number, seed)
    assert code != 0, "it ended before it was killed"
    if number == signal.SIGKILL:
        assert last(folder) >= told - told % 3
    else:
        assert last(folder) >= told, error
        assert last(folder) <= told + 1
    for path in checkpoint.list_checkpoints(folder):
        assert checkpoint.load(path, gpt())["step"] == int(path.name[5:])
    whole, resumed = gpt(), gpt()
    assert run(resumed, 60, checkpoint_dir=folder, checkpoint_every=3) == run(whole, 60)
    assert same(weights(resumed), weights(whole))
    assert sorted(path.name for path in folder.iterdir()) == [files.LOCK, "step-000000057", "step-000000060"]
    return told, code


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        number = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL][seed % 3]
        with tempfile.TemporaryDirectory() as room:
            told, code = check_kill(Path(room), number, 100 + seed)
        print(f"{number.name} after {told} steps: ended with {code}; gone on with, the same losses")
