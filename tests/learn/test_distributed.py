"""Training in two processes (gloo, on CPUs): data-parallel, sharded, resumed, with the losses of one process.

The functions named in `compare` run in two processes, which start this file as a script, and in this one.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn
from torch.distributed.fsdp import fully_shard
from trainings import gpt, ragged, train, translator, windows

import tfviz
from tfviz.learn import checkpoint, evaluate, losses, muon
from tfviz.models import BERT
from tfviz.text import MaskedTokens

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
ACCELERATE = ["-m", "accelerate.commands.launch", "--num_processes=2", "--num_machines=1", "--main_process_port=0"]
SHARDED = ["--use_fsdp", "--fsdp_version=2", "--fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP"]
SHARDED += ["--fsdp_transformer_layer_cls_to_wrap=Block"]


def launch(launcher, *script, folder):
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, (Path(tfviz.__file__).parents[1], Path(__file__).parents[1])))
    command = [sys.executable, *launcher, *map(str, script)]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def unsharded(model):
    return model


def shard_by_blocks(model):
    for module in model.modules():
        if type(module).__name__ in ("Block", "DecoderBlock"):
            fully_shard(module)
    return fully_shard(model)


def tied():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 11, bias=False))
    model[2].weight = model[0].weight
    return model


def run(model, batches, steps=4, **options):
    return [step.loss for step in train(model, batches, steps, **{"loss": losses.translation(0.1), **options})]


def train_each_way(prepare):
    """Losses of batches with an odd number of rows, of unequal numbers of tokens, some with one row."""
    torch.manual_seed(1)
    bert = BERT(11, layers=2, heads=3, dim=6, dropout=0.0)
    return {
        "ragged": run(prepare(translator()), ragged()),
        "accumulated": run(prepare(translator()), ragged(), gradient_accumulation_steps=2),
        "recomputed": run(prepare(translator()), ragged(), gradient_checkpointing=True),
        "one row": run(prepare(translator()), ragged(7, tokens=14), gradient_accumulation_steps=2),
        "an unused head": run(prepare(bert), MaskedTokens(ragged(), 11), loss=tokens_only),
    }


def tokens_only(model, batch):
    return losses.masked_lm(model, batch[:2])


def begin(folder, prepare):
    """Take three steps of six; evaluate, which leaves weights in full; write checkpoints."""
    model, options = prepare(translator()), {"checkpoint_dir": folder, "checkpoint_every": 2}
    for step in train(model, ragged(), 6, loss=losses.translation(0.1), **options):
        if step.step == 2:
            evaluate.loss(model, [ragged()[0]], losses.translation())
            break
    list(train(prepare(tied()), windows(3), 2, checkpoint_dir=f"{folder}-tied"))


def resume(folder, prepare):
    return run(prepare(translator()), ragged(), 6, checkpoint_dir=folder)


def compare(folder, sharded_by):
    """Return what two processes find, to be compared with what one does."""
    if sharded_by == "accelerate":
        from accelerate import PartialState
        from accelerate.utils import DistributedType

        # accelerate shards on GPUs only: let it take these CPUs for some
        PartialState(cpu=True)._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        return {"sharded": train_each_way(unsharded), "resumed": resume(folder / "one", unsharded)}
    begin(folder / "two", shard_by_blocks)
    return {
        "unsharded": train_each_way(unsharded),
        "sharded": train_each_way(shard_by_blocks),
        "resumed": resume(folder / "one", shard_by_blocks),
        "processes": torch.distributed.get_world_size(),
    }


@pytest.fixture(scope="module")
def expected():
    return {name: pytest.approx(found, abs=1e-5) for name, found in train_each_way(unsharded).items()}


@pytest.fixture(scope="module")
def uninterrupted():
    return pytest.approx(run(translator(), ragged(), 6), abs=1e-5)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder two processes worked in, and what they found."""
    folder = tmp_path_factory.mktemp("two")
    begin(folder / "one", unsharded)
    return folder, launch(TORCHRUN, __file__, folder, "fully_shard", folder=folder)


def test_two_processes_match_one_on_ragged_batches(two, expected):
    assert two[1]["processes"] == 2
    assert two[1]["unsharded"] == expected


def test_sharded_training_matches_unsharded(two, expected, uninterrupted):
    assert two[1]["sharded"] == expected
    assert two[1]["resumed"] == uninterrupted


def describe(folder):
    """What a checkpoint is made of: names, shapes, dtypes and aliases, but no number a step has changed."""
    path = checkpoint.list_checkpoints(folder)[-1]
    found = json.loads((path / "state.json").read_text(encoding="utf-8")) | {"name": path.name}
    found["state"]["history"] = None
    for file in ("model.safetensors", "optimizer.safetensors"):
        found[file] = {name: (tensor.shape, tensor.dtype) for name, tensor in load_file(path / file).items()}
        with safe_open(path / file, framework="pt") as stored:
            found[f"aliases in {file}"] = stored.metadata()
    return found


def test_sharded_checkpoints_match_unsharded(two, uninterrupted, tmp_path):
    begin(tmp_path / "one", unsharded)
    assert describe(two[0] / "two") == describe(tmp_path / "one")
    assert describe(two[0] / "two-tied") == describe(tmp_path / "one-tied")
    assert describe(two[0] / "two-tied")["aliases in model.safetensors"] == {"2.weight": "0.weight"}
    assert resume(two[0] / "two", unsharded) == uninterrupted
    model = translator()
    assert checkpoint.load(two[0] / "one", model, muon(model, 0.1))["step"] == 6


def test_accelerate_sharding_matches_one_process(expected, uninterrupted, tmp_path):
    begin(tmp_path / "one", unsharded)
    found = launch([*ACCELERATE, *SHARDED], __file__, tmp_path, "accelerate", folder=tmp_path)
    assert found["sharded"] == expected
    assert found["resumed"] == uninterrupted


SCRIPT = """
    import json, torch
    from tfviz import study
    from tfviz.learn import evaluate, fit
    from tfviz.models import GPT
    from tfviz.text import Windows

    torch.manual_seed(1)
    model = GPT(11, context=7, layers=2, heads=3, dim=6, dropout=0.0)
    batches = Windows(torch.arange(300) % 11, length=7, batch_size=5)
    options = {"checkpoint_dir": "run", "checkpoint_every": 3, "progress": False}
    losses = [step.loss for step in fit(model, batches, 4, **options)]
    test = [batches[number] for number in range(4, 7)]
    loss = evaluate.loss(model, test)

    def strongest(seen, inputs):
        return seen["blocks.1.attention.pattern"].amax(-1).mean(-1)  # [batch, head]

    found = study.aggregate(model, [batch[0] for batch in test], strongest, progress=False)
    if torch.distributed.is_initialized() and torch.distributed.get_rank():
        raise SystemExit
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    found = {"losses": losses, "loss": loss, "strongest": found.mean.values.tolist(), "count": found.counts.tolist()}
    json.dump([found, world], open("found.json", "w"))
"""


@pytest.fixture(scope="module")
def by_one_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    found, processes = launch([], "script.py", folder=folder)
    assert processes == 1
    return found


@pytest.mark.parametrize("launcher", [TORCHRUN, [*ACCELERATE, "--multi_gpu"]], ids=["torchrun", "accelerate"])
def test_unchanged_script_runs_in_two_processes(launcher, by_one_process, tmp_path):
    """It trains, evaluates on texts it has not seen, and measures heads over them: the numbers are those of one."""
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    found, processes = launch(launcher, "script.py", folder=tmp_path)
    assert processes == 2
    assert found["losses"] == pytest.approx(run(gpt(dropout=0.0), windows(5), loss=losses.next_token), abs=1e-5)
    assert found == {name: pytest.approx(number, abs=1e-5) for name, number in by_one_process.items()}
    assert found["count"] == [15, 15, 15]
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path / "run")] == [
        "step-000000003",
        "step-000000004",
    ]


if __name__ == "__main__":
    folder, sharded_by = Path(sys.argv[1]), sys.argv[2]
    found = compare(folder, sharded_by)
    if torch.distributed.get_rank() == 0:
        (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")
