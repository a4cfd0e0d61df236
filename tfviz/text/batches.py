"""Batches for training: each is a function of its number, so that a run can be resumed at any step."""

from collections.abc import Iterator

import numpy
import torch
from torch import Tensor

from tfviz.shapes import Int, UInt8

Ids = Int[Tensor, "position"] | UInt8[Tensor, "position"]  # batches are int64: small numbers take less memory here
Batch = tuple[Int[Tensor, "batch position"], Int[Tensor, "batch position"]]


def chance(seed: int, step: int) -> int:
    """A seed for one step of a run: neighbouring seeds and steps share nothing."""
    return int(numpy.random.SeedSequence((seed, step)).generate_state(1)[0])


class Windows:
    """Random stretches of a text and, as targets, the same stretches one token later.

    `windows[step]` depends on the seed and the step alone.

    Args:
        ids: the text; also in smaller numbers, such as the bytes of enwik8, of which only each batch is made int64.
        length: tokens in a window.
        batch: windows in a batch.

    >>> inputs, targets = Windows(torch.arange(50), length=3, batch=2, seed=1)[0]
    >>> (targets - inputs).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """

    def __init__(self, ids: Ids, length: int, batch: int, seed: int = 0):
        _check(ids, length)
        self.ids, self.length, self.batch, self.seed = ids, length, batch, seed

    def __getitem__(self, step: int) -> Batch:
        draw = torch.Generator().manual_seed(chance(self.seed, step))
        starts = torch.randint(len(self.ids) - self.length, (self.batch, 1), generator=draw)
        rows = self.ids[starts + torch.arange(self.length + 1)].long()
        return rows[:, :-1], rows[:, 1:]


class Streams:
    """Several places of a text read on from segment to segment, for models that remember the last one.

    `streams[step]` is (inputs, targets, places): row `b` goes on where row `b` of the step before ended. A place is
    the number of the stream and that of the segment in it. After `len(streams)` steps each stream begins again.

    Args:
        ids: the text, cut into `batch` streams of equal length; what is over is left out at its end.
        length: tokens in a segment.

    >>> streams = Streams(torch.arange(14), length=3, batch=2)
    >>> [streams[step][0].tolist() for step in range(len(streams))]
    [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]
    >>> streams[1][2].tolist()
    [[0, 1], [1, 1]]
    """

    def __init__(self, ids: Ids, length: int, batch: int):
        self.segments = (len(ids) - 1) // (length * batch)
        if not self.segments:
            raise ValueError(
                f"the text has {len(ids)} tokens; {batch} streams of {length} and their next tokens need "
                f"{length * batch + 1}: take a longer text, fewer streams or shorter segments"
            )
        self.length, rows = length, self.segments * length
        self.inputs, self.targets = (ids[start:][: batch * rows].view(batch, rows) for start in (0, 1))

    def __len__(self) -> int:
        """Segments in a stream."""
        return self.segments

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        segment = step % self.segments
        here = slice(segment * self.length, (segment + 1) * self.length)
        places = torch.tensor([(stream, segment) for stream in range(len(self.inputs))])
        return self.inputs[:, here].long(), self.targets[:, here].long(), places


def in_order(ids: Ids, length: int, batch: int) -> Iterator[Batch]:
    """The whole text once, in windows that do not overlap; the last, incomplete window is left out."""
    _check(ids, length)
    count = (len(ids) - 1) // length
    inputs = ids[: count * length].view(count, length)
    targets = ids[1 : count * length + 1].view(count, length)
    for rows, following in zip(inputs.split(batch), targets.split(batch)):
        yield rows.long(), following.long()


def _check(ids: Tensor, length: int) -> None:
    if len(ids) <= length:
        raise ValueError(
            f"the text has {len(ids)} tokens; a window of {length} and its next token need {length + 1}: "
            "take a longer text or a shorter window"
        )
