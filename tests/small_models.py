"""Small models with random but repeatable weights, and tensors, ids and a picture for them."""

from functools import cache

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


def randomize_weights(model, seed=3, std=0.3):
    """Far from even: each matrix is drawn anew; without `seed`, from the numbers that come next."""
    if seed is not None:
        torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=std)
    return model.eval()


class ViTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mix(x)


class ViT(nn.Module):
    """In plain torch, for pictures of 6 x 8 pixels: 3 x 4 patches of 2 x 2, with `extra` tokens before them."""

    def __init__(self, extra=1, dim=12, heads=3):
        super().__init__()
        self.extra = nn.Parameter(torch.randn(1, extra, dim))
        self.embed = nn.Conv2d(3, dim, 2, 2)
        self.positions = nn.Parameter(torch.randn(1, extra + 12, dim))
        self.blocks = nn.ModuleList([ViTBlock(dim, heads) for _ in range(2)])
        self.head = nn.Linear(dim, 3)

    def forward(self, pixels):
        x = torch.cat([self.extra.expand(len(pixels), -1, -1), self.embed(pixels).flatten(2).mT], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


@cache
def vit(extra=1):
    torch.manual_seed(0)
    return randomize_weights(ViT(extra))


@cache
def vit_pixels():
    return torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(1))


def without_patches(pixels, hidden):
    """By hand: each channel of a hidden patch of 2 x 2 pixels is the mean of that channel."""
    painted = pixels.clone()
    for patch in hidden:
        row, column = divmod(patch, 4)
        painted[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = pixels.mean((1, 2))[:, None, None]
    return painted


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
