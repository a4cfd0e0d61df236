"""Bucketed batches, padding, sentence pairs, and streams of text."""

import math
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfviz.indexed_batches import Batches
from tfviz.text import Buckets, Streams, add_special_tokens, pad, sentence_pairs
from tfviz.text.subwords import CLS, EOS, PAD, SEP, SPECIAL_TOKENS

assert_equal = partial(torch.testing.assert_close, rtol=0, atol=0)
quick = settings(max_examples=30, deadline=None)
FIRST = len(SPECIAL_TOKENS)
LENGTHS = [3, 1, 7, 3, 2, 3, 5, 3, 7, 3, 2]


def rows_of(lengths, seed=0):
    """Rows of ids that tell which row they are: the first id is 100 + its number."""
    draw = torch.Generator().manual_seed(seed)
    return [
        torch.cat([torch.tensor([100 + index]), torch.randint(FIRST, 50, (length - 1,), generator=draw)])
        for index, length in enumerate(lengths)
    ]


def unpadded(batch):
    return [row[row != PAD].tolist() for row in batch]


def epoch(made, number=0):
    return [made[number * len(made) + step] for step in range(len(made))]


@quick
@given(st.lists(st.integers(1, 9), min_size=1, max_size=25), st.integers(9, 40), st.integers(0, 2**32))
def test_buckets_hold_each_row_once_within_the_token_limit(lengths, tokens, seed):
    rows = rows_of(lengths)
    made = Buckets(rows, max_tokens=tokens, seed=seed)
    for number in (0, 3):
        batches = [ids for (ids,) in epoch(made, number)]
        assert sorted(row for ids in batches for row in unpadded(ids)) == sorted(row.tolist() for row in rows)
        assert all(ids.numel() <= tokens for ids in batches)
        assert all((ids[:, 1:] == PAD)[ids[:, :-1] == PAD].all() for ids in batches)
        assert all((ids != PAD).sum(1).max() == ids.shape[1] for ids in batches)


def test_buckets_differ_between_epochs():
    made = Buckets(rows_of([3] * 12 + [5] * 6), max_tokens=15, seed=4)
    first, second = ([unpadded(ids) for (ids,) in epoch(made, number)] for number in (0, 1))
    assert [len(batch[0]) for batch in first] != [len(batch[0]) for batch in second]
    assert {frozenset(row[0] for row in batch) for batch in first} != {
        frozenset(row[0] for row in batch) for batch in second
    }


def test_buckets_depend_only_on_seed_and_step():
    rows, labels = rows_of(LENGTHS), torch.arange(len(LENGTHS))
    made, again = (Buckets(rows, labels, max_tokens=14, seed=5) for _ in range(2))
    steps = range(3 * len(made))
    in_turn = [made[step] for step in steps]
    mixed = {step: again[step] for step in reversed(steps)} | {step: again[step] for step in (7, 0, 11, 7)}
    assert_equal(in_turn, [mixed[step] for step in steps])
    other = Buckets(rows, labels, max_tokens=14, seed=6)
    assert Counter(map(len, epoch(other))) == Counter(map(len, epoch(made)))
    assert any(
        one[0].shape != two[0].shape or not torch.equal(one[0], two[0]) for one, two in zip(epoch(made), epoch(other))
    )


def test_buckets_keep_columns_aligned():
    source = rows_of(LENGTHS)
    target = [torch.cat([row[:1], torch.full((index % 4,), 9)]) for index, row in enumerate(source)]
    labels, scores = torch.arange(11), torch.arange(11) / 7
    made = Buckets(source, labels, target, scores, max_tokens=21)
    for ids, numbers, others, values in epoch(made):
        assert torch.equal(ids[:, 0], numbers + 100)
        assert torch.equal(others[:, 0], numbers + 100)
        assert torch.equal(values, numbers / 7)
        assert ((others == 9).sum(1) == numbers % 4).all()
        assert max(ids.numel(), others.numel()) <= 21


def test_buckets_limit_the_longest_column():
    short, long = [torch.full((2,), 8)] * 6, [torch.full((5,), 9)] * 6
    assert [len(ids) for ids, _ in Buckets(short, long, max_tokens=10).in_order()] == [2, 2, 2]
    assert [len(ids) for (ids,) in Buckets(short, max_tokens=10).in_order()] == [5, 1]


@quick
@given(st.lists(st.integers(1, 9), min_size=1, max_size=25), st.integers(9, 40))
def test_in_order_returns_all_rows(lengths, tokens):
    rows = rows_of(lengths)
    made = Buckets(rows, max_tokens=tokens, seed=3)
    batches = list(made.in_order())
    assert len(batches) == len(made)
    there = [row for (ids,) in batches for row in unpadded(ids)]
    assert there == [rows[index].tolist() for index in made.order]
    assert [len(row) for row in there] == sorted(lengths)
    back = [there[index] for index in made.order.argsort()]
    assert back == [row.tolist() for row in rows]


def test_pad_and_add_special_tokens_match_expected_rows():
    rows = [torch.tensor([7, 8, 9]), torch.tensor([7])]
    assert pad(rows).tolist() == [[7, 8, 9], [7, 0, 0]]
    assert pad(rows, -1).tolist() == [[7, 8, 9], [7, -1, -1]]
    assert [row.tolist() for row in add_special_tokens(rows)] == [[7, 8, 9, EOS], [7, EOS]]
    assert [row.tolist() for row in add_special_tokens(rows, CLS, None)] == [[CLS, 7, 8, 9], [CLS, 7]]
    assert [row.tolist() for row in add_special_tokens([torch.arange(0)], 2, 3)] == [[2, 3]]
    assert isinstance(Buckets(rows), Batches)


def test_sentence_pairs_accept_other_special_ids():
    documents = sentences((2, 3), (4,))
    rows, segments, _ = sentence_pairs(documents, 16, cls=101, sep=102)
    ours, same_segments, _ = sentence_pairs(documents, 16)
    assert [(row == 101).nonzero().flatten().tolist() for row in rows] == [[0]]
    assert torch.equal(torch.where(rows[0] == 101, CLS, torch.where(rows[0] == 102, SEP, rows[0])), ours[0])
    assert torch.equal(segments[0], same_segments[0])


def sentences(*documents):
    """Documents of sentences of so many tokens; a token tells document, sentence and place."""
    return [
        [torch.tensor([1000 * d + 100 * s + index for index in range(n)]) for s, n in enumerate(document)]
        for d, document in enumerate(documents, 1)
    ]


def test_sentence_pairs_match_expected_rows():
    documents = sentences((2, 3), (1,))
    rows, segments, follows = sentence_pairs(documents, 16, seed=0)
    second = [1100, 1101, 1102] if follows[0] else [2000]
    assert [row.tolist() for row in rows] == [[CLS, 1000, 1001, SEP, *second, SEP]]
    assert [row.tolist() for row in segments] == [[0, 0, 0, 0] + [1] * (len(second) + 1)]
    seen = {int(sentence_pairs(documents, 16, seed=seed)[2]) for seed in range(20)}
    assert seen == {0, 1}


def test_half_of_sentence_pairs_follow_each_other():
    documents = sentences(*[(1,) * 9] * 90)
    rows, segments, follows = sentence_pairs(documents, 16, seed=3)
    assert len(rows) == len(segments) == len(follows) == 90 * 8
    assert abs(int(follows.sum()) - 360) <= 3 * math.sqrt(180)
    for row, true in zip(rows, follows):
        first, second = int(row[1]), int(row[3])
        assert (second == first + 100) == bool(true)
        assert (second // 1000 == first // 1000) == bool(true)
    assert len({int(row[3]) // 1000 for row, true in zip(rows, follows) if not true}) > 60
    again = sentence_pairs(documents, 16, seed=3)
    assert_equal([rows, segments, follows], list(again))
    assert not torch.equal(sentence_pairs(documents, 16, seed=4)[2], follows)


@pytest.mark.parametrize(
    ("first", "second", "length", "kept"),
    [
        (4, 3, 10, (4, 3)),
        (4, 3, 9, (3, 3)),
        (9, 2, 10, (5, 2)),
        (2, 9, 10, (2, 5)),
        (9, 9, 10, (4, 3)),
        (6, 5, 12, (5, 4)),
        (8, 1, 5, (1, 1)),
        (1, 8, 5, (1, 1)),
        (8, 8, 5, (1, 1)),
    ],
)
def test_sentence_pairs_truncate_the_longer_sentence(first, second, length, kept):
    documents = sentences((first, second), (second, first))
    for seed in range(9):
        rows, segments, follows = sentence_pairs(documents, length, seed=seed)
        if follows[0]:
            one, other = kept
            assert rows[0].tolist() == [CLS, *documents[0][0][:one], SEP, *documents[0][1][:other], SEP]
            assert segments[0].tolist() == [0] * (one + 2) + [1] * (other + 1)
    assert all(len(row) <= length for row in rows)


@quick
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 40))
def test_streams_are_contiguous_across_steps(batch, length, more):
    ids = torch.arange(batch * length + 1 + more)
    streams = Streams(ids, length, batch)
    inputs, targets, indices = zip(*(streams[step] for step in range(len(streams))))
    assert all(part.shape == (batch, length) for part in (*inputs, *targets))
    assert all(torch.equal(after, before + 1) for before, after in zip(inputs, targets))
    assert all(torch.equal(after[:, 0], before[:, -1] + 1) for before, after in pairwise(inputs))
    assert [each.tolist() for each in indices] == [[[b, s] for b in range(batch)] for s in range(len(streams))]
    assert torch.cat(inputs, 1).flatten().tolist() == list(range(batch * len(streams) * length))
    assert len(ids) - 1 - batch * len(streams) * length < batch * length
    assert_equal(streams[2 * len(streams)], streams[0])
