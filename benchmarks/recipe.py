"""What each part of the recipe is worth: the whole of it, and each part switched off, beside the plain reference.

Tiny Shakespeare in characters, the first 90% to train on; all models have 4 layers, 4 heads, width 128, context
64, batches of 12. The reference is in `plain.py` and takes 2,000 steps of AdamW. The recipe: `learn.fit` as it
comes (Muon for the matrices of blocks, AdamW for the rest, warm-up, a linear tail) and a GPT with rotary positions,
whose residual branches begin small. Losses are those on the last 10%, in windows of 64 that do not overlap.
Seconds are those of training alone; rows take turns over the seeds, in one process, each seed beginning with
another.

    TFVIZ_DATA=... python benchmarks/recipe.py [--quick] [--steps 320] [--seeds 1 2 3]
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import plain
import torch
from common import parser, report
from torch import Tensor, nn
from torch.nn import functional

from tfviz import layers, learn, models, text

RATE = 3e-3
WHOLE = "the recipe"


def gpt(vocab_size: int, normed: bool = False, quiet: bool = True) -> nn.Module:
    attention = partial(layers.MultiHeadAttention, norm=nn.RMSNorm) if normed else layers.MultiHeadAttention
    shape = {"context": plain.CONTEXT, "layers": plain.LAYERS, "heads": plain.HEADS, "dim": plain.DIM}
    model = models.GPT(vocab_size, positions=layers.positions.Rotary, attention=attention, **shape)
    for block in () if quiet else model.blocks:
        for last in (block.attention.out_proj, block.feed_forward[-1]):
            nn.init.normal_(last.weight, std=last.in_features**-0.5)
    return model


class Squared(nn.Module):
    """max(x, 0)^2 (So et al. 2021, "Primer")."""

    def forward(self, x: Tensor) -> Tensor:
        return x.relu().square()


def squared(vocab_size: int) -> nn.Module:
    model = gpt(vocab_size)
    for block in model.blocks:
        block.feed_forward[1] = Squared()
    return model


class Gated(nn.Module):
    """SwiGLU (Shazeer 2020): what is inside is multiplied by gates; as many weights as the plain network has."""

    def __init__(self, dim: int):
        super().__init__()
        inner = 8 * dim // 3
        self.into, self.out = nn.Linear(dim, 2 * inner), nn.Linear(inner, dim)
        for layer, size in ((self.into, 1.0), (self.out, 0.1)):  # as the other branches begin
            nn.init.normal_(layer.weight, std=size * layer.in_features**-0.5)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.into(x).chunk(2, dim=-1)
        return self.out(functional.silu(gate) * up)


def gated(vocab_size: int) -> nn.Module:
    model = gpt(vocab_size)
    for block in model.blocks:
        block.feed_forward = Gated(plain.DIM)
    return model


class Quicker(learn.optimizers.Muon):
    """Muon that moves what it leaves to AdamW, the embeddings above all, at three times the rate."""

    def _rest(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        super()._rest(weights, group | {"lr": 3 * group["lr"]})


def quicker(model: nn.Module, rate: float) -> torch.optim.Optimizer:
    return Quicker(learn.muon(model, rate).param_groups, lr=rate)


def as_long(ids: Tensor, length: int, batch: int, steps: int, seed: int) -> text.Windows:
    """Windows of the whole length for all steps."""
    return text.Windows(ids, length, batch, seed=seed)


class Averaged:
    """The running mean of a model's weights, over about the last `steps` steps."""

    def __init__(self, model: nn.Module, steps: int):
        self.model, self.share = model, 1 / steps
        self.mean = [weight.detach().clone() for weight in model.parameters()]

    def __call__(self) -> None:
        torch._foreach_lerp_(self.mean, [weight.detach() for weight in self.model.parameters()], self.share)

    @torch.no_grad()
    def take(self) -> None:
        for weight, mean in zip(self.model.parameters(), self.mean):
            weight.copy_(mean)


# row -> how its model is made, and what `fit` is given
ROWS: dict[str, tuple[Callable[[int], nn.Module], dict[str, Any]]] = {
    WHOLE: (gpt, {}),
    "AdamW for all": (gpt, {"optimizer": learn.adamw}),
    "a cosine tail": (gpt, {"schedule": learn.schedule.cosine()}),
    "no warm-up": (gpt, {"schedule": learn.schedule.linear(warmup=1)}),
    "queries and keys normed": (partial(gpt, normed=True), {}),
    "branches as large as the stream at first": (partial(gpt, quiet=False), {}),
    "squared ReLU": (squared, {}),
    "SwiGLU": (gated, {}),
    "embeddings, norms and biases at three times the rate": (gpt, {"optimizer": quicker}),
    "short windows first": (gpt, {"windows": text.GrowingWindows}),
    "weights averaged over the last 30 steps": (gpt, {"average": 30}),
    "none of it": (
        partial(gpt, quiet=False),
        {"optimizer": learn.adamw, "schedule": learn.schedule.cosine()},
    ),
}


def trained(name: str, ids: Tensor, vocab_size: int, steps: int, seed: int) -> nn.Module:
    make, how = ROWS[name]
    torch.manual_seed(seed)
    model, how = make(vocab_size), dict(how)
    if "optimizer" in how:
        how["optimizer"] = how["optimizer"](model, RATE)
    average = Averaged(model, how.pop("average")) if "average" in how else None
    batches = how.pop("windows", as_long)(ids, plain.CONTEXT, plain.BATCH, steps, seed)
    for _ in learn.fit(model, batches, steps, lr=RATE, seed=seed, progress=False, device="cpu", **how):
        if average:
            average()
    if average:
        average.take()
    return model


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=320, help="of all rows but the reference")
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = options.parse_args()
    seeds, steps = (given.seeds[:1], 6) if given.quick else (given.seeds, given.steps)
    many = 12 if given.quick else plain.STEPS
    corpus = text.corpora.load("shakespeare")
    vocab_size = text.CharacterTokenizer.from_text(corpus)
    ids, held = (vocab_size.encode(part) for part in text.corpora.split(corpus))
    held = held[:2000] if given.quick else held
    reference = f"plain reference, {many:,} steps"
    runs = {reference: (partial(plain.trained, ids, len(vocab_size)), many)}
    runs |= {name: (partial(trained, name, ids, len(vocab_size)), steps) for name in ROWS}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
    for make, _ in runs.values():
        make(steps=2, seed=0)  # to warm up
    names = list(runs)
    for turn, seed in enumerate(seeds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(plain.measure(*runs[name], seed, held))
            print(name, seed, *(f"{number:.4g}" for number in found[name][-1]), flush=True)
    rows = []
    for name in names:
        times = [mine[0] / base[0] for mine, base in zip(found[name], found[reference])]
        losses = [one[2] for one in found[name]]
        seconds, each = (median(one[index] for one in found[name]) for index in (0, 1))
        spread = f"{min(losses):.3f} to {max(losses):.3f}"
        rows.append([name, f"{median(losses):.3f}", spread, f"{seconds:.1f}", f"{each:.1f}", f"{median(times):.3f}"])
    header = ["", "loss, nats", "over the seeds", "seconds", "ms a step", "of the reference's seconds"]
    note = f"All but the reference: {steps} steps at a rate of {RATE}. A row that names a part has it changed alone."
    report("recipe", "The recipe, each part switched off", header, rows, seeds=seeds, quick=given.quick, notes=[note])


if __name__ == "__main__":
    main()
