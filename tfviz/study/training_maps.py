"""`maps_during_training`: attention maps of one text at regular steps of a training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn

from tfviz import checks
from tfviz.eval_mode import eval_mode
from tfviz.look.capture import capture
from tfviz.look.maps import AttentionMaps
from tfviz.study.inputs import Inputs, Prompt


def maps_during_training(
    steps: Iterable[Any],
    model: nn.Module,
    probe: Prompt,
    *,
    every: int,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    sites: str = "*.pattern",
) -> dict[str, AttentionMaps]:
    """Run a training to its end; return attention maps before it, after every `every` steps, and at the end.

    The maps are captured in eval mode, without dropout, and do not affect the training.

    Args:
        steps: the steps of `learn.fit`, or any iterable that does one step of training at a time.
        model: the model that is trained.
        probe: token ids of one text [1, position], or the model's arguments by name.
        every: the number of steps between two captures.
        query_tokens: labels of the queries, as for `AttentionMaps`.
        key_tokens: labels of the keys, as for `AttentionMaps`.
        sites: a glob of the patterns to capture.

    Returns:
        "step 0", ... -> attention maps, in the form that `view.steps` takes.

    >>> import torch
    >>> from tfviz import learn, models, text
    >>> gpt = models.GPT(5, layers=1, heads=2, dim=4)
    >>> batches = text.Windows(torch.arange(40) % 5, length=3, batch_size=2)
    >>> list(maps_during_training(learn.fit(gpt, batches, 5, progress=False), gpt, torch.tensor([[1, 2, 3]]), every=2))
    ['step 0', 'step 2', 'step 4', 'step 5']
    """
    checks.at_least(1, every=every)
    frames: dict[str, AttentionMaps] = {}

    def take(number: int) -> None:
        with eval_mode(model), capture(model, sites) as captured:
            Inputs.from_prompt("probe", probe, model).run(model)
        frames[f"step {number}"] = AttentionMaps.from_capture(
            captured, query_tokens, key_tokens, sites=sites, provenance={"step": number}
        )

    take(0)
    number = 0
    for number, _ in enumerate(steps, start=1):
        if number % every == 0:
            take(number)
    if f"step {number}" not in frames:
        take(number)
    return frames
