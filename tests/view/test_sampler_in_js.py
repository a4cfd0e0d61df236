"""The page's sampler: random numbers, probabilities and token losses match `generate.Sampler` and torch."""

import pytest
import torch
from torch.nn import functional

from tfviz.generate import Sampler

pytest_plugins = ["node"]
SEEDS = [0, 1, 7, 5489, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**53 - 1]
SAMPLERS = [
    Sampler(),
    Sampler(0),
    Sampler(0.3),
    Sampler(2.5, top_k=1),
    Sampler(0.7, top_k=4),
    Sampler(1.0, top_p=0.5),
    Sampler(1.0, top_p=0.001),
    Sampler(1.0, top_p=1.0),
    Sampler(1.5, top_k=99),
    Sampler(1.5, top_k=6, top_p=0.8),
]


@pytest.fixture
def run_js(node):
    """`run_js(function, given)`: what JavaScript makes of it, with the sampler's functions at hand."""
    node.load("studios/logits", "studios/write/sampler")
    return node.evaluate


@pytest.mark.parametrize("seed", SEEDS)
def test_mersenne_twister_matches_torch(run_js, seed):
    draw = torch.Generator().manual_seed(seed)
    expected = [torch.rand((), dtype=torch.float64, generator=draw).item() for _ in range(700)]  # past two turns
    assert (
        run_js(
            "seed => { const t = new MersenneTwister(seed); return Array.from(Array(700), () => t.number()); }", seed
        )
        == expected
    )


def logit_rows():
    """Logits of all sorts: near and far, alike, some impossible."""
    draw = torch.Generator().manual_seed(2)
    wide = [scale * torch.randn(17, generator=draw) for scale in (0.01, 1, 5, 60)]
    alike = torch.tensor([1.0, 3.0, 3.0, 3.0, 2.0, -4.0, 3.0])
    return [*wide, alike, torch.tensor([0.0, -3e38, 1.0, 1.0]), torch.tensor([-1e4, 0.5])]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_probabilities_and_tokens_match_sampler(run_js, sampler):
    given = {"temperature": sampler.temperature, "topK": sampler.top_k, "topP": sampler.top_p}
    for logits in logit_rows():
        expected = sampler.probabilities(logits)
        made = run_js(
            "([row, settings]) => [...probabilities(Float32Array.from(row), settings)]", [logits.tolist(), given]
        )
        torch.testing.assert_close(torch.tensor(made, dtype=torch.float32), expected, rtol=1e-5, atol=1e-7)
        if sampler.temperature == 0:
            continue
        draw = torch.Generator().manual_seed(9)
        tokens = [sampler.sample(logits, draw) for _ in range(60)]
        told = run_js(
            "([row, settings]) => { const t = new MersenneTwister(9);"
            " const shares = probabilities(Float32Array.from(row), settings);"
            " return Array.from({ length: 60 }, () => sampleFrom(shares, t.number())); }",
            [logits.tolist(), given],
        )
        assert told == tokens


def test_sample_from_returns_last_possible_token_at_rounding_edge(run_js):
    assert run_js("() => sampleFrom([0.25, 0.75, 0], 1)", None) == 1
    assert run_js("() => sampleFrom([0, 1], 0)", None) == 1


@pytest.mark.parametrize("bad", ["NaN", "Infinity"])
def test_non_finite_logits_raise(run_js, bad):
    with pytest.raises(Exception, match="not finite; there is nothing to draw from"):
        run_js(f"() => probabilities(Float32Array.of(0, {bad}, 1), {{}})", None)
    with pytest.raises(Exception, match="not finite"):
        run_js("() => probabilities(Float32Array.of(-Infinity, -Infinity), {})", None)


def test_token_losses_match_cross_entropy(run_js):
    logits = 4 * torch.randn(5, 7, generator=torch.Generator().manual_seed(3))
    ids = [6, 0, 3, 3, 1]
    told = run_js("([row, ids]) => tokenLosses(Float32Array.from(row), ids, 7)", [logits.flatten().tolist(), ids])
    expected = functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    torch.testing.assert_close(torch.tensor(told), expected, rtol=1e-5, atol=1e-6)
    assert run_js("() => tokenLosses(new Float32Array(7), [2], 7)", None) == []
