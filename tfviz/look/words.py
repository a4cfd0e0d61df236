"""The words of an axis and the mask of some maps, from whatever a reader has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.shapes import Bool


def named(words: Sequence[Any] | None, count: int, name: str, what: str) -> list[str]:
    """A string for each of `count` places; by default their numbers.

    Raises:
        ValueError: there are more words, or fewer.
    """
    if words is None:
        return [str(i) for i in range(count)]
    if isinstance(words, set | frozenset):
        raise TypeError(f"{name} is a set, which has no order; give a list")
    if len(words) != count:
        raise ValueError(f"{name} has {len(words)} words, the maps have {count} {what}")
    return strings(words)


def numbered(words: Sequence[str]) -> bool:
    """Whether an axis has no words of its own, but their numbers."""
    return list(words) == [str(place) for place in range(len(words))]


def strings(words: Sequence[Any]) -> list[str]:
    """Words as strings: token ids and other numbers become their digits, bytes what they are in UTF-8.

    Raises:
        ValueError: a word is None, as a tokenizer answers for an id that it does not have.
    """
    for place, word in enumerate(words):
        if word is None or isinstance(word, list | tuple | dict):
            raise ValueError(f"word {place} is {word!r}; give a string or a number for each position")
    return [word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else _string(word) for word in words]


def _string(word: Any) -> str:
    return str(word.item() if hasattr(word, "item") else word)


def as_mask(mask: Tensor) -> Bool[Tensor, "*any"]:
    """A mask of booleans, also from zeros and ones.

    Raises:
        ValueError: it holds other numbers, as an additive mask does.
    """
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError("a mask is True where a query may look; of one that is added to the scores, give mask == 0")
    return mask.bool()


def as_broad(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask for all cells of maps; what it repeats takes no room.

    Raises:
        ValueError: its axes do not fit.
    """
    try:
        return torch.broadcast_to(as_mask(mask), shape)
    except RuntimeError as error:
        raise ValueError(f"a mask of shape {list(mask.shape)} does not fit maps of shape {list(shape)}") from error
