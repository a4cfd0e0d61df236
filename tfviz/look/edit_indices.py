"""Conversion of the heads and positions of an activation edit to indices of a tensor."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import Any

import torch
from torch import Tensor

Numbers = int | str | Collection[int | str]  # one or several; a string of digits (a table's label) is one number
PositionIndices = Numbers | Tensor | None  # a tensor [batch]: one position in each text; None: all
HeadIndices = Numbers | None  # None: all


def in_each_text(positions: Tensor, tensor: Tensor, head: slice | Tensor | None = None) -> tuple[Any, ...]:
    """Return an index that selects one position in each text and keeps all axes.

    Args:
        positions: [batch]; or shorter, if the batch of `tensor` repeats the texts.
        tensor: [batch, position, dim], or [batch, head, position, dim].
        head: the index of the heads, if the tensor has heads.

    Raises:
        ValueError: the number of positions does not fit the number of texts, or there is no such position.
    """
    texts, count = len(tensor), tensor.shape[-2]
    is_listed = positions.dim() == 1 and len(positions) > 0 and not positions.is_floating_point()
    if not is_listed or texts % len(positions):  # a study repeats the batch
        raise ValueError(
            f"positions is a tensor {list(positions.shape)} of {positions.dtype}, and there are {texts} texts: give "
            "one position for each, or a list of positions for all texts"
        )
    check_indices("position", positions.tolist(), count)
    chosen, number = positions.repeat(texts // len(positions)).to(tensor.device), torch.arange(texts)
    if head is None:
        return number[:, None], chosen[:, None]
    heads = torch.arange(tensor.shape[1])[head]
    return number[:, None, None], heads[:, None], chosen[:, None, None]


def check_indices(name: str, listed: Sequence[int], count: int) -> None:
    """Raise ValueError unless all these heads or positions exist; negative ones count from the end."""
    for number in listed:
        if not -count <= number < count:
            raise ValueError(f"there is no {name} {number}; there are {count}, counted from 0, or from the end with -1")


def axis_index(name: str, numbers: HeadIndices, count: int) -> slice | Tensor:
    """Return an index of one axis that selects these heads or positions; None: all.

    Raises:
        ValueError: there is no such head or position.
    """
    if numbers is None:
        return slice(None)
    listed = as_list(name, numbers)
    check_indices(name, listed, count)
    return torch.tensor(listed, dtype=torch.long)


def as_list(axis: str, numbers: Numbers) -> list[int]:
    """Return one head or position, or several, as a list of integers, sorted if they are a set.

    Raises:
        ValueError: a string is not a number.
    """
    several = [numbers] if isinstance(numbers, int | str) else numbers
    wrong = next((each for each in several if isinstance(each, str) and not each.isdecimal()), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not the index of a {axis}; count from 0")
    listed = [int(each) for each in several]
    return sorted(listed) if isinstance(numbers, Set) else listed
