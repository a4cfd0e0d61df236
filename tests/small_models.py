"""Small models with random but repeatable weights, and tensors and ids for them."""

import torch
from torch import nn

from tfviz.models import GPT


def build(kind, *args, std=0.5, **parts):
    """Build a model in eval mode whose weights are large enough for every part to matter."""
    torch.manual_seed(5)
    model = kind(*args, **parts).eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=name.endswith("norm.weight"), std=std)
    return model


def gpt(vocab_size=11, std=0.5, **parts):
    """A small GPT in eval mode; without `std`, its weights are those that a new model has."""
    parts = {"context": 7, "layers": 2, "heads": 3, "dim": 6, **parts}
    if std is not None:
        return build(GPT, vocab_size, std=std, **parts)
    torch.manual_seed(1)
    return GPT(vocab_size, **parts).eval()


class Always:
    """The same batch at every step."""

    def __init__(self, *parts):
        self.parts = parts

    def __getitem__(self, step):
        return self.parts


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + seed))


def ids(batch=2, length=7, vocab_size=11, seed=3):
    return torch.randint(1, vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def source():
    """Four texts of 7, 4, 1 and 6 tokens, padded with 0."""
    return ids(4, 7) * (torch.arange(7) < torch.tensor([[7], [4], [1], [6]]))


def target():
    return ids(4, 5)


def close(actual, expected, atol=1e-5):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())
