"""A task of `systems.py`: induction heads, which look after an earlier occurrence and copy what followed there."""

import math
from collections.abc import Iterable
from functools import partial

import torch
from rows import Row, Rows, Task, Trial
from torch import Tensor, nn
from torch.nn import functional

from tfviz import layers, look, models, text

LETTERS, LENGTH, HEADS, STEPS, ROWS = 64, 64, 4, 1000, 64
BLOCK = LENGTH // 2
SECOND = "blocks.1.attention.pattern"
FOUND = 0.3  # weight on the key after the earlier occurrence from which a head counts as one of them


def blocks(seed: int) -> Tensor:
    """Rows of a block that comes twice; its letters differ, so that each has one earlier occurrence."""
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(ROWS, LETTERS, generator=draw).argsort(1)[:, :BLOCK].repeat(1, 2)


def prefix_matching(model: nn.Module, ids: Tensor) -> list[float]:
    """Of each head of the second layer, the mean weight on what followed the same letter (Olsson et al. 2022)."""
    with torch.no_grad(), look.capture(model, SECOND) as seen:
        model(ids)
    return seen[SECOND].diagonal(1 - BLOCK, 2, 3)[..., 1:].mean((0, 2)).tolist()


def copying(model: nn.Module, ids: Tensor, without: Iterable[int] = ()) -> float:
    """Nats a letter of the second block, with these heads of the second layer switched off."""

    def off(weights: Tensor) -> Tensor:
        return weights.index_fill(1, torch.tensor(list(without), dtype=torch.long), 0.0)

    with torch.no_grad(), look.capture(model, [], edit={SECOND: off}):
        logits = model(ids)[:, BLOCK:-1]
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, BLOCK + 1 :].flatten()).item()


def induction(trial: Trial) -> Rows:
    """Two layers on random blocks that come again; the heads that form switched off, and the layer's others."""
    parts = {"context": LENGTH, "layers": 2, "heads": HEADS, "dim": 64, "positions": layers.positions.Rotary}
    model = trial.built(models.GPT, LETTERS, **parts)
    before = max(prefix_matching(model.eval(), blocks(0)))
    learned = trial.learned("induction", model, text.RepeatedTokens(LETTERS, LENGTH, 32, seed=trial.seed), STEPS)
    scores = prefix_matching(model.eval(), blocks(0))
    row = partial(Row, "GPT of two layers", "random blocks that come again", **learned.facts)
    measure = "prefix matching of the strongest head, "
    yield row(measure + "before training", f"{before:.3g}")
    yield row(measure + "after", f"{max(scores):.3g}", ">= 0.5 in four of five seeds")
    ranked = sorted(range(HEADS), key=lambda head: -scores[head])
    many = max(1, sum(score >= FOUND for score in scores))
    off = {"whole": (), "without these heads": ranked[:many], "without the layer's others": ranked[many:]}
    for name, heads in off.items():
        loss = copying(model, blocks(0), heads)
        note = f"{len(heads)} of {HEADS} heads off; by chance {math.log(LETTERS):.2f}"
        yield row(f"nats a letter, second time, {name}", f"{loss:.3g}", note=note)


TASKS: dict[str, Task] = {"induction": induction}
