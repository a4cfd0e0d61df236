"""Ragged rows in batches of similar length, and pairs of sentences."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.bounds import at_least, token_ids, whole_number
from tfviz.bounds import seed as check_seed
from tfviz.shapes import Int
from tfviz.text.batches import Endless, step_seed
from tfviz.text.subwords import CLS, EOS, PAD, SEP

Rows = Sequence[Tensor] | Tensor  # ragged ids, or one number a row


@runtime_checkable
class Batches(Protocol):
    """Batches by number: tuples of tensors whose first axis is the batch."""

    def __getitem__(self, step: int, /) -> tuple[Tensor, ...]: ...


def pad(rows: Sequence[Int[Tensor, "_"]], value: int = PAD) -> Int[Tensor, "batch position"]:
    """Rows of different length as one tensor, filled up at their ends.

    >>> pad([torch.tensor([5, 6]), torch.tensor([7])]).tolist()
    [[5, 6], [7, 0]]
    """
    if not len(rows):
        raise ValueError("there are no rows to pad; give at least one")
    _check_rows(rows)
    return _padded(rows, value)


def add_special_tokens(rows: Sequence[Tensor], before: int | None = None, after: int | None = EOS) -> list[Tensor]:
    """Each row with a token before it, after it, or both."""
    _check_rows(rows)
    at_least(0, **{name: one for name, one in (("before", before), ("after", after)) if one is not None})
    front = [] if before is None else [torch.tensor([before])]
    back = [] if after is None else [torch.tensor([after])]
    return [torch.cat([*front, row, *back]) for row in rows]


def _check_rows(rows: Sequence[Tensor]) -> None:
    for place, row in enumerate(rows):
        if row.dim() != 1:
            found = "one number" if not row.dim() else f"{list(row.shape)}"
            raise ValueError(
                f"row {place} is {found}; give each row as a tensor of ids, one axis, such as torch.tensor([5, 6])"
            )
        token_ids(**{f"row {place}": row})


def _padded(rows: Sequence[Tensor], value: int = PAD) -> Tensor:
    """As int64, which has room for every id and every filling."""
    return torch.nn.utils.rnn.pad_sequence([row.long() for row in rows], batch_first=True, padding_value=value)


class Buckets(Endless):
    """Batches of rows that are about equally long; `buckets[step]` depends on the seed and the step alone.

    Every row comes once in an epoch of `len(buckets)` steps; rows of the same length meet others in each epoch.

    Args:
        columns: what belongs together, row by row: lists of ids, which are padded, or a tensor with one number a row.
        tokens: the most tokens in a batch, padding included, counted in its longest column.

    Raises:
        ValueError: columns of unequal length or with no row; no column of ids; an empty row; one longer than `tokens`.

    >>> rows = [torch.arange(1, n) for n in (3, 6, 3, 7)]
    >>> [batch[0].shape for batch in Buckets(rows, tokens=12, seed=1).in_order()]
    [torch.Size([2, 2]), torch.Size([2, 6])]
    """

    def __init__(self, *columns: Rows, tokens: int = 4096, seed: int = 0):
        at_least(1, tokens=tokens)
        check_seed(seed)
        if any(isinstance(column, Tensor) and not column.dim() for column in columns):
            raise ValueError("a column is one number; give a list of rows of ids, or a number for each row")
        if len({len(column) for column in columns}) != 1:
            raise ValueError(
                f"the columns have {[len(column) for column in columns]} rows; they must have equally many"
            )
        self.columns, self.seed = columns, seed
        ragged = [column for column in columns if not isinstance(column, Tensor)]
        if not ragged or not len(ragged[0]):
            raise ValueError("there is nothing to sort by length: one column must be a list of rows of ids, not empty")
        self.lengths = torch.tensor([max(map(len, row)) for row in zip(*ragged)])
        for column in ragged:
            empty = next((place for place, row in enumerate(column) if len(row) == 0), None)
            if empty is not None:
                raise ValueError(f"row {empty} is empty; leave it out, or frame rows with an end token first")
            _check_rows(column)
        if self.lengths.max() > tokens:
            longest = int(self.lengths.argmax())
            raise ValueError(f"row {longest} has {self.lengths[longest]} tokens, more than a batch's {tokens}")
        self.cuts = _cuts(self.lengths.sort().values.tolist(), tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.cuts)

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        epoch, place = divmod(whole_number("step", step), len(self))
        if getattr(self, "_epoch", None) != epoch:
            draw = torch.Generator().manual_seed(step_seed(self.seed, epoch))
            ties = torch.randperm(len(self.lengths), generator=draw)
            self._rows = ties[self.lengths[ties].argsort(stable=True)]
            self._order = torch.randperm(len(self), generator=draw).tolist()
            self._epoch = epoch
        return self._batch(self._rows[slice(*self.cuts[self._order[place]])])

    def in_order(self) -> Iterator[tuple[Tensor, ...]]:
        """Every row once, from short to long: row `k` of what comes is row `order[k]`."""
        yield from (self._batch(self.order[start:stop]) for start, stop in self.cuts)

    @property
    def order(self) -> Int[Tensor, "row"]:
        """The rows from short to long."""
        return self.lengths.argsort(stable=True)

    def _batch(self, rows: Tensor) -> tuple[Tensor, ...]:
        def take(column: Rows) -> Tensor:
            return column[rows] if isinstance(column, Tensor) else _padded([column[row] for row in rows])

        return tuple(take(column) for column in self.columns)


def _cuts(lengths: list[int], tokens: int) -> list[tuple[int, int]]:
    """Where to cut rows that go from short to long, so that no batch has more than `tokens`."""
    cuts, start = [], 0
    for stop, length in enumerate(lengths):
        if (stop + 1 - start) * length > tokens:
            cuts.append((start, stop))
            start = stop
    return [*cuts, (start, len(lengths))]


def sentence_pairs(
    documents: Sequence[Sequence[Tensor]], length: int = 128, *, cls: int = CLS, sep: int = SEP, seed: int = 0
) -> tuple[list[Tensor], list[Tensor], Int[Tensor, "pair"]]:
    """Rows `[CLS] first [SEP] second [SEP]`, their segments (0 or 1), and whether the second follows the first.

    Half of the second sentences are those that follow in the document, half come from another one (Devlin et al.
    2019, section 3.1). Pairs longer than `length` tokens lose the end of the longer sentence, then of both.

    Args:
        documents: the ids of their sentences; at least two documents, and two sentences in one of them.
        cls, sep: the ids of `[CLS]` and `[SEP]`, where the vocabulary was not built here.
    """
    check_seed(seed)
    at_least(0, cls=cls, sep=sep)
    if any(sentence.dim() != 1 for document in documents for sentence in document):
        raise TypeError("a sentence is no tensor of ids, one axis; give documents, each a list of sentences")
    if any(not len(sentence) for document in documents for sentence in document):
        raise ValueError("a sentence has no tokens; leave it out")
    if length < 5:
        raise ValueError(f"length is {length}; three special tokens and one of each sentence need 5")
    documents = [document for document in documents if len(document)]
    if len(documents) < 2:
        raise ValueError(f"there are {len(documents)} documents; a sentence that does not follow needs a second one")
    draw = random.Random(seed)
    rows, segments, follows = [], [], []
    for place, document in enumerate(documents):
        for first, second in pairwise(document):
            true = draw.random() < 0.5
            if not true:
                other = (place + draw.randrange(1, len(documents))) % len(documents)
                second = draw.choice(documents[other])
            first, second = _cut(first, second, length - 3)
            rows.append(torch.cat([torch.tensor([cls]), first, torch.tensor([sep]), second, torch.tensor([sep])]))
            segments.append((torch.arange(len(rows[-1])) >= len(first) + 2).long())
            follows.append(true)
    if not rows:
        raise ValueError("no document has two sentences")
    return rows, segments, torch.tensor(follows).long()


def _cut(first: Tensor, second: Tensor, length: int) -> tuple[Tensor, Tensor]:
    second = second[: max(length - len(first), length // 2)]
    return first[: length - len(second)], second
