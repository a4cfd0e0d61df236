"""Recurrent layers (cells, depth, directions, padding) and the LSTMN (see also test_language_models.py)."""

from math import exp, tanh

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import build, close, ids, random
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfviz import look
from tfviz.layers.recurrent import LSTM, RNN, Recurrent
from tfviz.models.lstmn import LSTMN, LSTMNCell
from tfviz.models.recurrent import RecurrentLM

THEIRS = {RNN: nn.RNN, LSTM: nn.LSTM}
cells = pytest.mark.parametrize("cell", [RNN, LSTM])
depths = pytest.mark.parametrize("layers", [1, 3])
directions = pytest.mark.parametrize("bidirectional", [False, True])


def sigmoid(x):
    return 1 / (1 + exp(-x))


def dot(row, vector):
    return sum(a * b for a, b in zip(row.tolist(), vector, strict=True))


def pair(cell, layers, bidirectional, dim=3, hidden=5):
    """Ours and PyTorch's, with the same weights: of its two biases, ours is the sum."""
    torch.manual_seed(7)
    theirs = THEIRS[cell](dim, hidden, layers, batch_first=True, bidirectional=bidirectional)
    ours = Recurrent(cell, dim, hidden, layers, bidirectional=bidirectional)
    names = [f"_l{layer}{way}" for layer in range(layers) for way in ("", "_reverse")[: ours.directions]]
    with torch.no_grad():
        for mine, name in zip(ours.cells, names, strict=True):
            mine.of_input.weight.copy_(getattr(theirs, f"weight_ih{name}"))
            mine.of_state.weight.copy_(getattr(theirs, f"weight_hh{name}"))
            mine.of_input.bias.copy_(getattr(theirs, f"bias_ih{name}") + getattr(theirs, f"bias_hh{name}"))
    return ours, theirs


def stacked(states):
    """As PyTorch has them: one tensor for hidden states, one for memories; layer by layer."""
    parts = tuple(torch.stack(part) for part in zip(*states, strict=True))
    return parts if len(parts) == 2 else parts[0]


def lstm(**parts):
    return build(RecurrentLM, 11, dim=3, hidden=5, std=0.7, **parts)


def test_lstm_forget_gate_bias_starts_at_one():
    cell = LSTM(dim=3, hidden=5)
    assert cell.of_input.bias.detach()[5:10].tolist() == [1.0] * 5
    assert (cell.of_input.bias.detach()[[0, 1, 2, 3, 4, *range(10, 20)]].abs() < 1).all()
    assert sum(p.numel() for p in cell.parameters()) == 4 * (3 * 5 + 5 * 5 + 5)


@cells
@depths
@directions
def test_recurrent_matches_torch(cell, layers, bidirectional):
    ours, theirs = pair(cell, layers, bidirectional)
    x = random(2, 7, 3)
    expected, ends = theirs(x)
    given, states = ours(x)
    close(given, expected)
    close(stacked(states), ends)
    started, ends = theirs(x, tuple(2 * end for end in ends) if cell is LSTM else 2 * ends)
    given, states = ours(x, [tuple(2 * part for part in state) for state in states])
    close(given, started)
    close(stacked(states), ends)
    assert (started - expected).abs().max() > 0.01


@cells
@depths
@directions
def test_recurrent_padding_matches_torch_packed_sequences(cell, layers, bidirectional):
    ours, theirs = pair(cell, layers, bidirectional)
    x, lengths = random(4, 7, 3), torch.tensor([4, 7, 1, 6])
    packed, ends = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    mask = torch.arange(7) < lengths[:, None]
    given, states = ours(x, mask=mask)
    close(given[mask], expected[mask])
    close(stacked(states), ends)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.booleans(), min_size=7, max_size=7), st.booleans())
def test_padding_at_any_position_is_ignored(words, bidirectional):
    both, x, mask = Recurrent(LSTM, 3, 5, 2, bidirectional=bidirectional), random(1, 7, 3), torch.tensor([words])
    given, states = both(x.masked_fill(~mask[..., None], 1e6), mask=mask)
    if not any(words):
        assert not given.any()
        assert not stacked(states)[0].any()
        return
    expected, ends = both(x[mask][None])
    close(given[mask], expected[0])
    close(stacked(states), stacked(ends))


def test_output_at_padding_repeats_the_previous_state():
    both, mask = Recurrent(RNN, 3, 5, bidirectional=True), torch.tensor([[True, True, False, True, False]])
    outputs, _ = both(random(1, 5, 3), mask=mask)
    ahead, back = outputs[0].chunk(2, dim=-1)
    assert torch.equal(ahead[2], ahead[1])
    assert torch.equal(ahead[4], ahead[3])
    assert torch.equal(back[2], back[3])
    assert torch.equal(back[4], torch.zeros(5))


def test_dropout_applies_between_layers_only():
    x = random(2, 7, 3)
    one, two = Recurrent(LSTM, 3, 5, dropout=0.9), Recurrent(LSTM, 3, 5, layers=2, dropout=0.9)
    assert torch.equal(one.train()(x)[0], one.eval()(x)[0])
    (dropped, dropped_states), (plain, plain_states) = two.train()(x), two.eval()(x)
    assert torch.equal(dropped_states[0][0], plain_states[0][0])
    assert (dropped - plain).abs().max() > 1e-3
    assert torch.equal(dropped[:, -1], dropped_states[1][0])


def test_gates_are_captured_at_every_step():
    model, words = lstm(layers=2), ids()
    gates = ("input_gate", "forget_gate", "candidate", "output_gate")
    with look.capture(model, ["*_gate", "*.candidate", "*.cells.1", "recurrent"]) as seen:
        model(words)
    steps = {gate: seen.over_time(f"recurrent.cells.1.{gate}") for gate in gates}
    memory = torch.zeros(2, 5)
    for write, keep, content, show, hidden in zip(*steps.values(), seen.over_time("recurrent.cells.1"), strict=True):
        assert keep.shape == (2, 5)
        memory = keep * memory + write * content
        close(hidden, show * memory.tanh())
    assert len(seen.over_time("recurrent.cells.0.forget_gate")) == 7
    assert seen["recurrent"].shape == (2, 7, 5)


def test_tape_lstm_matches_reference():
    """Section 3 of the paper, word by word, in Python's numbers."""
    torch.manual_seed(11)
    cell, words, width = LSTMNCell(dim=3, hidden=2), random(3, 3).tolist(), 2
    attention, state, patterns = cell.attention, cell.initial_state(torch.zeros(1, 3)), []
    tape_h, tape_c, summary = [], [], [0.0, 0.0]
    for x in words:
        inner = [
            [tanh(dot(w, x + summary) + dot(v, h)) for w, v in zip(attention.of_query.weight, attention.of_key.weight)]
            for h in tape_h
        ]
        powers = [exp(dot(attention.to_score.weight[0], row)) for row in inner]
        weights = [power / sum(powers) for power in powers]
        summary = [sum(s * h[j] for s, h in zip(weights, tape_h)) for j in range(width)]
        memory = [sum(s * c[j] for s, c in zip(weights, tape_c)) for j in range(width)]
        rows = zip(cell.of_input.weight, cell.of_input.bias, cell.of_state.weight)
        write0, write1, keep0, keep1, new0, new1, show0, show1 = (
            dot(w, x) + b.item() + dot(u, summary) for w, b, u in rows
        )
        c0 = sigmoid(keep0) * memory[0] + sigmoid(write0) * tanh(new0)
        c1 = sigmoid(keep1) * memory[1] + sigmoid(write1) * tanh(new1)
        tape_h.append([sigmoid(show0) * tanh(c0), sigmoid(show1) * tanh(c1)])
        tape_c.append([c0, c1])
        patterns.append(weights)
    expected = [[h + c for h, c in zip(tape_h, tape_c)]]
    with look.capture(cell, "*.pattern") as seen:
        for x in words:
            state = cell(torch.tensor([x]), state)
    hidden, last, _, tape = state
    close(tape, torch.tensor(expected))
    close(hidden, torch.tensor([tape_h[-1]]))
    close(last, torch.tensor([summary]))
    close([weights[0, 0, 0] for weights in seen.over_time("attention.pattern")], [*map(torch.tensor, patterns[1:])])


def test_lstmn_pattern_covers_the_past_and_can_be_edited():
    model, words = build(LSTMN, 11, dim=3, hidden=5, std=0.7), ids()
    nearest = lambda weights: torch.zeros_like(weights).index_fill(-1, torch.tensor(weights.shape[-1] - 1), 1.0)  # noqa: E731
    with look.capture(model) as seen:
        model(words)
    maps = seen.over_time("recurrent.cells.0.attention.pattern")
    assert [tuple(map.shape) for map in maps] == [(2, 1, 1, past) for past in range(1, 7)]
    with look.capture(model, edit={"*.pattern": nearest}):
        given = model(words)
    plain = RecurrentLM(11, dim=3, hidden=5)
    plain.load_state_dict({name: model.state_dict()[name] for name in plain.state_dict()})
    close(given, plain(words), atol=1e-5)
    assert (given - model(words)).abs().max() > 0.01
