"""Padded batches of rows of similar length, special tokens, and BERT's pairs of sentences."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from tfviz.checks import as_integer, at_least, token_ids
from tfviz.checks import seed as check_seed
from tfviz.indexed_batches import Batches
from tfviz.shapes import Int
from tfviz.text.batches import EndlessBatches, step_generator
from tfviz.text.subwords import CLS, EOS, PAD, SEP

__all__ = ["Batches", "Buckets", "Rows", "add_special_tokens", "pad", "sentence_pairs"]

Rows = Sequence[Tensor] | Tensor  # ids of rows of different lengths, or one number for each row


def pad(rows: Sequence[Int[Tensor, "_"]], value: int = PAD) -> Int[Tensor, "batch position"]:
    """Stack rows of ids of different lengths into one int64 tensor, padded with `value` on the right.

    Raises:
        ValueError: there are no rows, or a row does not have exactly one axis.

    >>> pad([torch.tensor([5, 6]), torch.tensor([7])]).tolist()
    [[5, 6], [7, 0]]
    """
    if not len(rows):
        raise ValueError("there are no rows to pad; give at least one")
    _check_rows(rows)
    return _pad(rows, value)


def add_special_tokens(rows: Sequence[Tensor], bos: int | None = None, eos: int | None = EOS) -> list[Tensor]:
    """Return each row with the id `bos` before it and the id `eos` after it; None adds nothing."""
    _check_rows(rows)
    at_least(0, bos=bos or 0, eos=eos or 0)
    prefix = [] if bos is None else [torch.tensor([bos])]
    suffix = [] if eos is None else [torch.tensor([eos])]
    return [torch.cat([*prefix, row, *suffix]) for row in rows]


def _check_rows(rows: Sequence[Tensor]) -> None:
    for index, row in enumerate(rows):
        if row.dim() != 1:
            raise ValueError(
                f"row {index} is {list(row.shape)}; give each row as a tensor of ids, one axis, such as "
                "torch.tensor([5, 6])"
            )
        token_ids(**{f"row {index}": row})


def _pad(rows: Sequence[Tensor], value: int = PAD) -> Tensor:
    """Pad rows on the right as int64, which holds every id and padding value."""
    return torch.nn.utils.rnn.pad_sequence([row.long() for row in rows], batch_first=True, padding_value=value)


class Buckets(EndlessBatches):
    """Batches of rows of similar length; `buckets[step]` depends only on the seed and the step.

    An epoch of `len(buckets)` steps contains every row once. Each epoch shuffles the batches, and the rows of equal
    length among them.

    Args:
        columns: parallel columns of the data. Each is a list of rows of ids, which are padded, or a tensor with one
            number for each row.
        max_tokens: the maximum number of tokens in a batch, including padding, counted in its longest column.

    Raises:
        ValueError: columns differ in length or are empty; none holds ids; a row is empty or longer than `max_tokens`.

    >>> rows = [torch.arange(1, n) for n in (3, 6, 3, 7)]
    >>> [batch[0].shape for batch in Buckets(rows, max_tokens=12, seed=1).in_order()]
    [torch.Size([2, 2]), torch.Size([2, 6])]
    """

    def __init__(self, *columns: Rows, max_tokens: int = 4096, seed: int = 0):
        at_least(1, max_tokens=max_tokens)
        check_seed(seed)
        self.columns, self.seed = columns, seed
        self.lengths = _row_lengths(columns)
        if self.lengths.max() > max_tokens:
            longest = int(self.lengths.argmax())
            raise ValueError(f"row {longest} has {self.lengths[longest]} tokens, more than a batch's {max_tokens}")
        self.cuts = _cuts(self.lengths.sort().values.tolist(), max_tokens)
        self._epoch = -1  # the epoch for which `_rows` and `_batches` were drawn

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self.cuts)

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        epoch, index = divmod(as_integer("step", step), len(self))
        if self._epoch != epoch:
            generator = step_generator(self.seed, epoch)
            shuffled = torch.randperm(len(self.lengths), generator=generator)
            self._rows = shuffled[self.lengths[shuffled].argsort(stable=True)]
            self._batches = torch.randperm(len(self), generator=generator).tolist()
            self._epoch = epoch
        return self._batch(self._rows[slice(*self.cuts[self._batches[index]])])

    def in_order(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield batches that contain every row once, shortest first; the k-th row is row `order[k]` of the data."""
        yield from (self._batch(self.order[start:stop]) for start, stop in self.cuts)

    @property
    def order(self) -> Int[Tensor, "row"]:
        """Indices of the rows, sorted by length, shortest first."""
        return self.lengths.argsort(stable=True)

    def _batch(self, rows: Tensor) -> tuple[Tensor, ...]:
        def take(column: Rows) -> Tensor:
            return column[rows] if isinstance(column, Tensor) else _pad([column[row] for row in rows])

        return tuple(take(column) for column in self.columns)


def _row_lengths(columns: Sequence[Rows]) -> Tensor:
    """Check the columns, and return the length of each row in its longest column."""
    if any(isinstance(column, Tensor) and not column.dim() for column in columns):
        raise ValueError("a column is one number; give a list of rows of ids, or a number for each row")
    counts = [len(column) for column in columns]
    if len(set(counts)) != 1:
        raise ValueError(f"the columns have {counts} rows; they must have equally many")
    ragged = [column for column in columns if not isinstance(column, Tensor)]
    if not ragged or not counts[0]:
        raise ValueError("there is nothing to sort by length: one column must be a list of rows of ids, not empty")
    for column in ragged:
        _check_rows(column)
        for index, row in enumerate(column):
            if not len(row):
                raise ValueError(f"row {index} is empty; leave it out, or add an end token first")
    return torch.tensor([max(map(len, row)) for row in zip(*ragged)])


def _cuts(lengths: list[int], max_tokens: int) -> list[tuple[int, int]]:
    """Return the (start, stop) of each batch of rows sorted by length, so that no batch has more than `max_tokens`."""
    cuts, start = [], 0
    for stop, length in enumerate(lengths):
        if (stop + 1 - start) * length > max_tokens:
            cuts.append((start, stop))
            start = stop
    return [*cuts, (start, len(lengths))]


def sentence_pairs(
    documents: Sequence[Sequence[Tensor]], length: int = 128, *, cls: int = CLS, sep: int = SEP, seed: int = 0
) -> tuple[list[Tensor], list[Tensor], Int[Tensor, "pair"]]:
    """Return rows `[CLS] first [SEP] second [SEP]`, their segments (0 or 1), and whether the second follows the first.

    With probability 1/2 the second sentence is the one that follows the first in its document; otherwise it is drawn
    from another document (Devlin et al. 2019, section 3.1). Pairs longer than `length` tokens are truncated at the end
    of the longer sentence, or at the end of both if both are long.

    Args:
        documents: for each document, the ids of each sentence; at least two documents, one of them with two sentences.
        length: the maximum number of tokens in a pair, including special tokens; at least 5.
        cls: the id of `[CLS]`; by default its id in tokenizers trained by `tfviz.text`.
        sep: the id of `[SEP]`; by default its id in tokenizers trained by `tfviz.text`.
        seed: the seed of the random numbers.

    Raises:
        ValueError: there are fewer than two documents, none has two sentences, a sentence is empty, or `length` is
            below 5.
    """
    check_seed(seed)
    at_least(0, cls=cls, sep=sep)
    documents = [document for document in documents if len(document)]
    _check_documents(documents, length)
    generator = random.Random(seed)
    rows, segments, follows = [], [], []
    for index, document in enumerate(documents):
        for first, second in pairwise(document):
            follows.append(generator.random() < 0.5)
            if not follows[-1]:
                other = (index + generator.randrange(1, len(documents))) % len(documents)
                second = generator.choice(documents[other])
            first, second = _truncate(first, second, length - 3)
            rows.append(torch.cat([torch.tensor([cls]), first, torch.tensor([sep]), second, torch.tensor([sep])]))
            segments.append((torch.arange(len(rows[-1])) >= len(first) + 2).long())
    if not rows:
        raise ValueError("no document has two sentences")
    return rows, segments, torch.tensor(follows).long()


def _check_documents(documents: Sequence[Sequence[Tensor]], length: int) -> None:
    for document in documents:
        if any(sentence.dim() != 1 or not len(sentence) for sentence in document):
            raise ValueError(
                "a sentence is empty, or not a one-dimensional tensor of ids; give documents, each a list of them"
            )
    if length < 5:
        raise ValueError(f"length is {length}; three special tokens and one of each sentence need 5")
    if len(documents) < 2:
        raise ValueError(
            f"there are {len(documents)} documents; give at least 2, since a sentence that does not "
            f"follow comes from another document"
        )


def _truncate(first: Tensor, second: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Truncate two sentences so that together they have `length` tokens, half of them from each if both are long."""
    second = second[: max(length - len(first), length // 2)]
    return first[: length - len(second)], second
