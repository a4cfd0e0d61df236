"""Shared helpers of the capture tests: random tensors, a small GPT, and a module that calls a function."""

import torch
from torch import nn

from tfviz.models import GPT

PATTERNS = ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
IDS = torch.tensor([[1, 2, 3, 1, 2], [4, 4, 0, 10, 9]])


def gpt(**parts):
    torch.manual_seed(1)
    model = GPT(11, **{"context": 7, "layers": 2, "heads": 3, "dim": 6, **parts}).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    return model


class Calls(nn.Module):
    """Calls a function with whatever it is given; parts and attributes such as `num_heads` are set by name."""

    def __init__(self, function, **attributes):
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, *args):
        return self.function(*args)
