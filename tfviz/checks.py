"""Check the values of arguments: each function raises an error with the argument's name, its value and advice.

Arguments are passed by name, several at once: `at_least(1, layers=layers, heads=heads)`. Constructors and public
functions call these functions; forward passes do not.
"""

import math
import os
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from tfviz.coercion import coerce, has_numbers
from tfviz.schema import describe

UNKNOWN_MEMORY = 2**48  # bytes, more than any machine has
MAX_SEED = 2**63 - 1  # the largest seed that all random number generators accept


def at_least(minimum: float, **values: float) -> None:
    """Raise TypeError or ValueError unless each value is a finite number of at least `minimum`.

    >>> at_least(1, layers=0)
    Traceback (most recent call last):
    ValueError: layers is 0; it must be at least 1
    """
    _check_range(values, lambda value: minimum <= value < math.inf, f"at least {minimum}")


def between(low: float, high: float, **values: float) -> None:
    """Raise TypeError or ValueError unless each value is a number from `low` to `high`, both included."""
    _check_range(values, lambda value: low <= value <= high, f"from {low} to {high}")


def above(low: float, **values: float) -> None:
    """Raise TypeError or ValueError unless each value is a finite number above `low`."""
    _check_range(values, lambda value: low < value < math.inf, f"above {low}")


def fraction_below_one(**values: float) -> None:
    """Raise TypeError or ValueError unless each value is a number in [0, 1)."""
    _check_range(values, lambda value: 0 <= value < 1, "at least 0 and below 1")


def positive_fraction(**values: float) -> None:
    """Raise TypeError or ValueError unless each value is a number in (0, 1]."""
    _check_range(values, lambda value: 0 < value <= 1, "above 0 and at most 1")


def integer(**values: object) -> None:
    """Raise TypeError unless each value is an integer, for values that are not checked by an annotation.

    >>> integer(queries=2.5)
    Traceback (most recent call last):
    TypeError: queries is 2.5; give an integer
    """
    for name, value in values.items():
        as_integer(name, value)


def as_integer(name: str, value: object) -> int:
    """Return `value` as an `int`; NumPy and PyTorch integers are converted.

    Raises:
        TypeError: `value` is not an integer, or is a bool.
    """
    number = coerce(value, int)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} is {describe(value)}; give an integer")
    return number


def equal_lengths(**values: Any) -> None:
    """Raise ValueError unless all values have the same length.

    >>> equal_lengths(texts=["a", "b"], labels=[1])
    Traceback (most recent call last):
    ValueError: lengths differ: texts 2, labels 1
    """
    if len({len(value) for value in values.values()}) > 1:
        each = ", ".join(f"{name} {len(value)}" for name, value in values.items())
        raise ValueError(f"lengths differ: {each}")


def materialized(**tensors: Tensor) -> None:
    """Raise ValueError unless the numbers of each tensor can be read: not fake, meta, quantized or sparse.

    >>> materialized(weights=torch.zeros(2, device="meta"))
    Traceback (most recent call last):
    ValueError: weights is a tensor on the meta device, whose numbers cannot be read; give a dense one with numbers
    """
    for name, tensor in tensors.items():
        if type(tensor).__name__ == "FakeTensor":  # its module is slow to import
            raise ValueError(f"{name} is a fake tensor, without numbers; give a real one")
        if not has_numbers(tensor):
            kind = (
                "on the meta device" if tensor.is_meta else "quantized" if tensor.is_quantized else f"{tensor.layout}"
            )
            raise ValueError(f"{name} is a tensor {kind}, whose numbers cannot be read; give a dense one with numbers")


def finite(**tensors: Tensor) -> None:
    """Raise ValueError unless each tensor is free of NaN and infinity.

    >>> finite(vector=torch.tensor([1.0, torch.nan]))
    Traceback (most recent call last):
    ValueError: there is NaN or infinity in vector
    """
    materialized(**tensors)
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"there is NaN or infinity in {name}")


def token_ids(**tensors: Tensor) -> None:
    """Raise ValueError unless each tensor holds integers of at least 0.

    >>> token_ids(prompt=torch.tensor([0.9, 1.9]))
    Traceback (most recent call last):
    ValueError: prompt is float32; ids are integers from 0 on (int64), such as a tokenizer's encode returns
    """
    for name, ids in tensors.items():
        kind = str(ids.dtype).removeprefix("torch.")
        if not ids.numel():  # an empty tensor has no ids to check
            continue
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise ValueError(
                f"{name} is {kind}; ids are integers from 0 on (int64), such as a tokenizer's encode returns"
            )
        if ids.dtype.is_signed and not ids.is_meta and ids.min() < 0:
            raise ValueError(f"{name} holds {int(ids.min())}; ids are integers from 0 on")


def device(**values: object) -> None:
    """Raise ValueError unless each value is a device that is available and can store numbers.

    >>> device(device="gpu")
    Traceback (most recent call last):
    ValueError: device is 'gpu', which is not available here; give another, such as 'cpu'
    """
    for name, value in values.items():
        try:
            torch.empty(1, device=value).to("cpu")  # type: ignore[call-overload]
        except (TypeError, RuntimeError, AssertionError) as error:
            raise ValueError(
                f"{name} is {describe(value)}, which is not available here; give another, such as 'cpu'"
            ) from error


def require_weights(model: Any) -> None:
    """Raise TypeError unless `model` is a module, and ValueError if a weight is on the meta device."""
    if not callable(getattr(model, "parameters", None)) or isinstance(model, type):
        raise TypeError(f"model is {describe(model)}; give a model (torch.nn.Module)")
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError("the model's weights are on the meta device, without numbers; load them first")


def multiple_of(of: int, **values: int) -> None:
    """Raise ValueError unless each value is divisible by `of`.

    >>> multiple_of(4, context=30)
    Traceback (most recent call last):
    ValueError: context is 30; it must be a multiple of 4, such as 32
    """
    for name, value in values.items():
        if value % of:
            raise ValueError(f"{name} is {value}; it must be a multiple of {of}, such as {(value // of + 1) * of}")


def divisible_by_heads(dim: int, heads: int) -> None:
    """Raise ValueError unless the width `dim` is divisible by the number of heads."""
    if dim % heads:
        raise ValueError(f"width {dim} is not divisible by {heads} heads; take dim={dim // heads * heads or heads}")


def one_of(names: Collection[str], **values: str) -> None:
    """Raise ValueError unless each value is one of `names`.

    >>> one_of(("made", "movielens"), ratings="nothing")
    Traceback (most recent call last):
    ValueError: ratings is 'nothing'; it must be one of: made, movielens
    """
    for name, value in values.items():
        if value not in names:
            raise ValueError(f"{name} is {value!r}; it must be one of: {', '.join(names)}")


def seed(seed: int) -> None:
    """Raise ValueError unless every random number generator accepts this seed."""
    between(0, MAX_SEED, seed=seed)


def fits_memory(**sizes: int) -> None:
    """Raise ValueError if a size is below 1, or a float32 tensor of these sizes exceeds this machine's memory.

    The check is done before the allocation of a large tensor, which could take minutes to fail or end the process. On
    other devices than the CPU, memory is not checked, since their allocators fail at once.

    >>> fits_memory(vocab_size=10**12, dim=128)
    Traceback (most recent call last):
    ValueError: vocab_size 1000000000000 x dim 128 are 512,000 GB, more than this machine's memory; take less
    """
    at_least(1, **sizes)
    needed = 4 * math.prod(sizes.values())
    if needed > total_memory() and torch.get_default_device().type == "cpu":
        product = " x ".join(f"{name} {size}" for name, size in sizes.items())
        size = f"{needed // 10**9:,} GB"
        raise ValueError(f"{product} are {size}, more than this machine's memory; take less")


def _check_range(values: Mapping[str, float], allowed: Callable[[float], bool], expected: str) -> None:
    """Raise TypeError unless each value is a number, and ValueError unless it is allowed."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(coerce(value, float), int | float):
            raise TypeError(f"{name} is {describe(value)}; give a number")
        if not allowed(value):
            raise ValueError(f"{name} is {value}; it must be {'finite and ' * (value == math.inf)}{expected}")


def total_memory() -> int:
    """Return the memory of this machine in bytes; if it is unknown, `UNKNOWN_MEMORY`, more than any machine has."""
    if sys.platform == "win32":
        return UNKNOWN_MEMORY
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY
