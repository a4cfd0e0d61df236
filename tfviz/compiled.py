"""`uncompiled`: the original module of a model compiled by `torch.compile`."""

from typing import Any

from torch import nn


def uncompiled(model: nn.Module) -> nn.Module:
    """Return the original module of a compiled model, since hooks do not work in compiled code."""
    original: Any = model
    while hasattr(original, "_orig_mod"):
        original = original._orig_mod
    return original
