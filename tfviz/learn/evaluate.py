"""How good a model is, in units that can be compared."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz.text.batches import Batch

Loss = Callable[[nn.Module, Any], Tensor]


def next_token(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy of the next token, in nats."""
    inputs, targets = batch
    return functional.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten())


@torch.no_grad()
def loss(model: nn.Module, batches: Iterable[Batch]) -> float:
    """Mean cross-entropy over all tokens of `batches`, in nats a token, without dropout."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    total, tokens = 0.0, 0
    for inputs, targets in batches:
        total += next_token(model, (inputs.to(device), targets.to(device))).item() * targets.numel()
        tokens += targets.numel()
    model.train(was_training)
    if not tokens:
        raise ValueError("no batch to measure on")
    return total / tokens


def perplexity(nats: float) -> float:
    """How many equally likely tokens would be as hard to guess between."""
    return math.exp(nats)


def bits_per_byte(nats: float, tokens: int, bytes: int) -> float:
    """Bits to code one byte of the text: comparable between characters, bytes and sub-words.

    >>> bits_per_byte(math.log(2), tokens=10, bytes=20)
    0.5
    """
    return nats / math.log(2) * tokens / bytes
