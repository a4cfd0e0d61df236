"""Training with fit: steps, schedules, seeds, gradient accumulation, precision, compilation and restored state."""

import contextlib
import copy
import gc
import itertools
import math
import warnings
from functools import partial

import pytest
import torch
from calls import Calls
from torch import nn
from torch._dynamo.testing import CompileCounter
from trainings import TEXT, equal_states, gpt, ragged, run, state_of, train, translator, windows

from tfviz.learn import adamw, checkpoint, evaluate, fit, losses, muon, schedule
from tfviz.learn.accelerator import create_accelerator
from tfviz.learn.gradient_checkpointing import CheckpointedBlocks
from tfviz.learn.mixed_precision import default_precision
from tfviz.models import TransformerXL
from tfviz.text import Streams, in_order


def test_fit_learns():
    model = gpt(dropout=0.0)
    before = evaluate.loss(model, in_order(TEXT, 7, 5))
    steps = list(train(model, windows(batch=8), 80, lr=0.02))
    assert before == pytest.approx(math.log(11), abs=0.3)
    assert evaluate.loss(model, in_order(TEXT, 7, 5)) < before / 2
    assert [step.step for step in steps] == list(range(80))
    assert all(step.tokens_per_second > 0 for step in steps)


@pytest.mark.parametrize("max_grad_norm", [0.01, 1e9])
def test_fit_step_matches_reference(max_grad_norm):
    model, other = gpt(dropout=0.0), gpt(dropout=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)  # gradients from elsewhere do not count
    sgd = torch.optim.SGD(model.parameters())
    (step,) = train(model, windows(), 1, lr=0.5, optimizer=sgd, max_grad_norm=max_grad_norm)
    total, count = losses.next_token(other, windows()[0])
    loss = total / count
    loss.backward()
    norm = torch.cat([p.grad.flatten() for p in other.parameters()]).norm()
    for mine, by_hand in zip(model.parameters(), other.parameters(), strict=True):
        moved = by_hand - 0.5 * min(1, max_grad_norm / (norm + 1e-6)) * by_hand.grad
        torch.testing.assert_close(mine, moved, rtol=1e-4, atol=1e-6)
    assert step.loss == pytest.approx(loss.item(), abs=1e-6)
    assert step.lr == 0.5
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (schedule.constant, {0: 1, 99: 1}),
        (schedule.cosine(warmup=20), {0: 0.05, 9: 0.5, 19: 1, 20: 1, 60: 0.5, 80: (2 - math.sqrt(2)) / 4}),
        (schedule.cosine(warmup=20, min_lr_ratio=0.2), {9: 0.5, 20: 1, 60: 0.6, 100: 0.2}),
        (schedule.cosine(warmup=100), {0: 0.04, 24: 1, 25: 1, 100: 0}),
        (schedule.linear(warmup=20), {0: 0.05, 9: 0.5, 19: 1, 20: 1, 60: 0.5, 80: 0.25}),
        (schedule.linear(warmup=20, min_lr_ratio=0.2), {9: 0.5, 20: 1, 60: 0.6, 100: 0.2}),
        (schedule.inverse_square_root(4), {0: 0.25, 1: 0.5, 3: 1, 15: 0.5, 99: 0.2}),
    ],
)
def test_schedules_match_hand_computed_values(rule, expected):
    assert {step: pytest.approx(rule(step, 100), abs=1e-12) for step in expected} == expected


def test_fit_scales_and_restores_the_lr_of_each_group():
    model = gpt()
    matrices, vectors = ([p for p in model.parameters() if (p.dim() > 1) == wide] for wide in (True, False))
    optimizer = torch.optim.SGD([{"params": matrices, "lr": 0.5}, {"params": vectors, "lr": 0.25}], lr=9.0)
    rates, step_ = [], optimizer.step
    optimizer.step = lambda *args: (rates.append([group["lr"] for group in optimizer.param_groups]), step_(*args))[1]
    options = {"optimizer": optimizer, "schedule": lambda step, steps: 1 / (step + 1)}
    assert [lr for *_, lr in run(model, 2, **options)] == [0.5, 0.25]
    assert rates == [[0.5, 0.25], [0.25, 0.125]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
    next(train(model, windows(), 2, lr=0.125, **options))  # also where the loop is left
    gc.collect()
    assert rates[2:] == [[0.125, 0.125]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]


def test_adamw_decays_only_matrices():
    matrices, vectors = adamw(gpt(), 0.1, weight_decay=0.3).param_groups
    assert {p.dim() for p in matrices["params"]} == {2}
    assert {p.dim() for p in vectors["params"]} == {1}
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.3, 0.0)


def test_fit_is_deterministic_and_keeps_the_global_rng(tmp_path):
    drawn = []

    def drawing(model, batch):
        drawn.append(torch.rand(()).item())
        return losses.next_token(model, batch)

    assert run(gpt(), loss=drawing) == run(gpt(), loss=drawing)
    assert drawn[:6] == drawn[6:]
    assert len(set(drawn)) == 6
    assert run(gpt(), seed=1) != run(gpt())
    torch.manual_seed(5)
    expected = torch.rand(3)
    for folder in (None, tmp_path / "run", tmp_path / "run"):  # without one, begun, resumed
        model = gpt()
        torch.manual_seed(5)
        drawn = [torch.rand(1) for _ in train(model, windows(), 3, checkpoint_dir=folder)]
        assert torch.equal(torch.cat(drawn), expected)


def test_fit_raises_before_stepping_on_non_finite_loss(tmp_path):
    calls, broken_calls, past = itertools.count(), [3], []

    def broken(model, batch):
        total, count = losses.next_token(model, batch)
        return total * (math.nan if next(calls) in broken_calls else 1), count

    model = gpt()
    steps = train(model, windows(), 6, loss=broken, checkpoint_dir=tmp_path, checkpoint_every=2)
    with pytest.raises(FloatingPointError, match=r"at step 3, .*step-000000003"):
        past.extend((step, state_of(model)) for step in steps)
    assert equal_states(state_of(model), past[-1][1])
    assert checkpoint.load(tmp_path, other := gpt())["step"] == 3
    assert equal_states(state_of(other), past[-1][1])
    broken_calls.clear()
    assert run(gpt(), checkpoint_dir=tmp_path, loss=broken) == run(gpt())
    with pytest.raises(FloatingPointError, match=r"at step \d+, learning rate .*the step was not taken"):
        run(gpt(), steps=50, lr=1e30)


@pytest.mark.parametrize(("precision", "name", "near"), [("bfloat16", "bf16", 0.1), ("float16", "fp16", 0.05)])
def test_half_precision_trains_on_cpu(monkeypatch, precision, name, near):
    model = gpt()
    half = run(model, precision=precision)
    assert [loss for _, loss, _ in half] == pytest.approx([loss for _, loss, _ in run(gpt())], abs=near)
    assert half != run(gpt(), precision="float32")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert "forward" not in vars(model)
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", name)
    assert run(gpt()) == half


def test_unsupported_precision_of_accelerate_raises(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp8")
    with pytest.raises(ValueError, match="fp8; fit supports: no, bf16, fp16"):
        fit(gpt(), windows(), 3)


def test_float16_overflow_skips_step_and_halves_loss_scale(tmp_path):
    def steep(model, batch):
        total, count = losses.next_token(model, batch)
        total.register_hook(lambda grad: grad * 1e36 if grad.item() > 600 else grad)
        return total, count

    model, before = gpt(dropout=0.0), state_of(gpt(dropout=0.0))
    batches, options = windows(), {"loss": steep, "precision": "float16", "checkpoint_dir": tmp_path}
    assert batches[0][0].numel() == 28  # 65536 / 28 is above 2048, and then 1024, 512
    states = [state_of(model) for _ in train(model, batches, 4, **options)]
    assert [equal_states(state, before) for state in states] == [True, True, False, False]
    assert checkpoint.read(tmp_path, model, muon(model, 0.1)).state["loss_scale"] == 512

    def too_steep(model, batch):
        total, count = losses.next_token(model, batch)
        total.register_hook(lambda grad: grad * torch.inf)
        return total, count

    with pytest.raises(FloatingPointError, match=r"the gradient's norm (inf|nan) at step 27"):
        run(gpt(), 40, loss=too_steep, precision="float16")


@pytest.mark.parametrize(("native", "precision"), [(True, "bfloat16"), (False, "float16")])
def test_default_precision_requires_native_bfloat16(monkeypatch, native, precision):
    def supported(including_emulation=True):
        return native or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    devices = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: devices.append(device) or contextlib.nullcontext())
    assert default_precision(torch.device("cuda:1")) == precision
    assert devices == [torch.device("cuda:1")]
    assert default_precision(torch.device("mps")) == default_precision(torch.device("cpu")) == "float32"


def test_compiled_training_matches_eager_and_restores_model(monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    plain = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))  # the shape checks of tests cannot be compiled
    model = copy.deepcopy(plain)
    compiled = run(model, steps=3, compile=True)
    assert [loss for _, loss, _ in compiled] == pytest.approx([loss for _, loss, _ in run(plain, steps=3)], abs=1e-5)
    torch.testing.assert_close(model.state_dict(), plain.state_dict())
    assert model._compiled_call_impl is None


def test_compiled_checkpointed_blocks_are_compiled_once(monkeypatch):
    """Of a block whose forward is another function at each step, each would be compiled again."""
    torch._dynamo.reset()
    graphs = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=graphs))
    torch.manual_seed(1)
    model = Residual()
    plain = copy.deepcopy(model)
    options = {"gradient_checkpointing": True, "batches": windows()}
    frames, found = [], []
    for step in train(model, steps=4, compile=True, **options):
        found.append(step.loss)
        frames.append(graphs.frame_count)
    assert frames[0] > 0
    assert frames == frames[:1] * 4
    assert found == pytest.approx([step.loss for step in train(plain, steps=4, **options)], abs=1e-5)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 6), nn.Linear(6, 11)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(2))

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


@pytest.mark.parametrize(("batches", "parts"), [(ragged(), 2), (ragged(), 3), (ragged(7, tokens=14), 5)])
def test_gradient_accumulation_matches_large_batch(batches, parts):
    """The last batches have one or two rows: more parts than rows are as many as rows."""
    models, found = (translator(), translator()), []
    for model, steps in zip(models, (1, parts)):
        options = {"loss": losses.translation(0.1), "optimizer": torch.optim.SGD(model.parameters()), "lr": 0.1}
        found.append([loss for _, loss, _ in run(model, 4, batches, gradient_accumulation_steps=steps, **options)])
    assert found[1] == pytest.approx(found[0], abs=1e-5)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def recurrent():
    torch.manual_seed(1)
    return TransformerXL(11, memory=5, layers=2, heads=3, dim=6, dropout=0.1)


@pytest.mark.parametrize(
    ("make", "batches", "loss"),
    [
        (gpt, windows(), lambda: losses.next_token),
        (translator, ragged(), losses.translation),
        (recurrent, Streams(TEXT, 4, 3), losses.SegmentRecurrentLoss),  # whose memory must not be written twice
    ],
)
def test_gradient_checkpointing_matches_plain_training(make, batches, loss):
    models = make(), make()
    found = [
        [step.loss for step in train(model, batches, 4, gradient_checkpointing=on, loss=loss())]
        for model, on in zip(models, (False, True))
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-6)
    assert all("forward" not in vars(module) for module in models[1].modules())


def test_gradient_checkpointing_restores_blocks_after_error():
    model = gpt()
    with pytest.raises(IndexError), CheckpointedBlocks(model):  # noqa: PT012
        assert "forward" in vars(model.blocks[0])
        model(torch.tensor([[99]]))
    assert "forward" not in vars(model.blocks[0])
    with pytest.raises(ValueError, match=r"Linear has no nn\.ModuleList"):
        next(train(nn.Linear(2, 2), windows(), 1, gradient_checkpointing=True))


def test_evaluate_loss_averages_over_tokens():
    model, batches = translator(), list(ragged().in_order())
    parts = [losses.translation()(model.eval(), batch) for batch in batches]
    expected = sum(total.item() for total, _ in parts) / sum(count for _, count in parts)
    assert evaluate.loss(model, batches, losses.translation()) == pytest.approx(expected, rel=1e-5)


def test_fit_rejects_batch_of_padding():
    model = translator()
    before = state_of(model)
    padding = [(torch.tensor([[3, 4]]), torch.tensor([[2, 0, 0]]))]
    with pytest.raises(ValueError, match="the batch has no targets: all are padding"):
        next(train(model, padding, 1, loss=losses.translation()))
    assert equal_states(state_of(model), before)


class Output(dict):
    """As Hugging Face's models return it."""

    __getattr__ = dict.__getitem__


def test_fit_accepts_hugging_face_outputs():
    mine, inner = gpt(), gpt()
    theirs = Calls(lambda ids: Output(logits=inner(ids)), model=inner)
    assert run(mine) == run(theirs)
    assert evaluate.loss(theirs, [windows()[0]]) == evaluate.loss(mine, [windows()[0]])
    with pytest.raises(ValueError, match="without logits"):
        run(Calls(lambda ids: (inner(ids),), model=inner))


@pytest.mark.parametrize(
    ("use", "warned"),
    [
        (lambda: train(gpt(), windows(), 3), True),
        (lambda: list(train(gpt(), windows(), 3)), False),
        (lambda: next(iter(train(gpt(), windows(), 3))), False),
        (lambda: train(gpt(), windows(), 3).close(), False),
        (lambda: [step for step, _ in zip(train(gpt(), windows(), 3), range(1))], False),
    ],
)
def test_fit_warns_if_never_iterated(use, warned):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        use()
        gc.collect()
    assert ["trained nothing" in str(one.message) for one in found] == [True] * warned


@pytest.mark.parametrize("stop", [False, True])
def test_fit_restores_training_modes(stop):
    model = gpt().eval()
    model.blocks[0].train()
    modes = [module.training for module in model.modules()]
    for _ in (training := train(model, windows(), 3)):
        if stop:
            break
    training.close()
    assert [module.training for module in model.modules()] == modes


def test_fit_accepts_device_names_and_objects():
    assert create_accelerator(torch.device("meta")).device == torch.device("meta")
    assert create_accelerator("cpu").device == torch.device("cpu")
    assert [step.loss for step in fit(gpt(), windows(), 2, device=torch.device("cpu"), progress=False)] == [
        loss for _, loss, _ in run(gpt(), 2)
    ]


def test_fit_does_not_move_models_with_device_map(monkeypatch):
    """As `device_map` leaves it: its parts may be on several devices, and refuse to be moved."""
    model = gpt()
    model.hf_device_map = {"tokens": "cpu", "blocks": "cpu"}
    monkeypatch.setattr(model, "to", None)
    assert run(model) == run(gpt())
