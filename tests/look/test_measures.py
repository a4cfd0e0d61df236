"""Head ablation and attention measures, compared with reference loops."""

import pytest
import torch
from small_models import gpt

from tfviz.look import AttentionMaps, ablate, capture, measures
from tfviz.look.module_stack import ModuleStack
from tfviz.look.recorder import Recorder
from tfviz.models import Transformer

IDS = torch.tensor([[1, 4, 2, 9, 5], [3, 3, 8, 0, 7]])


@torch.no_grad()
def test_ablate_matches_zeroed_output_matrix():
    model = gpt(dim=12)

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


def test_ablate_accepts_only_pattern_sites():
    model = Transformer(11, layers=1, heads=2, dim=8).eval()
    source, target = IDS[:1], IDS[1:, :3]

    def measure():
        return model(source, target).sum().item()

    assert list(ablate(model, measure, "*.cross.pattern")) == ["decoder.0.cross.pattern"]
    with pytest.raises(ValueError, match=r"decoder\.0\.cross: heads are ablated at patterns"):
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


def test_value_weighted_norms_match_reference():
    model = gpt(dim=12)
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
        ([[0.5, -0.5, 1.0]], "weights hold -0.5"),
        ([[0.5, float("nan"), 0.5]], "weights hold NaN or infinity"),
        ([[0.2, 0.1, 0.1]], "a query's weights sum to 0.4, not to 1"),
        ([[1.0, 0.0, 0.0], [2.0, 3.0, 1.0]], "a query's weights sum to 6, not to 1"),
    ],
)
def test_measures_reject_invalid_weights(weights, says):
    for measure in (measures.entropy, measures.mean_distance):
        with pytest.raises(ValueError, match=says):
            measure(torch.tensor(weights))


def test_entropy_accepts_masked_rows_and_quantized_weights():
    uniform = torch.full((1, 700), 1 / 700)
    kept = ((uniform.sqrt() * 255).round() / 255) ** 2  # as a capture in uint8 keeps them
    assert measures.entropy(kept).isfinite().all()
    assert measures.entropy(torch.zeros(2, 3)).tolist() == [0, 0]


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_value_weighted_norms_support_grouped_values(kv_heads):
    draw = torch.Generator().manual_seed(3)
    weights = torch.rand(2, 6, 4, 5, generator=draw).softmax(-1)
    values = torch.randn(2, kv_heads, 5, 7, generator=draw)
    found = measures.value_weighted_norms(weights, values)
    for head in range(6):
        by_hand = (weights[1, head, 2, :, None] * values[1, head * kv_heads // 6]).norm(dim=-1)
        torch.testing.assert_close(found[1, head, 2], by_hand)


@torch.no_grad()
def test_measures_of_captures_match_their_maps():
    model = gpt(dim=12)
    with capture(model) as seen, capture(model, lazy=True) as lazy:
        model(IDS[:1])
    with capture(model, device="cpu") as other:
        model(IDS[1:])
    maps, others = AttentionMaps.from_capture(seen), AttentionMaps.from_capture(other)
    for measure in (measures.entropy, measures.mean_distance):
        torch.testing.assert_close(measure(seen), measure(maps))
        torch.testing.assert_close(measure(lazy), measure(maps))
    kinds = ["previous", "first"]
    torch.testing.assert_close(measures.head_scores(seen, kinds), measures.head_scores(maps, kinds))
    torch.testing.assert_close(measures.total_variation(seen, other), measures.total_variation(maps, others))
    torch.testing.assert_close(measures.total_variation(seen, others), measures.total_variation(maps, others))
    with capture(model) as both:
        model(IDS)
    with pytest.raises(ValueError, match="the capture holds 2 texts; give one of them"):
        measures.entropy(both)
    with pytest.raises(ValueError, match="the maps have no tokens"):
        measures.head_scores(seen)
    with capture(model, "norm") as none:
        model(IDS)
    with pytest.raises(LookupError, match="no pattern was captured"):
        measures.entropy(none)


@pytest.mark.parametrize("device", [None, "meta"])
def test_recorder_moves_tensors_to_the_device(device):
    recorder = Recorder(ModuleStack(gpt(dim=12)), {}, ["*"], torch.float32, False, device and torch.device(device))
    recorder.record("a.pattern", lambda: torch.eye(3)[None, None], lambda: torch.ones(1, 1, 3, 3).bool())
    recorder.record("a", lambda: torch.zeros(2, 3))
    (weights, allowed), (output, nothing) = recorder.invocations["a.pattern"][0], recorder.invocations["a"][0]
    assert {part.device.type for part in (weights, allowed, output)} == {device or "cpu"}
    assert nothing is None
