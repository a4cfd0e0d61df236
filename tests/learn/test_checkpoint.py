"""Checkpoints: saving and loading; mismatched or damaged ones are rejected without changing the model."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
import torch
from operating_systems import make_pipe, posix
from safetensors.torch import load_file, save_file, save_model
from torch import nn
from trainings import equal_states, gpt, run, state_of, train, windows

from tfviz.learn import adamw, checkpoint
from tfviz.models import GPT


def pair():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return checkpoint.save(tmp_path_factory.mktemp("saved"), *pair(), step=7, note={"a": [1, None]})


def test_checkpoint_round_trips(tmp_path):
    model, optimizer = pair()
    for step in (3, 12, 7):
        checkpoint.save(tmp_path, model, optimizer, step=step, note="né", keep=2)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000007", "step-000000012"]
    other, fresh = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2, bias=False)), None
    fresh = torch.optim.AdamW(other.parameters(), lr=0.5)
    assert checkpoint.load(tmp_path / "step-000000007", other, fresh) == {"step": 7, "note": "né"}
    assert equal_states(state_of(other), state_of(model))
    torch.testing.assert_close(fresh.state_dict()["state"], optimizer.state_dict()["state"], rtol=0, atol=0)
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        checkpoint.load(tmp_path / "none", other)


def test_plain_numbers_in_optimizer_state_round_trip(tmp_path):
    model, optimizer = pair()
    first = next(iter(optimizer.state))
    optimizer.state[first]["calls"] = 4
    checkpoint.save(tmp_path, model, optimizer)
    del optimizer.state[first]["calls"]
    checkpoint.load(tmp_path, model, optimizer)
    assert optimizer.state[first]["calls"] == 4


def test_save_keeps_unrelated_folders(tmp_path):
    for step in (1, 5):
        (tmp_path / f"step-00000000{step}").mkdir()
        (tmp_path / f"step-00000000{step}" / "mine.txt").write_text("mine", encoding="utf-8")
    checkpoint.save(tmp_path, gpt(), step=6, keep=1)
    with pytest.raises(FileExistsError, match="is not a checkpoint"):
        checkpoint.save(tmp_path, gpt(), step=5)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == [f"step-00000000{n}" for n in (1, 5, 6)]


def test_save_removes_stale_drafts(tmp_path):
    (tmp_path / ".step-000000004.abcdefgh.tfviz-draft").mkdir()
    (tmp_path / ".mine.tfviz-draft").mkdir()
    checkpoint.save(tmp_path, gpt(), step=6)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.tfviz-draft", "step-000000006"]


def test_load_rejects_another_model(tmp_path):
    checkpoint.save(tmp_path, gpt())
    with pytest.raises(ValueError, match=r"positions\.vectors\.weight has shape \[5, 6\] in the model and \[7, 6\]"):
        checkpoint.load(tmp_path, gpt(context=5))
    for layers, says in ((1, r"holds blocks\.1\."), (3, r"the model has blocks\.2\.")):
        with pytest.raises(ValueError, match=says):
            checkpoint.load(tmp_path, gpt(layers=layers))
    model = gpt()
    with pytest.raises(ValueError, match="saved without an optimizer"):
        checkpoint.load(tmp_path, model, adamw(model, 0.1))


@pytest.mark.parametrize("wrap", [lambda model: torch.compile(model, backend="eager"), nn.DataParallel])
def test_checkpoint_unwraps_compiled_and_parallel_models(wrap, tmp_path):
    model, other = gpt(), gpt(dropout=0.2)
    nn.init.normal_(model.tokens.weight)
    checkpoint.save(tmp_path, wrap(model))
    checkpoint.load(tmp_path, other)
    assert equal_states(state_of(other), state_of(model))
    nn.init.zeros_(other.tokens.weight)
    checkpoint.load(tmp_path, wrap(other))
    assert equal_states(state_of(other), state_of(model))


def test_compiled_run_resumes_uncompiled(tmp_path):
    with torch.compiler.set_stance("force_eager"):  # dynamo cannot follow what checks shapes in tests
        list(train(torch.compile(gpt()), windows(), 3, checkpoint_dir=tmp_path))
    assert len(run(gpt(), 3, checkpoint_dir=tmp_path)) == 3


def tied(weight_of=0):
    model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))
    model[1].weight = model[weight_of].weight
    return model


def test_tied_tensors_are_stored_once(tmp_path):
    model, other = tied(), tied()
    path = checkpoint.save(tmp_path / "one", model)
    save_model(model, str(tmp_path / "by safetensors"))
    assert (path / "model.safetensors").stat().st_size == (tmp_path / "by safetensors").stat().st_size
    checkpoint.load(path, other)
    assert other[1].weight is other[0].weight
    assert equal_states(state_of(other), state_of(model))
    checkpoint.save(tmp_path / "two", tied(weight_of=1))
    with pytest.raises(ValueError, match=r"0\.weight and 1\.weight are one tensor in the model and two in"):
        checkpoint.load(tmp_path / "two", model)


def mark(path):
    Path(path).write_text("unpickled", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("state.json", damage) for damage in ("half", "empty", "pickle", "list", "deep", "gone", "pipe")),
        *(("model.safetensors", damage) for damage in ("pickle", "pipe")),
        *(("optimizer.safetensors", damage) for damage in ("half", "gone")),
    ],
)
def test_load_rejects_damaged_files(tmp_path, saved, name, damage):
    file, trap = shutil.copytree(saved, tmp_path / saved.name) / name, tmp_path / "trap"
    content = file.read_bytes()
    damaged = {"half": content[: len(content) // 2], "empty": b"", "list": b"[1, 2]", "deep": b"[" * 100_000}
    damaged["pickle"] = pickle.dumps(partial(mark, trap)) + b"x" * 99
    if damage in damaged:
        file.write_bytes(damaged[damage])
    else:
        file.unlink()
    if damage == "pipe":
        make_pipe(file)
    with pytest.raises((ValueError, FileNotFoundError), match=f"{saved.name}.*({name}|delete it)"):
        checkpoint.load(tmp_path, *pair())
    assert not trap.exists()


FORGED = {
    "no model": (lambda state, tensors, moments: state.pop("model"), "no 'model'"),
    "a step in words": (lambda state, tensors, moments: state.update(step="7"), "step is '7'"),
    "another step": (lambda state, tensors, moments: state.update(step=8), "its content is of step 8"),
    "a list for a model": (lambda state, tensors, moments: state.update(model=[1]), r"model is a list"),
    "unknown moments": (
        lambda s, t, m: m.update({"9.exp_avg": torch.ones(2)}),
        "'9.exp_avg', which belongs to none of the model's 3",
    ),
    "unnumbered moments": (
        lambda s, t, m: m.update({"exp_avg": torch.ones(2)}),
        "'exp_avg', which belongs to none of the model's 3",
    ),
    "negative moments": (
        lambda s, t, m: m.update({"-1.exp_avg": torch.ones(2)}),
        "'-1.exp_avg', which belongs to none of the model's 3",
    ),
    "other moments": (lambda s, t, m: m.update({"0.exp_avg": torch.ones(2)}), r"0\.exp_avg .* \[5, 3\]"),
    "moments as a number": (lambda s, t, m: s["optimizer_numbers"].update({"0.exp_avg": 3}), r"0\.exp_avg .* \[5, 3\]"),
    "an unknown number": (
        lambda s, t, m: s["optimizer_numbers"].update({"9.step": 3}),
        "'9.step', which belongs to none of the model's 3",
    ),
    "another weight": (lambda s, t, m: t.update({"0.bias": torch.ones(4)}), r"0\.bias has shape \[5\]"),
    "another dtype": (lambda s, t, m: t.update({"0.bias": torch.ones(5).half()}), r"0\.bias has dtype float32"),
    "a weight lost": (lambda s, t, m: t.pop("0.bias"), r"the model has 0\.bias \[5\]"),
    "another optimizer": (lambda s, t, m: s.update(optimizer="SGD"), "of another optimizer: SGD, not AdamW"),
}


@pytest.mark.parametrize("case", FORGED)
def test_load_rejects_mismatches_without_changing_the_model(case, saved, tmp_path):
    change, says = FORGED[case]
    at = shutil.copytree(saved, tmp_path / saved.name)
    files = {name: load_file(at / name) for name in ("model.safetensors", "optimizer.safetensors")}
    state = json.loads((at / "state.json").read_text(encoding="utf-8"))
    change(state, *files.values())
    for name, tensors in files.items():
        save_file(tensors, at / name)
    (at / "state.json").write_text(json.dumps(state), encoding="utf-8")
    model, optimizer = pair()
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
    with pytest.raises(ValueError, match=says) as error:
        checkpoint.load(at, model, optimizer)
    assert str(at) in str(error.value)
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()["state"]), before, rtol=0, atol=0)


@pytest.mark.parametrize("history", [None, [[1.0, 2.0, 3.0]], [[1.0, 2.0]] * 4, [["a", 2.0, 3.0]] * 4])
def test_fit_rejects_invalid_history(tmp_path, history):
    run(gpt(), 4, checkpoint_dir=tmp_path)
    file = checkpoint.list_checkpoints(tmp_path)[-1] / "state.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["state"]["history"] = history
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file.parent}.*history"):
        run(gpt(), 4, checkpoint_dir=tmp_path)


@pytest.mark.parametrize(
    "state", [{1: 2}, {"a": [{True: 1}]}, {"a": {(1, 2): 3}}, float("nan"), torch.ones(2), [object()]]
)
def test_save_rejects_state_that_json_cannot_represent(state, tmp_path):
    with pytest.raises(ValueError, match="state"):
        checkpoint.save(tmp_path, pair()[0], x=state)
    assert list(tmp_path.iterdir()) == []


def test_save_rejects_non_finite_weights(tmp_path):
    model = gpt()
    checkpoint.save(tmp_path, model, step=1)
    nn.init.constant_(model.norm.bias, torch.nan)
    with pytest.raises(FloatingPointError, match=r"norm\.bias is not finite after 2 steps"):
        checkpoint.save(tmp_path, model, step=2, keep=1)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000001"]


def test_load_compares_settings_without_weights(tmp_path):
    from tfviz.layers import masks, positions

    for options, other, says in (
        ({"positions": positions.Rotary}, {"positions": positions.ALiBi}, "Rotary there and ALiBi here"),
        ({"mask": masks.window(3)}, {"mask": masks.window(2)}, "mask.* there and .* here"),
    ):
        path = checkpoint.save(tmp_path / says[:4], GPT(11, context=7, heads=3, dim=6, layers=1, **options))
        with pytest.raises(ValueError, match=says):
            checkpoint.load(path, GPT(11, context=7, heads=3, dim=6, layers=1, **other))


@posix
def test_full_disk_keeps_the_previous_checkpoint(tmp_path):
    script = """
        import resource, signal, sys, torch
        from tfviz.learn import checkpoint
        model = torch.nn.Linear(300, 70)
        checkpoint.save(sys.argv[1], model, step=1)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            checkpoint.save(sys.argv[1], torch.nn.Linear(300, 70), step=2)
        except OSError as error:
            assert "step-000000002" in str(error), error
        else:
            raise SystemExit("the write did not fail")
        assert checkpoint.load(sys.argv[1], other := torch.nn.Linear(300, 70)) == {"step": 1}
        assert torch.equal(model.weight, other.weight)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
