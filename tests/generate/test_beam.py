"""Beam search: results, scores, caching, and restoring the model's mode."""

from copy import deepcopy
from functools import cache, partial
from math import inf, log, nan
from typing import NamedTuple

import pytest
import torch
from combinations import one_at_a_time
from torch import Tensor, nn
from torch.nn import functional

from tfviz.generate import beam
from tfviz.generate.beam_state import topk
from tfviz.layers import AdditiveAttention, DotAttention, positions
from tfviz.learn import losses
from tfviz.models import Seq2Seq, Transformer

PAD, BOS, EOS = 0, 1, 2
MODELS = {
    "transformer": partial(Transformer, context=12, layers=2, heads=3, dim=12, inner=10),
    "rotary": partial(Transformer, context=4, layers=1, heads=3, dim=12, positions=positions.Rotary),
    "seq2seq": partial(Seq2Seq, dim=6, hidden=14),
    "additive": partial(Seq2Seq, attention=AdditiveAttention, dim=6, hidden=14),
    "dot": partial(Seq2Seq, attention=DotAttention, dim=6, hidden=14),
}
models = pytest.mark.parametrize("name", MODELS)
alphas = pytest.mark.parametrize("length_penalty", [0.0, 1.0])


@cache
def partly_trained_model(name):
    """A model that has begun to learn to say which remainder modulo 4 each token of the source has."""
    torch.manual_seed(11)
    model = MODELS[name](11, 7, dropout=0.5).eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(50):
        source = some_sources(12, 6, seed=100 + step)
        said = torch.where(source == 0, 0, source % 4 + 3)
        target = functional.pad(said, (1, 1)).scatter(1, (source != 0).sum(1, keepdim=True) + 1, EOS)
        target[:, 0] = BOS
        total, count = losses.translation(0.2)(model, (source, target))
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
    return model


def model_of(name):
    return deepcopy(partly_trained_model(name))


def some_sources(batch=5, length=6, seed=3):
    """Texts of `length` tokens, one less, and so on."""
    ids = torch.randint(3, 11, (batch, length), generator=torch.Generator().manual_seed(seed))
    return ids * (torch.arange(length) < length - torch.arange(batch)[:, None] % length)


def search(model, source, **how):
    return beam.search(model, source, **{"bos": BOS, "eos": EOS, **how})


def full_text(found, row, rank):
    """A text from its beginning to its end, both tokens included."""
    return found.sequences[row, rank, : found.lengths[row, rank] + 1].tolist()


class Row(NamedTuple):
    first: Tensor


class FunctionModel(nn.Module):
    """P(next | source, text) from a function, and the number of calls of either half."""

    def __init__(self, chances, vocab_size):
        super().__init__()
        self.chances, self.vocab_size, self.calls = chances, vocab_size, [0, 0]
        self.register_parameter("any", nn.Parameter(torch.zeros(())))

    def encode(self, source):
        self.calls[0] += 1
        return Row(source[:, 0])

    def decode(self, target, memory):
        self.calls[1] += 1
        rows = zip(target.tolist(), memory.first.tolist(), strict=True)
        given = [[self.chances(source, tuple(text[: end + 1])) for end in range(len(text))] for text, source in rows]
        return torch.tensor(given).log()


def model_from_table(table, vocab_size):
    """The chances of the tokens that follow a text; after texts that are not in the table, the end."""

    def chances(source, text):
        following = table.get(text[1:], {EOS: 1.0})
        return [following.get(token, 0.0) for token in range(vocab_size)]

    return FunctionModel(chances, vocab_size)


def random_model(vocab_size):
    """Chances drawn once for each source and text; the end grows likelier with the length."""

    def chances(source, text):
        draw = torch.Generator().manual_seed(hash((source, text)) % 2**31)
        logits = 2 * torch.randn(vocab_size, generator=draw)
        logits[EOS] += len(text) - 3
        return logits.softmax(-1).tolist()

    return FunctionModel(chances, vocab_size)


def score(total, text, length_penalty):
    return total / ((5 + len(text) - 1) / 6) ** length_penalty


def reference_steps(model, source, num_beams, length_penalty, length):
    """Beam search in plain Python: after each step the best (text, sum of logarithms, parent)."""
    beam = [((BOS,), 0.0, 0)]
    for _ in range(length):
        candidates = []
        for parent, (text, total, _) in enumerate(beam):
            if text[-1] == EOS:
                candidates.append((text, total, parent))
                continue
            chances = enumerate(model.chances(source, text))
            following = [(token, log(chance)) for token, chance in chances if token not in (PAD, BOS)]
            candidates += [((*text, token), total + chance, parent) for token, chance in following]
        beam = sorted(candidates, key=lambda one: -score(one[1], one[0], length_penalty))[:num_beams]
        yield beam


@alphas
@pytest.mark.parametrize("num_beams", [1, 2, 3, 7, 20, 121, 130])
def test_steps_match_reference(length_penalty, num_beams):
    """The widest one holds all texts there are: 1 + 3 + 9 + 27 + 81."""
    model, sources = random_model(vocab_size=6), (5, 3, 9)
    steps = list(
        beam.steps(
            model,
            torch.tensor(sources)[:, None],
            bos=BOS,
            eos=EOS,
            num_beams=num_beams,
            length_penalty=length_penalty,
            max_new_tokens=4,
        )
    )
    assert model.calls == [1, len(steps)]
    for row, source in enumerate(sources):
        for found, expected in zip(steps, reference_steps(model, source, num_beams, length_penalty, 4)):
            texts, sums, parents = zip(*expected)
            many = len(texts)
            assert [tuple(full_text(found, row, rank)) for rank in range(many)] == list(texts)
            assert found.parents[row, :many].tolist() == list(parents)
            assert found.lengths[row, :many].tolist() == [len(text) - 1 for text in texts]
            assert found.ended[row, :many].tolist() == [text[-1] == EOS for text in texts]
            torch.testing.assert_close(found.sums[row, :many], torch.tensor(sums), rtol=1e-5, atol=1e-5)
            scores = torch.tensor([score(total, text, length_penalty) for text, total, _ in expected])
            torch.testing.assert_close(found.scores[row, :many], scores, rtol=1e-5, atol=1e-5)
            assert (found.sums[row, many:] == -inf).all()


def test_length_penalty_changes_the_best_text():
    model = model_from_table(
        {(): {EOS: 0.3, 3: 0.7}, (3,): {EOS: 0.1, 3: 0.5, 4: 0.4}, (3, 3): {4: 0.8, EOS: 0.2}}, vocab_size=5
    )
    source = torch.tensor([[7]])
    best = {
        length_penalty: search(model, source, num_beams=5, length_penalty=length_penalty)
        for length_penalty in (0.0, 1.0)
    }
    assert best[0.0].ids(0).tolist() == []  # 0.3
    assert best[1.0].ids(0).tolist() == [3, 3, 4]  # 0.7 x 0.5 x 0.8 = 0.28
    assert best[1.0].scores[0, 0].item() == pytest.approx(log(0.28) / 1.5)
    assert best[0.0].scores[0, 0].item() == pytest.approx(log(0.3))


GARDEN = {  # the likelier beginning leads to the less likely text
    (): {3: 0.6, 4: 0.4},
    (3,): {3: 0.3, 4: 0.4, EOS: 0.3},
    (4,): {5: 0.9, EOS: 0.1},
}


@models
def test_greedy_picks_the_most_likely_tokens(name):
    model, source = model_of(name), some_sources()
    expected = []
    for row in source:
        text = [BOS]
        while len(text) < 10 and text[1:][-1:] != [EOS]:
            logits = model(row[row != 0][None], torch.tensor([text]))[0, -1]
            text.append(int(logits[EOS:].argmax()) + EOS)
        expected.append(text)
    assert len({tuple(text) for text in expected}) > 1
    for found in (
        beam.greedy(model, source, bos=BOS, eos=EOS, max_new_tokens=9),
        search(model, source, num_beams=1, length_penalty=0.7, max_new_tokens=9),
    ):
        assert [full_text(found, row, 0) for row in range(5)] == expected
        assert found.ended[:, 0].tolist() == [text[-1] == EOS for text in expected]


def test_steps_stop_when_all_texts_end_or_at_length():
    model = model_from_table(GARDEN, vocab_size=6)
    assert len(list(beam.steps(model, torch.tensor([[7]]), bos=BOS, eos=EOS, num_beams=2))) == 3
    endless = FunctionModel(lambda source, text: [0.0, 0.0, 0.0, 0.75, 0.25], vocab_size=5)
    beams = list(
        beam.steps(
            endless, torch.tensor([[7], [8]]), bos=BOS, eos=EOS, num_beams=3, length_penalty=0.0, max_new_tokens=6
        )
    )
    assert len(beams) == 6
    assert not beams[-1].ended.any()
    assert beams[-1].lengths.tolist() == [[6, 6, 6]] * 2
    assert beams[-1].ids(1).tolist() == [3] * 6
    assert beams[-1].sums[:, 0].tolist() == pytest.approx([6 * log(0.75)] * 2)
    assert len(search(endless, torch.tensor([[7]]), num_beams=3, max_new_tokens=1).sequences[0, 0]) == 2


def test_search_encodes_once_and_decodes_one_token_per_step():
    model, source = model_of("seq2seq"), some_sources()
    calls = []
    model.encode, encode = lambda ids: calls.append(len(ids)) or encode(ids), model.encode
    model.decode, decode = lambda ids, *rest: calls.append(tuple(ids.shape)) or decode(ids, *rest), model.decode
    search(model, source, num_beams=4, max_new_tokens=3)
    assert calls == [5, (20, 1), (20, 1), (20, 1)]


class UncachedModel(nn.Module):
    """An encoder-decoder of which nothing is known but its two halves: every text is read again at every step."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def encode(self, source):
        return self.model.encode(source)

    def decode(self, target, memory):
        assert len(target) == len(memory.attention_mask)
        return self.model.decode(target, memory)


@pytest.mark.parametrize(("name", "num_beams"), one_at_a_time(MODELS, [3, 1, 9]))
def test_cached_search_matches_uncached(name, num_beams):
    model, source = model_of(name), some_sources()
    how = {"bos": BOS, "eos": EOS, "num_beams": num_beams, "max_new_tokens": 9}
    for kept, anew in zip(
        beam.steps(model, source, **how), beam.steps(UncachedModel(model), source, **how), strict=True
    ):
        assert torch.equal(kept.sequences, anew.sequences)
        torch.testing.assert_close(kept.sums, anew.sums, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_rows_follow_the_parents_of_a_text(num_beams):
    model, source = model_of("additive"), some_sources()
    beams = list(beam.steps(model, source, bos=BOS, eos=EOS, num_beams=num_beams, max_new_tokens=9))
    last = beams[-1]
    assert len({*last.lengths[last.ended].tolist()}) > 1
    for rank in range(num_beams):
        rows = beam.beam_indices(beams, rank)
        for text in range(len(source)):
            expected, at = [], rank
            for step in reversed(range(len(beams))):
                at = int(beams[step].parents[text, at])
                expected.insert(0, num_beams * text + at if step < last.lengths[text, rank] else -1)
            assert rows[text].tolist() == expected


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("taken", [1, 2, 99])
def test_steps_restore_training_mode(training, taken):
    model = model_of("transformer").train(training)
    steps = beam.steps(model, some_sources(), bos=BOS, eos=EOS, max_new_tokens=4)
    for _, found in zip(range(taken), steps):
        assert not model.training
        assert found.sequences.shape[1] == 5
    steps.close()
    assert all(module.training == training for module in model.modules())
    with pytest.raises(IndexError):
        search(model, torch.tensor([[99]]))
    assert all(module.training == training for module in model.modules())


@models
def test_found_texts_can_be_trained_on(name):
    model, source = MODELS[name](11, 7), some_sources()
    tried = (search(model, source, eos=eos, max_new_tokens=9) for eos in range(2, 7))
    # past what rotary positions were made for: they compute more
    found = next(found for found in tried if found.sequences.shape[-1] == 10)
    model(source, found.sequences[:, 0]).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert not found.sums.requires_grad


def test_search_never_picks_padding_or_bos():
    """The likeliest tokens are those two; what is left has the chances that the model gave it."""
    eager = FunctionModel(lambda source, text: [0.51, 0.3, 0.01 * len(text), 0.19 - 0.01 * len(text)], vocab_size=4)
    source = torch.tensor([[7], [8]])
    found = search(eager, source, num_beams=5, length_penalty=0.0, max_new_tokens=4)
    assert [found.ids(1, rank).tolist() for rank in range(5)] == [[], [3], [3, 3], [3, 3, 3, 3], [3, 3, 3]]
    three = 0.18 * 0.17 * 0.16
    chances = [0.01, 0.18 * 0.02, 0.18 * 0.17 * 0.03, three * 0.15, three * 0.04]
    assert found.sums[0].exp().tolist() == pytest.approx(chances)
    for one in (
        beam.greedy(eager, source, bos=BOS, eos=EOS, max_new_tokens=4),
        search(eager, source, num_beams=1, max_new_tokens=4),
    ):
        assert one.sequences.tolist() == [[[BOS, 3, 3, 3, 3]]] * 2


def test_greedy_supports_eos_equal_to_bos():
    """As in GPT-2 and BART, where one token stands for both."""
    model = FunctionModel(
        lambda source, text: [0.3, 0.1, 0.0, 0.6] if len(text) < 4 else [0.2, 0.7, 0.0, 0.1], vocab_size=4
    )
    found = beam.greedy(model, torch.tensor([[7]]), bos=BOS, eos=BOS, max_new_tokens=9)
    assert found.sequences.tolist() == [[[BOS, 3, 3, 3, BOS]]]
    assert found.ids(0).tolist() == [3, 3, 3]
    assert found.ended.all()


@pytest.mark.parametrize(("vocab_size", "some"), one_at_a_time([130, 5, 63, 64, 640, 701], [5, 1, 3]))
def test_topk_matches_torch(vocab_size, some):
    draw = torch.Generator().manual_seed(vocab_size)
    logs = torch.randn(7, vocab_size, generator=draw)
    logs[0, -3:] = torch.tensor([9.0, 11.0, 10.0])  # beyond the last whole block, and
    logs[1, :5] = torch.tensor([9.0, 11.0, 10.0, 13.0, 12.0])  # all in one block
    logs[2, some:] = -inf
    values, tokens = topk(logs, some)
    expected = logs.topk(some)
    assert values.equal(expected.values)
    assert tokens.equal(expected.indices)
    logs[3, vocab_size // 2] = nan
    assert topk(logs, some)[0].isnan().any(1).tolist() == [row == 3 for row in range(7)]
