"""Tokenizers exported to pages: JSON specifications for encoding, or for decoding only."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from unportable_tokenizers import TEXTS as FOREIGN_TEXTS
from unportable_tokenizers import changed, fallback, regex, unigram

from tfviz.text import (
    ByteTokenizer,
    CharacterTokenizer,
    SubwordTokenizer,
    subwords,
    tokenizer_export,
    train_bpe,
    train_characters,
    train_whole_words,
    train_wordpiece,
)
from tfviz.text.token_labels import VISIBLE_SIGNS

TEXTS = ["The cat sat on the mat.", "für die Straße"]
PAIRS, PIECES = train_bpe(TEXTS, 280), train_wordpiece(TEXTS, 60)
EVERY = [
    CharacterTokenizer("the ca\ud83d\ude00"),
    ByteTokenizer(),
    PAIRS,
    PIECES,
    train_whole_words(TEXTS),
    train_characters(TEXTS),
]


@pytest.mark.parametrize("vocab", EVERY, ids=str)
def test_spec_is_json_serializable(vocab):
    plain = vocab.to_spec()
    assert json.loads(json.dumps(plain)) == plain


def test_characters_spec_keeps_surrogates_apart():
    assert EVERY[0].to_spec()["tokens"][-2:] == ["\ud83d", "\ude00"]


def test_spec_is_a_fresh_copy():
    mine = PAIRS.to_spec()
    mine["splitter"]["letters"].clear()
    assert PAIRS.to_spec()["splitter"]["letters"][:4] == [65, 26, 6, 26]  # A to Z and a to z


def test_spec_stores_character_sets_as_run_lengths():
    plain = PAIRS.to_spec()["splitter"]
    assert plain["numbers"][:6] == [48, 10, 120, 2, 5, 1]  # 0 to 9, ² and ³, ¹
    assert plain["spaces"][:6] == [9, 5, 18, 1, 100, 1]  # tab to carriage return, space, U+0085
    assert tokenizer_export._lower_case()["runs"][:4] == [65, 26, 1, 32]


def told(vocab, method, *given):
    """A copy of a tokenizer, of which the library's method was called."""
    vocab = changed(vocab)
    getattr(vocab.backend_tokenizer, method)(*given)
    return vocab


REFUSED = {
    "its normalizer is NFC; make it with text.train_bpe": lambda: changed(PIECES, normalizer=normalizers.NFC()),
    "its normalizer is Replace": lambda: changed(
        PIECES, normalizer=normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("a", "b")])
    ),
    "its pre_tokenizer is None": lambda: SubwordTokenizer(Tokenizer(models.BPE())),
    "its pre_tokenizer is Digits": lambda: changed(PIECES, pre_tokenizer=pre_tokenizers.Digits()),
    "its pre_tokenizer Split has pattern": lambda: changed(PIECES, pre_tokenizer=pre_tokenizers.Split("a", "isolated")),
    "its pre_tokenizer ByteLevel has add_prefix_space = True": lambda: changed(
        PAIRS, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "its decoder is BPEDecoder": lambda: changed(PIECES, decoder=decoders.BPEDecoder()),
    "its model is Unigram": lambda: changed(
        PIECES, model=models.Unigram([(token, 0.0) for token in subwords.SPECIAL_TOKENS], 1)
    ),
    "no token has the id 7": lambda: changed(PIECES, model=models.Unigram([("a", 0.0)], 0)),
    "its model BPE follows the pre_tokenizer BertPreTokenizer": lambda: changed(PIECES, model=models.BPE()),
    "its model BPE has dropout = 0.5": lambda: changed(PAIRS, model=models.BPE(dropout=0.5)),
    "it lacks 256 of the 256 bytes": lambda: changed(PAIRS, model=models.BPE()),
    r"unknown token, '\[UNK\]', is not in its": lambda: changed(
        PIECES, model=models.WordPiece({"a": 7}, unk_token="[UNK]")
    ),
    "the added token 'dog' is not a special one": lambda: told(PAIRS, "add_tokens", [AddedToken("dog", special=False)]),
    "it has padding; take that away with tokenizer.no_padding": lambda: told(PIECES, "enable_padding"),
    "it has truncation; take that away with tokenizer.no_truncation": lambda: told(PIECES, "enable_truncation", 9),
}


@pytest.mark.parametrize("said", REFUSED)
def test_to_spec_rejects_unsupported_parts(said):
    vocab = REFUSED[said]()
    with pytest.raises(ValueError, match=f"a page cannot encode as this tokenizer does, since .*{said}"):
        vocab.to_spec()


# Decoding of any tokenizer, where Python encodes

KINDS = {"unigram": unigram(), "fallback": fallback(), "regex": regex()}
OWN = {
    "bpe": train_bpe(FOREIGN_TEXTS, 300).backend_tokenizer,
    "wordpiece": train_wordpiece(FOREIGN_TEXTS, 90).backend_tokenizer,
}
every = pytest.mark.parametrize("tokenizer", [*KINDS.values(), *OWN.values()], ids=[*KINDS, *OWN])
WRITTEN = ["the cat sat", "  the  dog", "für 漢字 👩‍👧 1984", "the\n\tmat.", "x", ""]


def joined(spec, ids):
    """As the page puts a text together."""
    return b"".join(bytes(spec["bytes"].get(i) or spec["texts"][i].encode()) for i in ids).decode(errors="replace")


@every
def test_decoding_spec_matches_tokenizer_decode(tokenizer):
    vocab = SubwordTokenizer(tokenizer)
    spec = vocab.to_decoding_spec()
    front = " " if tokenizer in (KINDS["unigram"], KINDS["fallback"], OWN["wordpiece"]) else ""
    for written in WRITTEN:
        ids = vocab.encode(written).tolist()
        assert joined(spec, ids).removeprefix(front) == vocab.decode(ids)


@every
def test_decoding_spec_names_match_python_words(tokenizer):
    vocab = SubwordTokenizer(tokenizer)
    spec = vocab.to_decoding_spec()
    for index, word in enumerate(vocab.tokens(range(len(vocab)))):
        shown = "".join(VISIBLE_SIGNS.get(sign, sign) for sign in spec["texts"][index])
        assert word == spec["names"].get(index, bytes(spec["bytes"].get(index, [])).hex(" ") or shown)


@pytest.mark.parametrize("tokenizer", KINDS.values(), ids=KINDS)
def test_to_spec_rejects_unportable_tokenizers(tokenizer):
    with pytest.raises(ValueError, match="a page cannot encode as this tokenizer does"):
        SubwordTokenizer(tokenizer).to_spec()


def test_sentencepiece_spaces_and_bytes_are_visible():
    vocab = SubwordTokenizer(KINDS["fallback"])
    assert vocab.tokens(vocab.encode("the é")) == ["␣the", "␣", "c3", "a9"]
    assert vocab.to_decoding_spec()["bytes"][3 + 0xC3] == [0xC3]


def test_special_token_roles_match_transformers():
    transformers = pytest.importorskip("transformers")
    named = {"mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    tokenizer = fallback()
    tokenizer.add_special_tokens(["<mask>"])
    vocab = subwords.as_tokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named))
    roles = {"unk": 0, "cls": 1, "sep": 2, "mask": len(vocab) - 1}
    assert vocab.to_decoding_spec()["special"] == roles
    assert [vocab[name] for name in ("[MASK]", "[CLS]", "<mask>")] == [len(vocab) - 1, 1, len(vocab) - 1]
