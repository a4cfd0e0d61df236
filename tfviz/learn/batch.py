"""Batches (tuples or mappings of tensors), indexed by the step of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from tfviz import validation
from tfviz.indexed_batches import Batches, step_seed

Batch = tuple[Tensor, ...] | Mapping[str, Tensor]
BATCH_TYPES = (
    "a tuple of tensors whose first axis is the batch, such as (inputs, targets), or a mapping of such tensors; for "
    "a dataset of rows, give a DataLoader"
)


def tensors(batch: Batch) -> tuple[Tensor, ...]:
    """Return the tensors of a batch, in order."""
    return tuple(batch.values()) if isinstance(batch, Mapping) else tuple(batch)


def map_tensors(batch: Batch, function: Callable[[Tensor], Tensor]) -> Batch:
    """Apply a function to each tensor of a batch; return the results as a batch."""
    if isinstance(batch, Mapping):
        return {name: function(part) for name, part in batch.items()}
    return tuple(map(function, batch))


def row_count(batch: Batch) -> int:
    """Return the number of rows of a batch: the largest length of its tensors."""
    return max(len(part) for part in tensors(batch))


def split(batch: Batch, rank: int, processes: int, parts: int) -> Iterator[Batch]:
    """Yield the rows of one process in `parts` chunks; a tensor whose one row holds for all rows is in every chunk."""
    rows = row_count(batch)
    shares = zip(
        *(
            [part] * parts if len(part) < rows else part[rank % rows :: processes].tensor_split(parts)
            for part in tensors(batch)
        )
    )
    for share in shares:
        yield dict(zip(batch, share)) if isinstance(batch, Mapping) else share


def check_batch(batch: Any, name: str) -> Batch:
    """Return a batch after checking that it is a tuple or a mapping of tensors.

    Raises:
        TypeError: the batch is neither, or is empty; the message begins with `name`.
    """
    if not isinstance(batch, tuple | list | Mapping) or not batch:
        raise TypeError(f"{name} is {validation.describe(batch)}; it must be {BATCH_TYPES}")
    for key, part in batch.items() if isinstance(batch, Mapping) else enumerate(batch):
        if not isinstance(part, Tensor):
            held = validation.describe(part) + (f" as {key!r}" if isinstance(batch, Mapping) else "")
            raise TypeError(f"{name} holds {held}; it must be {BATCH_TYPES}")
    return dict(batch) if isinstance(batch, Mapping) else tuple(batch)


def _check_rows(batch: Batch, name: str) -> None:
    """Raise TypeError or ValueError unless all tensors of a batch have the same number of rows.

    In a mapping, the single row of a tensor may hold for all rows, as in position_ids `[1, position]`.
    """
    if any(not part.dim() for part in tensors(batch)):
        raise TypeError(f"{name} holds a tensor of shape []; it must be {BATCH_TYPES}")
    rows = [len(part) for part in tensors(batch)]
    one_for_all = {1} if isinstance(batch, Mapping) else set()
    if not all(rows) or len(set(rows) - one_for_all) > 1:
        raise ValueError(f"{name} has parts of {rows} rows; they must all have the same number of rows, at least 1")


def draw_batch(batches: Batches | Epochs, step: int) -> Batch:
    """Return the batch of a step.

    Raises:
        LookupError: there is no batch for this step.
        TypeError, ValueError: the batch is not a tuple or mapping of tensors with the same number of rows.
    """
    try:
        batch: Any = batches[step]
    except (LookupError, StopIteration) as error:
        why = f"{type(error).__name__}: {error}"
        raise LookupError(f"batches[{step}] does not exist ({why}); give more batches, or take fewer steps") from error
    batch = check_batch(batch, f"batches[{step}]")
    _check_rows(batch, f"batches[{step}]")
    return batch


def length(batches: Any) -> int | None:
    """Return the number of batches in an epoch; None if it is unknown."""
    try:
        return len(batches)
    except TypeError:  # a loader of an IterableDataset has `__len__`, which raises
        return None


class Epochs:
    """A loader's batches, indexed by step across epochs.

    Batches can be taken only in order. Batches of earlier steps that were not taken are drawn and dropped. Before each
    batch is drawn, PyTorch's generator is seeded for its step. A resumed run therefore gets the same batches, also from
    a loader that shuffles without a generator of its own, or from a dataset that draws random numbers.

    Args:
        loader: any iterable of batches, such as a `torch.utils.data.DataLoader`.
        seed: the seed of the run.
    """

    def __init__(self, loader: Iterable[Any], seed: int):
        self.loader, self.seed = loader, seed
        self._iterator: Iterator[Any] | None = None
        self._step = 0  # index of the next batch

    def __getitem__(self, step: int) -> Any:
        if step < self._step:
            raise LookupError("a loader's batches come in order")
        while True:
            torch.manual_seed(step_seed(self.seed, self._step))
            batch = self._next()
            self._step += 1
            if self._step > step:
                return batch

    def _next(self) -> Any:
        """Return the next batch; if the epoch has ended, the first batch of the next one."""
        if self._iterator is not None:
            for batch in self._iterator:
                return batch
        self._iterator = iter(self.loader)
        for batch in self._iterator:
            return batch
        once = "it is an iterator, and can be read once" if self._iterator is self.loader else "its epoch is empty"
        raise LookupError(f"the loader ended after {self._step} batches: {once}")
