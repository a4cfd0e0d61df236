"""Checks and conversion of weights, axis labels and masks, for `AttentionMaps`, analyses and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.checks import materialized
from tfviz.shapes import Bool


def check_layers(layers: Sequence[Any]) -> None:
    """Raise ValueError unless all layers are [head, query, key], of one shape, and of a dtype for weights."""
    for index, layer in enumerate(layers):
        if layer is None:
            raise ValueError(
                f"weights[{index}] is None: under sdpa a Hugging Face model returns none; use look.capture, or load it "
                'with attn_implementation="eager"'
            )
        if isinstance(layer, Tensor):
            materialized(**{f"weights[{index}]": layer})
        kind = layer.dtype
        is_float = kind.is_floating_point and kind.itemsize > 1
        if not is_float and kind != torch.uint8:
            raise ValueError(f"weights are {kind}; give numbers from 0 to 1 in a float type, such as weights.float()")
    shapes = sorted({tuple(layer.shape) for layer in layers})
    if all(len(shape) == 4 for shape in shapes):
        raise ValueError(
            f"weights have a batch axis ({list(shapes[0])}, batch head query key), as a model's outputs do; give one "
            f"text of the batch, [layer[0] for layer in weights]"
        )
    if len(shapes) != 1 or len(shapes[0]) != 3:
        raise ValueError(
            f"weights must be layer head query key, the last three the same in all layers; got {shapes}: "
            "choose sites whose maps have the same shape"
        )


def axis_labels(labels: Sequence[Any] | None, count: int, name: str, what: str, owner: str = "maps") -> list[str]:
    """Return a string for each of `count` positions of an axis; by default their numbers.

    Args:
        labels: a label for each position; None: numbers.
        count: the number of positions.
        name: the argument that holds the labels, for messages.
        what: the positions, such as "queries", for messages.
        owner: the objects that have the axis, for messages.

    Raises:
        TypeError: the labels are a set, which has no order.
        ValueError: there are more or fewer labels than positions.
    """
    if labels is None:
        return range_labels(count)
    if isinstance(labels, set | frozenset):
        raise TypeError(f"{name} is a set, which has no order; give a list")
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} labels, the {owner} have {count} {what}")
    return as_strings(labels)


def check_batch_element(batch: int, size: int) -> None:
    """Raise ValueError unless a batch of this size has an element with the index `batch`."""
    if not -size <= batch < size:
        raise ValueError(f"batch is {batch}; the capture holds a batch of {size}")


def range_labels(count: int) -> list[str]:
    """Return the numbers of an axis's positions as labels."""
    return [str(position) for position in range(count)]


def are_numbers(labels: Sequence[str]) -> bool:
    """Return whether an axis is labelled with the numbers of its positions instead of tokens."""
    return list(labels) == range_labels(len(labels))


def as_strings(tokens: Sequence[Any]) -> list[str]:
    """Return tokens as strings: token ids and other numbers as digits, bytes decoded as UTF-8.

    Raises:
        ValueError: a token is None, which a tokenizer returns for an unknown id, or a list, tuple or dictionary.
    """
    strings = []
    for position, word in enumerate(tokens):
        if word is None or isinstance(word, list | tuple | dict):
            raise ValueError(f"label {position} is {word!r}; give a string or a number for each position")
        number = word.item() if hasattr(word, "item") else word
        strings.append(word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else str(number))
    return strings


def memory_view(tensor: Tensor) -> tuple[object, ...]:
    """Return a key that is equal for tensors that read the same memory in the same way, while they exist."""
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def as_mask(mask: Tensor) -> Bool[Tensor, "*any"]:
    """Return a boolean mask, converted from zeros and ones if necessary.

    Raises:
        ValueError: the mask holds other numbers.
    """
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError(
            "a mask is True where a query may attend; for a mask that is added to the scores, give mask == 0"
        )
    return mask.bool()


def broadcast_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Expand a boolean mask to the shape of maps, without copying.

    Raises:
        ValueError: the mask's axes do not fit.
    """
    try:
        return torch.broadcast_to(as_mask(mask), shape)
    except RuntimeError as error:
        raise ValueError(f"a mask of shape {list(mask.shape)} does not fit maps of shape {list(shape)}") from error


def unexpanded(mask: Tensor, axes: int = 4) -> Tensor:
    """Return a mask with its expanded leading axes reduced to size 1."""
    return mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride()[:axes])]
