"""Subword tokenizers: training, encoding, decoding, saving and display."""

import random
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tfviz.text import (
    SubwordTokenizer,
    subwords,
    tokenizer_training,
    train_bpe,
    train_characters,
    train_whole_words,
    train_wordpiece,
)

quick = settings(max_examples=50, deadline=None)
WRITINGS = "né 漢字 👩‍👧 שלום\r\n\t\0\x1b [MASK]🏳️‍🌈"
TEXTS = ["The cat sat on the mat.", "The dog sat on the cats' mats, for years.", f"für die Straße: {WRITINGS}"] * 2
BUILT = {
    "bpe": train_bpe(TEXTS, 300),
    "lower bpe": train_bpe(TEXTS, 300, lower=True),
    "wordpiece": train_wordpiece(TEXTS, 120),
    "cased wordpiece": train_wordpiece(TEXTS, 120, lower=False),
    "whole words": train_whole_words(TEXTS),
    "letters": train_characters(TEXTS),
}
every = pytest.mark.parametrize("tokenizer", BUILT.values(), ids=BUILT)
UNKNOWN = subwords.UNK


def ids_of(tokenizer):
    return st.lists(st.integers(0, len(tokenizer) - 1), max_size=9)


@quick
@given(st.text())
def test_bpe_round_trips_any_text(written):
    tokenizer = BUILT["bpe"]
    ids = tokenizer.encode(written)
    assert tokenizer.decode(ids) == "".join(tokenizer.decode_stream(ids)) == written
    assert len(tokenizer.tokens(ids)) == len(tokenizer.word_ids(written)) == len(ids)


@pytest.mark.parametrize("name", ["bpe", "letters"])
def test_every_script_round_trips_with_visible_words(name):
    tokenizer = BUILT[name]
    ids = tokenizer.encode(WRITINGS)
    assert tokenizer.decode(ids) == WRITINGS
    assert ids.dtype == torch.long
    assert all(word.strip() == word != "" and word.isprintable() for word in tokenizer.tokens(ids))


def test_whole_words_round_trip_with_spaces():
    tokenizer = BUILT["whole words"]
    written = "The dog sat on the mats , for years ."
    assert tokenizer.decode(tokenizer.encode(written)) == written
    assert tokenizer.encode("sat zebra").tolist() == [tokenizer["sat"], UNKNOWN]


def test_lower_controls_case_folding():
    tokenizer = BUILT["lower bpe"]
    assert tokenizer.decode(tokenizer.encode("The\nCat  SÄT İ")) == "the\ncat  sät i̇"
    assert BUILT["wordpiece"].tokens(BUILT["wordpiece"].encode("Fur DIE")) == ["fur", "die"]
    assert "fur" not in BUILT["cased wordpiece"].tokens(BUILT["cased wordpiece"].encode("Fur"))


@every
def test_special_tokens_come_first(tokenizer):
    assert [tokenizer[special] for special in subwords.SPECIAL_TOKENS] == list(range(7))
    assert [subwords.PAD, subwords.BOS, subwords.EOS, subwords.CLS, subwords.SEP, subwords.MASK] == [0, 2, 3, 4, 5, 6]
    assert tuple(tokenizer.tokens(range(7))) == subwords.SPECIAL_TOKENS
    assert tokenizer.decode(range(7)) == ""
    assert tokenizer[tokenizer.backend_tokenizer.id_to_token(len(tokenizer) - 1)] == len(tokenizer) - 1


@every
def test_text_never_encodes_to_special_tokens(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    for there in (tokenizer, SubwordTokenizer.load(tmp_path)):
        ids = there.encode("The [MASK] [PAD] sat[SEP][UNK] [CLS]")
        assert set(ids.tolist()) & set(range(7)) <= {UNKNOWN}
        assert there.encode("[EOS]").tolist() != [subwords.EOS]
        assert len(there.word_ids("[MASK]")) == len(there.encode("[MASK]")) > 1


@every
def test_save_and_load_round_trips(tokenizer, tmp_path):
    """Also when another library on `tokenizers` has read it, and written it again without the checksum."""
    tokenizer.save(tmp_path / "tokenizer.json")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.to_str() == tokenizer.backend_tokenizer.to_str()
    theirs.save(str(tmp_path / "theirs.json"), pretty=False)
    for path in (tmp_path, str(tmp_path / "tokenizer.json"), tmp_path / "theirs.json"):
        again = SubwordTokenizer.load(path)
        ids = [*range(len(tokenizer))]
        assert [row.tolist() for row in again.encode_batch(TEXTS)] == [
            row.tolist() for row in tokenizer.encode_batch(TEXTS)
        ]
        assert again.tokens(ids) == tokenizer.tokens(ids)
        assert again.decode(ids) == tokenizer.decode(ids)
        assert again.merges() == tokenizer.merges()
        assert repr(again) == repr(tokenizer)


@pytest.mark.parametrize("build", [train_bpe, train_wordpiece, train_whole_words, train_characters])
def test_training_is_deterministic(build):
    first = build(TEXTS).backend_tokenizer.to_str()
    assert all(build(iter(TEXTS)).backend_tokenizer.to_str() == first for _ in range(5))


@every
@quick
@given(st.data())
def test_pieces_join_to_the_decoded_text(tokenizer, data):
    ids = data.draw(ids_of(tokenizer))
    assert "".join(tokenizer.decode_stream(iter(ids))) == tokenizer.decode(ids)


def test_pieces_yield_whole_characters():
    tokenizer = train_bpe("a", 264)
    ids = tokenizer.encode("a漢é")
    assert len(ids) == 6
    assert list(tokenizer.decode_stream(ids)) == ["a", "漢", "é"]
    assert list(tokenizer.decode_stream(ids[:3])) == ["a", "�"] == [*tokenizer.decode(ids[:3])]


def test_bpe_words_show_spaces_and_bytes():
    tokenizer = train_bpe("né né né\n\n\n\n", 269)
    words = tokenizer.tokens(tokenizer.encode("né né\n\n x漢\x07"))
    assert words == ["né", "␣né", "⏎⏎", "␣", "x", "e6", "bc", "a2", "07"]
    assert train_bpe("a##b", 264).tokens(train_bpe("a##b", 264).encode("#é")) == ["#", "c3", "a9"]


def test_words_keep_letters_of_the_byte_alphabet():
    for name in ("letters", "whole words", "cased wordpiece"):
        tokenizer = BUILT[name]
        assert "".join(tokenizer.tokens(tokenizer.encode("für"))) == "für"
        assert tokenizer["ü" if name == "letters" else "für"] > UNKNOWN


def test_wordpiece_words_mark_continuations():
    tokenizer = train_wordpiece(
        "sat sat sat mat mats", 19
    )  # 7, then ##a ##m ##s ##t, a m s t, then what is joined most often
    pieces = "##a ##m ##s ##t a m s t ##at sat mat mats"
    assert " ".join(tokenizer.tokens(range(7, len(tokenizer)))) == pieces
    assert tokenizer.tokens(tokenizer.encode("satmats, tam")) == [
        "sat",
        "##m",
        "##at",
        "##s",
        "[UNK]",
        "t",
        "##a",
        "##m",
    ]
    assert tokenizer.decode(tokenizer.encode("satmats tam")) == "satmats tam"


def test_spans_match_expected_values():
    tokenizer = train_bpe("a", 264)
    assert tokenizer.tokens(tokenizer.encode("\n Té\tb漢 ")) == [
        "⏎",
        "␣",
        "T",
        "c3",
        "a9",
        "⇥",
        "b",
        "e6",
        "bc",
        "a2",
        "␣",
    ]
    assert tokenizer.word_ids("\n Té\tb漢 ") == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert BUILT["bpe"].tokens(BUILT["bpe"].encode("The cat sat.")) == ["The", "␣cat", "␣sat", "."]
    assert BUILT["bpe"].word_ids("The cat sat.") == [0, 1, 2, 2]
    assert BUILT["letters"].word_ids(" ab\n c ") == [0, 0, 0, 1, 1, 1, 1]
    assert BUILT["wordpiece"].tokens(BUILT["wordpiece"].encode("The cats' xx")) == ["the", "cats", "'", "[UNK]"]
    assert BUILT["wordpiece"].word_ids("The cats' xx") == [0, 1, 1, 2]
    assert BUILT["whole words"].word_ids("The zebras' mats.") == [0, 1, 1, 2, 2]
    assert tokenizer.word_ids("") == []
    assert tokenizer.word_ids("\n") == [0]


def reference_merges(words, joins):
    """Byte-pair encoding as its paper writes it: join the most frequent pair, of equals the first in the alphabet."""
    pieces, order, made = {word: list(word) for word in words}, sorted(set("".join(words))), []
    for _ in range(joins):
        pairs = Counter()
        for word, count in words.items():
            for pair in pairwise(pieces[word]):
                pairs[pair] += count
        most = max(pairs.values())
        left, right = min((p for p in pairs if pairs[p] == most), key=lambda pair: [order.index(part) for part in pair])
        made.append((left, right))
        order.append(left + right)
        for parts in pieces.values():
            index = 0
            while index < len(parts) - 1:
                if parts[index : index + 2] == [left, right]:
                    parts[index : index + 2] = [left + right]
                index += 1
    return made


def test_bpe_merges_match_reference():
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}  # Sennrich et al. 2016
    texts = [word for word, count in words.items() for _ in range(count)]
    merges = train_bpe(texts, 7 + 256 + 10).merges()
    assert merges[:4] == [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")]
    assert merges == reference_merges(words, 10)
    assert train_bpe([" é"] * 2, 7 + 256 + 2).merges() == [("c3", "a9"), ("␣", "é")]
    assert BUILT["wordpiece"].merges() == BUILT["letters"].merges() == []


@pytest.mark.parametrize("lower", [True, False])
def test_wordpiece_matches_bert_tokenizer(lower):
    from transformers import BertTokenizerFast

    tokenizer = train_wordpiece(TEXTS, 110, lower=lower)
    bert = BertTokenizerFast(vocab=tokenizer.backend_tokenizer.get_vocab(), do_lower_case=lower)
    for written in [
        "The cats sat on the dogs' mats!",
        "Élan vital, naïve für die Straße; ÀÉÎ e\u0301",
        "漢字 and 漢dog字",
        "a-b... (c) $5 «quoted» “for” years\u3000wide",
        "tab\tnew\nline\0nul שלום 👩‍👧 " + "s" * 120,
        "",
    ]:
        assert tokenizer.encode(written).tolist() == bert(written, add_special_tokens=False)["input_ids"]
        assert tokenizer.tokens(tokenizer.encode(written)) == bert.tokenize(written)


@pytest.mark.parametrize(
    ("build", "least"),
    [(train_bpe, 264), (train_wordpiece, 7 + 4 + 4 + 1), (train_whole_words, 8), (train_characters, 8)],
)
def test_too_small_vocabulary_raises_with_minimum_size(build, least):
    with pytest.raises(ValueError, match=f"it must be at least {least}, since"):
        build("mats mats", least - 1)
    assert len(build("mats mats", least)) == least


@pytest.mark.parametrize("build", [train_bpe, train_wordpiece, train_whole_words, train_characters])
@pytest.mark.parametrize("texts", [[], "", [" \n", ""]])
def test_empty_texts_raise(build, texts):
    with pytest.raises(ValueError, match="no text to build a tokenizer from"):
        build(texts)


@every
def test_encode_all_matches_encode(tokenizer):
    texts = [*TEXTS, ""]
    assert [row.tolist() for row in tokenizer.encode_batch(texts)] == [
        tokenizer.encode(each).tolist() for each in texts
    ]
    ids = tokenizer.encode("")
    assert (ids.dtype, ids.shape) == (torch.long, (0,))
    assert tokenizer.decode(ids) == "".join(tokenizer.decode_stream(ids)) == ""
    assert tokenizer.tokens(ids) == tokenizer.encode_batch([]) == []


def test_vocabulary_has_the_requested_size():
    assert len(BUILT["bpe"]) == BUILT["bpe"].backend_tokenizer.get_vocab_size() == 300
    assert len(train_wordpiece(TEXTS, 100)) == 100
    assert len(train_whole_words("a b c d a b", 9)) == 9
    assert len(train_characters("abcab", 9)) == 9
    assert train_characters("abcab", 9).encode("abc").tolist() == [7, 8, UNKNOWN]
    assert repr(BUILT["bpe"]) == "SubwordTokenizer(BPE, 300 tokens)"


@every
def test_load_detects_single_bit_damage(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    file, draw = tmp_path / "tokenizer.json", random.Random(5)
    whole = file.read_bytes()
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        try:
            again = SubwordTokenizer.load(tmp_path)
        except ValueError as error:
            said = str(error)
        else:  # of the checksum's own name, or of a blank between two values
            said = (
                "damaged"
                if again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
                else "another vocabulary"
            )
        assert "damaged" in said


@pytest.mark.parametrize("content", ["", "{}", "[]", "3", '{"model": 3}', "[" * 100_000, "\0"])
def test_load_rejects_invalid_files(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json is .*damaged"):
        SubwordTokenizer.load(tmp_path)


def test_training_splits_very_long_words():
    draw = random.Random(1)
    endless = "".join(draw.choices("abcdefgh", k=60_000))
    assert len(train_wordpiece([endless], 300)) == 300  # byte pairs: tests/bad_input/cases_text.py
    assert [*tokenizer_training._split_long_words(["newest widest " * 400, *TEXTS])] == ["newest widest " * 400, *TEXTS]
    assert list(tokenizer_training._split_long_words(["ab " + "c" * 250 + " d", " " * 210, "e f"])) == [
        "ab " + "c" * 100,
        "c" * 100,
        "c" * 50 + " d",
        " " * 100,
        " " * 100,
        " " * 10,
        "e f",
    ]
