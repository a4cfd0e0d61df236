"""Training of what is compiled, parallel or of Hugging Face; one that is dropped; a model comes back as it was."""

import gc
import warnings
from unittest import mock

import pytest
import torch
from torch import nn

from tfviz import learn, text
from tfviz.learn import checkpoint, contents
from tfviz.models import GPT

BATCHES = text.Windows(torch.arange(60) % 11, 5, 2)


def gpt(seed=0):
    torch.manual_seed(seed)
    return GPT(11, context=8, layers=2, heads=2, dim=4)


def fit(model, **more):
    return learn.fit(model, BATCHES, 3, device="cpu", progress=False, **more)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_compiled_models_checkpoint_is_the_models(tmp_path):
    model, plain = gpt(), gpt(1)
    with torch.compiler.set_stance("force_eager"):  # dynamo cannot follow what checks shapes in tests
        list(fit(torch.compile(model), checkpoint_dir=tmp_path))
    assert checkpoint.load(tmp_path, plain)["step"] == 3
    assert same(plain, model)
    assert len(list(fit(gpt(), checkpoint_dir=tmp_path))) == 3  # the same run, not compiled


@pytest.mark.parametrize("wrap", [lambda model: torch.compile(model, backend="eager"), nn.DataParallel])
def test_checkpoints_with_a_wrapper_can_be_loaded(wrap, tmp_path):
    model = gpt()
    model.norm.bias = model.norm.weight  # one tensor of two names
    with mock.patch.object(contents, "unwrapped", lambda given: given):  # as they were written before
        checkpoint.save(tmp_path, wrap(model))
    for other in (gpt(1), wrap(gpt(1))):
        inner = tensors.unwrap(other)
        inner.norm.bias = inner.norm.weight
        checkpoint.load(tmp_path, other)
        assert same(inner, model)
    with pytest.raises(ValueError, match=r"another model|does not have|does not hold"):
        checkpoint.load(tmp_path, GPT(11, context=8, layers=1, heads=2, dim=4))


class Output(dict):
    """As Hugging Face's models have it."""

    __getattr__ = dict.__getitem__


class Others(nn.Module):
    def __init__(self, name="logits"):
        super().__init__()
        self.model, self.name = gpt(), name

    def forward(self, ids):
        return Output({self.name: self.model(ids)}) if self.name == "logits" else (self.model(ids),)


def test_the_logits_of_others_are_taken():
    mine, theirs = gpt(), Others()
    assert [step.loss for step in fit(mine)] == [step.loss for step in fit(theirs)]
    assert learn.evaluate.loss(theirs, [BATCHES[0]]) == learn.evaluate.loss(mine, [BATCHES[0]])
    with pytest.raises(TypeError, match="without logits; give a model with a head"):
        list(fit(Others("hidden")))


def told(make):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make()
        gc.collect()
    return [str(one.message) for one in found]


def test_a_training_that_nobody_starts_is_told_of():
    (said,) = told(lambda: fit(gpt()))
    assert "nothing was trained" in said
    assert "for step in learn.fit" in said


@pytest.mark.parametrize(
    "make",
    [
        lambda: list(fit(gpt())),
        lambda: next(fit(gpt())),
        lambda: next(iter(fit(gpt()))),
        lambda: fit(gpt()).close(),
        lambda: [step for step, _ in zip(fit(gpt()), range(1))],
    ],
)
def test_no_other_is(make):
    assert told(make) == []


def test_a_model_comes_back_in_the_modes_it_had():
    for stop in (False, True):
        model = gpt().eval()
        model.blocks[0].train()
        modes = [module.training for module in model.modules()]
        for _ in (training := fit(model)):
            if stop:
                break
        training.close()
        assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("asked", ["bf16", "no"])
def test_the_precision_asked_for_is_used_and_the_forward_is_the_models(asked, monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", asked)
    plain, half, model = gpt(), gpt(), gpt()
    list(fit(plain, precision="float32"))
    list(fit(half, precision="bfloat16"))
    list(fit(model))
    assert same(model, half if asked == "bf16" else plain)
    assert not same(plain, half)
    assert "forward" not in vars(model)
    assert model(torch.tensor([[1, 2]])).dtype == torch.float32


def test_a_precision_that_fit_does_not_do(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with pytest.raises(ValueError, match="--mixed_precision fp16; fit can do bf16"):
        fit(gpt())
