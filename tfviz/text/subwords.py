"""Vocabularies built on the reader's text: byte-pair encoding, WordPiece, whole words, letters (on `tokenizers`)."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz.shapes import Int
from tfviz.text.tokens import SIGNS, known

SPECIALS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, BOS, EOS, CLS, SEP, MASK = range(len(SPECIALS))  # their ids, in every vocabulary built here
Ids = Iterable[int] | Tensor


class Subwords:
    """Text to ids and back through a `tokenizers.Tokenizer`.

    Build one with `bpe`, `wordpiece`, `whole_words` or `letters`, or `load` one from a `tokenizer.json`. Encoding
    adds no special token, and "[MASK]" in a text is six characters; `vocab["[MASK]"]` is the id of the special token.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # as text; a file does not keep this
        self._on_bytes = tokenizer.decoder is not None and tokenizer.decoder.decode(["Ġ"]) == " "

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.tokenizer.model).__name__}, {len(self):,} tokens)"

    def __getitem__(self, token: str) -> int:
        index = self.tokenizer.token_to_id(token)
        if index is None:
            there = [special for special in SPECIALS if self.tokenizer.token_to_id(special) is not None]
            raise KeyError(f"{token!r} is not one of the {len(self):,} tokens; of the special ones there are {there}")
        return index

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """The ids of a text."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Int[Tensor, "position"]]:
        """The ids of many texts, on all cores."""
        if isinstance(texts, str):
            raise ValueError("one string where many texts are meant; give a list, or take encode")
        rows = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [torch.tensor(row.ids, dtype=torch.long) for row in rows]

    def decode(self, ids: Ids) -> str:
        """The text of these ids, without special tokens."""
        return self.tokenizer.decode(list(known(ids, len(self))), skip_special_tokens=True)

    def pieces(self, ids: Ids) -> Iterator[str]:
        """The text of ids that come one by one, as soon as it is known."""
        from tokenizers.decoders import DecodeStream

        stream, seen, given = DecodeStream(skip_special_tokens=True), list[int](), 0
        for index in known(ids, len(self)):
            seen.append(index)
            if piece := stream.step(self.tokenizer, index):
                given += len(piece)
                yield piece
        yield from filter(None, [self.decode(seen)[given:]])  # bytes of a character that never became whole

    def words(self, ids: Ids) -> list[str]:
        """One visible sign for each id, for the axes of a picture; a space is `␣`, and `##` goes on with a word."""
        return [self._visible(self.tokenizer.id_to_token(index)) for index in known(ids, len(self))]

    def spans(self, text: str) -> list[int]:
        """The number of the word that each token of `text` is a piece of, words being set apart by white space.

        A token of white space counts to the word before it, or to the first.
        """
        starts = [word.start() for word in re.finditer(r"\S+", text)]
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return [max(0, bisect(starts, max(start, stop - 1)) - 1) for start, stop in offsets]

    def merges(self) -> list[tuple[str, str]]:
        """The pairs that byte-pair encoding joined, in the order it learned them; readable as `words` are."""
        import json

        pairs = json.loads(self.tokenizer.to_str())["model"].get("merges", [])
        return [(self._visible(left), self._visible(right)) for left, right in pairs]

    def _visible(self, token: str) -> str:
        """A token as text where that can be seen, else its bytes in hexadecimal digits."""
        on_bytes = self._on_bytes and all(sign in _BYTES for sign in token)
        raw = bytes(_BYTES[sign] for sign in token) if on_bytes else token.encode()
        try:
            shown = "".join(SIGNS.get(sign, sign) for sign in raw.decode())
        except UnicodeDecodeError:
            return raw.hex(" ")
        return shown if any(map(str.isprintable, shown)) else raw.hex(" ")

    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json`, which any other library on `tokenizers` reads."""
        self.tokenizer.save(str(path))

    @classmethod
    def load(cls, path: str | Path) -> Subwords:
        """A vocabulary from a `tokenizer.json`, or from a folder that has one."""
        from tokenizers import Tokenizer

        file = Path(path, "tokenizer.json") if Path(path).is_dir() else Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no tokenizer at {file}; it is a file tokenizer.json")
        return cls(Tokenizer.from_file(str(file)))


def bpe(texts: Iterable[str], size: int = 8000, *, lower: bool = False) -> Subwords:
    """Byte-pair encoding on bytes: any text can be written, and is given back exactly (Sennrich et al. 2016).

    Args:
        size: number of tokens, special ones and the 256 bytes among them.
        lower: turn the text to lower case first.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase() if lower else normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(**_asked(size, len(alphabet)), initial_alphabet=alphabet)
    return _train(tokenizer, trainer, texts)


def wordpiece(texts: Iterable[str], size: int = 8000, *, lower: bool = True) -> Subwords:
    """WordPiece as in BERT (Devlin et al. 2019): words and signs, in pieces that begin with `##` inside a word.

    `size` counts the special tokens and every letter, alone and inside a word; `lower` takes accents away, too.
    """
    from tokenizers import models, trainers

    texts, rules = _given(texts), _bert(models.WordPiece(), lower)
    alone, inside = _alphabet(rules, texts)
    asked = _asked(size, len(alone) + len(inside))
    # The trainer numbers letters inside words as its hash table has them, another way each time, unless "special"
    asked["special_tokens"] += [f"##{letter}" for letter in inside]
    rules.train_from_iterator(texts, trainers.WordPieceTrainer(**asked))
    tokenizer = _bert(models.WordPiece(rules.get_vocab(), unk_token="[UNK]"), lower)
    tokenizer.add_special_tokens(list(SPECIALS))
    return Subwords(tokenizer)


def whole_words(texts: Iterable[str], size: int = 30_000, *, lower: bool = False) -> Subwords:
    """The `size` most frequent words and runs of other signs; any other is `[UNK]`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase() if lower else normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return _train(tokenizer, trainers.WordLevelTrainer(**_asked(size)), texts)


def letters(texts: Iterable[str], size: int = 1000) -> Subwords:
    """The `size` most frequent characters, a token each."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return _train(tokenizer, trainers.WordLevelTrainer(**_asked(size)), texts)


def _asked(size: int, needed: int = 0) -> dict[str, Any]:
    least = len(SPECIALS) + needed + 1
    if size < least:
        raise ValueError(f"a vocabulary of {size} tokens is too small; {least - 1} are taken already: ask for {least}")
    return {"vocab_size": size, "special_tokens": list(SPECIALS), "show_progress": False}


def _given(texts: Iterable[str]) -> list[str]:
    texts = [texts] if isinstance(texts, str) else list(texts)
    if not any(text.strip() for text in texts):
        raise ValueError("there is no text to build a vocabulary of")
    return texts


def _train(tokenizer: Any, trainer: Any, texts: Iterable[str]) -> Subwords:
    tokenizer.train_from_iterator(_given(texts), trainer)
    return Subwords(tokenizer)


def _bert(model: Any, lower: bool) -> Any:
    """A tokenizer that cleans and splits text as BERT does."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _alphabet(rules: Any, texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """The letters of which words are made, and those among them that can stand inside one."""

    def words(text: str) -> list[tuple]:
        return rules.pre_tokenizer.pre_tokenize_str(rules.normalizer.normalize_str(text))

    letters = sorted({letter for given in set().union(*texts) for word, _ in words(given) for letter in word})
    return letters, [letter for letter in letters if len(words("a" + letter)) == 1]


def _byte_signs() -> dict[str, int]:
    """Byte-level BPE writes each byte as one printable sign: itself where it is one, else one from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


_BYTES = _byte_signs()
