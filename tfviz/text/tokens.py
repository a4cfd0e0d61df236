"""Text to ids and back: characters and bytes."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy
import torch
from torch import Tensor

from tfviz.doors import door, what
from tfviz.shapes import Int

# What cannot be seen in a picture gets a sign that can.
SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "\0": "␀"}


class Characters:
    """A vocabulary of single characters; a character's id is its place in `characters`.

    >>> vocab = Characters.of("the cat")
    >>> vocab.encode("cat").tolist(), len(vocab)
    ([2, 1, 5], 6)
    >>> vocab.decode(vocab.encode("the cat"))
    'the cat'
    """

    def __init__(self, characters: str):
        if not characters:
            raise ValueError("the text is empty; a vocabulary needs at least one character")
        if len(set(characters)) != len(characters):
            raise ValueError("the characters of a vocabulary must all differ; build one of a text with Characters.of")
        self.characters = characters
        self._points = _code_points(characters)
        self._order = numpy.argsort(self._points)

    @classmethod
    @door
    def of(cls, text: str) -> Characters:
        """The vocabulary of all characters in `text`, in code-point order."""
        return cls("".join(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.characters)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.characters!r})"

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """The id of each character.

        Raises:
            ValueError: at the first character that the vocabulary lacks.
        """
        points = _code_points(string(text))
        slots = numpy.searchsorted(self._points, points, sorter=self._order)
        ids = self._order[numpy.minimum(slots, len(self) - 1)]
        unknown = numpy.flatnonzero(self._points[ids] != points)
        if len(unknown):
            place, character = int(unknown[0]), text[unknown[0]]
            raise ValueError(
                f"character {character!r} (U+{ord(character):04X}) at place {place} is not among the {len(self)} of "
                "this vocabulary; build it from a text that has it, or use Bytes, which has everything"
            )
        return torch.from_numpy(ids)

    def decode(self, ids: Int[Tensor, "position"]) -> str:
        """The text of these ids."""
        return "".join(self.pieces(ids))

    def pieces(self, ids: Iterable) -> Iterator[str]:
        """The text of ids that come one by one, as soon as it is known."""
        return (self.characters[index] for index in known(ids, len(self)))

    def words(self, ids: Int[Tensor, "position"]) -> list[str]:
        """One visible sign for each id, for the axes of a picture."""
        return [SIGNS.get(character, character) for character in self.decode(ids)]

    def to_spec(self) -> dict[str, Any]:
        """Plain values from which a page encodes and decodes just as this does."""
        return {"kind": "characters", "tokens": list(self.characters)}


class Bytes:
    """The 256 byte values of UTF-8: any text, in any script, without a vocabulary to build.

    >>> Bytes().encode("né").tolist(), Bytes().words(Bytes().encode("né!"))
    ([110, 195, 169], ['n', 'c3', 'a9', '!'])
    """

    def __len__(self) -> int:
        return 256

    def __repr__(self) -> str:
        return "Bytes()"

    def encode(self, text: str) -> Int[Tensor, "position"]:
        """The bytes of `text` in UTF-8."""
        try:
            raw = bytearray(string(text).encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError as error:
            raise ValueError(
                f"character {error.start} is a lone surrogate, U+D800 to U+DFFF, which is no text"
            ) from error
        return torch.frombuffer(raw, dtype=torch.uint8).long() if raw else torch.empty(0, dtype=torch.long)

    def decode(self, ids: Int[Tensor, "position"]) -> str:
        """The text of these bytes; what is not UTF-8 becomes U+FFFD."""
        return bytes(known(ids, len(self))).decode("utf-8", "replace")

    def pieces(self, ids: Iterable) -> Iterator[str]:
        """The text of ids that come one by one; a character of several bytes comes when it is whole."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield from (piece for index in known(ids, len(self)) if (piece := decoder.decode(bytes([index]))))
        yield from filter(None, [decoder.decode(b"", final=True)])

    def words(self, ids: Int[Tensor, "position"]) -> list[str]:
        """One visible sign for each byte: the ASCII character, or two hexadecimal digits."""
        return [SIGNS.get(chr(i), chr(i) if 32 < i < 127 else f"{i:02x}") for i in known(ids, len(self))]

    def to_spec(self) -> dict[str, Any]:
        """Plain values from which a page encodes and decodes just as this does."""
        return {"kind": "bytes"}


def string(text: str, name: str = "text") -> str:
    """Itself, if it is one; said plainly here, since a door would cost as much as to encode a sentence."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is {what(text)}; give a string")
    return text


def known(ids: Iterable, size: int) -> Iterator[int]:
    """The ids as they are, if they are tokens of a vocabulary of this size."""
    if not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0:
        raise TypeError(f"ids is {what(ids)}; give those of a text, such as [{ids if isinstance(ids, int) else 5}]")
    if "bool" in str(getattr(ids, "dtype", "")):
        raise TypeError("ids are bools; give whole numbers, those of a text")
    for given in ids:
        if isinstance(given, bool):
            raise TypeError(f"{given} is no id; give whole numbers, of one text at a time")
        try:
            index = operator.index(given)
        except TypeError as error:
            raise TypeError(f"{given!r} is no id; give whole numbers, of one text at a time") from error
        if not 0 <= index < size:
            raise ValueError(
                f"id {index} is none of the {size} tokens, 0 to {size - 1}; was the model built for another vocabulary?"
            )
        yield index


def _code_points(text: str) -> numpy.ndarray:
    return numpy.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=numpy.uint32)
