"""Vocabularies of pieces of words, on `tokenizers`: text to ids and back, written and read with a checksum."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz.doors import door, what
from tfviz.files import atomic, read_json
from tfviz.shapes import Int
from tfviz.text.asked import asked
from tfviz.text.described import described
from tfviz.text.spelling import Spelling
from tfviz.text.tokens import known, string

SPECIALS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, BOS, EOS, CLS, SEP, MASK = range(len(SPECIALS))  # their ids, in every vocabulary built here
NAMES = ("pad", "unknown", "begin", "end", "classification", "separator", "mask")  # the same, as pages call them
THEIRS = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")  # the same, as transformers calls them
SEAL = "sha256"  # of all the rest of the file; it stands in the model, where `tokenizers` skips what it does not know
Ids = Iterable[int] | Tensor


def own(given: Any) -> Any:
    """A tokenizer, of `tokenizers` or a fast one of transformers, as `Subwords` of a copy; anything else as it is."""
    tokenizer = getattr(given, "backend_tokenizer", given)
    if not hasattr(tokenizer, "encode_batch_fast"):
        return given
    copied = copy.deepcopy(tokenizer)
    copied.no_truncation()  # transformers sets both anew for each call
    copied.no_padding()
    called = getattr(given, "special_tokens_map", {})
    special = {name: called[f"{theirs}_token"] for name, theirs in zip(NAMES, THEIRS) if f"{theirs}_token" in called}
    return Subwords(copied, special)


class Subwords:
    """Text to ids and back through a `tokenizers.Tokenizer`.

    Build one with `bpe`, `wordpiece`, `whole_words` or `letters`, or `load` one from a `tokenizer.json`. Encoding
    adds no special token, and "[MASK]" in a text is six characters; `vocab["[MASK]"]` is the id of the special token.

    Args:
        special: what its special tokens are called, where that is not as `NAMES` and `SPECIALS` here have it, such as
            `{"mask": "<mask>"}`.
    """

    def __init__(self, tokenizer: Any, special: Mapping[str, str] | None = None):
        if not hasattr(tokenizer, "encode_batch_fast"):
            kind = type(tokenizer).__name__
            raise TypeError(
                f"tokenizer is a {kind}; give a tokenizers.Tokenizer, such as a fast one's backend_tokenizer"
            )
        self.tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # as text; a file does not keep this
        self._spelling = Spelling(tokenizer)
        self._counted = (0, 0)  # tokens, and one more than the highest id
        for name, token in (special or {}).items():
            if name not in NAMES:
                raise ValueError(f"special names {name!r}; it can name {', '.join(NAMES)}")
            if tokenizer.token_to_id(token) is None:
                raise ValueError(f"special says that {name} is {token!r}, which is none of the tokenizer's tokens")
        self._special = dict(zip(NAMES, SPECIALS)) | dict(special or {})

    def __len__(self) -> int:
        """How many ids there are, from 0 to the highest, also where one between has no token."""
        count = self.tokenizer.get_vocab_size()
        if count != self._counted[0]:  # a token was added
            self._counted = count, 1 + max(self.tokenizer.get_vocab().values(), default=-1)
        return self._counted[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.tokenizer.model).__name__}, {len(self):,} tokens)"

    def __getitem__(self, token: str) -> int:
        if not isinstance(token, str):
            raise TypeError(f"token is {what(token)}; give a string, and words(ids) for the token of an id")
        role = dict(zip(SPECIALS, NAMES)).get(token)
        index = self.tokenizer.token_to_id(self._special[role] if role else token)
        if index is None:
            there = [special for special in SPECIALS if self.tokenizer.token_to_id(special) is not None]
            raise KeyError(f"{token!r} is not one of the {len(self):,} tokens; of the special ones there are {there}")
        return index

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """The ids of a text."""
        return self.encode_all([string(text)])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Int[Tensor, "position"]]:
        """The ids of many texts, on all cores."""
        if isinstance(texts, str):
            raise ValueError("one string where many texts are meant; give a list, or take encode")
        texts = [string(text, f"texts[{place}]") for place, text in enumerate(texts)]
        try:
            rows = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError as error:  # its word for half of a pair, which Python's strings can hold
            raise ValueError("one of the texts has a lone surrogate, U+D800 to U+DFFF, which is no text") from error
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
        tokens = ((index, self.tokenizer.id_to_token(index)) for index in known(ids, len(self)))
        return [f"⟨{index}⟩" if token is None else self._spelling.visible(token) for index, token in tokens]

    @door
    def spans(self, text: str) -> list[int]:
        """The number of the word that each token of `text` is a piece of, words being set apart by white space.

        White space counts to the word after it, as in tokens that hold both, or to the last.
        """
        ends = [word.end() for word in re.finditer(r"\S+", text)]
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return [max(0, min(bisect(ends, start), len(ends) - 1)) for start, _ in offsets]

    def merges(self) -> list[tuple[str, str]]:
        """The pairs that byte-pair encoding joined, in the order it learned them; readable as `words` are."""
        pairs = json.loads(self.tokenizer.to_str())["model"].get("merges", [])
        return [(self._spelling.visible(left), self._spelling.visible(right)) for left, right in pairs]

    def described(self) -> dict[str, Any]:
        """Plain values from which a page encodes, decodes and shows words just as this does (`tfviz.text.described`).

        Raises:
            ValueError: a part of the tokenizer is one that pages do not know.
        """
        plain = described(self.tokenizer)
        unseen = [index for index, token in enumerate(plain["tokens"]) if self._spelling.shown(token) is None]
        return {"kind": "subwords", **plain, "special": self._roles(), "hexadecimal": unseen}

    def asked(self) -> dict[str, Any]:
        """The same of any tokenizer, for a page that asks Python to encode (`tfviz.text.asked`)."""
        return {**asked(self.tokenizer), "special": self._roles()}

    def _roles(self) -> dict[str, int]:
        """The ids of the special tokens that there are, by what they are for."""
        found = {name: self.tokenizer.token_to_id(token) for name, token in self._special.items()}
        return {name: index for name, index in found.items() if index is not None}

    @door
    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json`, which any other library on `tokenizers` reads, with a checksum of what it holds.

        Args:
            path: the file, or a folder for it.
        """
        content = json.loads(self.tokenizer.to_str())
        content["model"][SEAL] = _sum(content)
        with atomic(_file(path)) as draft:
            draft.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")

    @classmethod
    @door
    def load(cls, path: str | Path) -> Subwords:
        """A vocabulary from a `tokenizer.json`, or from a folder that has one.

        Raises:
            FileNotFoundError: there is no such file, but perhaps a pipe.
            ValueError: it is damaged: no JSON, nothing that `tokenizers` takes, or other than what `save` wrote. Files
                of others have no checksum, and are taken if they can be read.
        """
        from tokenizers import Tokenizer

        file = _file(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no tokenizer at {file}; it is a file tokenizer.json")
        content = read_json(file)
        model = content.get("model") if isinstance(content, dict) else None
        seal = model.pop(SEAL, None) if isinstance(model, dict) else None
        if seal is not None and seal != _sum(content):
            raise ValueError(f"{file} was altered or is damaged: its checksum is another one; build or fetch it again")
        try:
            return cls(Tokenizer.from_str(json.dumps(content)))
        except Exception as error:  # `tokenizers` has no other class for its own
            raise ValueError(f"{file} is damaged, or no tokenizer.json: {error}; build or fetch it again") from error


def _file(path: str | Path) -> Path:
    if not str(path):
        raise ValueError("path is empty; give the name of a file, or a folder for tokenizer.json")
    place = Path(os.path.expanduser(path))
    return place / "tokenizer.json" if place.is_dir() else place


def _sum(content: Any) -> str:
    """The same however the file is laid out: another indent is no damage."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
