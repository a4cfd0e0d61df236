"""Character-level and byte-level tokenizers."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy
import torch
from torch import Tensor

from tfviz.schema import describe
from tfviz.shapes import Int
from tfviz.text.token_labels import VISIBLE_SIGNS
from tfviz.validation import validated


class CharacterTokenizer:
    """A character-level tokenizer; the id of a character is its index in `characters`.

    >>> tokenizer = CharacterTokenizer.from_text("the cat")
    >>> tokenizer.encode("cat").tolist(), len(tokenizer)
    ([2, 1, 5], 6)
    >>> tokenizer.decode(tokenizer.encode("the cat"))
    'the cat'
    """

    def __init__(self, characters: str):
        if not characters:
            raise ValueError("the text is empty; a tokenizer needs at least one character")
        if len(set(characters)) != len(characters):
            raise ValueError(
                "the characters of a tokenizer must all differ; build one of a text with CharacterTokenizer.from_text"
            )
        self.characters = characters
        self._points = _code_points(characters)
        self._order = numpy.argsort(self._points)

    @classmethod
    @validated
    def from_text(cls, text: str) -> CharacterTokenizer:
        """Build a tokenizer of all characters in `text`, in code-point order."""
        return cls("".join(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.characters)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.characters!r})"

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """Return the id of each character.

        Raises:
            ValueError: a character is not in the vocabulary; the message names the first one.
        """
        points = _code_points(check_text(text))
        slots = numpy.searchsorted(self._points, points, sorter=self._order)
        ids = self._order[numpy.minimum(slots, len(self) - 1)]
        unknown = numpy.flatnonzero(self._points[ids] != points)
        if len(unknown):
            index, character = int(unknown[0]), text[unknown[0]]
            raise ValueError(
                f"character {character!r} (U+{ord(character):04X}) at place {index} is not among the {len(self)} of "
                "this tokenizer; build it from a text that has it, or use ByteTokenizer, which has everything"
            )
        return torch.from_numpy(ids)

    def decode(self, ids: Int[Tensor, "position"]) -> str:
        """Return the text of these ids."""
        return "".join(self.decode_stream(ids))

    def decode_stream(self, ids: Iterable) -> Iterator[str]:
        """Yield the character of each id, as the ids arrive."""
        return (self.characters[index] for index in check_ids(ids, len(self)))

    def tokens(self, ids: Int[Tensor, "position"]) -> list[str]:
        """Return a visible label for each id, for the axes of a picture."""
        return [VISIBLE_SIGNS.get(character, character) for character in self.decode(ids)]

    def to_spec(self) -> dict[str, Any]:
        """Return plain values from which a page encodes and decodes in the same way."""
        return {"kind": "characters", "tokens": list(self.characters)}


class ByteTokenizer:
    """A byte-level tokenizer, whose ids are the bytes of UTF-8; it encodes any text and needs no training.

    >>> ByteTokenizer().encode("né").tolist(), ByteTokenizer().tokens(ByteTokenizer().encode("né!"))
    ([110, 195, 169], ['n', 'c3', 'a9', '!'])
    """

    def __len__(self) -> int:
        return 256

    def __repr__(self) -> str:
        return "ByteTokenizer()"

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """Return the bytes of `text` in UTF-8; U+DC80 to U+DCFF stand for bytes, as in Python's `surrogateescape`.

        Raises:
            ValueError: the text holds another lone surrogate.
        """
        try:
            raw = check_text(text).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            raise ValueError(f"character {error.start} is U+{code:04X}, a lone surrogate, which is not text") from error
        return torch.from_numpy(numpy.frombuffer(raw, dtype=numpy.uint8).astype(numpy.int64))

    def decode(self, ids: Int[Tensor, "position"]) -> str:
        """Return the text of these bytes; invalid UTF-8 becomes U+FFFD."""
        return bytes(check_ids(ids, len(self))).decode("utf-8", "replace")

    def decode_stream(self, ids: Iterable) -> Iterator[str]:
        """Yield the decoded text as the ids arrive; a character of several bytes is yielded when it is complete."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield from (piece for index in check_ids(ids, len(self)) if (piece := decoder.decode(bytes([index]))))
        if rest := decoder.decode(b"", final=True):
            yield rest

    def tokens(self, ids: Int[Tensor, "position"]) -> list[str]:
        """Return a visible label for each byte: the ASCII character, or two hexadecimal digits."""
        return [VISIBLE_SIGNS.get(chr(i), chr(i) if 32 < i < 127 else f"{i:02x}") for i in check_ids(ids, len(self))]

    def to_spec(self) -> dict[str, Any]:
        """Return plain values from which a page encodes and decodes in the same way."""
        return {"kind": "bytes"}


def check_text(text: str, name: str = "text") -> str:
    """Return `text` after checking that it is a string.

    Methods that encode call this instead of using `validated`, whose check would take as long as the encoding.

    Raises:
        TypeError: `text` is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} is {describe(text)}; give a string")
    return text


def check_ids(ids: Iterable, size: int) -> Iterator[int]:
    """Yield the ids as ints, after checking that each is an integer from 0 to `size - 1`.

    Raises:
        TypeError: `ids` is not iterable, or holds values other than integers.
        ValueError: an id is outside the vocabulary.
    """
    if not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0:
        raise TypeError(f"ids is {describe(ids)}; give those of a text, such as [5]")
    for value in ids:
        try:
            index = operator.index(value)
        except TypeError as error:
            raise TypeError(f"{value!r} is not an id; give integers, of one text at a time") from error
        if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
            raise TypeError(f"{value} is not an id; give integers")
        if not 0 <= index < size:
            raise ValueError(
                f"id {index} is not one of the {size} tokens, 0 to {size - 1}; is the model for another tokenizer?"
            )
        yield index


def _code_points(text: str) -> numpy.ndarray:
    return numpy.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=numpy.uint32)
