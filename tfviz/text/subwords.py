"""Encode text as pieces of words and back, through a tokenizer of `tokenizers`."""

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

__all__ = ["BOS", "CLS", "EOS", "MASK", "PAD", "SEP", "SPECIAL_TOKENS", "UNK", "Subwords", "as_tokenizer"]

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, BOS, EOS, CLS, SEP, MASK = range(len(SPECIAL_TOKENS))  # their ids, in every tokenizer built here
SPECIAL_TOKEN_NAMES = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")  # their names in transformers, and in a page
CHECKSUM_KEY = "sha256"  # of the rest of the file; in its part `model`, where `tokenizers` ignores unknown keys
Ids = Iterable[int] | Tensor


def as_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer as `Subwords` of a copy, and any other tokenizer unchanged.

    Args:
        tokenizer: a tokenizer of `tokenizers`, a fast one of transformers, or any other object that encodes.
    """
    if isinstance(tokenizer, Subwords):
        return tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "encode_batch_fast"):
        return tokenizer
    backend = copy.deepcopy(backend)
    backend.no_truncation()  # transformers sets both anew for each call
    backend.no_padding()
    tokens = getattr(tokenizer, "special_tokens_map", {})
    special = {name: tokens[f"{name}_token"] for name in SPECIAL_TOKEN_NAMES if f"{name}_token" in tokens}
    return Subwords(backend, special)


class Subwords:
    """A tokenizer of subwords, which encodes text as ids and back with a `tokenizers.Tokenizer`.

    Train one with `train_bpe`, `train_wordpiece`, `train_whole_words` or `train_characters`, or `load` one from a
    `tokenizer.json`. Encoding adds no special token, and "[MASK]" in a text is six characters; `tokenizer["[MASK]"]` is
    the id of that token.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        special: special tokens by name, where they differ from `SPECIAL_TOKENS`, such as `{"mask": "<mask>"}`; the
            names are `SPECIAL_TOKEN_NAMES`.
    """

    def __init__(self, tokenizer: Any, special: Mapping[str, str] | None = None):
        if not hasattr(tokenizer, "encode_batch_fast"):
            kind = type(tokenizer).__name__
            raise TypeError(
                f"tokenizer is a {kind}; give a tokenizers.Tokenizer, such as a fast one's backend_tokenizer"
            )
        self.backend_tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # as text; a file does not keep this
        self._labels = TokenLabels(tokenizer)
        self._counted = (0, 0)  # tokens, and one more than the highest id
        for name, token in (special or {}).items():
            if name not in SPECIAL_TOKEN_NAMES:
                raise ValueError(f"special names {name!r}; it can name {', '.join(SPECIAL_TOKEN_NAMES)}")
            if tokenizer.token_to_id(token) is None:
                raise ValueError(f"special says that {name} is {token!r}, which is not one of the tokenizer's tokens")
        self._special = dict(zip(SPECIAL_TOKEN_NAMES, SPECIAL_TOKENS)) | dict(special or {})

    def __len__(self) -> int:
        """Number of ids, from 0 to the highest, including ids without a token."""
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
        return self.encode_all([check_text(text)])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Int[Tensor, "position"]]:
        """Return the ids of many texts, encoded on all cores.

        Raises:
            ValueError: `texts` is a single string, or a text holds a lone surrogate.
        """
        if isinstance(texts, str):
            raise ValueError("one string where many texts are meant; give a list, or take encode")
        texts = [check_text(text, f"texts[{place}]") for place, text in enumerate(texts)]
        try:
            rows = self.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError as error:  # its word for half of a pair, which Python's strings can hold
            raise ValueError("one of the texts has a lone surrogate, U+D800 to U+DFFF, which is not text") from error
        return [torch.tensor(row.ids, dtype=torch.long) for row in rows]

    def decode(self, ids: Ids) -> str:
        """Return the text of these ids, without special tokens."""
        return self.backend_tokenizer.decode(list(check_ids(ids, len(self))), skip_special_tokens=True)

    def pieces(self, ids: Ids) -> Iterator[str]:
        """Yield the text of ids one by one, as soon as it is known."""
        with extra("lessons"):
            from tokenizers.decoders import DecodeStream

        stream, seen, length = DecodeStream(skip_special_tokens=True), list[int](), 0
        for index in check_ids(ids, len(self)):
            seen.append(index)
            if piece := stream.step(self.backend_tokenizer, index):
                length += len(piece)
                yield piece
        if rest := self.decode(seen)[length:]:  # bytes of a character that never became complete
            yield rest

    def tokens(self, ids: Ids) -> list[str]:
        """Return a visible label for each id, for the axes of a picture: `␣` for a space, `##` inside a word."""
        return [self._labels.id_label(index) for index in check_ids(ids, len(self))]

    @validated
    def spans(self, text: str) -> list[int]:
        """Return, for each token of `text`, the number of its word; words are separated by white space.

        White space belongs to the word after it, as in tokens that hold both, or to the last word at the end.
        """
        ends = [word.end() for word in re.finditer(r"\S+", text)]
        offsets = self.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        return [max(0, min(bisect(ends, start), len(ends) - 1)) for start, _ in offsets]

    def merges(self) -> list[tuple[str, str]]:
        """Return the pairs that byte-pair encoding merged, in the order learned; labelled as in `tokens`."""
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
        """Return plain values from which a page decodes, for tokenizers that encode in Python only."""
        return {**decoding_spec(self.backend_tokenizer), "special": self._special_ids()}

    def _special_ids(self) -> dict[str, int]:
        """Return the ids of the special tokens that exist, by purpose."""
        ids = {name: self.backend_tokenizer.token_to_id(token) for name, token in self._special.items()}
        return {name: index for name, index in ids.items() if index is not None}

    @validated
    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json`, readable by any library based on `tokenizers`, with a checksum of its content.

        Args:
            path: the file, or a folder for it.
        """
        content = json.loads(self.backend_tokenizer.to_str())
        content["model"][CHECKSUM_KEY] = _checksum(content)
        with atomic(_tokenizer_path(path)) as draft:
            draft.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8", newline="\n")

    @classmethod
    @validated
    def load(cls, path: str | Path) -> Subwords:
        """Read a tokenizer from a `tokenizer.json`, or from a folder that contains one.

        Raises:
            FileNotFoundError: there is no such file, but perhaps a pipe.
            ValueError: the file is damaged: it is not JSON, not a tokenizer, or differs from what `save` wrote. Files
                from other programs have no checksum and are accepted if they can be read.
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
        except Exception as error:  # `tokenizers` has no other class for its own
            raise ValueError(f"{file} is damaged, or not a tokenizer.json: {error}; build or fetch it again") from error


def _tokenizer_path(path: str | Path) -> Path:
    if not str(path):
        raise ValueError("path is empty; give the name of a file, or a folder for tokenizer.json")
    place = Path(os.path.expanduser(path))
    return place / "tokenizer.json" if place.is_dir() else place


def _checksum(content: Any) -> str:
    """Return the SHA-256 of the values, which does not depend on indentation."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
