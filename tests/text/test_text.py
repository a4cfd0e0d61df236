"""Character and byte tokenizers, and windows over a text."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfviz.text import ByteTokenizer, CharacterTokenizer, GrowingWindows, RepeatedTokens, Streams, Windows, in_order

quick = settings(max_examples=30, deadline=None)
WRITINGS = "né 漢字 👩‍👧 שלום\n\t\0🏳️‍🌈"


@quick
@given(st.text(min_size=1))
def test_characters_round_trip(text):
    tokenizer = CharacterTokenizer.from_text(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) == len(text)
    assert len(tokenizer) == len(set(text))
    assert tokenizer.characters == "".join(sorted(set(text)))


@quick
@given(st.text())
def test_bytes_round_trip(text):
    ids = ByteTokenizer().encode(text)
    assert bytes(ids.tolist()) == text.encode()
    assert ByteTokenizer().decode(ids) == text
    assert len(ByteTokenizer().tokens(ids)) == len(ids)


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer.from_text(WRITINGS), ByteTokenizer()], ids=repr)
def test_every_script_round_trips_with_visible_words(tokenizer):
    ids = tokenizer.encode(WRITINGS)
    assert tokenizer.decode(ids) == WRITINGS
    assert ids.dtype == torch.long
    assert not set(" \n\t\0") & set("".join(tokenizer.tokens(ids)))


def test_characters_keep_their_order():
    tokenizer = CharacterTokenizer("cab")
    assert tokenizer.encode("abcab").tolist() == [1, 2, 0, 1, 2]
    assert tokenizer.decode(torch.tensor([2, 0])) == "bc"
    assert tokenizer.tokens(torch.tensor([0])) == ["c"]
    with pytest.raises(ValueError, match="id 3 is not one of the 3 tokens"):
        tokenizer.decode(torch.tensor([3]))


def test_bytes_encode_escaped_bytes_as_they_were():
    """What `open(errors="surrogateescape")` makes of bytes that are not UTF-8."""
    raw = bytes(range(128, 256))
    assert bytes(ByteTokenizer().encode(raw.decode("utf-8", "surrogateescape")).tolist()) == raw


@pytest.mark.parametrize("code", [0xD800, 0xDC7F, 0xDD00, 0xDFFF])
def test_bytes_refuse_other_lone_surrogates(code):
    with pytest.raises(ValueError, match=rf"character 1 is U\+{code:04X}, a lone surrogate, which is not text"):
        ByteTokenizer().encode("a" + chr(code))


def test_bytes_decode_invalid_utf8_to_replacement_character():
    assert ByteTokenizer().decode(torch.tensor([97, 195, 98])) == "a�b"


@quick
@given(st.integers(4, 40), st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32), st.integers(0, 10**9))
def test_windows_are_contiguous_with_shifted_targets(size, length, batch, seed, step):
    ids = torch.arange(100, 100 + size)
    inputs, targets = Windows(ids, length, batch, seed)[step]
    assert inputs.shape == targets.shape == (batch, length)
    assert torch.equal(targets, inputs + 1)
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(length))
    assert inputs.min() >= 100
    assert targets.max() < 100 + size


def test_windows_depend_only_on_seed_and_step():
    ids = torch.arange(1000)
    first = Windows(ids, 7, 5, seed=3)[11][0]
    torch.manual_seed(99)
    again = Windows(ids, 7, 5, seed=3)
    assert not torch.equal(again[10][0], first)
    assert torch.equal(again[11][0], first)
    assert not torch.equal(Windows(ids, 7, 5, seed=4)[11][0], first)
    assert not torch.equal(Windows(ids, 7, 5, seed=4)[10][0], first)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_small_integer_dtypes_yield_int64_batches(kind):
    small = torch.arange(70, 120, dtype=kind)
    made = [Windows(small, 3, 2, seed=4)[5], Streams(small, 3, 2)[1][:2], *in_order(small, 3, 5)]
    ids = small.long()
    expected = [Windows(ids, 3, 2, seed=4)[5], Streams(ids, 3, 2)[1][:2], *in_order(ids, 3, 5)]
    for batch, known in zip(made, expected, strict=True):
        assert {part.dtype for part in batch} == {torch.int64}
        assert all(map(torch.equal, batch, known))
    assert Windows(small, 3, 2).ids is small
    assert Streams(small, 3, 2).inputs.untyped_storage().data_ptr() == small.untyped_storage().data_ptr()


def test_windows_reach_both_ends_of_the_text():
    drawn = Windows(torch.arange(5), length=3, batch_size=64)[0][0]
    assert set(drawn[:, 0].tolist()) == {0, 1}


@quick
@given(st.integers(2, 60), st.integers(1, 7), st.integers(1, 4))
def test_in_order_covers_the_text_once(size, length, batch):
    if size <= length:
        with pytest.raises(ValueError, match="shorter window"):
            list(in_order(torch.arange(size), length, batch))
        return
    inputs, targets = map(torch.cat, zip(*in_order(torch.arange(size), length, batch)))
    count = (size - 1) // length * length
    assert inputs.flatten().tolist() == list(range(count))
    assert targets.flatten().tolist() == list(range(1, count + 1))
    assert size - 1 - count < length


def test_growing_windows_match_windows_of_their_length():
    ids = torch.arange(40)
    growing = GrowingWindows(ids, length=11, batch_size=3, steps=7, seed=2)
    lengths = {0: (2, 12), 1: (2, 12), 2: (2, 12), 3: (5, 6), 4: (5, 6), 5: (11, 3), 6: (11, 3), 90: (11, 3)}
    for step, (length, batch) in lengths.items():
        inputs, targets = growing[step]
        assert inputs.shape == (batch, length)
        assert targets.equal(inputs + 1)
        assert inputs.equal(Windows(ids, length, batch, seed=2)[step][0])


def test_repeated_tokens_repeat_random_blocks():
    repeats = RepeatedTokens(vocab_size=11, length=13, batch_size=200, block=(3, 5), seed=2)
    inputs, targets = repeats[4]
    assert inputs.shape == targets.shape == (200, 13)
    assert inputs[:, 1:].equal(targets[:, :-1])
    rows = torch.cat((inputs, targets[:, -1:]), 1)
    periods = [min(size for size in range(1, 14) if row[size:].equal(row[:-size])) for row in rows]
    assert {3, 4, 5} <= set(periods) <= {1, 2, 3, 4, 5}  # a short one where a block by chance repeats itself
    assert inputs.unique().tolist() == list(range(11))
    assert inputs.equal(repeats[4][0])
    assert not inputs.equal(repeats[5][0])
    assert not inputs.equal(RepeatedTokens(vocab_size=11, length=13, batch_size=200, block=(3, 5), seed=3)[4][0])
