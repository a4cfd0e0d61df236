"""Quantization of weights to bytes, 255 times their square root, and max pooling of maps."""

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.checks import materialized
from tfviz.shapes import Float, UInt8


def quantize(weights: Float[Tensor, "*any"]) -> UInt8[Tensor, "*any"]:
    """Return weights as bytes: 255 times their square root, with an error of at most 0.004.

    The square root gives small weights a finer resolution.

    Raises:
        ValueError: a number is not a weight from 0 to 1.

    >>> quantize(torch.tensor([0.0, 1 / 512, 0.5, 1.0])).tolist()
    [0, 11, 180, 255]
    """
    materialized(weights=weights)
    if weights.is_complex():
        raise ValueError(f"weights are {weights.dtype}; give real weights")
    if not is_quantizable(weights):
        raise ValueError(
            "weights hold numbers below 0, above 1, or NaN, which uint8 cannot store; keep them as float32"
        )
    return quantize_unchecked(weights.float().clamp(0, 1))


def range_problem(weights: Tensor) -> str:
    """Return why numbers cannot be weights from 0 to 1, as a clause that follows their name; "" if they can."""
    low, high = (float(end) for end in weights.aminmax()) if weights.numel() else (0.0, 0.0)
    if low != low:
        return "holds NaN; is there a query that may attend to no key?"
    if low < -1e-6 or high > 1 + 1e-3:
        bounds = f"goes from {low:.3g} to {high:.3g}"
        return f"{bounds}, where weights lie between 0 and 1: are these scores, before their softmax?"
    return ""


def is_quantizable(weights: Tensor) -> bool:
    """Return whether all weights are from 0 to 1, up to rounding."""
    return not range_problem(weights)


def quantize_unchecked(weights: Float[Tensor, "*any"]) -> UInt8[Tensor, "*any"]:
    """Quantize weights that are known to be from 0 to 1; see `quantize`."""
    return weights.sqrt().mul_(255).add_(0.5).to(torch.uint8)


def dequantize(stored: Tensor) -> Float[Tensor, "*any"]:
    """Return weights in float32 from any dtype in which they are stored.

    Raises:
        ValueError: the tensor has neither a float dtype nor the bytes of `quantize`.
    """
    if stored.dtype != torch.uint8 and not stored.is_floating_point():
        raise ValueError(
            f"weights are {stored.dtype}; give numbers of a float type, or uint8 as look.quantize makes them"
        )
    return stored.float().div_(255).square_() if stored.dtype == torch.uint8 else stored.float()


def pool_and_quantize(weights: Tensor, pool_size: int, where: str) -> UInt8[Tensor, "down across"]:
    """Return the largest weight of each `pool_size` x `pool_size` cells of one head, as bytes.

    Raises:
        ValueError: a weight is not between 0 and 1; `where` names the head in the message.
    """
    pool_size = min(pool_size, max(1, *weights.shape))
    largest = max_pool_2d(weights, pool_size)
    if weights.dtype == torch.uint8:
        return largest
    if problem := range_problem(largest):
        raise ValueError(f"{where} {problem}")
    return quantize(largest.float().clamp(0, 1))


def max_pool_2d(weights: Tensor, size: int, before: int = 0) -> Tensor:
    """Return the largest of each `size` x `size` cells; blocks at the edges may be smaller.

    Args:
        weights: the weights of one head, [query, key], as numbers or as bytes.
        size: the number of rows and columns of a block.
        before: number of cells that the first block of each row lacks at its beginning.
    """
    if size == 1:
        return weights
    rows = functional.pad(weights, (0, 0, 0, -len(weights) % size)).unflatten(0, (-1, size)).amax(1)
    return max_pool_keys(rows, size, before)


def max_pool_keys(weights: Tensor, size: int, before: int = 0) -> Tensor:
    """Return the largest of each `size` keys of a row; the arguments are those of `max_pool_2d`."""
    padded = functional.pad(weights, (before, -(before + weights.shape[1]) % size))
    return padded.unflatten(1, (-1, size)).amax(2)
