"""A task of `systems.py`: induction heads, which look after an earlier occurrence and copy what followed there."""

import math
from collections.abc import Iterable
from functools import partial

import torch
from rows import Learned, Row, Rows, Task, built
from torch import Tensor, nn
from torch.nn import functional

from tfviz import layers, look, models, text

LETTERS, LENGTH, HEADS, STEPS, SEEDS, ROWS = 64, 64, 4, 1000, (1, 2, 3, 4, 5), 64
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


def induction(quick: bool) -> Rows:
    """Two layers on random blocks that come again; the heads that form switched off, and the layer's others."""
    found: list[tuple[float, ...]] = []
    seconds = 0.0
    for seed in SEEDS[:1] if quick else SEEDS:
        parts = {"context": LENGTH, "layers": 2, "heads": HEADS, "dim": 64, "positions": layers.positions.Rotary}
        model = built(partial(models.GPT, LETTERS, **parts), seed=seed)
        before = max(prefix_matching(model.eval(), blocks(0)))
        learned = Learned(
            f"induction-{seed}", model, text.Repeats(LETTERS, LENGTH, 32, seed=seed), STEPS, quick=quick, seed=seed
        )
        model.eval()
        scores = prefix_matching(model, blocks(0))
        ranked = sorted(range(HEADS), key=lambda head: -scores[head])
        many = max(1, sum(score >= FOUND for score in scores))
        losses = (copying(model, blocks(0), cut) for cut in ((), ranked[:many], ranked[many:]))
        found.append((before, max(scores), many, *losses))
        seconds += learned.facts["seconds"]
    facts = learned.facts | {"seconds": seconds, "seed": len(found)}
    names = ("before training", "after", "heads", "whole", "without these heads", "without the layer's others")
    columns = {name: ", ".join(f"{row[place]:.3g}" for row in found) for place, name in enumerate(names)}
    task = "random blocks that come again"
    seeds = f"seeds 1 to {len(found)}"
    for name in names[:2]:
        aim = ">= 0.5 in four of five seeds" if name == "after" else ""
        measure = f"prefix matching of the strongest head, {name}"
        yield Row("GPT of two layers", task, measure, columns[name], aim, **facts, note=seeds)
    note = f"{seeds}; of {HEADS} heads {columns['heads']} have {FOUND} or more; by chance {math.log(LETTERS):.2f}"
    for name in names[3:]:
        yield Row("GPT of two layers", task, f"nats a letter, second time, {name}", columns[name], **facts, note=note)


TASKS: dict[str, Task] = {"induction": induction}
