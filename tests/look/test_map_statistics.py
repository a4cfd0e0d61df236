"""Measures ignore padding, on either side and with masks per text or per head; compared with plain loops."""

import math

import pytest
import torch
from combinations import one_at_a_time
from torch import nn
from torch.nn import functional

from tfviz.look import AttentionMaps, capture, measures

WORDS = ["a", "cat", "a", "dog", "a", "cat", "sat"]
LAYERS, HEADS, LENGTH = 2, 3, len(WORDS)
SIDES = [(0, 0), (2, 0), (0, 3), (2, 3)]


def random_weights(causal=True, seed=1):
    scores = 2 * torch.randn(LAYERS, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(seed))
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool)
    mask = mask.tril() if causal else mask
    return scores.masked_fill(~mask, -torch.inf).softmax(-1), mask


def padded(weights, mask, before, after, rows="zeros", per_head=False):
    """Maps of the same text between so many pads: rows of pads see nothing, or real words, as right padding does."""
    sides = (before, after, before, after)
    wide, allowed = functional.pad(weights, sides), functional.pad(mask, sides)
    if rows == "see":
        positions = [*range(before), *range(before + LENGTH, before + LENGTH + after)]
        for position in positions:
            wide[..., position, before : before + LENGTH] = 1 / LENGTH
            allowed[..., position, before : before + LENGTH] = True
    if rows == "even":  # what a finite mask comes to
        wide[..., ~allowed.any(-1), :] = 1 / wide.shape[-1]
    if per_head:
        allowed = allowed.expand(LAYERS, HEADS, *allowed.shape).clone()
        allowed[1, 2, before] = False  # a head that sees nothing from the first word
        wide[1, 2, before] = 0
    words = ["[PAD]"] * before + WORDS + ["[PAD]"] * after
    return AttentionMaps(wide, words, mask=allowed)


def statistics(maps):
    return {
        **measures.head_scores(maps),
        "entropy": measures.entropy(maps),
        "distance": measures.mean_distance(maps),
        "change": measures.total_variation(
            maps, AttentionMaps(maps.weights.flip(1), maps.query_tokens, mask=maps.mask)
        ),
    }


@pytest.mark.parametrize(
    ("sides", "rows", "per_head", "causal"),
    one_at_a_time(SIDES[:0:-1], ["zeros", "see", "even"], [True, False], [True, False]),
)
def test_padding_does_not_change_measures(sides, rows, per_head, causal):
    plain = statistics(padded(*random_weights(causal), 0, 0, per_head=per_head))
    found = statistics(padded(*random_weights(causal), *sides, rows, per_head))
    for name, value in plain.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(("before", "after"), SIDES[1:])
def test_zero_rows_without_mask_count_as_padding(before, after):
    weights, mask = random_weights()
    wide = padded(weights, mask, before, after)
    for name, value in statistics(padded(weights, mask, 0, 0)).items():
        assert torch.equal(statistics(AttentionMaps(wide.weights, wide.query_tokens))[name], value), name


def by_loops(weights, sees):
    """Of one head, by the words of the docstrings; each mean is over the queries that see something."""

    def mean(of):
        values = [of(q) for q in range(LENGTH) if sees[q]]
        values = [value for value in values if value is not None]
        return sum(values) / len(values) if values else 0.0

    def put(q, keys):
        return sum(weights[q][k] for k in keys) if keys else None

    earlier = [[k for k in range(q) if WORDS[k] == WORDS[q]] for q in range(LENGTH)]
    return {
        "current": mean(lambda q: weights[q][q]),
        "previous": mean(lambda q: put(q, [q - 1] if q >= 1 else [])),
        "two back": mean(lambda q: put(q, [q - 2] if q >= 2 else [])),
        "first": mean(lambda q: put(q, [0] if q >= 1 else [])),
        "duplicate": mean(lambda q: put(q, earlier[q])),
        "induction": mean(lambda q: put(q, [k + 1 for k in earlier[q] if k + 1 < q])),
        "entropy": mean(lambda q: -sum(w * math.log(w) for w in weights[q] if w > 0)),
        "distance": mean(lambda q: sum(abs(q - k) * weights[q][k] for k in range(LENGTH))),
    }


@pytest.mark.parametrize(("sides", "causal"), one_at_a_time(SIDES, [True, False]))
def test_measures_match_reference(sides, causal):
    weights, mask = random_weights(causal)
    found = statistics(padded(weights, mask, *sides, "see", per_head=True))
    weights[1, 2, 0] = 0
    for layer in range(LAYERS):
        for head in range(HEADS):
            rows = weights[layer, head].tolist()
            for name, value in by_loops(rows, [sum(row) > 0 for row in rows]).items():
                assert float(found[name][layer, head]) == pytest.approx(value, abs=1e-6), name


def test_change_averages_over_queries_seen_in_either():
    one, other = random_weights(seed=1)[0], random_weights(seed=2)[0]
    one[0, 1, 3] = 0  # sees nothing before, something after
    one[0, 1, 4] = other[0, 1, 4] = 0  # sees nothing
    found = measures.total_variation(AttentionMaps(one, WORDS), AttentionMaps(other, WORDS))
    rows = [float((one[0, 1, q] - other[0, 1, q]).abs().sum()) / 2 for q in range(LENGTH) if q != 4]
    assert float(found[0, 1]) == pytest.approx(sum(rows) / 6, abs=1e-6)
    assert rows[3] == pytest.approx(0.5, abs=1e-6)


def test_distance_of_generation_steps_matches_whole_text():
    weights = random_weights(seed=4)[0].tril()
    weights = weights / weights.sum(-1, keepdim=True)
    positions = torch.arange(LENGTH)
    far = (weights * (positions[:, None] - positions).abs()).sum(-1)
    for last in (1, 2, LENGTH):
        step = AttentionMaps(weights[:, :, -last:], WORDS[-last:], WORDS)
        torch.testing.assert_close(measures.mean_distance(step), far[:, :, -last:].mean(-1))
    with pytest.raises(ValueError, match="distance is not defined where 2 queries attend to 7 keys of another text"):
        measures.mean_distance(AttentionMaps(weights[:, :, -2:], WORDS[:2], WORDS))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_measures_do_not_depend_on_other_texts_in_the_batch(dtype, lazy):
    torch.manual_seed(3)
    layer = nn.MultiheadAttention(6, 3, batch_first=True).eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.6)

    def maps(x, padding, row, words):
        with torch.no_grad(), capture(layer, dtype=dtype, lazy=lazy) as seen:
            layer(x, x, x, key_padding_mask=padding, need_weights=False)
        return AttentionMaps.from_capture(seen, words, batch=row)

    x = torch.randn(1, LENGTH, 6)
    alone = statistics(maps(x, None, 0, WORDS))
    beside = torch.cat([functional.pad(x, (0, 0, 4, 0)), torch.randn(1, LENGTH + 4, 6)])
    padding = torch.zeros(2, LENGTH + 4, dtype=torch.bool)
    padding[0, :4] = True
    found = statistics(maps(beside, padding, 0, ["[PAD]"] * 4 + WORDS))
    for name, value in alone.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0, msg=name)


def test_cross_attention_measures_count_all_queries():
    weights = torch.tensor([[0.75, 0.25], [0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    mask = torch.tensor([True, True, False, False])
    maps = AttentionMaps(
        functional.pad(weights, (0, 2))[None, None], list("wxyz"), list("ab") + ["[PAD]"] * 2, mask[None]
    )  # as many source words as target words
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert float(measures.entropy(maps)) == pytest.approx(entropy / 2, abs=1e-6)
    assert float(measures.mean_distance(maps)) == pytest.approx((0.25 + 0.25 + 2 + 2) / 4, abs=1e-6)


def test_rollout_ignores_padding():
    weights = random_weights()[0].mean(1)
    plain = measures.rollout(weights, residual=0.3)
    for before, after in SIDES[1:]:
        found = measures.rollout(functional.pad(weights, (before, after) * 2), residual=0.3)
        inner = slice(before, before + LENGTH)
        torch.testing.assert_close(found[:, inner, inner], plain)
        torch.testing.assert_close(found.sum(-1), torch.ones(found.shape[:2]))


def test_relevance_and_value_norms_ignore_padding():
    weights, values = random_weights()[0], torch.rand(LAYERS, HEADS, LENGTH, 5)
    gradients = torch.randn(weights.shape, generator=torch.Generator().manual_seed(4))
    inner = slice(2, 2 + LENGTH)
    wide = functional.pad(weights, (2, 3, 2, 3))
    found = measures.relevance(wide, functional.pad(gradients, (2, 3, 2, 3)))
    torch.testing.assert_close(found[:, inner, inner], measures.relevance(weights, gradients))
    lengths = measures.value_weighted_norms(wide, functional.pad(values, (0, 0, 2, 3), value=torch.inf))
    assert torch.equal(lengths[..., inner, inner], measures.value_weighted_norms(weights, values))
    assert not lengths[..., :2].any()
    assert not lengths[..., :2, :].any()


def test_head_scores_comparing_words_require_words():
    weights = random_weights()[0]
    maps = AttentionMaps(weights)
    with pytest.raises(ValueError, match="the maps have no tokens, and 'duplicate' compares them"):
        measures.head_scores(maps)
    found, named = (
        measures.head_scores(maps, ["previous", "first"]),
        measures.head_scores(AttentionMaps(weights, WORDS)),
    )
    assert list(found) == ["previous", "first"]
    assert torch.equal(found["first"], named["first"])


def test_measuring_large_maps_head_by_head_matches_whole_layers(monkeypatch):
    maps = padded(*random_weights(), 2, 3, "see", per_head=True)
    whole = statistics(maps)
    monkeypatch.setattr("tfviz.look.map_statistics.LARGE_LAYER_BYTES", 0)
    for name, value in statistics(maps).items():
        torch.testing.assert_close(value, whole[name], rtol=0, atol=1e-6, msg=name)


def test_zero_heads_have_zero_scores_and_change_one_half():
    weights, mask = random_weights()
    for given in (None, mask):
        nothing = AttentionMaps(torch.zeros_like(weights), WORDS, mask=given)
        assert not any(share.any() for share in measures.head_scores(nothing).values())
        found = measures.total_variation(AttentionMaps(weights, WORDS, mask=mask), nothing)
        torch.testing.assert_close(found, torch.full((LAYERS, HEADS), 0.5))


def test_entropy_counts_only_unmasked_nonzero_queries():
    weights, mask = random_weights()
    weights[0, 0, 3] = 0  # it may look, and does not
    mask[4] = False  # it may not, and a finite mask has made its row even
    weights[:, :, 4] = 1 / LENGTH
    found = measures.entropy(AttentionMaps(weights, WORDS, mask=mask))[0, 0]
    each = torch.special.entr(weights[0, 0]).sum(-1)
    assert float(found) == pytest.approx(float(sum(each[q] for q in (0, 1, 2, 5, 6)) / 5), abs=1e-6)
