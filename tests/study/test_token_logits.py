"""Logits are computed for the tokens that a metric reads alone: the same numbers, or all of them."""

import functools

import pytest
import torch
from study_models import IDS, OTHER, VOCAB_SIZE, Shortcut, family, prompts
from torch import nn

from tfviz import models, study
from tfviz.study import token_logits

METRIC = study.logit_difference([3, 5, 8], [2, 1, 7])


@pytest.fixture
def shortcut(monkeypatch):
    return Shortcut(monkeypatch, token_logits.TokenLogits, "_output_projection", "")


@pytest.mark.parametrize(
    ("name", "path"),
    [("GPT-2", "lm_head"), ("Llama", "lm_head"), ("BERT", "cls.predictions.decoder"), ("T5", "lm_head"), ("GPT", "")],
)
@pytest.mark.parametrize("metric", [METRIC, study.logit(torch.tensor(4), position=2)])
def test_numbers_are_those_of_all_logits(name, path, metric, shortcut):
    model, _ = family(name)
    clean, corrupt = prompts(name)
    sites = "decoder.*.SelfAttention.output_heads" if name == "T5" else None
    run = lambda: study.patch(model, clean, corrupt, metric=metric, sites=sites, progress=False)  # noqa: E731
    paths, found, expected = shortcut.compared(run)
    assert paths == ([path] if path else [])
    torch.testing.assert_close(found.values, expected.values, rtol=1e-4, atol=1e-4)
    assert expected.values.abs().max() > 1e-2
    assert found.notes == expected.notes
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_other_logits_are_not_computed():
    model, _ = family("GPT-2")
    seen = []
    model.lm_head.register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    study.patch(model, IDS, OTHER, metric=METRIC, progress=False)
    known = [tuple((~logits.isnan()).flatten(0, -2).all(0).nonzero().flatten().tolist()) for logits in seen[3:]]
    assert set(known) == {(1, 2, 3, 5, 7, 8)}


class Centered(nn.Module):
    """A model that subtracts the mean of all logits."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, input_ids):
        logits = self.own(input_ids).logits
        return logits - logits.mean(-1, keepdim=True)


def wrapped():
    """A metric with the attributes of another, which reads all logits."""

    @functools.wraps(METRIC)
    def metric(logits):
        return METRIC(logits) + logits[:, -1].logsumexp(-1).mean()

    return metric


@pytest.mark.parametrize(
    ("wrap", "metric", "more"),
    [
        (Centered, METRIC, {}),
        (lambda model: model, wrapped(), {}),
        (lambda model: model, study.log_probability(3), {}),
        (lambda model: model, lambda logits: logits[:, -1, 3].mean(), {}),
        (lambda model: model, METRIC, {"source": "gradient"}),
    ],
)
def test_models_and_metrics_that_need_all_logits_have_them(wrap, metric, more, shortcut):
    model = wrap(family("GPT-2")[0])
    paths, found, expected = shortcut.compared(
        lambda: study.patch(model, IDS, OTHER, metric=metric, progress=False, **more).values
    )
    assert paths == []
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "blocks", [lambda *parts: nn.ModuleList(parts), nn.Sequential]
)  # with and without blocks that can be skipped
def test_maps_inside_of_blocks_give_all_outputs(blocks, shortcut):
    torch.manual_seed(0)
    model = models.GPT(VOCAB_SIZE, layers=2, heads=1, dim=VOCAB_SIZE, context=8).eval()
    model.blocks = blocks(*model.blocks)
    paths, found, expected = shortcut.compared(
        lambda: study.patch(model, IDS, OTHER, metric=METRIC, progress=False).values
    )
    assert paths == []
    torch.testing.assert_close(found, expected)


def test_token_outside_the_vocabulary_raises():
    with pytest.raises(ValueError, match=f"token is {VOCAB_SIZE}; there are {VOCAB_SIZE}"):
        study.patch(family("GPT-2")[0], IDS, OTHER, metric=study.logit(VOCAB_SIZE), progress=False)
