"""Shared by the tests of captures: random tensors, and a module that makes one call."""

import torch
from torch import nn


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


class Calls(nn.Module):
    """Calls a function with whatever it is given; parts and attributes such as `num_heads` are set by name."""

    def __init__(self, function, **attributes):
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, *args):
        return self.function(*args)
