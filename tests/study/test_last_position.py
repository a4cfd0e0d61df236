"""What follows the last attention is run at the last position alone: the same numbers, or not at all."""

import pytest
import torch
from combinations import one_at_a_time
from study_models import IDS, OTHER, VOCAB_SIZE, Shortcut, family, prompts
from torch import nn

from tfviz import models, study
from tfviz.study import last_position

METRIC = study.logit_difference([3, 5, 8], [2, 1, 7])


@pytest.fixture
def shortcut(monkeypatch):
    return Shortcut(monkeypatch, last_position.LastPosition, "_following", [])


PATHS = {
    "GPT-2": ["transformer.h.1.ln_2", "transformer.h.1.mlp"],
    "Llama": ["model.layers.1.post_attention_layernorm", "model.layers.1.mlp"],
    "BERT": [f"bert.encoder.layer.1.{part}" for part in ("attention.output", "intermediate", "output")],
    "GPT": ["blocks.1.dropout", "blocks.1.feed_forward_norm", "blocks.1.feed_forward"],
}


@pytest.mark.parametrize(("name", "by"), one_at_a_time(PATHS, ["clean", "corrupt", "zero"]))
def test_numbers_match_those_of_all_positions(name, by, shortcut):
    model, _ = family(name)
    clean, corrupt = prompts(name)
    for each in ("head", "head and position"):
        run = lambda: study.patch(model, clean, corrupt, metric=METRIC, source=by, each=each, progress=False)  # noqa: B023, E731
        paths, found, expected = shortcut.compared(run)
        assert paths == PATHS[name]
        torch.testing.assert_close(found.values, expected.values, rtol=1e-4, atol=1e-4)
        assert expected.values.abs().max() > 1e-2
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_feed_forward_networks_see_one_position(monkeypatch):
    model, _ = family("GPT-2")
    shapes = []
    model.transformer.h[1].mlp.c_fc.register_forward_hook(lambda module, args, output: shapes.append(output.shape[1]))
    study.patch(model, IDS, OTHER, metric=METRIC, progress=False)
    assert set(shapes[3:]) == {1}  # after the clean and the corrupt run, and the trial
    assert shapes[:2] == [6, 6]


class Mixing(nn.Module):
    """A feed-forward network that adds up positions, or that wants all of them."""

    def __init__(self, own, strict):
        super().__init__()
        self.own, self.strict = own, strict

    def forward(self, x):
        if self.strict:
            x = x.reshape(-1, 6, x.shape[-1])
        return self.own(x.cumsum(1))


@pytest.mark.parametrize("strict", [False, True])
def test_modules_that_mix_positions_see_all(strict, shortcut):
    model, _ = family("GPT")
    model.blocks[1].feed_forward = Mixing(model.blocks[1].feed_forward, strict)
    paths, found, expected = shortcut.compared(
        lambda: study.patch(model, IDS, OTHER, metric=METRIC, progress=False).values
    )
    assert paths == []
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("more", "metric"),
    [
        ({}, study.logit_difference(3, 5, position=2)),
        ({}, lambda logits: logits[:, -1, 3].mean()),
        ({"sites": "blocks.*.feed_forward"}, METRIC),
        ({"sites": "blocks.0.attention.output_heads"}, METRIC),
        ({"source": "gradient"}, METRIC),
    ],
)
def test_metrics_and_sites_for_which_all_positions_are_run(more, metric, shortcut):
    model = models.GPT(VOCAB_SIZE, layers=2, heads=2, dim=8, context=8).eval()
    study.patch(model, IDS, OTHER, metric=metric, progress=False, **more)
    assert shortcut.paths == []
