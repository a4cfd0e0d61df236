"""Subword tokenizers of the library `tokenizers`, and the special tokens."""

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

from tfviz.extras import extra
from tfviz.files import atomic, read_json
from tfviz.shapes import Int
from tfviz.text.char_tokenizers import check_ids, check_text
from tfviz.text.token_labels import TokenLabels, decoding_spec
from tfviz.text.tokenizer_export import tokenizer_spec
from tfviz.validation import validated

__all__ = ["BOS", "CLS", "EOS", "MASK", "PAD", "SEP", "SPECIAL_TOKENS", "UNK", "SubwordTokenizer", "as_tokenizer"]

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, BOS, EOS, CLS, SEP, MASK = range(len(SPECIAL_TOKENS))  # ids in every tokenizer trained by `tfviz.text`
SPECIAL_TOKEN_NAMES = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")  # names in transformers, and in a page
CHECKSUM_KEY = "sha256"  # key of the file's checksum, in the part `model`, where `tokenizers` ignores it
Ids = Iterable[int] | Tensor


def as_tokenizer(tokenizer: Any) -> Any:
    """Return a copy of a Hugging Face tokenizer, wrapped in `SubwordTokenizer`, or any other tokenizer unchanged.

    Args:
        tokenizer: a `tokenizers.Tokenizer`, a fast tokenizer of transformers, or any other object that encodes.
    """
    if isinstance(tokenizer, SubwordTokenizer):
        return tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "encode_batch_fast"):
        return tokenizer
    backend = copy.deepcopy(backend)
    backend.no_truncation()  # transformers sets both anew for each call
    backend.no_padding()
    tokens = getattr(tokenizer, "special_tokens_map", {})
    special = {name: tokens[f"{name}_token"] for name in SPECIAL_TOKEN_NAMES if f"{name}_token" in tokens}
    return SubwordTokenizer(backend, special)


class SubwordTokenizer:
    """A subword tokenizer, which encodes and decodes text with a `tokenizers.Tokenizer`.

    Train one with `train_bpe`, `train_wordpiece`, `train_whole_words` or `train_characters`, or `load` one from a
    `tokenizer.json`. Encoding adds no special tokens and recognizes none: "[MASK]" in a text is six characters.
    `tokenizer["[MASK]"]` is the id of the special token.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        special: the special tokens that differ from `SPECIAL_TOKENS`, by name, such as `{"mask": "<mask>"}`; the names
            are `SPECIAL_TOKEN_NAMES`.

    Raises:
        TypeError: `tokenizer` is not a `tokenizers.Tokenizer`.
        ValueError: `special` has an unknown name, or a token that the tokenizer lacks.
    """

    def __init__(self, tokenizer: Any, special: Mapping[str, str] | None = None):
        if not hasattr(tokenizer, "encode_batch_fast"):
            kind = type(tokenizer).__name__
            raise TypeError(
                f"tokenizer is a {kind}; give a tokenizers.Tokenizer, such as a fast one's backend_tokenizer"
            )
        self.backend_tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # encode them as ordinary text; a file does not store this
        self._labels = TokenLabels(tokenizer)
        self._counted = (0, 0)  # number of tokens, and the highest id plus one
        for name, token in (special or {}).items():
            if name not in SPECIAL_TOKEN_NAMES:
                raise ValueError(f"special names {name!r}; it can name {', '.join(SPECIAL_TOKEN_NAMES)}")
            if tokenizer.token_to_id(token) is None:
                raise ValueError(f"special says that {name} is {token!r}, which is not one of the tokenizer's tokens")
        self._special = dict(zip(SPECIAL_TOKEN_NAMES, SPECIAL_TOKENS)) | dict(special or {})

    def __len__(self) -> int:
        """Return the number of ids, from 0 to the highest one, including ids without a token."""
        count = self.backend_tokenizer.get_vocab_size()
        if count != self._counted[0]:  # a token was added
            self._counted = count, 1 + max(self.backend_tokenizer.get_vocab().values(), default=-1)
        return self._counted[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backend_tokenizer.model).__name__}, {len(self):,} tokens)"

    def __getitem__(self, token: str) -> int:
        role = dict(zip(SPECIAL_TOKENS, SPECIAL_TOKEN_NAMES)).get(check_text(token, "token"))
        index = self.backend_tokenizer.token_to_id(self._special[role] if role else token)
        if index is None:
            there = [special for special in SPECIAL_TOKENS if self.backend_tokenizer.token_to_id(special) is not None]
            raise KeyError(f"{token!r} is not one of the {len(self):,} tokens; of the special ones there are {there}")
        return index

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """Return the ids of a text."""
        return self.encode_batch([check_text(text)])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Int[Tensor, "position"]]:
        """Return the ids of each text; the texts are encoded in parallel on all cores.

        Raises:
            ValueError: `texts` is a single string, or a text holds a lone surrogate.
        """
        if isinstance(texts, str):
            raise ValueError("texts is one string; give a list of texts, or use encode")
        texts = [check_text(text, f"texts[{index}]") for index, text in enumerate(texts)]
        try:
            rows = self.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError as error:  # what `tokenizers` raises for a lone surrogate
            raise ValueError("one of the texts has a lone surrogate, U+D800 to U+DFFF, which is not text") from error
        return [torch.tensor(row.ids, dtype=torch.long) for row in rows]

    def decode(self, ids: Ids) -> str:
        """Return the text of these ids, without special tokens."""
        return self.backend_tokenizer.decode(list(check_ids(ids, len(self))), skip_special_tokens=True)

    def decode_stream(self, ids: Ids) -> Iterator[str]:
        """Yield the decoded text as the ids arrive, without special tokens; incomplete characters are held back."""
        with extra("lessons"):
            from tokenizers.decoders import DecodeStream

        stream, seen, length = DecodeStream(skip_special_tokens=True), list[int](), 0
        for index in check_ids(ids, len(self)):
            seen.append(index)
            if piece := stream.step(self.backend_tokenizer, index):
                length += len(piece)
                yield piece
        if rest := self.decode(seen)[length:]:  # an incomplete character at the end
            yield rest

    def tokens(self, ids: Ids) -> list[str]:
        """Return a visible label for each id, for the axes of a picture: `␣` for a space, `##` inside a word."""
        return [self._labels.id_label(index) for index in check_ids(ids, len(self))]

    @validated
    def word_ids(self, text: str) -> list[int]:
        """Return the index of the word that contains each token of `text`; words are separated by white space.

        White space belongs to the word after it; at the end of the text, it belongs to the last word.
        """
        ends = [word.end() for word in re.finditer(r"\S+", text)]
        offsets = self.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        return [max(0, min(bisect(ends, start), len(ends) - 1)) for start, _ in offsets]

    def merges(self) -> list[tuple[str, str]]:
        """Return the merges of byte-pair encoding in the order learned, as pairs of labels; none for other models."""
        pairs = json.loads(self.backend_tokenizer.to_str())["model"].get("merges", [])
        return [(self._labels.label(left), self._labels.label(right)) for left, right in pairs]

    def to_spec(self) -> dict[str, Any]:
        """Return plain values from which a page encodes and decodes in the same way; see `tokenizer_export`.

        Raises:
            ValueError: the tokenizer has a part that pages do not support.
        """
        spec = tokenizer_spec(self.backend_tokenizer)
        hexadecimal = [index for index, token in enumerate(spec["tokens"]) if self._labels.printable(token) is None]
        return {"kind": "subwords", **spec, "special": self._special_ids(), "hexadecimal": hexadecimal}

    def to_decoding_spec(self) -> dict[str, Any]:
        """Return plain values from which a page decodes ids, for tokenizers that can encode only in Python."""
        return {**decoding_spec(self.backend_tokenizer), "special": self._special_ids()}

    def _special_ids(self) -> dict[str, int]:
        """Return the ids of the special tokens that the tokenizer has, by `SPECIAL_TOKEN_NAMES`."""
        ids = {name: self.backend_tokenizer.token_to_id(token) for name, token in self._special.items()}
        return {name: index for name, index in ids.items() if index is not None}

    @validated
    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json`, readable by any library based on `tokenizers`, with a checksum of its content.

        Args:
            path: the file, or the folder in which to write `tokenizer.json`.
        """
        content = json.loads(self.backend_tokenizer.to_str())
        content["model"][CHECKSUM_KEY] = _checksum(content)
        with atomic(_tokenizer_path(path)) as draft:
            draft.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8", newline="\n")

    @classmethod
    @validated
    def load(cls, path: str | Path) -> SubwordTokenizer:
        """Read a tokenizer from a `tokenizer.json`, or from a folder that contains one.

        Raises:
            FileNotFoundError: the path is not a regular file.
            ValueError: the file is not JSON, is not a tokenizer, or differs from what `save` wrote. Files from other
                programs have no checksum and are accepted if they can be read.
        """
        with extra("lessons"):
            from tokenizers import Tokenizer

        file = _tokenizer_path(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no tokenizer at {file}; it is a file tokenizer.json")
        content = read_json(file)
        model = content.get("model") if isinstance(content, dict) else None
        checksum = model.pop(CHECKSUM_KEY, None) if isinstance(model, dict) else None
        if checksum is not None and checksum != _checksum(content):
            raise ValueError(f"{file} was altered or is damaged: its checksum is another one; build or fetch it again")
        try:
            return cls(Tokenizer.from_str(json.dumps(content)))
        except Exception as error:  # `tokenizers` raises plain `Exception`
            raise ValueError(f"{file} is damaged, or not a tokenizer.json: {error}; build or fetch it again") from error


def _tokenizer_path(path: str | Path) -> Path:
    if not str(path):
        raise ValueError("path is empty; give the name of a file, or a folder for tokenizer.json")
    location = Path(os.path.expanduser(path))
    return location / "tokenizer.json" if location.is_dir() else location


def _checksum(content: Any) -> str:
    """Return the SHA-256 of JSON values, which does not depend on indentation or on the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
