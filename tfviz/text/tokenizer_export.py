"""Export of a `tokenizers.Tokenizer` as plain values, from which a page encodes and decodes in the same way.

A browser may implement another version of Unicode than `tokenizers`. The sets of letters, spaces, marks and so on are
therefore exported, too, as `tokenizers` classifies them. A set of characters is a list of run lengths, alternately
outside and inside the set, from U+0000; the last run extends to the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy

ADVICE = "make it with text.train_bpe, train_wordpiece, train_whole_words or train_characters, or use it in Python"
# The code points to classify. Each gap has code points of one kind: surrogates (in no text), unassigned, or private use
CODE_POINTS = numpy.r_[0:0xD800, 0xE000:0x34000, 0x3FFF0:0x40010, 0xDFFF0:0xE1000, 0xEFFF0:0xF0010, 0xFFFF0:0x100010]
CODE_POINTS = numpy.r_[CODE_POINTS, 0x10FFF0:0x110000]
SUPPORTED_KINDS = {  # part of a tokenizer -> kinds that a page supports
    "normalizer": ("None", "Sequence", "Lowercase", "BertNormalizer"),
    "pre_tokenizer": ("ByteLevel", "BertPreTokenizer", "Whitespace", "Split"),
    "model": ("BPE", "WordPiece", "WordLevel"),
    "decoder": ("None", "Fuse", "ByteLevel", "WordPiece"),
}
REQUIRED_SETTINGS: dict[str, dict[str, Any]] = {  # kind -> settings that must have this value
    "BPE": {
        **dict.fromkeys(("dropout", "continuing_subword_prefix", "end_of_word_suffix")),
        **dict.fromkeys(("byte_fallback", "ignore_merges"), False),
    },
    "ByteLevel": {"add_prefix_space": False, "use_regex": True},
    "Split": {"pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False},
}


def tokenizer_spec(tokenizer: Any) -> dict[str, Any]:
    """Return a tokenizer's tokens and its stages (normalizers, splitter, model, joiner) as plain values.

    Raises:
        ValueError: the tokenizer has a part that pages do not support.
    """
    parts = json.loads(tokenizer.to_str())
    tokens = [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())]
    if None in tokens:
        raise _unsupported_error(f"no token has the id {tokens.index(None)}")
    for name in ("truncation", "padding"):
        if parts[name] is not None:
            raise _unsupported_error(f"it has {name}", f"take that away with tokenizer.no_{name}()")
    for added in parts["added_tokens"]:
        if not added["special"]:
            raise _unsupported_error(f"the added token {added['content']!r} is not a special one")
    spec = {
        "tokens": tokens,
        "silent": [added["id"] for added in parts["added_tokens"]],
        "normalizers": _normalizers(parts["normalizer"]),
        "splitter": _splitter(parts["pre_tokenizer"]),
        "model": _model(parts["model"], tokenizer.get_vocab(with_added_tokens=False), parts["pre_tokenizer"]["type"]),
        "joiner": _joiner(parts["decoder"]),
    }
    return deepcopy(spec)  # callers may change the result, and the sets of characters are cached


def _unsupported_error(reason: str, advice: str = ADVICE) -> ValueError:
    return ValueError(f"a page cannot encode as this tokenizer does, since {reason}; {advice}")


def _supported_type(part: Any, name: str) -> str:
    """Return the type of a part; raise ValueError unless a page supports it with these settings."""
    kind = part["type"] if part else "None"
    if kind not in SUPPORTED_KINDS[name]:
        raise _unsupported_error(f"its {name} is {kind}")
    for key, value in REQUIRED_SETTINGS.get(kind, {}).items():
        if name != "decoder" and part.get(key, value) != value:
            raise _unsupported_error(f"its {name} {kind} has {key} = {part[key]!r}")
    return kind


def _normalizers(part: Any) -> list[dict[str, Any]]:
    kind = _supported_type(part, "normalizer")
    if kind == "Sequence":
        return [step for inner in part["normalizers"] for step in _normalizers(inner)]
    if kind == "Lowercase":
        return [_lower_case()]
    if kind == "None":
        return []
    accents = part["lowercase"] if part["strip_accents"] is None else part["strip_accents"]
    enabled = part["clean_text"], part["handle_chinese_chars"], accents, part["lowercase"]
    return [step() for step, is_on in zip((_clean, _isolate_chinese, _strip_accents, _lower_case), enabled) if is_on]


def _splitter(part: Any) -> dict[str, Any]:
    kind = _supported_type(part, "pre_tokenizer")
    if kind == "ByteLevel":
        return _byte_words()
    return {"kind": "letters"} if kind == "Split" else _words_and_signs(kind)


def _model(part: dict[str, Any], vocab: dict[str, int], splitter: str) -> dict[str, Any]:
    from tokenizers import pre_tokenizers

    kind = _supported_type(part, "model")
    if (kind == "BPE") != (splitter == "ByteLevel"):
        raise _unsupported_error(f"its model {kind} follows the pre_tokenizer {splitter}")
    if kind == "BPE":
        if missing := [sign for sign in pre_tokenizers.ByteLevel.alphabet() if sign not in vocab]:
            raise _unsupported_error(f"it lacks {len(missing)} of the 256 bytes")
        merges = [(vocab[left], vocab[right], vocab[left + right]) for left, right in part["merges"]]
        return {"kind": "bpe", "merges": [index for merge in merges for index in merge]}
    unknown = vocab.get(part["unk_token"])
    if unknown is None:
        raise _unsupported_error(f"its unknown token, {part['unk_token']!r}, is not in its vocabulary")
    words = {"kind": "words", "unknown": unknown, "ids": sorted(vocab.values())}
    if kind == "WordLevel":
        return words
    inside, longest = part["continuing_subword_prefix"], part["max_input_chars_per_word"]
    return words | {"kind": "wordpiece", "inside": inside, "longest": longest}


def _joiner(part: Any) -> dict[str, Any]:
    kind = _supported_type(part, "decoder")
    if kind == "WordPiece":
        return {"kind": "pieces", "inside": part["prefix"], "cleanup": part["cleanup"]}
    return {"kind": {"None": "spaces", "Fuse": "letters", "ByteLevel": "bytes"}[kind]}


@cache
def _byte_words() -> dict[str, Any]:
    """Return the character sets by which GPT-2's pre-tokenizer splits: letters, numbers and white space."""
    from tokenizers import Regex, pre_tokenizers

    outside = {"letters": r"\P{L}+", "numbers": r"\P{N}+", "spaces": r"\S+"}
    sets = {name: _accepted_code_points(pre_tokenizers.Split(Regex(rule), "removed")) for name, rule in outside.items()}
    return {"kind": "bytes", **sets}


@cache
def _words_and_signs(kind: str) -> dict[str, Any]:
    """Return the characters that form words together, and those that each form a word of their own."""
    from tokenizers import pre_tokenizers

    rule = getattr(pre_tokenizers, kind)()
    page_kind = {"Whitespace": "words", "BertPreTokenizer": "bert"}[kind]
    return {"kind": page_kind, "words": _accepted_code_points(rule, 1), "signs": _accepted_code_points(rule, 2)}


@cache
def _lower_case() -> dict[str, Any]:
    """Return the lower-case mapping as runs: first letter, count, step between letters, shift to lower case."""
    from tokenizers import normalizers

    lowered = dict(zip(CODE_POINTS.tolist(), _normalized(normalizers.Lowercase())))
    changed = {code: small for code, small in lowered.items() if small != chr(code)}
    runs: list[list[int]] = []
    for code, shift in [(code, ord(small) - code) for code, small in changed.items() if len(small) == 1]:
        first, count, step, run_shift = runs[-1] if runs else (0, 0, 0, 0)
        if shift == run_shift and (count == 1 or code == first + count * step):
            runs[-1] = [first, count + 1, code - first if count == 1 else step, shift]
        else:
            runs.append([code, 1, 1, shift])
    longer = {chr(code): small for code, small in changed.items() if len(small) != 1}
    return {"kind": "lower", "runs": [number for run in runs for number in run], "longer": longer}


@cache
def _clean() -> dict[str, Any]:
    cleaned = _normalized(_bert_step("clean_text"))
    gone, spaces = [text == "" for text in cleaned], [text == " " for text in cleaned]
    return {"kind": "clean", "gone": _run_lengths(gone), "spaces": _run_lengths(spaces)}


@cache
def _isolate_chinese() -> dict[str, Any]:
    spaced = _normalized(_bert_step("handle_chinese_chars"))
    return {"kind": "apart", "signs": _run_lengths([len(text) == 3 for text in spaced])}


@cache
def _strip_accents() -> dict[str, Any]:
    """Return the marks to remove, and the characters to decompose or reorder first; all others are unchanged."""
    from tokenizers import normalizers

    nfd: Callable[[str], str] = normalizers.NFD().normalize_str
    # NFD moves U+0334 before all marks that attach elsewhere, and U+0345 after them
    moving = [
        nfd(f"{sign}\u0334")[0] != sign or nfd(f"\u0345{sign}")[0] != "\u0345"
        for sign in map(chr, CODE_POINTS.tolist())
    ]
    marks = [text == "" for text in _normalized(_bert_step("strip_accents"))]
    return {"kind": "accents", "moving": _run_lengths(moving), "marks": _run_lengths(marks)}


def _bert_step(name: str) -> Any:
    """Return BERT's normalizer with only one of its steps."""
    from tokenizers import normalizers

    steps = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    return normalizers.BertNormalizer(**steps | {name: True})


def _normalized(normalizer: Any) -> list[str]:
    return [normalizer.normalize_str(chr(code)) for code in CODE_POINTS.tolist()]


def _accepted_code_points(splitter: Any, count: int = 0) -> list[int]:
    """Return the run lengths of the characters that a splitter keeps, or that form `count` words after "a"."""
    inside = numpy.zeros(len(CODE_POINTS), dtype=bool)
    for span, (start, stop) in splitter.pre_tokenize_str("".join(map(chr, CODE_POINTS.tolist()))):
        inside[start:stop] = not count or len(splitter.pre_tokenize_str("a" + span[0])) == count
    return _run_lengths(inside)


def _run_lengths(inside: Any) -> list[int]:
    """Return the lengths of the runs of code points outside and inside a set, alternating."""
    turns = numpy.flatnonzero(numpy.diff(numpy.asarray(inside, dtype=int), prepend=0))
    return numpy.diff(CODE_POINTS[turns], prepend=0).tolist()
