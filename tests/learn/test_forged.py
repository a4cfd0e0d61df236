"""Checkpoints whose files are sealed rightly and hold something wrong: told by file and key, and nothing is filled."""

import copy
import hashlib
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tfviz import sealed
from tfviz.learn import checkpoint


def pair():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model, optimizer = pair()
    return checkpoint.save(tmp_path_factory.mktemp("whole"), model, optimizer, step=7, note={"a": [1, None]})


def changed(whole, to, change):
    """A copy, sealed anew, after `change(state, weights, moments)`."""
    at = shutil.copytree(whole, to / whole.name)
    state = files.read_json(at / "state.json")
    files = {name: load_file(at / name) for name in state["files"]}
    change(state, *files.values())
    for name, tensors in files.items():
        save_file(tensors, at / name)
        if isinstance(state.get("files"), dict) and name in state["files"]:
            state["files"][name] = hashlib.sha256((at / name).read_bytes()).hexdigest()
    files.write_json(at / "state.json", state)
    return at


def put(*way, value):
    def change(state, weights, moments):
        *before, last = way
        for key in before:
            state = state[key]
        state[last] = value

    return change


def lose(key):
    return lambda state, weights, moments: state.pop(key)


WRONG = {
    "no model": (lose("model"), "state.json has no 'model'; it must have step, model, state, optimizer, files"),
    "no step": (lose("step"), "state.json has no 'step'"),
    "no files": (lose("files"), "state.json has no 'files'"),
    "a step in words": (put("step", value="7"), r"state\.json\.step is '7'; it must be a whole number"),
    "a step of another": (put("step", value=8), "what it holds is of step 8"),
    "a model of numbers": (put("model", value=[1]), r"state\.json\.model is a list; it must be a dictionary"),
    "a model within": (
        put("model", "", value={}),
        r"state\.json\.model.* is a dictionary; it must be a number, a text",
    ),
    "a state of nothing": (put("state", value=None), r"state\.json\.state is None; it must be a dictionary"),
    "an optimizer of nothing": (put("optimizer", value=None), r"state\.json\.optimizer is None; it must be a dict"),
    "no numbers": (put("optimizer", value={"what": {}}), r"state\.json\.optimizer has no 'numbers'"),
    "more": (put("more", value=1), "state.json has the key 'more', which is not known"),
    "a sum of a list": (put("files", value=[]), r"state\.json\.files is a list; it must be a dictionary"),
    "moments of none": (lambda s, w, m: m.update({"9.exp_avg": torch.ones(2)}), "'9.exp_avg', which is of none of 3"),
    "moments without a number": (lambda s, w, m: m.update({"exp_avg": torch.ones(2)}), "'exp_avg', which is of none"),
    "moments before all": (lambda s, w, m: m.update({"-1.exp_avg": torch.ones(2)}), "'-1.exp_avg', which is of none"),
    "moments of another shape": (
        lambda s, w, m: m.update({"0.exp_avg": torch.ones(2)}),
        r"0\.exp_avg in optimizer\.safetensors has not the shape of its parameter, \[5, 3\]",
    ),
    "moments that are one number": (put("optimizer", "numbers", "0.exp_avg", value=3), "has not the shape of its par"),
    "a number of none": (put("optimizer", "numbers", "9.step", value=3), "'9.step', which is of none of 3 parameters"),
    "a weight of another shape": (
        lambda s, w, m: w.update({"0.bias": torch.ones(4)}),
        r"0\.bias has shape \[5\] in the",
    ),
    "a weight lost": (lambda s, w, m: w.pop("0.bias"), r"the model has 0\.bias \[5\], which"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told_and_nothing_is_filled(case, whole, tmp_path):
    change, says = WRONG[case]
    at = changed(whole, tmp_path, change)
    model, optimizer = pair()
    with torch.no_grad():
        [one.fill_(0.5) for one in model.parameters()]
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError, match=says) as told:
        checkpoint.load(at, model, optimizer)
    assert str(at) in str(told.value) or "model.safetensors" in str(told.value)
    assert all(bool((one == 0.5).all()) for one in model.parameters())
    after = optimizer.state_dict()
    assert all(torch.equal(after["state"][i][name], one) for i, kept in before["state"].items()
               for name, one in kept.items())  # fmt: skip


def test_a_shared_name_that_leads_to_nothing_is_told(tmp_path):
    model = nn.ModuleDict({"a": nn.Linear(3, 3, bias=False), "b": nn.Linear(3, 3, bias=False)})
    model["b"].weight = model["a"].weight
    at = checkpoint.save(tmp_path, model)
    tensors = load_file(at / "model.safetensors")
    for shared in ({"b.weight": "c.weight"}, {"b.weight": "b.weight"}):
        save_file(tensors, at / "model.safetensors", metadata=shared)
        state = files.read_json(at / "state.json")
        state["files"]["model.safetensors"] = hashlib.sha256((at / "model.safetensors").read_bytes()).hexdigest()
        files.write_json(at / "state.json", state)
        with pytest.raises(ValueError, match=r"says that b\.weight is the same as .*, which it does not hold"):
            checkpoint.load(at, model)


def test_what_was_saved_is_given_back(whole):
    model, optimizer = pair()
    assert checkpoint.load(whole, model, optimizer) == {"step": 7, "note": {"a": [1, None]}}


@pytest.mark.parametrize("state", [{1: 2}, {"a": [{True: 1}]}, {"a": ({None: 1},)}, {"a": {(1, 2): 3}}])
def test_keys_that_json_would_change_are_refused(state, tmp_path):
    with pytest.raises(
        ValueError, match=r"state holds what JSON cannot: state\.x.* has the key .*; every key must be a"
    ):
        checkpoint.save(tmp_path, pair()[0], x=state)
    assert list(tmp_path.iterdir()) == []
