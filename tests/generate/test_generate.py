"""Text generation: sampling, caching, streaming and oneDNN."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from tfviz import generate
from tfviz.generate import GREEDY, Sampler
from tfviz.generate.onednn import MIN_WEIGHT_BYTES, OneDNNLinear, faster_linear
from tfviz.layers import positions
from tfviz.models import GPT
from tfviz.text import ByteTokenizer, CharacterTokenizer

LOGITS = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625]).log()
PROMPT = torch.tensor([3, 1, 2])


def gpt(vocab_size=11, context=7, **parts):
    torch.manual_seed(29)
    model = GPT(vocab_size, context=context, layers=2, heads=3, dim=6, **parts)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    nn.init.constant_(model.norm.weight, -1.0)  # against the tied embeddings: a token does not repeat itself
    nn.init.zeros_(model.norm.bias)
    return model.eval()


def by_hand(model, prompt, count):
    seen, new = prompt.tolist(), []
    for _ in range(count):
        if len(seen) > model.context:
            seen = seen[-max(1, model.context // 2) :]
        new.append(int(model(torch.tensor([seen]))[0, -1].argmax()))
        seen.append(new[-1])
    return new


@pytest.mark.parametrize("kind", positions.KINDS.values())
@pytest.mark.parametrize("cache", [True, False])
def test_greedy_matches_argmax_beyond_the_context(kind, cache):
    model = gpt(positions=kind)
    expected = by_hand(model, PROMPT, 20)
    assert len(set(expected)) > 1
    assert list(generate.ids(model, PROMPT, 20, GREEDY, cache=cache)) == expected


def test_ids_are_deterministic_for_a_seed():
    model = gpt()
    first = list(generate.ids(model, PROMPT, 20, seed=5))
    torch.manual_seed(0)
    assert list(generate.ids(model, PROMPT, 20, seed=5)) == first
    assert list(generate.ids(model, PROMPT, 20, seed=6)) != first


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (Sampler(), [8, 4, 2, 1, 1]),
        (Sampler(temperature=0.5), [64, 16, 4, 1, 1]),
        (Sampler(temperature=0.0), [1, 0, 0, 0, 0]),
        (Sampler(temperature=torch.inf), [1, 1, 1, 1, 1]),
        (Sampler(top_k=2), [2, 1, 0, 0, 0]),
        (Sampler(top_k=99), [8, 4, 2, 1, 1]),
        (Sampler(top_p=0.4), [1, 0, 0, 0, 0]),
        (Sampler(top_p=0.7), [2, 1, 0, 0, 0]),
        (Sampler(top_p=0.8), [4, 2, 1, 0, 0]),
        (Sampler(top_p=1.0), [8, 4, 2, 1, 1]),
        (Sampler(temperature=0.5, top_k=3, top_p=0.9), [16, 4, 0, 0, 0]),
        (Sampler(top_p=1e-300), [1, 0, 0, 0, 0]),
        (Sampler(top_k=1, top_p=1e-9), [1, 0, 0, 0, 0]),
        (Sampler(temperature=1e-30), [1, 0, 0, 0, 0]),
        (Sampler(top_k=10**12), [8, 4, 2, 1, 1]),
    ],
    ids=str,
)
def test_sampler_probabilities_match_hand_computed_values(sampler, expected):
    """Also beside a token that is impossible."""
    order = torch.tensor([2, 0, 4, 1, 3])
    share = torch.tensor(expected) / sum(expected)
    torch.testing.assert_close(sampler.probabilities(LOGITS[order]), share[order])
    impossible = sampler.probabilities(torch.cat((LOGITS[order], torch.tensor([-torch.inf]))))
    torch.testing.assert_close(impossible[:5], share[order])
    assert impossible[5] == 0


def test_top_p_excludes_tokens_beyond_its_threshold():
    assert Sampler(top_p=0.5).probabilities(torch.zeros(4)).count_nonzero() == 2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.1, 1.0, 3.0]),
    st.none() | st.integers(1, 12),
    st.none() | st.floats(0.01, 1.0),
)
def test_probabilities_sum_to_one_and_keep_the_likeliest(logits, temperature, top_k, top_p):
    logits = torch.tensor(logits)
    sampler = Sampler(temperature, top_k, top_p)
    probabilities = sampler.probabilities(logits)
    assert probabilities.sum().item() == pytest.approx(1, abs=1e-5)
    assert probabilities[logits.argmax()] == probabilities.max()
    assert probabilities[sampler.sample(logits, torch.Generator().manual_seed(1))] > 0


def test_choose_samples_from_the_probabilities():
    draw, sampler = torch.Generator().manual_seed(0), Sampler(top_k=3)
    drawn = torch.tensor([sampler.sample(LOGITS, draw) for _ in range(2000)])
    torch.testing.assert_close(drawn.bincount(minlength=5) / 2000, sampler.probabilities(LOGITS), atol=0.03, rtol=0)


@pytest.mark.parametrize(("drawn", "token"), [(0.0, 1), (0.25, 3), (0.75, 3), (1 - 2**-53, 3)])
def test_choose_never_draws_zero_probability_tokens(monkeypatch, drawn, token):
    logits = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0]).log()
    monkeypatch.setattr(torch, "rand", lambda *size, **how: torch.tensor(drawn, dtype=torch.float64))
    assert Sampler().sample(logits) == token


def test_non_finite_logits_raise():
    model = gpt()
    nn.init.constant_(model.norm.weight, torch.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        list(generate.ids(model, PROMPT, 2))
    assert not model.training


def test_streamed_pieces_join_to_the_text():
    model, tokenizer = gpt(vocab_size=11), CharacterTokenizer("abcdefg h\n漢")
    pieces = list(generate.stream(model, tokenizer, "bad", 20, seed=3))
    assert len(pieces) == 20
    assert generate.text(model, tokenizer, "bad", 20, seed=3) == "bad" + "".join(pieces)
    expected = generate.ids(model, tokenizer.encode("bad"), 20, seed=3)
    assert "".join(pieces) == "".join(tokenizer.characters[i] for i in expected)


@pytest.mark.parametrize(
    ("tokens", "pieces"),
    [
        ("né!".encode(), ["n", "é", "!"]),
        ("漢👩".encode(), ["漢", "👩"]),
        ("a漢".encode()[:-1], ["a", "�"]),
        (b"\xffa", ["�", "a"]),
    ],
)
def test_stream_yields_whole_multibyte_characters(monkeypatch, tokens, pieces):
    monkeypatch.setattr("tfviz.generate.sample.ids", lambda *_, **__: iter(tokens))
    assert list(generate.stream(gpt(256), ByteTokenizer(), "x", len(tokens))) == pieces
    assert generate.text(gpt(256), ByteTokenizer(), "x", len(tokens)) == "x" + tokens.decode("utf-8", "replace")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_ids_restore_training_mode(training, taken):
    model = gpt(dropout=0.5).train(training)
    tokens = generate.ids(model, PROMPT, 3)
    for _ in range(taken):
        next(tokens)
        assert not model.training
    tokens.close()
    assert all(module.training == training for module in model.modules())


def test_onednn_is_used_for_large_models_on_a_cpu():
    if not isinstance(faster_linear(MIN_WEIGHT_BYTES + 1, torch.device("cpu")), OneDNNLinear):
        pytest.skip("this PyTorch has no oneDNN linear")
    assert not isinstance(faster_linear(MIN_WEIGHT_BYTES, torch.device("cpu")), OneDNNLinear)
    assert not isinstance(faster_linear(MIN_WEIGHT_BYTES + 1, torch.device("cuda")), OneDNNLinear)
    for bias in (torch.randn(70), None):
        x, weight = torch.randn(1, 1, 50), torch.randn(70, 50)
        with torch.inference_mode(), OneDNNLinear():
            found = functional.linear(x, weight, bias)
        torch.testing.assert_close(found, functional.linear(x, weight, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "weight", "used"),
    [
        (torch.randn(1, 1, 5), torch.randn(7, 5), True),
        (torch.randn(5), torch.randn(7, 5), True),
        (torch.randn(1, 2, 5), torch.randn(7, 5), False),
        (torch.randn(3, 1, 5), torch.randn(7, 5), False),
        (torch.randn(1, 5), torch.randn(5, 7).T, False),
        (torch.randn(1, 5).double(), torch.randn(7, 5).double(), False),
        (torch.randn(1, 5).bfloat16(), torch.randn(7, 5).bfloat16(), False),
    ],
)
def test_onednn_handles_only_single_float32_rows(monkeypatch, x, weight, used):
    calls = []
    fake = lambda *args: calls.append(args) or functional.linear(*args[:3])  # noqa: E731
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", fake, raising=False)
    with torch.inference_mode(), OneDNNLinear():
        found = functional.linear(x, weight)
    torch.testing.assert_close(found, x @ weight.T)
    assert bool(calls) == used


def test_onednn_generates_the_same_ids(monkeypatch):
    model = gpt()
    expected = list(generate.ids(model, PROMPT, 20, seed=1))
    monkeypatch.setattr("tfviz.generate.onednn.MIN_WEIGHT_BYTES", 0)
    assert list(generate.ids(model, PROMPT, 20, seed=1)) == expected
