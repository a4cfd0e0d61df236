"""`ResumableStatistics`: statistics over batches, in a file from which a later call continues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import length_hint
from pathlib import Path
from typing import Any

from torch import Tensor, distributed, nn

from tfviz import schema
from tfviz.study.batch_statistics import Result, merge_results
from tfviz.study.inputs import Inputs
from tfviz.study.resumable_file import ResumableFile, fingerprint
from tfviz.study.statistics import STATE_FIELDS, Statistics

FORMAT = "tfviz.aggregate/1"
WRITE_INTERVAL_SECONDS = 30.0
_AXES_SCHEMA = schema.dict_of(schema.list_of(schema.string()))
_TABLES_SCHEMA = schema.list_of(
    schema.object_of({"name": schema.string(), "axes": _AXES_SCHEMA, "unit": schema.string()})
)


class ResumableStatistics:
    """The statistics of the batches measured so far, which are written to a file.

    Args:
        path: the path of the file, to which the rank is appended if there are several processes; None: no file.
        fingerprint: a hash of the arguments of the analysis; a file with another hash is rejected.

    Attributes:
        statistics: name -> the statistics of this process's batches so far.
        done: the number of this process's batches in the statistics.

    Raises:
        ValueError: the file is damaged, or belongs to another analysis.
    """

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        self.rank, self.world = process_rank()
        self._file = ResumableFile(
            f"{Path(path)}.{self.rank}" if path is not None and self.world > 1 else path,
            FORMAT,
            fingerprint,
            contents="statistics of `aggregate`",
            differences="statistics of another model or measure, of other sites or of another number of processes",
            interval=WRITE_INTERVAL_SECONDS,
        )
        self.statistics: Result = {}
        self.done = 0
        self._first_batch = ""  # a hash of the first batch, stored in the file
        if stored := self._file.read():
            with schema.prefix_errors(str(self._file.path)):
                self._restore(*stored)

    def own_batches(self, batches: Iterable[Any], model: nn.Module, progress: bool) -> Iterator[tuple[int, Inputs]]:
        """Yield this process's remaining batches, each with the index of its first text in the data set.

        Args:
            batches: all batches, of all processes.
            model: the model, to whose device the batches are moved.
            progress: whether to show a progress bar, in the process of rank 0.
        """
        from tqdm import tqdm

        first, own, done = 0, 0, self.done
        total = length_hint(batches) or None
        with tqdm(batches, total=total, unit="batch", disable=not progress or self.rank > 0, mininterval=0.5) as bar:
            for index, batch in enumerate(bar):
                inputs = Inputs.from_prompt("a batch of texts", batch, model)
                if index == 0 and self._file.path is not None:
                    self._check_first(fingerprint(nn.Identity(), *inputs.tensors), self._file.path)
                if index % self.world == self.rank:
                    own += 1
                    if own > done:
                        yield first, inputs
                first += inputs.size

    def _check_first(self, batch: str, path: Path) -> None:
        """Raise ValueError if the file was written for another first batch."""
        if self._first_batch not in ("", batch):
            raise ValueError(f"{path} holds statistics of other texts; give another file, or delete it")
        self._first_batch = batch

    def add(self, found: Result) -> None:
        """Merge the statistics of the next batch; write the file if the last write was over 30 seconds ago."""
        self.statistics = merge_results(self.statistics, found)
        self.done += 1
        if self._file.is_due:
            self.write()

    def write(self) -> None:
        """Write the file, if there is one."""
        tensors = {
            f"{index}.{part}": tensor
            for index, statistics in enumerate(self.statistics.values())
            for part, tensor in statistics.state().items()
        }
        described = [
            {"name": name, "axes": dict(part.axes), "unit": part.unit} for name, part in self.statistics.items()
        ]
        metadata = {"done": str(self.done), "first": self._first_batch, "described": json.dumps(described)}
        self._file.write(tensors, metadata)

    def _restore(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Take over the statistics of a file.

        Raises:
            ValueError: they are damaged.
        """
        described = schema.parse(metadata.get("described", ""), "described")
        _TABLES_SCHEMA(described, "described")
        for index, part in enumerate(described):
            state = {name: tensors[f"{index}.{name}"] for name in STATE_FIELDS if f"{index}.{name}" in tensors}
            if len(state) < len(STATE_FIELDS):
                raise ValueError(f"tensors of {part['name']!r} are missing")
            self.statistics[part["name"]] = Statistics(part["axes"], part["unit"], **state)
        if not metadata.get("done", "").isdecimal():
            raise ValueError(f"done is {metadata.get('done')!r}; it must be an integer")
        self.done, self._first_batch = int(metadata["done"]), metadata.get("first", "")


def process_rank() -> tuple[int, int]:
    """Return the rank of this process and the number of processes; 0 and 1 without a process group."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def merge_processes(own: Result) -> Result:
    """Return the merged statistics of all processes, in each process."""
    _, world = process_rank()
    if world == 1:
        return own
    gathered: list[Any] = [None] * world
    distributed.all_gather_object(gathered, own)
    return reduce(merge_results, gathered)
