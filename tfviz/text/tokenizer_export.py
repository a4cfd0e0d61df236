"""A `tokenizers.Tokenizer` in plain values, from which a page encodes and decodes as it does.

Unicode grows every year, and a reader's browser may know another edition of it than `tokenizers` does. So the
characters that are letters, spaces, marks and so on come along, as `tokenizers` itself takes them. A set of characters
is a list of lengths: so many code points outside, so many inside, and so on, from U+0000; the last goes on to the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy

REMEDY = "make it with text.bpe, text.wordpiece, text.whole_words or text.letters, or use it in Python"
# The code points to ask about. All between is alike: surrogates, which are in no text; unassigned ones; private ones
CODES = numpy.r_[0:0xD800, 0xE000:0x34000, 0x3FFF0:0x40010, 0xDFFF0:0xE1000, 0xEFFF0:0xF0010, 0xFFFF0:0x100010]
CODES = numpy.r_[CODES, 0x10FFF0:0x110000]
KEYS: dict[str, dict[str, Any]] = {  # part -> its settings that may have this value only, in a page
    "BPE": {
        "dropout": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "byte_fallback": False,
        "ignore_merges": False,
    },
    "ByteLevel": {"add_prefix_space": False, "use_regex": True},
    "Split": {"pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False},
}


def tokenizer_spec(tokenizer: Any) -> dict[str, Any]:
    """The tokens, and what becomes of a text: normalizers, splitter, model, joiner.

    Raises:
        ValueError: a part is one that pages do not know.
    """
    parts = json.loads(tokenizer.to_str())
    tokens = [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())]
    if None in tokens:
        raise _cannot(f"no token has the id {tokens.index(None)}")
    for name in ("truncation", "padding"):
        if parts[name] is not None:
            raise _cannot(f"it has {name}", f"take that away with tokenizer.no_{name}()")
    for added in parts["added_tokens"]:
        if not added["special"]:
            raise _cannot(f"the added token {added['content']!r} is not a special one")
    return {
        "tokens": tokens,
        "silent": [added["id"] for added in parts["added_tokens"]],
        "normalizers": deepcopy(_normalizers(parts["normalizer"])),
        "splitter": deepcopy(_splitter(parts["pre_tokenizer"])),
        "model": _model(parts["model"], tokenizer.get_vocab(with_added_tokens=False), parts["pre_tokenizer"]["type"]),
        "joiner": _joiner(parts["decoder"]),
    }


def _cannot(found: str, remedy: str = REMEDY) -> ValueError:
    return ValueError(f"a page cannot encode as this vocabulary does, since {found}; {remedy}")


def _kind(part: Any, name: str, known: Iterable[str]) -> str:
    """The type of a part, if a page knows it, and knows it with these settings."""
    kind = part["type"] if part else "None"
    if kind not in known:
        raise _cannot(f"its {name} is {kind}")
    for key, value in KEYS.get(kind, {}).items():
        if name != "decoder" and part.get(key, value) != value:
            raise _cannot(f"its {name} {kind} has {key} = {part[key]!r}")
    return kind


def _normalizers(part: Any) -> list[dict[str, Any]]:
    kind = _kind(part, "normalizer", ("None", "Sequence", "Lowercase", "BertNormalizer"))
    if kind == "None":
        return []
    if kind == "Sequence":
        return [step for inner in part["normalizers"] for step in _normalizers(inner)]
    if kind == "Lowercase":
        return [_lower()]
    accents = part["lowercase"] if part["strip_accents"] is None else part["strip_accents"]
    steps = (part["clean_text"], _clean), (part["handle_chinese_chars"], _apart), (accents, _accents)
    return [make() for asked, make in (*steps, (part["lowercase"], _lower)) if asked]


def _splitter(part: Any) -> dict[str, Any]:
    kind = _kind(part, "pre_tokenizer", ("ByteLevel", "BertPreTokenizer", "Whitespace", "Split"))
    made = {"ByteLevel": _byte_words, "BertPreTokenizer": _bert_words, "Whitespace": _words}
    return made[kind]() if kind in made else {"kind": "letters"}


def _model(part: dict[str, Any], own: dict[str, int], splitter: str) -> dict[str, Any]:
    kind = _kind(part, "model", ("BPE", "WordPiece", "WordLevel"))
    if (kind == "BPE") != (splitter == "ByteLevel"):
        raise _cannot(f"its model {kind} follows the pre_tokenizer {splitter}")
    if kind == "BPE":
        from tokenizers import pre_tokenizers

        lacking = [sign for sign in pre_tokenizers.ByteLevel.alphabet() if sign not in own]
        if lacking:
            raise _cannot(f"it lacks {len(lacking)} of the 256 bytes")
        merges = [(own[left], own[right], own[left + right]) for left, right in part["merges"]]
        return {"kind": "pairs", "merges": [index for merge in merges for index in merge]}
    unknown = own.get(part["unk_token"])
    if unknown is None:
        raise _cannot(f"its token for what is unknown, {part['unk_token']!r}, is none of its model's")
    words = {"kind": "words", "unknown": unknown, "ids": sorted(own.values())}
    if kind == "WordLevel":
        return words
    inside, longest = part["continuing_subword_prefix"], part["max_input_chars_per_word"]
    return words | {"kind": "pieces", "inside": inside, "longest": longest}


def _joiner(part: Any) -> dict[str, Any]:
    kind = _kind(part, "decoder", ("None", "Fuse", "ByteLevel", "WordPiece"))
    if kind == "WordPiece":
        return {"kind": "pieces", "inside": part["prefix"], "cleanup": part["cleanup"]}
    return {"kind": {"None": "spaces", "Fuse": "letters", "ByteLevel": "bytes"}[kind]}


@cache
def _byte_words() -> dict[str, Any]:
    """GPT-2's rule speaks of letters, numbers and white space."""
    from tokenizers import Regex, pre_tokenizers

    def runs(given: str) -> list[int]:
        return _spans(pre_tokenizers.Split(Regex(given), "removed"))

    return {"kind": "bytes", "letters": runs(r"\P{L}+"), "numbers": runs(r"\P{N}+"), "spaces": runs(r"\S+")}


@cache
def _words() -> dict[str, Any]:
    from tokenizers import pre_tokenizers

    rule = pre_tokenizers.Whitespace()
    return {"kind": "words", "words": _spans(rule, 1), "signs": _spans(rule, 2)}


@cache
def _bert_words() -> dict[str, Any]:
    from tokenizers import pre_tokenizers

    rule = pre_tokenizers.BertPreTokenizer()
    return {"kind": "bert", "words": _spans(rule, 1), "signs": _spans(rule, 2)}


@cache
def _lower() -> dict[str, Any]:
    """Letters and their lower case, as runs: first, how many, from one to the next, from a letter to its lower case."""
    from tokenizers import normalizers

    found = {code: normalizers.Lowercase().normalize_str(chr(code)) for code in CODES.tolist()}
    changed = {code: small for code, small in found.items() if small != chr(code)}
    runs: list[list[int]] = []
    for code, shift in [(code, ord(small) - code) for code, small in changed.items() if len(small) == 1]:
        first, count, step, same = runs[-1] if runs else (0, 0, 0, 0)
        if shift == same and (count == 1 or code == first + count * step):
            runs[-1] = [first, count + 1, code - first if count == 1 else step, shift]
        else:
            runs.append([code, 1, 1, shift])
    longer = {chr(code): small for code, small in changed.items() if len(small) != 1}
    return {"kind": "lower", "runs": [number for run in runs for number in run], "longer": longer}


@cache
def _clean() -> dict[str, Any]:
    becomes = _normalized(_bert_part("clean_text"))
    gone, spaces = [text == "" for text in becomes], [text == " " for text in becomes]
    return {"kind": "clean", "gone": _runs(gone), "spaces": _runs(spaces)}


@cache
def _apart() -> dict[str, Any]:
    becomes = _normalized(_bert_part("handle_chinese_chars"))
    return {"kind": "apart", "signs": _runs([len(text) == 3 for text in becomes])}


@cache
def _accents() -> dict[str, Any]:
    """The marks that go; and what has to be decomposed before that, or to be put in order: all other stays."""
    from tokenizers import normalizers

    apart = normalizers.NFD().normalize_str
    # U+0334 goes to the front of all marks that attach elsewhere, and U+0345 to the end
    moving = [
        apart(sign) != sign or apart(f"{sign}\u0334")[0] != sign or apart(f"\u0345{sign}")[0] != "\u0345"
        for sign in map(chr, CODES.tolist())
    ]
    marks = [text == "" for text in _normalized(_bert_part("strip_accents"))]
    return {"kind": "accents", "moving": _runs(moving), "marks": _runs(marks)}


def _bert_part(name: str) -> Callable[[str], str]:
    """One step of BERT's normalizer alone."""
    from tokenizers import normalizers

    steps = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    return normalizers.BertNormalizer(**steps | {name: True}).normalize_str


def _normalized(normalize: Callable[[str], str]) -> list[str]:
    return [normalize(chr(code)) for code in CODES.tolist()]


def _spans(rule: Any, count: int = 0) -> list[int]:
    """The characters that are kept; if a count is given, only those that make so many words of one "a" before them."""
    every, inside = "".join(map(chr, CODES.tolist())), numpy.zeros(len(CODES), dtype=bool)
    for span, (start, stop) in rule.pre_tokenize_str(every):
        inside[start:stop] = not count or len(rule.pre_tokenize_str("a" + span[0])) == count
    return _runs(inside)


def _runs(inside: Any) -> list[int]:
    """The lengths of the runs outside and inside, in turn."""
    turns = numpy.flatnonzero(numpy.diff(numpy.asarray(inside, dtype=int), prepend=0))
    return numpy.diff(CODES[turns], prepend=0).tolist()
