"""Tokenizers in the page encode, decode and display text exactly as in Python."""

import json
import random
from copy import deepcopy
from functools import cache

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from unportable_tokenizers import changed

from tfviz.text import (
    ByteTokenizer,
    CharacterTokenizer,
    SubwordTokenizer,
    subwords,
    train_bpe,
    train_characters,
    train_whole_words,
    train_wordpiece,
)

pytest_plugins = ["node"]
# Texts and what comes back travel as numbers, so that no half of a character is lost on the way.
ASK = """given => {
    const { described, texts, rows, shown } = JSON.parse(given), room = makeTokenizer(described);
    const units = text => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
    const told = (given, ask) => { try { return ask(given); } catch (error) { return "Error: " + error.message; } };
    return JSON.stringify({ size: room.size, special: room.special,
        ids: texts.map(text => told(String.fromCharCode(...text), text => room.encode(text))),
        texts: rows.map(row => told(row, row => units(room.decode(row)))),
        words: shown.map(row => told(row, row => room.tokens(row).map(units))) }); }"""
STORY = ["The cat sat on the mat.", "The dog sat on the cats' mats, for years.", "Für die Straße ΟΔΟΣ İstanbul 12 ½"]
HOSTILE = [
    "",
    " ",
    "The cat sat on the mat.",
    "it's I'LL we're they'd 'tis ''s' s'",
    "<b onclick='x'>&amp;</b></script><script>alert(1)</script><!--",
    "a\u202eb\u202c\u200fc\u2066d\u2069\u061c",
    "a\0b\0\0\x01\x1b[31m\x7f\x85\u200b\ufeff\ufffd\ufffe\U0010ffff",
    "\ufeffthe",
    "👩‍👧 🏳️‍🌈 👍🏽 🇩🇪 1️⃣ ☺︎",
    "漢字かな交じり文、한국어 text。𠀀𪛟 豈",
    "السَّلَامُ عَلَيْكُمْ، שָׁלוֹם",
    "e\u0301 é \u1e69 s\u0323\u0307 s\u0307\u0323 Å Å ǆ ﬁ",
    "q\u0307\u0323\u0334\u0345 a\u0345\u0334\u302e\u1bab 각 ᄀ\u11a8",
    "ΑΣ ὈΔΥΣΣΕΎΣ Σ İI ıi ẞß ﬀ ǅ Ⴀ Ა Ꭰ 𐐀 \U00016ea0",
    "a\r\nb\n\nc\r\td\t\t  e   \n  f ",
    "a\u00a0b\u2003\u2003c\u3000d\u1680e\u2028f\u202fg\x1ch\x0bi\x0cj\u180ek",
    "١٢٣ ४५६ 789 Ⅷ ½ ² ৳ 𝟘 ①1a",
    "<pad> [PAD] [MASK] [UNK]Ġ ##a ## [CLS]the[SEP] <|endoftext|>",
    "do not n't 's 've , . ' ! ?",
    "a_b-c++d ___ … “q” ‘s’ $^`+|~ ¿no? €5",
    "ab" * 51 + " " + "the" * 40,
    "the " * 60 + " " * 40 + "\n" * 30,
    "".join(map(chr, range(256))),
]
HALVES = ["\ud800", "a\udc80b\udcff", "\udfff\ud83d a", "😀\ud83d"]
MOST = "".join(random.Random(1).choices("thecatsondg éß漢😀", k=10_000))  # 10,000 letters
LONG = [MOST, MOST.replace(" ", ""), "a" * 10_000, " " * 9_999 + "a"]


@cache
def every_text():
    """All of these and random ones, drawn when a test asks for them: each process imports each file of tests."""
    drawn = []

    @settings(max_examples=300, derandomize=True, database=None, deadline=None)
    @given(st.text() | st.text("aàÀ\u0301\u0334Σ's 1½\t\n漢😀.,_\0\xa0\u0345", max_size=30))
    def collect_random_texts(written):
        drawn.append(written)

    collect_random_texts()
    return [*HOSTILE, *LONG, *drawn]


def bpe_with_normalizer(normalizer, texts=STORY, size=330):
    """Byte pairs, which show all that a normalizer does."""
    return changed(train_bpe(texts, size), normalizer=normalizer)


def bpe_joining(signs):
    """Byte pairs of each of these signs with any byte: what stands in one word is seen."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(sign, byte) for sign in signs for byte in alphabet]
    vocab = {token: index for index, token in enumerate([*subwords.SPECIAL_TOKENS, *alphabet, *map("".join, pairs)])}
    return changed(train_bpe(STORY, 330), model=models.BPE(vocab, pairs))


ODD = [
    *subwords.SPECIAL_TOKENS,
    *"a##b .?!,'",
    "##.",
    "##'s",
    "n't",
    "'m",
    "'s",
    "'ve",
    "'re",
    " ' ",
    "do not",
    " do not",
]
MAKERS = {
    "characters": lambda: CharacterTokenizer.from_text("".join(every_text() + HALVES)),
    "few characters": lambda: CharacterTokenizer("the ca😀\ud83d\n"),
    "bytes": ByteTokenizer,
    "bpe": lambda: train_bpe([*STORY, *HOSTILE], 600),
    "lower bpe": lambda: train_bpe([*STORY, MOST], 700, lower=True),
    "wordpiece": lambda: train_wordpiece([*STORY, *HOSTILE], 900),
    "cased wordpiece": lambda: train_wordpiece(STORY, 150, lower=False),
    "whole words": lambda: train_whole_words([*STORY, *HOSTILE]),
    "lower words": lambda: train_whole_words(STORY, 20, lower=True),
    "letters": lambda: train_characters([*STORY, *HOSTILE]),
    "few letters": lambda: train_characters(STORY, 20),
    "accents kept": lambda: bpe_with_normalizer(normalizers.BertNormalizer(lowercase=True, strip_accents=False)),
    "accents only": lambda: bpe_with_normalizer(
        normalizers.BertNormalizer(False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    ),
    "not tidied": lambda: changed(built("wordpiece"), decoder=decoders.WordPiece(prefix="##", cleanup=False)),
    "odd pieces": lambda: changed(
        built("wordpiece"), model=models.WordPiece({token: at for at, token in enumerate(dict.fromkeys(ODD))})
    ),
    "no decoder": lambda: changed(built("wordpiece"), decoder=None),
}
built = cache(lambda name: MAKERS[name]())
every = pytest.mark.parametrize("vocab", MAKERS, indirect=True)


@pytest.fixture
def vocab(request):
    return built(request.param)


def units(written):
    raw = written.encode("utf-16-le", "surrogatepass")
    return [low + 256 * high for low, high in zip(raw[::2], raw[1::2])]


def run_page(node, plain, texts=(), rows=(), shown=()):
    """What a page makes of these texts; of these rows of ids, as texts; and of others, as words."""
    given = {"described": plain, "texts": [units(written) for written in texts], "rows": rows, "shown": shown}
    node.load("text/make-tokenizer")
    return json.loads(node.evaluate(ASK, json.dumps(given)))


def encode_or_none(vocab, written):
    try:
        return vocab.encode(written).tolist()
    except ValueError:
        return None


def decoded(vocab, ids):
    return units(vocab.decode(torch.tensor(ids, dtype=torch.long)))


def words(vocab, ids):
    return [units(word) for word in vocab.tokens(torch.tensor(ids, dtype=torch.long))]


def errors_to_none(answers):
    return [None if isinstance(answer, str) and answer.startswith("Error: ") else answer for answer in answers]


@every
def test_vocabulary_matches_python(vocab, node):
    draws, size, texts = random.Random(2), len(vocab), every_text() + HALVES
    shown = [list(range(size)), *([draws.randrange(size) for _ in range(draws.randrange(30))] for _ in range(300))]
    ids = [encode_or_none(vocab, written) for written in texts]
    rows = [*shown, *(row for row in ids if row is not None)]
    told = run_page(node, vocab.to_spec(), texts, rows, shown)
    for written, here, there in zip(texts, ids, errors_to_none(told["ids"]), strict=True):
        assert (written, there) == (written, here)
    assert told["texts"] == [decoded(vocab, row) for row in rows]
    assert told["words"] == [words(vocab, row) for row in shown]
    assert told["size"] == size
    assert any(row for row in ids if row)


def test_encode_matches_python_for_all_code_points(node):
    """Each code point between others, and with marks that go before or behind it; of ideographs and the like, some."""
    dense = numpy.r_[0:0x3400, 0xA000:0xAC00, 0xD7A0:0xD800, 0xF900:0x17000, 0x1AFF0:0x20000, 0xE0000:0xE0200]
    codes = sorted({*dense.tolist(), *range(0, 0x110000, 61)} - {*range(0xD800, 0xE000)})
    parts = [codes[start : start + 2000] for start in range(0, len(codes), 2000)]
    marked, alone = "a{0}\u0301\u0334{0}1 \u0345{0}", "a{0}1 "
    bert = bpe_with_normalizer(normalizers.BertNormalizer(lowercase=True), size=264)
    some = (
        (bert, marked),
        (bpe_joining("a1."), "a{0} 1{0} .{0} "),
        (built("lower words"), alone),
        (changed(built("wordpiece"), normalizer=None), alone),
    )
    for vocab, frame in some:
        texts = ["".join(frame.format(chr(code)) for code in part) for part in parts]
        told = run_page(node, vocab.to_spec(), texts)["ids"]
        for part, written, ids in zip(parts, texts, told, strict=True):
            assert ids == vocab.encode(written).tolist(), f"from U+{part[0]:04X} to U+{part[-1]:04X}"


@every
def test_special_tokens_match_python(vocab, node):
    told = run_page(node, vocab.to_spec())["special"]
    names = ["pad", "unk", "bos", "eos", "cls", "sep", "mask"]
    assert told == (
        {} if vocab.__class__ is not SubwordTokenizer else {name: index for index, name in enumerate(names)}
    )
    assert [vocab[token] for token in subwords.SPECIAL_TOKENS] == list(told.values()) if told else True


def test_invalid_ids_and_lone_surrogates_return_errors(node):
    few, given = built("few characters"), [[9], [-1], [0.5], ["0"], [None], [0, 8]]
    told = run_page(node, few.to_spec(), ["the b"], given, given)
    assert told["ids"] == ['Error: the character "b" (U+0062) at place 4 is not among the 9 of this tokenizer']
    for kind, expected in (("texts", decoded(few, [0, 8])), ("words", words(few, [0, 8]))):
        *wrong, right = told[kind]
        assert right == expected
        assert wrong == [
            f"Error: id {name} is not one of the 9 tokens, 0 to 8" for name in ("9", "-1", "0.5", "0", "null")
        ]
    assert run_page(node, {"kind": "bytes"}, ["\ud800"])["ids"] == [
        'Error: the character "\\ud800" (U+D800) is half of a character, which has no bytes'
    ]


def spec_change(name, change):
    def changes(plain):
        change(plain)
        return plain

    return pytest.param(name, changes, id=f"{name}: {change.__name__}")


def merges_backwards(plain):
    merges = plain["model"]["merges"]
    plain["model"]["merges"] = [id for start in range(len(merges) - 3, -1, -3) for id in merges[start : start + 3]]


def no_normalizer(plain):
    plain["normalizers"].pop()


def no_marks(plain):
    plain["normalizers"][2]["marks"] = []


def nothing_decomposed(plain):
    plain["normalizers"][2]["moving"] = []


def no_spaces(plain):
    plain["splitter"]["spaces"] = []


def no_signs(plain):
    plain["splitter"]["signs"] = []


def all_words_long(plain):
    plain["model"]["longest"] = 2


def no_silence(plain):
    plain["silent"] = []


def all_seen(plain):
    plain["hexadecimal"] = []


@pytest.mark.parametrize(
    ("vocab", "change"),
    [
        *(spec_change("bpe", change) for change in (merges_backwards, no_spaces, no_silence, all_seen)),
        *(spec_change("wordpiece", change) for change in (no_normalizer, no_marks, nothing_decomposed, all_words_long)),
        *(spec_change("whole words", change) for change in (no_signs, no_silence)),
        spec_change("lower bpe", no_normalizer),
    ],
    indirect=["vocab"],
)
def test_each_part_of_spec_affects_result(vocab, change, node):
    right, given = vocab.to_spec(), (HOSTILE, [[index] for index in range(len(vocab))], [list(range(len(vocab)))])
    assert run_page(node, right, *given) != run_page(node, change(deepcopy(right)), *given)


def test_special_token_unknown_to_model_encodes_as_unk(node):
    tokenizer = Tokenizer.from_str(built("whole words").backend_tokenizer.to_str())
    tokenizer.add_special_tokens(["zebra"])
    vocab = SubwordTokenizer(tokenizer)
    assert vocab.encode("zebra").tolist() == run_page(node, vocab.to_spec(), ["zebra"])["ids"][0] == [subwords.UNK]
