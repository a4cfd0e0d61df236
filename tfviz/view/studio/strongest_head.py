"""Find the head that a studio opens first: the one whose ablation changes the answer most."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypedDict

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode
from tfviz.look import ablate, capture

MAX_HEADS = 96  # of a larger model, the first head is opened without ablation
MIN_FOCUS = 3.0  # times an even share that a focused head's strongest key gets, on average


class HeadState(TypedDict):
    """The part of a studio's state that selects a head."""

    layer: int
    head: int


def strongest_head(model: nn.Module, inputs: Tensor, logits_of: Callable[[object], Tensor]) -> HeadState:
    """Return the head whose ablation changes the probabilities most, by the sum of absolute differences.

    Heads that look almost evenly, whose maps show nothing, are skipped if there are others. Return the first head if
    there are more than `MAX_HEADS`, no patterns can be captured, or the sites differ in more than numbers, as in an
    encoder-decoder.

    Args:
        model: called with `inputs`.
        inputs: ids [1, position], or pixels [1, channel, height, width].
        logits_of: returns the logits, with the choices on the last axis, from the model's output.
    """
    first: HeadState = {"layer": 0, "head": 0}

    def probabilities() -> Tensor:
        return logits_of(model(inputs.to(device))).float().softmax(-1)

    with eval_mode(model) as device:
        with capture(model, "*.pattern") as captured:
            whole = probabilities()
        heads = sum(captured[site].shape[1] if captured[site].dim() == 4 else 1 for site in captured)
        if not 0 < heads <= MAX_HEADS or len({re.sub(r"\d+", "*", site) for site in captured}) > 1:
            return first
        changes = ablate(model, lambda: (probabilities() - whole).abs().sum().nan_to_num().item())
    is_focused = {
        site: (pattern.float().amax(-1).mean((0, -1)) * pattern.shape[-1] >= MIN_FOCUS).cpu()
        for site, pattern in captured.items()
    }
    if any(bool(each.any()) for each in is_focused.values()):
        changes = {site: torch.where(is_focused[site], changes[site], 0) for site in captured}
    worst = 0.0
    for layer, site in enumerate(captured):
        head = int(changes[site].argmax())
        if changes[site][head] > worst:
            first, worst = {"layer": layer, "head": head}, changes[site][head].item()
    return first
