"""Context managers that put a model into eval mode and restore the mode of each submodule; a model's device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def eval_mode(model: Any) -> Iterator[torch.device]:
    """Put a model into eval mode and disable gradients inside the context; yield the model's device.

    Args:
        model: an `nn.Module`, or an object with the same methods.
    """
    with eval_mode_with_grad(model) as device, torch.no_grad():
        yield device


@contextmanager
def eval_mode_with_grad(model: Any) -> Iterator[torch.device]:
    """Put a model into eval mode inside the context, then restore the mode of each submodule; yield the model's device.

    The modes of submodules may differ, such as that of a frozen batch norm in a model that is trained.

    Args:
        model: an `nn.Module`, or an object with the same methods.
    """
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield model_device(model)
    finally:
        for part in training:
            part.training = True


def model_device(model: Any) -> torch.device:
    """Return the device of a model's first weight, or the CPU if it has no weights."""
    return next((weight.device for weight in model.parameters()), torch.device("cpu"))


def weights_device(model: Any) -> torch.device:
    """Return the device of a model's first weight.

    Raises:
        ValueError: the model has no weights.
    """
    if next(model.parameters(), None) is None:
        raise ValueError(f"{type(model).__name__} has no weights; give a model that was trained")
    return model_device(model)
