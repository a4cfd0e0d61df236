"""Context manager: eval mode, after which each submodule has its own mode again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def eval_mode(module: Any) -> Iterator[torch.device]:
    """Put a module and all of its parts into eval mode inside the context, and restore each part's mode after it.

    Yields its device. A part may have another mode than the whole: a batch norm that is frozen while the rest is
    trained.

    Args:
        module: an `nn.Module`, or an object with the same methods.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    finally:
        for part in training:
            part.training = True
