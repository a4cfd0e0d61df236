"""Training in two processes (gloo, on CPUs): data-parallel, sharded, resumed, with the losses of one process.

The functions named in `both` run in two processes, which start this file as a script, and in this one.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from test_learn import gpt, ragged, train, translator, windows
from torch import nn
from torch.distributed.fsdp import fully_shard

import tfviz
from tfviz.learn import checkpoint, evaluate, losses, muon
from tfviz.models import BERT
from tfviz.text import Masked

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
ACCELERATE = ["-m", "accelerate.commands.launch", "--num_processes=2", "--num_machines=1", "--main_process_port=0"]
SHARDED = ["--use_fsdp", "--fsdp_version=2", "--fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP"]
SHARDED += ["--fsdp_transformer_layer_cls_to_wrap=Block"]


def launched(launch, *script, folder):
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    settings["PYTHONPATH"] = str(Path(tfviz.__file__).parents[1])
    command = [sys.executable, *launch, *map(str, script)]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


def left_alone(model):
    return model


def by_blocks(model):
    for module in model.modules():
        if type(module).__name__ in ("Block", "DecoderBlock"):
            fully_shard(module)
    return fully_shard(model)


def tied():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 11, bias=False))
    model[2].weight = model[0].weight
    return model


def run(model, batches, steps=4, **given):
    return [step.loss for step in train(model, batches, steps, **{"loss": losses.translation(0.1), **given})]


def ways(prepared):
    """Losses of batches with an odd number of rows, of unequal numbers of tokens, some with one row."""
    torch.manual_seed(1)
    bert = BERT(11, layers=2, heads=3, dim=6, dropout=0.0)
    return {
        "ragged": run(prepared(translator()), ragged()),
        "in parts": run(prepared(translator()), ragged(), gradient_accumulation_steps=2),
        "computed again": run(prepared(translator()), ragged(), gradient_checkpointing=True),
        "one row": run(prepared(translator()), ragged(7, tokens=14), gradient_accumulation_steps=2),
        "a head that rests": run(prepared(bert), Masked(ragged(), 11), loss=hidden_words),
    }


def hidden_words(model, batch):
    return losses.masked_lm(model, batch[:2])


def begin(folder, prepared):
    """Three steps of six, a measurement that leaves weights in full, a checkpoint."""
    model = prepared(translator())
    for step in train(model, ragged(), 6, loss=losses.translation(0.1), checkpoint_dir=folder, checkpoint_every=2):
        if step.step == 2:
            evaluate.loss(model, [ragged()[0]], losses.translation())
            break
    list(train(prepared(tied()), windows(3), 2, checkpoint_dir=f"{folder}-tied"))


def resumed(folder, prepared):
    return run(prepared(translator()), ragged(), 6, checkpoint_dir=folder)


def interrupted(folder, prepared):
    """A signal comes to the second process alone, in its loop's body; how this one ends."""
    try:
        for step in train(prepared(translator()), ragged(), 6, loss=losses.translation(0.1), checkpoint_dir=folder):
            if step.step == 2 and torch.distributed.get_rank() == 1:
                signal.raise_signal(signal.SIGINT)
    except (KeyboardInterrupt, SystemExit) as ended:
        return str(ended)


def both(folder, way):
    """What two processes find, to be compared with what one does."""
    if way == "by accelerate":
        from accelerate import PartialState
        from accelerate.utils import DistributedType

        # accelerate shards on GPUs only: let it take these CPUs for some
        PartialState(cpu=True)._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        return {"sharded": ways(left_alone), "resumed": resumed(folder / "one", left_alone)}
    begin(folder / "two", by_blocks)
    return {
        "whole": ways(left_alone),
        "sharded": ways(by_blocks),
        "resumed": resumed(folder / "one", by_blocks),
        "interrupted": [interrupted(folder / how, way) for how, way in (("left", left_alone), ("cut", by_blocks))],
        "processes": torch.distributed.get_world_size(),
    }


def agree(found, alone):
    assert found.keys() == alone.keys()
    for name, expected in alone.items():
        assert found[name] == pytest.approx(expected, abs=1e-5), name


@pytest.fixture(scope="module")
def alone():
    return ways(left_alone)


@pytest.fixture(scope="module")
def straight():
    return run(translator(), ragged(), 6)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder two processes worked in, and what they found."""
    folder = tmp_path_factory.mktemp("two")
    begin(folder / "one", left_alone)
    return folder, launched(TORCHRUN, __file__, folder, "by the caller", checkpoint_dir=folder)


def test_two_processes_share_ragged_batches(two, alone):
    assert two[1]["processes"] == 2
    agree(two[1]["whole"], alone)


def test_shards_change_no_number(two, alone):
    agree(two[1]["sharded"], alone)


def test_shards_go_on_where_one_process_stopped(two, straight):
    assert two[1]["resumed"] == pytest.approx(straight, abs=1e-5)


def described(folder):
    """What a checkpoint is made of: names, shapes, kinds and shared names, but no number a step has changed."""
    (path,) = checkpoint.list_checkpoints(folder)[-1:]
    found = json.loads((path / "state.json").read_text()) | {"name": path.name, "files": None, "sha256": None}
    found["state"]["history"] = None
    for file in ("model.safetensors", "optimizer.safetensors"):
        found[file] = {name: (tensor.shape, tensor.dtype) for name, tensor in load_file(path / file).items()}
        with safe_open(path / file, framework="pt") as stored:
            found[f"shared in {file}"] = stored.metadata()
    return found


def test_checkpoints_of_shards_are_those_of_one_process(two, straight, tmp_path):
    begin(tmp_path / "one", left_alone)
    assert described(two[0] / "two") == described(tmp_path / "one")
    assert described(two[0] / "two-tied") == described(tmp_path / "one-tied")
    assert described(two[0] / "two-tied")["shared in model.safetensors"] == {"2.weight": "0.weight"}
    assert resumed(two[0] / "two", left_alone) == pytest.approx(straight, abs=1e-5)
    model = translator()
    assert checkpoint.load(two[0] / "one", model, muon(model, 0.1))["step"] == 6


@pytest.mark.parametrize(("number", "how"), [(0, "left"), (1, "cut")])
def test_processes_stop_together_where_one_is_interrupted(two, straight, number, how):
    assert [path.name for path in checkpoint.list_checkpoints(two[0] / how)] == ["step-000000004"]
    assert two[1]["interrupted"][number].startswith("another process was asked to end: the same call goes on from")
    assert resumed(two[0] / how, left_alone) == pytest.approx(straight, abs=1e-5)


def test_accelerate_shards(alone, straight, tmp_path):
    begin(tmp_path / "one", left_alone)
    found = launched([*ACCELERATE, *SHARDED], __file__, tmp_path, "by accelerate", checkpoint_dir=tmp_path)
    agree(found["sharded"], alone)
    assert found["resumed"] == pytest.approx(straight, abs=1e-5)


SCRIPT = """
    import json, torch
    from tfviz.learn import fit
    from tfviz.models import GPT
    from tfviz.text import Windows

    torch.manual_seed(1)
    model = GPT(11, context=7, layers=2, heads=3, dim=6, dropout=0.0)
    batches = Windows(torch.arange(300) % 11, length=7, batch=5)
    losses = [step.loss for step in fit(model, batches, 4, checkpoint_dir="run", checkpoint_every=3, progress=False)]
    if torch.distributed.get_rank() == 0:
        json.dump([losses, torch.distributed.get_world_size()], open("found.json", "w"))
"""


@pytest.mark.parametrize("launch", [TORCHRUN, [*ACCELERATE, "--multi_gpu"]], ids=["torchrun", "accelerate"])
def test_a_script_needs_no_change_for_two_processes(launch, tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    found, processes = launched(launch, "script.py", checkpoint_dir=tmp_path)
    assert processes == 2
    assert found == pytest.approx(run(gpt(dropout=0.0), windows(5), loss=losses.next_token), abs=1e-5)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path / "run")] == ["step-000000003", "step-000000004"]


if __name__ == "__main__":
    work, way = Path(sys.argv[1]), sys.argv[2]
    found = both(work, way)
    if torch.distributed.get_rank() == 0:
        (work / "found.json").write_text(json.dumps(found))
