"""Training, resuming, checkpoints, schedules, measures."""

import copy
import itertools
import math
import pickle
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_model
from torch import nn

from tfviz import learn
from tfviz.learn import checkpoint, evaluate, fit, losses, schedule
from tfviz.learn.trainer import checkpointed_blocks
from tfviz.models import GPT, Transformer, TransformerXL
from tfviz.text import Buckets, Streams, Windows, in_order

TEXT = torch.arange(300) % 11
train = partial(fit, device="cpu", progress=False)


def gpt(**parts):
    torch.manual_seed(1)
    return GPT(11, **{"context": 7, "layers": 2, "heads": 3, "dim": 6, "dropout": 0.1, **parts})


def windows(batch=4, seed=0):
    return Windows(TEXT, length=7, batch=batch, seed=seed)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def run(model, steps=6, **given):
    return [(step.step, step.loss, step.lr) for step in train(model, windows(), steps, **given)]


def test_fit_learns():
    model = gpt(dropout=0.0)
    before = evaluate.loss(model, in_order(TEXT, 7, 5))
    steps = list(train(model, windows(batch=8), 80, lr=0.02))
    after = evaluate.loss(model, in_order(TEXT, 7, 5))
    assert before == pytest.approx(math.log(11), abs=0.3)
    assert after < before / 2
    assert [step.step for step in steps] == list(range(80))
    assert all(step.tokens_per_second > 0 for step in steps)


@pytest.mark.parametrize("clip", [0.01, 1e9])
def test_a_step_by_hand(clip):
    model, other = gpt(dropout=0.0), gpt(dropout=0.0)
    (step,) = train(model, windows(), 1, lr=0.5, optimizer=torch.optim.SGD(model.parameters()), max_grad_norm=clip)
    total, count = losses.next_token(other, windows()[0])
    loss = total / count
    loss.backward()
    length = torch.cat([p.grad.flatten() for p in other.parameters()]).norm()
    for mine, by_hand in zip(model.parameters(), other.parameters(), strict=True):
        moved = by_hand - 0.5 * min(1, clip / (length + 1e-6)) * by_hand.grad
        torch.testing.assert_close(mine, moved, rtol=1e-4, atol=1e-6)
    assert step.loss == pytest.approx(loss.item(), abs=1e-6)
    assert step.lr == 0.5


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (schedule.constant, {0: 1, 99: 1}),
        (schedule.cosine(warmup=20), {0: 0.05, 9: 0.5, 19: 1, 20: 1, 60: 0.5, 80: (2 - math.sqrt(2)) / 4}),
        (schedule.cosine(warmup=20, floor=0.2), {9: 0.5, 20: 1, 60: 0.6, 100: 0.2}),
        (schedule.cosine(warmup=100), {0: 0.04, 24: 1, 25: 1, 100: 0}),
        (schedule.linear(warmup=20), {0: 0.05, 9: 0.5, 19: 1, 20: 1, 60: 0.5, 80: 0.25}),
        (schedule.linear(warmup=20, floor=0.2), {9: 0.5, 20: 1, 60: 0.6, 100: 0.2}),
        (schedule.inverse_square_root(4), {0: 0.25, 1: 0.5, 3: 1, 15: 0.5, 99: 0.2}),
    ],
)
def test_schedules_by_hand(rule, expected):
    assert {step: pytest.approx(rule(step, 100), abs=1e-12) for step in expected} == expected


def test_the_schedule_sets_the_rate():
    rates = [rate for *_, rate in run(gpt(), lr=0.3, schedule=lambda step, steps: step / steps)]
    assert rates == pytest.approx([0.3 * step / 6 for step in range(6)])


def test_decay_is_for_matrices():
    matrices, vectors = learn.adamw(gpt(), 0.1, weight_decay=0.3).param_groups
    assert {p.dim() for p in matrices["params"]} == {2}
    assert {p.dim() for p in vectors["params"]} == {1}
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.3, 0.0)


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_stopped_run_goes_on_as_if_it_never_stopped(tmp_path, stop):
    whole, stopped, resumed = gpt(), gpt(), gpt()
    expected = run(whole)
    for step in train(stopped, windows(), 6, checkpoint_dir=tmp_path, checkpoint_every=2):
        if step.step + 1 == stop:
            break
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)][-1] == f"step-{stop:09d}"
    torch.manual_seed(99)
    nn.init.zeros_(resumed.tokens.weight)
    assert run(resumed, checkpoint_dir=tmp_path, checkpoint_every=2) == expected
    assert same(weights(resumed), weights(whole))
    assert not same(weights(resumed), weights(stopped))


def test_a_finished_run_is_replayed(tmp_path):
    model, again = gpt(), gpt()
    first = list(train(model, windows(), 3, checkpoint_dir=tmp_path))
    assert list(train(again, windows(), 3, checkpoint_dir=tmp_path)) == first
    assert same(weights(again), weights(model))


def test_the_callers_chance_goes_on_as_if_there_were_no_training(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    for folder in (None, tmp_path / "run", tmp_path / "run"):  # without one, begun, replayed
        model = gpt()
        torch.manual_seed(5)
        drawn = [torch.rand(1) for _ in train(model, windows(), 3, checkpoint_dir=folder)]
        assert torch.equal(torch.cat(drawn), expected)


def test_seeds_fix_a_run():
    assert run(gpt()) == run(gpt())
    assert run(gpt(), seed=1) != run(gpt())


@pytest.mark.parametrize("other", [{"steps": 7}, {"lr": 0.1}, {"seed": 3}])
def test_other_arguments_are_refused(tmp_path, other):
    run(gpt(), steps=6, checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match=r"holds a run with.*give it another folder"):
        run(gpt(), **{"steps": 6, "checkpoint_dir": tmp_path, **other})


def test_a_loss_that_is_not_a_number_takes_no_step(tmp_path):
    model, numbers, past, spoiled = gpt(), itertools.count(), [], [3]

    def broken(model, batch):
        total, count = losses.next_token(model, batch)
        return total * (math.nan if next(numbers) in spoiled else 1), count

    steps = train(model, windows(), 6, loss=broken, checkpoint_dir=tmp_path, checkpoint_every=2)
    with pytest.raises(FloatingPointError, match=r"at step 3, .*step-000000003"):
        past.extend((step.step, step.loss, step.lr, weights(model)) for step in steps)
    kept = [kept for *_, kept in past]
    assert same(weights(model), kept[-1])
    assert all(tensor.isfinite().all() for tensor in kept[-1].values())
    assert checkpoint.load(tmp_path, other := gpt())["step"] == 3
    assert same(weights(other), kept[-1])
    spoiled.clear()
    assert run(gpt(), checkpoint_dir=tmp_path, loss=broken) == run(gpt())
    assert [loss for _, loss, *_ in past] == [loss for _, loss, _ in run(gpt())[:3]]


@pytest.mark.parametrize("folder", [True, False])
def test_a_rate_too_high_is_named(tmp_path, folder):
    with pytest.raises(FloatingPointError, match=r"at step \d+, learning rate .*the step was not taken"):
        run(gpt(), steps=50, lr=1e30, checkpoint_dir=tmp_path if folder else None)


def test_another_shape_is_named(tmp_path):
    checkpoint.save(tmp_path, gpt())
    with pytest.raises(ValueError, match=r"positions\.vectors\.weight has shape \[5, 6\] in the model and \[7, 6\]"):
        checkpoint.load(tmp_path, gpt(context=5))
    with pytest.raises(ValueError, match=r"blocks\.1\.\S+ .*the model does not have"):
        checkpoint.load(tmp_path, gpt(layers=1))
    with pytest.raises(ValueError, match=r"blocks\.2\."):
        checkpoint.load(tmp_path, gpt(layers=3))


def test_a_checkpoint_gives_back_what_it_was_given(tmp_path):
    model, other = gpt(), gpt()
    nn.init.normal_(model.tokens.weight)
    for step in (3, 12, 7):
        checkpoint.save(tmp_path, model, step=step, note="né", keep=2)
    assert [path.name for path in checkpoint.list_checkpoints(tmp_path)] == ["step-000000007", "step-000000012"]
    assert checkpoint.load(tmp_path / "step-000000007", other) == {"step": 7, "note": "né"}
    assert same(weights(other), weights(model))
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        checkpoint.load(tmp_path / "none", other)


def tied(weight_of=0):
    model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))
    model[1].weight = model[weight_of].weight
    return model


def test_a_tensor_of_two_names_is_stored_once(tmp_path):
    model, other = tied(), tied()
    path = checkpoint.save(tmp_path / "one", model)
    save_model(model, str(tmp_path / "by safetensors"))
    assert (path / "model.safetensors").read_bytes() == (tmp_path / "by safetensors").read_bytes()
    checkpoint.load(path, other)
    assert other[1].weight is other[0].weight
    assert same(weights(other), weights(model))
    checkpoint.save(tmp_path / "two", tied(weight_of=1))
    with pytest.raises(ValueError, match=r"0\.weight and 1\.weight are one tensor in the model and two in"):
        checkpoint.load(tmp_path / "two", model)


def _mark(path):
    Path(path).write_text("unpickled")


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["half", "empty", "pickle", "list", "gone"])
def test_a_damaged_checkpoint_is_an_error(tmp_path, name, damage):
    model = gpt()
    run(model, steps=2, checkpoint_dir=tmp_path / "run")
    file, trap = checkpoint.list_checkpoints(tmp_path / "run")[-1] / name, tmp_path / "trap"
    whole = file.read_bytes()
    content = {"half": whole[: len(whole) // 2], "empty": b"", "list": b"[1, 2]"}.get(damage)
    file.write_bytes(pickle.dumps(partial(_mark, trap)) + b"x" * 99 if content is None else content)
    if damage == "gone":
        file.unlink()
    gone = damage == "gone" and name == "state.json"
    with pytest.raises(FileNotFoundError if gone else ValueError, match="checkpoint"):
        checkpoint.load(tmp_path / "run", model, learn.adamw(model, 0.1))
    assert not trap.exists()


def test_a_full_disk_leaves_the_earlier_checkpoint_whole(tmp_path):
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
            assert "step-000000002" in str(error) and "earlier ones are untouched" in str(error), error
        else:
            raise SystemExit("the write did not fail")
        assert checkpoint.load(sys.argv[1], other := torch.nn.Linear(300, 70)) == {"step": 1}
        assert torch.equal(model.weight, other.weight)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr("tfviz.files.tempfile.mkdtemp", refuse)
    with pytest.raises(OSError, match=r"could not write the checkpoint .*Read-only file system"):
        run(gpt(), steps=2, checkpoint_dir=tmp_path)
    assert checkpoint.list_checkpoints(tmp_path) == []


def test_evaluate_by_hand():
    model, batches = gpt().train(), list(in_order(TEXT[:100], 7, 5))
    assert [len(inputs) for inputs, _ in batches] == [5, 5, 4]
    measured = evaluate.loss(model, iter(batches))
    assert model.training
    model.eval()
    inputs, targets = map(torch.cat, zip(*batches))
    chances = model(inputs).softmax(-1).gather(-1, targets[..., None])
    assert measured == pytest.approx(-chances.log().mean().item(), rel=1e-5)
    assert evaluate.perplexity(measured) == pytest.approx(math.exp(measured))
    assert evaluate.bits_per_byte(measured, 98, 7) == pytest.approx(measured / math.log(2) * 14)
    with pytest.raises(ValueError, match="no batch"):
        evaluate.loss(model, [])


def test_bfloat16_trains_on_a_cpu():
    model = gpt()
    half = run(model, precision="bfloat16")
    assert [loss for _, loss, _ in half] == pytest.approx([loss for _, loss, _ in run(gpt())], abs=0.1)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_compiling_leaves_the_model_as_it_is(monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    plain = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))  # the shape checks of tests cannot be compiled
    model = copy.deepcopy(plain)
    compiled = run(model, steps=3, compile=True)
    assert [loss for _, loss, _ in compiled] == pytest.approx([loss for _, loss, _ in run(plain, steps=3)], abs=1e-5)
    torch.testing.assert_close(model.state_dict(), plain.state_dict())
    assert model._compiled_call_impl is None


def ragged(count=9, seed=3, tokens=60):
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 8, (count, 2), generator=draw).tolist()
    rows = [[torch.randint(1, 11, (length,), generator=draw) for length in pair] for pair in lengths]
    return Buckets(*map(list, zip(*rows)), tokens=tokens)


def translator():
    torch.manual_seed(1)
    return Transformer(11, layers=2, heads=3, dim=6, dropout=0.0)


@pytest.mark.parametrize("parts", [2, 3])
def test_gradients_added_up_equal_the_large_batch(parts):
    whole, added = translator(), translator()
    how = {"loss": losses.translation(0.1), "optimizer": None}
    found = []
    for model, accumulate in ((whole, 1), (added, parts)):
        how["optimizer"] = torch.optim.SGD(model.parameters())
        found.append([s.loss for s in train(model, ragged(), 3, lr=0.1, gradient_accumulation_steps=accumulate, **how)])
    assert found[1] == pytest.approx(found[0], abs=1e-5)
    for one, other in zip(whole.parameters(), added.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [gpt, translator])
def test_computing_again_changes_no_number(make):
    plain, again = make(), make()
    batches, loss = (windows(), losses.next_token) if make is gpt else (ragged(), losses.translation())
    found = [
        [s.loss for s in train(model, batches, 4, gradient_checkpointing=on, loss=loss)]
        for model, on in ((plain, False), (again, True))
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-6)
    assert all("forward" not in vars(module) for module in again.modules())


def test_without_blocks_there_is_nothing_to_compute_again():
    with pytest.raises(ValueError, match=r"Linear has no nn\.ModuleList"):
        next(train(nn.Linear(2, 2), windows(), 1, gradient_checkpointing=True))


def test_a_loss_is_a_mean_over_tokens_and_not_over_batches():
    model, batches = translator(), list(ragged().in_order())
    parts = [losses.translation()(model.eval(), batch) for batch in batches]
    expected = sum(total.item() for total, _ in parts) / sum(count for _, count in parts)
    assert evaluate.loss(model, batches, losses.translation()) == pytest.approx(expected, rel=1e-5)


def test_more_parts_than_rows_are_as_many_as_rows():
    few = ragged(7, tokens=14)
    assert {len(few[step][0]) for step in range(4)} == {1, 2}
    one, other = translator(), translator()
    how = {"loss": losses.translation(), "lr": 0.1}
    found = [
        [s.loss for s in train(m, few, 4, gradient_accumulation_steps=k, optimizer=torch.optim.SGD(m.parameters()), **how)]
        for m, k in ((one, 1), (other, 5))
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-5)


def test_a_memory_is_not_carried_twice_where_blocks_are_computed_again():
    found = []
    for recompute in (False, True):
        torch.manual_seed(1)
        model = TransformerXL(11, memory=5, layers=2, heads=3, dim=6, dropout=0.1)
        steps = train(
            model, Streams(TEXT, 4, 3), 5, loss=losses.SegmentRecurrentLoss(), gradient_checkpointing=recompute, gradient_accumulation_steps=2
        )
        found.append([step.loss for step in steps])
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_blocks_are_themselves_again_after_an_error():
    model, seen = gpt(), []
    with pytest.raises(IndexError), checkpointed_blocks(model):  # noqa: PT012
        seen.append("forward" in vars(model.blocks[0]))
        model(torch.tensor([[99]]))
    assert seen == [True]
    assert "forward" not in vars(model.blocks[0])


def test_a_batch_of_padding_is_named():
    model = translator()
    before = weights(model)
    nothing = [(torch.tensor([[3, 4]]), torch.tensor([[2, 0, 0]]))]
    with pytest.raises(ValueError, match="all its targets are padding"):
        next(train(model, nothing, 1, loss=losses.translation()))
    assert same(weights(model), before)
