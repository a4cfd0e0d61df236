"""Context manager: eval mode, after which each submodule has its own mode again; and a model's device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def eval_mode(model: Any) -> Iterator[torch.device]:
    """Disable dropout and gradients inside the context; yield the model's device.

    Args:
        model: an `nn.Module`, or an object with the same methods.
    """
    with restore_modes(model) as device, torch.no_grad():
        yield device


@contextmanager
def restore_modes(model: Any) -> Iterator[torch.device]:
    """Put a model and all of its parts into eval mode inside the context, and restore each part's mode after it.

    Yields its device. A part may have another mode than the whole: a batch norm that is frozen while the rest is
    trained.

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
    """Return the device of a model's first weight; without weights, the CPU."""
    return next((weight.device for weight in model.parameters()), torch.device("cpu"))


def weights_device(model: Any) -> torch.device:
    """Return the device of a model's first weight.

    Raises:
        ValueError: the model has no weights.
    """
    if next(model.parameters(), None) is None:
        raise ValueError(f"{type(model).__name__} has no weights; give a model that was trained")
    return model_device(model)
