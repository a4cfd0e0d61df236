"""The forms in which weights are kept: numbers of a float type, or bytes of their square root."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.bounds import readable
from tfviz.shapes import Float, UInt8


def check(layers: Sequence[Any]) -> None:
    """They are weights, or what those are made of, or may be, and all of one shape.

    Raises:
        ValueError: it is not so.
    """
    for place, layer in enumerate(layers):
        if layer is None:
            raise ValueError(
                f"weights[{place}] is None: under sdpa a Hugging Face model gives none; use look.capture, or load it "
                'with attn_implementation="eager"'
            )
        if isinstance(layer, Tensor):
            readable(**{f"weights[{place}]": layer})
    shapes = sorted({tuple(layer.shape) for layer in layers})
    if all(len(shape) == 4 for shape in shapes):
        raise ValueError(
            f"weights have a batch axis ({list(shapes[0])}, batch head query key): a model's own outputs do; give one "
            "text of the batch, [layer[0] for layer in weights]"
        )
    if len(shapes) != 1 or len(shapes[0]) != 3:
        raise ValueError(
            f"weights must be layer head query key, the last three the same in all layers; got {shapes}: "
            "choose sites whose maps are alike"
        )
    for kind in {layer.dtype for layer in layers}:
        if (not kind.is_floating_point and kind != torch.uint8) or (kind.is_floating_point and kind.itemsize < 2):
            raise ValueError(f"weights are {kind}; give numbers from 0 to 1 in a float type, such as weights.float()")


def pack(weights: Float[Tensor, "*any"]) -> UInt8[Tensor, "*any"]:
    """Weights as bytes: 255 times their square root, which keeps small ones apart; errs by at most 0.004.

    Raises:
        ValueError: some are no weights.

    >>> pack(torch.tensor([0.0, 1 / 512, 0.5, 1.0])).tolist()
    [0, 11, 180, 255]
    """
    readable(weights=weights)
    if weights.is_complex():
        raise ValueError(f"weights are {weights.dtype}; give real weights")
    if not packable(weights):
        raise ValueError("weights hold numbers below 0, above 1, or NaN, which bytes cannot; keep them as float32")
    return codes(weights.float().clamp(0, 1))


def packable(weights: Tensor) -> bool:
    """Whether all are from 0 to 1, but for rounding."""
    if not weights.numel():
        return True
    low, high = weights.aminmax()
    return bool((low >= -1e-6) & (high <= 1 + 1e-3))


def codes(weights: Float[Tensor, "*any"]) -> UInt8[Tensor, "*any"]:
    """As `pack`, of what is known to be from 0 to 1."""
    return weights.sqrt().mul_(255).add_(0.5).to(torch.uint8)


def unpack(stored: Tensor) -> Float[Tensor, "*any"]:
    """Weights in float32 from any form they are kept in.

    Raises:
        ValueError: it is none: numbers of a float type, or bytes as `pack` makes them.
    """
    if stored.dtype != torch.uint8 and not stored.is_floating_point():
        raise ValueError(f"weights are {stored.dtype}; give numbers of a float type, or uint8 as look.pack makes them")
    return stored.float().div_(255).square_() if stored.dtype == torch.uint8 else stored.float()


def as_bytes(weights: Tensor, block: int, where: str) -> UInt8[Tensor, "down across"]:
    """One head's weights as `pack` makes them, the largest of each `block` x `block` cells standing for them.

    Raises:
        ValueError: a weight is not between 0 and 1; `where` says in a message whose weights they are.
    """
    block = min(block, max(1, *weights.shape))
    largest = blocks(weights, block)
    if weights.dtype == torch.uint8:
        return largest
    low, high = (float(end) for end in largest.aminmax()) if weights.numel() else (0.0, 0.0)
    if low != low:
        raise ValueError(f"{where} holds NaN: a softmax over nothing, where a query may see no key?")
    if not (low >= -1e-6 and high <= 1 + 1e-3):
        raise ValueError(
            f"attention weights lie between 0 and 1; in {where} they go from {low:.3g} to {high:.3g}: "
            "are these scores, before their softmax?"
        )
    return pack(largest.float().clamp(0, 1))


def blocks(weights: Tensor, size: int, before: int = 0) -> Tensor:
    """The largest of each `size` x `size` cells; at the edges, of those there are.

    Args:
        before: cells of the first block of each row that lie before these.
    """
    if size == 1:
        return weights
    rows = functional.pad(weights, (0, 0, 0, -len(weights) % size)).unflatten(0, (-1, size)).amax(1)
    return across(rows, size, before)


def across(weights: Tensor, size: int, before: int = 0) -> Tensor:
    """The largest of each `size` keys of a row, as `blocks`."""
    padded = functional.pad(weights, (before, -(before + weights.shape[1]) % size))
    return padded.unflatten(1, (-1, size)).amax(2)
