"""Find the head that a studio opens first: the one whose ablation changes the answer most."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypedDict

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode
from tfviz.look import capture
from tfviz.look.edits import zero

MAX_HEADS = 96  # of a model with more heads, the first head is opened


class HeadState(TypedDict):
    """The choices of a studio that select a head."""

    layer: int
    head: int


@torch.no_grad()
def strongest_head(model: nn.Module, inputs: Tensor, logits_of: Callable[[object], Tensor]) -> HeadState:
    """Return the head without which the probabilities change most, by the sum of absolute differences.

    Return the first head if heads cannot be listed, exceed `MAX_HEADS`, or belong to several parts.

    Args:
        model: of one text or picture.
        inputs: ids [1, position], or pixels [1, channel, height, width].
        logits_of: takes the logits [answer, choice] from what the model returns.
    """
    first: HeadState = {"layer": 0, "head": 0}
    with eval_mode(model):
        with capture(model, "*.pattern") as seen:
            whole = logits_of(model(inputs)).float().softmax(-1)
        sites = [(site, seen[site]) for site in seen]
        heads = [
            (layer, head, site)
            for layer, (site, pattern) in enumerate(sites)
            for head in range(pattern.shape[1] if pattern.dim() == 4 else 1)
        ]
        if not 0 < len(heads) <= MAX_HEADS or len({re.sub(r"\d+", "*", site) for site, _ in sites}) > 1:
            return first
        worst = 0.0
        for layer, head, site in heads:
            with capture(model, [], edit={site: zero(head)}):
                change = (logits_of(model(inputs)).float().softmax(-1) - whole).abs().sum().item()
            if change > worst:
                first, worst = {"layer": layer, "head": head}, change
    return first
