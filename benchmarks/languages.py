"""Tasks of `systems.py` that predict the next token: characters of Shakespeare, sub-words of reviews."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import mean

import torch
from rows import Clock, Row, Rows, Task, Trial
from torch import Tensor, nn

from tfviz import layers, learn, models, text

CONTEXT, BATCH, STEPS = 64, 16, 2000
SIX_MINUTES = 2400  # steps of lesson 12's GPT on two cores
DISTANCES = (1, 4, 16, 48)


def shakespeare() -> tuple[text.CharacterTokenizer, Tensor, Tensor]:
    corpus = text.corpora.load("shakespeare")
    tokenizer = text.CharacterTokenizer.from_text(corpus)
    return tokenizer, *(tokenizer.encode(part) for part in text.corpora.split(corpus))


def bits(nats: float) -> str:
    return f"{nats / math.log(2):.3f}"


def characters(trial: Trial) -> Rows:
    """All that read one character after the other: same data, windows, steps."""
    tokenizer, ids, held = shakespeare()
    held = held[:2000] if trial.quick else held
    wide = {"dim": 128, "hidden": 256}
    made: dict[str, Callable[..., nn.Module]] = {
        "RNN": partial(models.RecurrentLM, cell=layers.RNN, **wide),
        "LSTM": partial(models.RecurrentLM, **wide),
        "LSTMN": partial(models.LSTMN, dim=128, hidden=256),
        "convolution": partial(models.ConvLM, dim=128, layers=6),
        "GPT": partial(models.GPT, context=CONTEXT, positions=layers.positions.Rotary),
    }
    for system, make in made.items():
        model = trial.built(make, len(tokenizer))
        batches = text.Windows(ids, CONTEXT, BATCH, seed=trial.seed)
        learned = trial.learned(f"characters-{system}", model, batches, STEPS, lr=3e-3)
        loss = learn.evaluate.loss(model, text.in_order(held, CONTEXT, BATCH))
        yield Row(system, "Shakespeare", "bits/character", bits(loss), **learned.facts)
        norms = gradient_norms(model, next(text.in_order(held, CONTEXT, BATCH))[0])
        shown = ", ".join(f"{norm:.0e} at {distance}" for distance, norm in norms.items())
        yield Row(system, "Shakespeare", "gradient by distance", shown, **learned.facts)
    steps = {"recurrence": 511, "convolution": math.ceil(math.log2(512)), "attention": 1}
    shown = ", ".join(f"{name} {count}" for name, count in steps.items())
    yield Row("all", "512 tokens", "layers or steps from the first token to the last", shown)


def gradient_norms(model: nn.Module, ids: Tensor) -> dict[int, float]:
    """How strongly the last prediction depends on the embedding so many tokens before it, relative to its own.

    The norm of the gradient of the likeliest token's log-probability, mean over a batch (Bengio et al. 1994).
    """
    embedded: list[Tensor] = []
    handle = model.tokens.register_forward_hook(lambda _module, _given, out: embedded.append(out.requires_grad_()))
    model.eval()
    last = model(ids)[:, -1].log_softmax(-1).amax(-1).sum()
    handle.remove()
    (gradient,) = torch.autograd.grad(last, embedded)
    norms = gradient.norm(dim=-1).mean(0)
    return {distance: float(norms[-1 - distance] / norms[-1]) for distance in DISTANCES}


class Plain(nn.Module):
    """The reference: 12 post-norm blocks of `torch.nn`, learned positions, as tutorials build it."""

    def __init__(self, vocab_size: int, context: int = CONTEXT, dim: int = 128, heads: int = 4, blocks: int = 12):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(context, dim)
        block = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, blocks, enable_nested_tensor=False)
        self.to_logits = nn.Linear(dim, vocab_size)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(context), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        x = self.tokens(ids) + self.positions.weight[:length]
        return self.to_logits(self.blocks(x, mask=self.mask[:length, :length], is_causal=True))


def seconds_a_step(model: nn.Module, batches: text.Windows, rate: float, steps: int) -> float:
    """Of processor time; the first fifth of the steps is left out."""
    running = learn.fit(model, batches, steps, lr=rate, device="cpu", progress=False)
    for _ in zip(range(steps // 5), running):
        clock = Clock()
    rest = sum(1 for _ in running)
    return clock() / rest


def equal_time(trial: Trial) -> Rows:
    """GPT and the plain reference, as many processor-seconds each; bits a byte."""
    tokenizer, ids, held = shakespeare()
    held = held[:2000] if trial.quick else held
    budget = 1.0 if trial.quick else 240.0
    gpt = partial(models.GPT, context=CONTEXT, positions=layers.positions.Rotary)
    for system, make, rate in (("GPT", gpt, 3e-3), ("plain 12-block post-norm", Plain, 3e-4)):
        model = trial.built(make, len(tokenizer))
        batches = text.Windows(ids, CONTEXT, 4 if trial.quick else BATCH, seed=trial.seed)
        each = seconds_a_step(trial.built(make, len(tokenizer)), batches, rate, steps=10 if trial.quick else 60)
        clock = Clock()
        learned = trial.learned(f"equal-time-{system}", model, batches, max(1, int(budget / each)), lr=rate)
        took = clock()
        loss = learn.evaluate.loss(model, text.in_order(held, CONTEXT, BATCH))
        per_byte = learn.evaluate.bits_per_byte(loss, 1, 1)  # every character of this text is one byte
        aim = "below the plain reference" if system == "GPT" else ""
        note = f"{took:.0f} s of processor time"
        yield Row(system, "Shakespeare", "bits/byte at equal time", f"{per_byte:.3f}", aim, **learned.facts, note=note)


def six_minutes(trial: Trial) -> Rows:
    """The GPT of lesson 12 on windows of 192 characters, short ones first, for the steps that six minutes hold."""
    tokenizer, ids, held = shakespeare()
    context = 192
    model = trial.built(models.GPT, len(tokenizer), context=context, positions=layers.positions.Rotary)
    windows = text.GrowingWindows(ids, context, 2 if trial.quick else 12, SIX_MINUTES, seed=trial.seed)
    learned = trial.learned("six-minutes", model, windows, SIX_MINUTES)
    loss = learn.evaluate.loss(model, text.in_order(held[:2000] if trial.quick else held, context, 64))
    aim = "<= 1.48 in 360 s"
    yield Row("GPT", "Shakespeare", "loss after six minutes, nats", f"{loss:.3f}", aim, **learned.facts)


def sparse(trial: Trial) -> Rows:
    """Strided, fixed and dense attention over 256 characters; and how the number of cells grows."""
    tokenizer, ids, held = shakespeare()
    held = held[:3000] if trial.quick else held[:60_000]
    length, stride = 256, 16
    fixed = partial(layers.masks.fixed, summary=4)
    kinds: dict[str, Callable[..., nn.Module]] = {
        "dense": partial(models.GPT, context=length),
        "strided": partial(models.SparseTransformer, stride=stride, context=length),
        "fixed": partial(models.SparseTransformer, stride=stride, make_mask=fixed, context=length),
    }
    dense = math.inf
    for kind, make in kinds.items():
        model = trial.built(partial(make, positions=layers.positions.Rotary), len(tokenizer))
        windows = text.Windows(ids, length, 4, seed=trial.seed)
        learned = trial.learned(f"sparse-{kind}", model, windows, STEPS, lr=2e-3)
        loss = learn.evaluate.loss(model, text.in_order(held, length, 8))
        dense = min(dense, loss) if kind == "dense" else dense
        cells = model.mask.count(length) / layers.masks.causal.count(length)
        note = f"{loss / dense - 1:+.1%} of dense, {cells:.0%} of its cells" if kind != "dense" else ""
        aim = "within 1% of dense" if kind != "dense" else ""
        yield Row(
            f"sparse Transformer, {kind}", "Shakespeare", "loss, nats", f"{loss:.4f}", aim, **learned.facts, note=note
        )
    sizes = [64, 256, 1024, 4096]
    counts = [layers.masks.strided(int(n**0.5)).count(n) for n in sizes]
    growth = mean(math.log(b / a) / math.log(4) for a, b in pairwise(counts))
    yield Row("sparse Transformer, strided", "64 to 4,096 tokens", "cells grow as n to the", f"{growth:.2f}", "1.5")


TASKS: dict[str, Task] = {
    "characters": characters,
    "equal-time": equal_time,
    "six-minutes": six_minutes,
    "sparse": sparse,
}
