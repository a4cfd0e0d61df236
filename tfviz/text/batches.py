"""Batches for training: each is a function of its number, so that a run can be resumed at any step."""

from collections.abc import Iterator

import numpy
import torch
from torch import Tensor

from tfviz.shapes import Int

Batch = tuple[Int[Tensor, "batch position"], Int[Tensor, "batch position"]]


def chance(seed: int, step: int) -> int:
    """A seed for one step of a run: neighbouring seeds and steps share nothing."""
    return int(numpy.random.SeedSequence((seed, step)).generate_state(1)[0])


class Windows:
    """Random stretches of a text and, as targets, the same stretches one token later.

    `windows[step]` depends on the seed and the step alone.

    Args:
        ids: the text.
        length: tokens in a window.
        batch: windows in a batch.

    >>> inputs, targets = Windows(torch.arange(50), length=3, batch=2, seed=1)[0]
    >>> (targets - inputs).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """

    def __init__(self, ids: Int[Tensor, "position"], length: int, batch: int, seed: int = 0):
        _check(ids, length)
        self.ids, self.length, self.batch, self.seed = ids, length, batch, seed

    def __getitem__(self, step: int) -> Batch:
        draw = torch.Generator().manual_seed(chance(self.seed, step))
        starts = torch.randint(len(self.ids) - self.length, (self.batch, 1), generator=draw)
        rows = self.ids[starts + torch.arange(self.length + 1)]
        return rows[:, :-1], rows[:, 1:]


def in_order(ids: Int[Tensor, "position"], length: int, batch: int) -> Iterator[Batch]:
    """The whole text once, in windows that do not overlap; the last, incomplete window is left out."""
    _check(ids, length)
    count = (len(ids) - 1) // length
    inputs = ids[: count * length].view(count, length)
    targets = ids[1 : count * length + 1].view(count, length)
    yield from zip(inputs.split(batch), targets.split(batch))


def _check(ids: Tensor, length: int) -> None:
    if len(ids) <= length:
        raise ValueError(
            f"the text has {len(ids)} tokens; a window of {length} and its next token need {length + 1}: "
            "take a longer text or a shorter window"
        )
