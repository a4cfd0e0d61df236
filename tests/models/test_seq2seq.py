"""Seq2Seq and its attentions (see also test_encoder_decoders.py)."""

from math import exp, sqrt, tanh

import pytest
import torch
from small_models import build, random, source, target
from torch import nn

from tfviz.layers import LSTM, RNN, AdditiveAttention, DotAttention
from tfviz.look import capture
from tfviz.models import Seq2Seq

DIM, HIDDEN = 3, 8
ATTENTIONS = [None, AdditiveAttention, DotAttention]
LAYERS, CELLS = {LSTM: nn.LSTM, RNN: nn.RNN}, {LSTM: nn.LSTMCell, RNN: nn.RNNCell}
attentions = pytest.mark.parametrize("attention", ATTENTIONS)
weighed = pytest.mark.parametrize("attention", ATTENTIONS[1:])
cells = pytest.mark.parametrize("cell", [RNN, LSTM])


def seq2seq(attention=None, cell=LSTM, target_vocab_size=13, **parts):
    parts = {"attention": attention, "cell": cell, "dim": DIM, "hidden": HIDDEN, **parts}
    return build(Seq2Seq, 11, target_vocab_size, std=0.6, **parts)


def copied(ours, theirs, suffix=""):
    """Weights of a cell of ours in PyTorch's, whose second bias is zero."""
    for name, tensor in (
        ("weight_ih", ours.of_input.weight),
        ("weight_hh", ours.of_state.weight),
        ("bias_ih", ours.of_input.bias),
        ("bias_hh", torch.zeros_like(ours.of_input.bias)),
    ):
        getattr(theirs, name + suffix).copy_(tensor)


def score(attention, query, key):
    """How well one key answers one query, number by number."""
    asked = attention.of_query(query).tolist()
    answers = [sum(w * k for w, k in zip(row, key.tolist(), strict=True)) for row in attention.of_key.weight.tolist()]
    if isinstance(attention, DotAttention):
        return sum(a * b for a, b in zip(asked, answers, strict=True)) / sqrt(len(asked))
    inner = zip(attention.to_score.weight[0].tolist(), asked, answers, strict=True)
    return sum(v * tanh(a + b) for v, a, b in inner)


@torch.no_grad()
def by_hand(model, cell, words, text):
    """Logits for one source without padding, word by word; the recurrences are PyTorch's."""
    both = LAYERS[cell](DIM, HIDDEN // 2, bidirectional=True)
    copied(model.encoder.cells[0], both, "_l0")
    copied(model.encoder.cells[1], both, "_l0_reverse")
    states, ends = both(model.source.weight[words])
    summary = (ends[0] if cell is LSTM else ends).flatten()
    step = CELLS[cell](DIM + HIDDEN, HIDDEN)
    copied(model.decoder, step)
    hidden, memory, logits = (model.bridge.weight @ summary + model.bridge.bias).tanh(), torch.zeros(HIDDEN), []
    for word in model.target.weight[text]:
        context = summary
        if model.attention is not None:
            powers = [exp(score(model.attention, hidden, state)) for state in states]
            context = sum(power / sum(powers) * state for power, state in zip(powers, states))
        given = torch.cat((word, context))
        hidden, memory = step(given, (hidden, memory)) if cell is LSTM else (step(given, hidden), memory)
        narrow = (model.to_word.weight @ torch.cat((hidden, context, word)) + model.to_word.bias).tanh()
        logits.append(model.target.weight @ narrow + model.to_logits.bias)
    return torch.stack(logits)


@attentions
@cells
@pytest.mark.parametrize("target_vocab_size", [None, 13])
def test_seq2seq_matches_reference(attention, cell, target_vocab_size):
    model = seq2seq(attention, cell, target_vocab_size)
    rows = [by_hand(model, cell, words[words != 0], text) for words, text in zip(source(), target())]
    torch.testing.assert_close(model(source(), target()), torch.stack(rows), rtol=1e-5, atol=1e-5)


@weighed
@pytest.mark.parametrize("queries", [1, 7])
def test_attention_matches_reference(attention, queries):
    torch.manual_seed(5)
    layer, query, states, value = attention(7, 4, 3), random(2, 7, 7), random(2, 5, 4), random(2, 5, 6)
    mask = random(2, queries, 5) > 0
    mask[0, :, 2], mask[1, 0] = True, False
    with capture(layer, "pattern") as seen:
        given = layer(query, layer.of_key(states), value, mask)
    for batch in range(2):
        for position in range(7):
            allowed = mask[batch, position if queries > 1 else 0].tolist()
            powers = [exp(score(layer, query[batch, position], key)) for key in states[batch]]
            total = sum(power for power, may in zip(powers, allowed) if may) or 1.0
            weights = torch.tensor([power / total if may else 0.0 for power, may in zip(powers, allowed)])
            torch.testing.assert_close(seen["pattern"][batch, 0, position], weights)
            torch.testing.assert_close(given[batch, position], weights @ value[batch])
    assert seen["pattern"].shape == (2, 1, 7, 5)
    assert not seen["pattern"][:, 0][~mask.expand(2, 7, 5)].any()
    assert not given[1, 0].any()
    given.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@attentions
def test_empty_source_has_finite_gradients(attention):
    model = seq2seq(attention)
    model(source() * torch.tensor([[1], [0], [1], [1]]), target()).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@weighed
def test_attention_pattern_is_captured_per_target_position(attention):
    model = seq2seq(attention)
    with capture(model, "attention.pattern") as seen:
        logits = model(source(), target())
    maps = seen.over_time("attention.pattern")
    assert [tuple(map.shape) for map in maps] == [(4, 1, 1, 7)] * 5
    for map in maps:
        torch.testing.assert_close(map.sum(-1), torch.ones(4, 1, 1))
        assert torch.equal(map[:, 0, 0] > 0, source() != 0)
    assert (maps[0] - maps[1])[0].abs().max() > 1e-3
    with capture(model, edit={"attention.pattern": lambda pattern: pattern.flip(-1)}):
        assert (model(source(), target()) - logits)[0].abs().max() > 1e-3
