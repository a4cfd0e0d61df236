"""Small models, batches and trainings that tests of several folders share."""

from functools import partial

import torch

from tfviz.learn import fit
from tfviz.models import GPT, Transformer
from tfviz.text import Buckets, Windows

TEXT = torch.arange(300) % 11
train = partial(fit, device="cpu", progress=False)


def gpt(**options):
    torch.manual_seed(1)
    return GPT(11, **{"context": 7, "layers": 2, "heads": 3, "dim": 6, "dropout": 0.1, **options})


def translator():
    torch.manual_seed(1)
    return Transformer(11, layers=2, heads=3, dim=6, dropout=0.0)


def windows(batch=4, seed=0):
    return Windows(TEXT, length=7, batch_size=batch, seed=seed)


def ragged(count=9, seed=3, tokens=60):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 8, (count, 2), generator=generator).tolist()
    rows = [[torch.randint(1, 11, (length,), generator=generator) for length in pair] for pair in lengths]
    return Buckets(*map(list, zip(*rows)), max_tokens=tokens)


def state_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal_states(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def run(model, steps=6, batches=None, **options):
    batches = windows() if batches is None else batches
    return [(step.step, step.loss, step.lr) for step in train(model, batches, steps, **options)]
