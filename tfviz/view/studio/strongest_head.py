"""Find the head that a studio opens first: the one whose ablation changes the answer most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypedDict

from torch import Tensor, nn

from tfviz.eval_mode import eval_mode
from tfviz.look import capture
from tfviz.look.edits import zero

MAX_HEADS = 96  # of a larger model, the first head is opened without ablation
MIN_FOCUS = 3.0  # times an even share that a focused head's strongest key gets, on average


PatternEdit = Callable[[Tensor], Tensor]


class HeadState(TypedDict):
    """The part of a studio's state that selects a head."""

    layer: int
    head: int


FIRST_HEAD: HeadState = {"layer": 0, "head": 0}


class Head(NamedTuple):
    """A head, by the index of its layer, the site of its pattern, and its index there."""

    layer: int
    site: str
    head: int


def most_influential_head(
    heads: Iterable[Head], probabilities: Callable[[Mapping[str, PatternEdit]], Tensor]
) -> HeadState:
    """Return the head whose ablation changes probabilities most, by the sum of absolute differences.

    Return the first head of a model if no ablation changes them.

    Args:
        heads: the heads to choose from.
        probabilities: returns the probabilities with these edits of patterns, by site.
    """
    opened, largest = FIRST_HEAD, 0.0
    unablated = probabilities({})
    for layer, site, head in heads:
        change = float((probabilities({site: zero(head)}) - unablated).abs().sum().nan_to_num())
        if change > largest:
            opened, largest = {"layer": layer, "head": head}, change
    return opened


def strongest_head(model: nn.Module, inputs: Tensor, logits_of: Callable[[object], Tensor]) -> HeadState:
    """Return the head whose ablation changes a model's probabilities most; see `most_influential_head`.

    Heads that look almost evenly, whose maps show nothing, are skipped if there are others. Return the first head if
    there are more than `MAX_HEADS`, no patterns can be captured, or the sites differ in more than numbers, as in an
    encoder-decoder.

    Args:
        model: called with `inputs`.
        inputs: ids [1, position], or pixels [1, channel, height, width].
        logits_of: returns the logits, with the choices on the last axis, from the model's output.
    """

    def probabilities(edit: Mapping[str, PatternEdit]) -> Tensor:
        with eval_mode(model) as device, capture(model, [], edit=edit):
            return logits_of(model(inputs.to(device))).float().softmax(-1)

    with eval_mode(model) as device, capture(model, "*.pattern") as captured:
        model(inputs.to(device))
    heads = [
        Head(layer, site, head)
        for layer, (site, pattern) in enumerate(captured.items())
        for head in range(pattern.shape[1] if pattern.dim() == 4 else 1)
    ]
    if len(heads) > MAX_HEADS or len({re.sub(r"\d+", "*", site) for site in captured}) > 1:
        return FIRST_HEAD
    focused = [head for head in heads if _is_focused(captured[head.site], head.head)]
    return most_influential_head(focused or heads, probabilities)


def _is_focused(pattern: Tensor, head: int) -> bool:
    """Return whether a head's strongest keys get much more than an even share, on average over its queries."""
    largest_shares = pattern.float().amax(-1).mean((0, -1)) * pattern.shape[-1]
    return bool(largest_shares.reshape(-1)[head] >= MIN_FOCUS)
