"""Batches for training language models, indexed by step, so that a run can be resumed."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tfviz.checks import as_integer, at_least, between, fits_memory, token_ids
from tfviz.checks import seed as check_seed
from tfviz.indexed_batches import step_seed
from tfviz.shapes import Int, UInt8

__all__ = [
    "Batch", "EndlessBatches", "GrowingWindows", "Ids", "RepeatedTokens", "Streams", "Windows", "in_order",
    "step_generator", "step_seed",
]  # fmt: skip

Ids = Int[Tensor, "position"] | UInt8[Tensor, "position"]  # uint8 saves memory; batches are int64
Batch = tuple[Int[Tensor, "batch position"], Int[Tensor, "batch position"]]


def step_generator(seed: int, step: int) -> torch.Generator:
    """Return the random generator for a step of a run."""
    return torch.Generator().manual_seed(step_seed(seed, step))


class EndlessBatches:
    """Base class of batches that are indexed by step and never end; iterating over them raises TypeError."""

    def __iter__(self) -> Iterator[Batch]:
        # without this method, Python would iterate over batches 0, 1, 2, ... forever
        raise TypeError(
            f"{type(self).__name__} has no last batch: take batches[step], "
            "[batches[step] for step in range(20)], or a finite pass: text.in_order(ids, length, batch_size), or "
            "in_order() of text.Buckets"
        )


class Windows(EndlessBatches):
    """Random windows of a text as inputs, and the same windows one token later as targets.

    `windows[step]` is (inputs, targets), both int64 `[batch, position]`. It depends only on the seed and the step.

    Args:
        ids: token ids of the text, `[position]`, of any integer dtype, such as the bytes of enwik8; only batches are
            converted to int64.
        length: number of tokens in a window.
        batch_size: number of windows in a batch.

    Raises:
        ValueError: the text has no more than `length` tokens.

    >>> inputs, targets = Windows(torch.arange(50), length=3, batch_size=2, seed=1)[0]
    >>> (targets - inputs).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """

    def __init__(self, ids: Ids, length: int, batch_size: int, seed: int = 0):
        _check_windows(ids, length, batch_size)
        check_seed(seed)
        self.ids, self.length, self.batch_size, self.seed = ids, length, batch_size, seed

    def __getitem__(self, step: int) -> Batch:
        generator = step_generator(self.seed, step)
        starts = torch.randint(len(self.ids) - self.length, (self.batch_size, 1), generator=generator)
        rows = self.ids[starts + torch.arange(self.length + 1)].long()
        return rows[:, :-1], rows[:, 1:]


class GrowingWindows(EndlessBatches):
    """Windows that grow during training, with a constant number of tokens per batch (Press et al. 2021, "Shortformer").

    Windows have a quarter of the length in the first third of the steps, half of it in the second third, and then the
    full length. Batches of shorter windows have more rows, so that they cover more places of the text. `growing[step]`
    depends only on the seed and the step.

    Args:
        ids: token ids of the text, as for `Windows`.
        length: number of tokens in a full window; at least 4.
        batch_size: number of full windows in a batch; batches of shorter windows have four times or twice as many.
        steps: number of steps of the schedule; later steps have full windows.

    >>> growing = GrowingWindows(torch.arange(50), length=8, batch_size=3, steps=6)
    >>> [tuple(growing[step][0].shape) for step in range(7)]
    [(12, 2), (12, 2), (6, 4), (6, 4), (3, 8), (3, 8), (3, 8)]
    """

    def __init__(self, ids: Ids, length: int, batch_size: int, steps: int, seed: int = 0):
        at_least(4, length=length)
        at_least(1, steps=steps)
        self.stages = [Windows(ids, length // part, batch_size * part, seed) for part in (4, 2, 1)]
        self.steps = steps

    def __getitem__(self, step: int) -> Batch:
        return self.stages[min(2, 3 * step // self.steps)][step]


class RepeatedTokens(EndlessBatches):
    """Batches of rows that each repeat a block of random tokens (Olsson et al. 2022).

    A model can predict the next token only by finding the previous occurrence of the current token and copying the
    token after it, as an induction head does. `repeated[step]` depends only on the seed and the step.

    Args:
        vocab_size: tokens are drawn uniformly from 0 to `vocab_size` - 1.
        length: number of tokens in a row.
        batch_size: number of rows in a batch; each repeats a block of its own.
        block: minimum and maximum number of tokens in a block; by default an eighth and a half of `length`.

    >>> inputs, targets = RepeatedTokens(vocab_size=9, length=7, batch_size=2, block=(3, 3), seed=1)[0]
    >>> inputs.tolist()[0], targets.tolist()[0]
    ([1, 0, 5, 1, 0, 5, 1], [0, 5, 1, 0, 5, 1, 0])
    """

    def __init__(
        self, vocab_size: int, length: int, batch_size: int, block: tuple[int, int] | None = None, seed: int = 0
    ):
        at_least(1, vocab_size=vocab_size, length=length, batch_size=batch_size)
        check_seed(seed)
        shortest, longest = block or (max(1, length // 8), max(1, length // 2))
        between(1, length, **{"block[0]": shortest})
        between(shortest, length, **{"block[1]": longest})
        fits_memory(batch_size=batch_size, length=length)
        self.vocab_size, self.length, self.batch_size, self.seed = vocab_size, length, batch_size, seed
        self.block = shortest, longest

    def __getitem__(self, step: int) -> Batch:
        generator = step_generator(self.seed, step)
        shortest, longest = self.block
        sizes = torch.randint(shortest, longest + 1, (self.batch_size, 1), generator=generator)
        blocks = torch.randint(self.vocab_size, (self.batch_size, longest), generator=generator)
        rows = blocks.gather(1, torch.arange(self.length + 1) % sizes)
        return rows[:, :-1], rows[:, 1:]


class Streams:
    """Parallel streams of a text, read segment by segment, for models with a memory of the previous segment.

    `streams[step]` is (inputs, targets, indices): int64 `[batch, position]` twice, and `[batch, 2]`, the index of each
    row's stream and of its segment in that stream. Row `b` continues row `b` of the previous step. After
    `len(streams)` steps each stream starts again.

    Args:
        ids: token ids of the text, cut into `batch_size` streams of equal length; the remainder at the end is dropped.
        length: number of tokens in a segment.
        batch_size: number of streams.

    Raises:
        ValueError: the text is too short for one segment of each stream.

    >>> streams = Streams(torch.arange(14), length=3, batch_size=2)
    >>> [streams[step][0].tolist() for step in range(len(streams))]
    [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]
    >>> streams[1][2].tolist()
    [[0, 1], [1, 1]]
    """

    def __init__(self, ids: Ids, length: int, batch_size: int):
        _check_ids(ids, length, batch_size)
        self.segments = (len(ids) - 1) // (length * batch_size)
        if self.segments < 1:
            raise ValueError(
                f"the text has {len(ids)} tokens; {batch_size} streams of {length} and their next tokens need "
                f"{length * batch_size + 1}: take a longer text, fewer streams or shorter segments"
            )
        self.length, stream = length, self.segments * length
        self.inputs, self.targets = (ids[start:][: batch_size * stream].view(batch_size, stream) for start in (0, 1))

    def __len__(self) -> int:
        """Return the number of segments in a stream."""
        return self.segments

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        step = as_integer("step", step)
        at_least(0, step=step)
        segment = step % self.segments
        columns = slice(segment * self.length, (segment + 1) * self.length)
        indices = torch.tensor([(stream, segment) for stream in range(len(self.inputs))])
        return self.inputs[:, columns].long(), self.targets[:, columns].long(), indices


def in_order(ids: Ids, length: int, batch_size: int) -> Iterator[Batch]:
    """Return an iterator over batches of consecutive windows without overlap; an incomplete last window is dropped."""
    _check_windows(ids, length, batch_size)
    count = (len(ids) - 1) // length
    inputs = ids[: count * length].view(count, length)
    targets = ids[1 : count * length + 1].view(count, length)
    return (
        (rows.long(), following.long()) for rows, following in zip(inputs.split(batch_size), targets.split(batch_size))
    )


def _check_ids(ids: Tensor, length: int, batch_size: int) -> None:
    if ids.dim() != 1:
        raise ValueError(f"ids are {list(ids.shape)}; give those of one text, one axis, such as ids.flatten()")
    token_ids(ids=ids)
    at_least(1, length=length, batch_size=batch_size)


def _check_windows(ids: Tensor, length: int, batch_size: int) -> None:
    _check_ids(ids, length, batch_size)
    fits_memory(batch_size=batch_size, length=length)
    if len(ids) <= length:
        raise ValueError(
            f"the text has {len(ids)} tokens; a window of {length} and its next token need {length + 1}: "
            "take a longer text or a shorter window"
        )
