"""What heads are worth and what flows through them, against loops and by hand."""

import pytest
import torch
from torch import nn

from tfviz.look import ablate, capture, measures
from tfviz.models import GPT, Transformer

IDS = torch.tensor([[1, 4, 2, 9, 5], [3, 3, 8, 0, 7]])


def gpt():
    torch.manual_seed(2)
    model = GPT(11, layers=2, heads=3, dim=12, context=7).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


@torch.no_grad()
def test_a_head_taken_away_is_a_head_whose_output_matrix_is_zero():
    model = gpt()

    def measure():
        return model(IDS).pow(2).mean().item()

    whole, found = measure(), ablate(model, measure)
    assert list(found) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    for layer, block in enumerate(model.blocks):
        for head in range(3):
            weight = block.attention.out_proj.weight
            kept = weight.clone()
            weight[:, 4 * head : 4 * head + 4] = 0
            assert found[f"blocks.{layer}.attention.pattern"][head] == pytest.approx(measure() - whole, abs=1e-5)
            weight.copy_(kept)
    assert measure() == whole


def test_sites_are_chosen_and_must_be_patterns():
    model = Transformer(11, layers=1, heads=2, dim=8).eval()
    source, target = IDS[:1], IDS[1:, :3]

    def measure():
        return model(source, target).sum().item()

    assert list(ablate(model, measure, "*.cross.pattern")) == ["decoder.0.cross.pattern"]
    with pytest.raises(ValueError, match=r"decoder\.0\.cross: heads are taken away at patterns"):
        ablate(model, measure, "decoder.0.cross")
    with pytest.raises(LookupError, match="no site matches"):
        ablate(model, measure, "nothing.pattern")


def test_rollout_sums_over_all_paths():
    maps = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(1)).softmax(-1)
    found = measures.rollout(maps, residual=0.3)
    assert torch.allclose(found.sum(-1), torch.ones(3, 4))
    step = [[[0.3 * (i == j) + 0.7 * float(m[i, j]) for j in range(4)] for i in range(4)] for m in maps]
    for i in range(4):
        for j in range(4):
            paths = sum(step[2][i][a] * step[1][a][b] * step[0][b][j] for a in range(4) for b in range(4))
            assert float(found[2, i, j]) == pytest.approx(paths, abs=1e-6)


def test_what_is_carried_is_the_length_of_what_is_added():
    model = gpt()
    with torch.no_grad(), capture(model, ["*.pattern", "*.value"]) as seen:
        model(IDS)
    weights, values = seen["blocks.1.attention.pattern"], seen["blocks.1.attention.value"]
    found = measures.value_weighted_norms(weights, values)
    for query, key in ((4, 0), (2, 1), (0, 3)):
        taken = weights[1, 2, query, key] * values[1, 2, key]
        assert float(found[1, 2, query, key]) == pytest.approx(float(taken.norm()), abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([[0.5, -0.5, 1.0]], "there is -0.5 among the weights"),
        ([[0.5, float("nan"), 0.5]], "there is NaN or infinity among the weights"),
        ([[0.2, 0.1, 0.1]], "a query's weights sum to 0.4, not to 1"),
        ([[1.0, 0.0, 0.0], [2.0, 3.0, 1.0]], "a query's weights sum to 6, not to 1"),
    ],
)
def test_what_are_no_weights_is_not_measured(weights, says):
    for measure in (measures.entropy, measures.distance):
        with pytest.raises(ValueError, match=says):
            measure(torch.tensor(weights))


def test_masked_rows_and_weights_of_eight_bits_are_weights():
    uniform = torch.full((1, 700), 1 / 700)
    kept = ((uniform.sqrt() * 255).round() / 255) ** 2  # as a capture in uint8 keeps them
    assert measures.entropy(kept).isfinite().all()
    assert measures.entropy(torch.zeros(2, 3)).tolist() == [0, 0]
