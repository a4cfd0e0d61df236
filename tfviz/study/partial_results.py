"""`PartialResults`: the values of a long analysis, in a file from which a later call continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from tfviz.study.resumable_file import ResumableFile

FORMAT = "tfviz.PartialResults/1"
WRITE_INTERVAL_SECONDS = 5.0


class PartialResults:
    """Values that are computed one after another; those not yet computed are NaN.

    Args:
        path: the path of the file; None: the values are only in memory.
        shape: the shape of all values; the first axis is the one along which they are computed.
        fingerprint: a hash of the arguments of the analysis; a file with another hash is rejected.

    Raises:
        ValueError: the file is not one of partial results, or was written with other arguments.
    """

    def __init__(self, path: str | Path | None, shape: Sequence[int], fingerprint: str) -> None:
        self.values = torch.full(tuple(shape), torch.nan)
        self._file = ResumableFile(
            path,
            FORMAT,
            fingerprint,
            contents="results of an interrupted analysis",
            differences="results of another model, prompt, metric or choice of sites",
            interval=WRITE_INTERVAL_SECONDS,
        )
        if stored := self._file.read():
            tensors, _ = stored
            if set(tensors) != {"values"} or tensors["values"].shape != self.values.shape:
                raise self._file.mismatch()
            self.values = tensors["values"]

    def missing(self, first: int, stop: int) -> list[int]:
        """Return the indices from `first` to `stop - 1` whose values are not computed yet."""
        return [index for index in range(first, stop) if self.values[index].isnan().any()]

    def add(self, indices: Iterable[int], values: Tensor) -> None:
        """Store values at indices of the first axis; write the file if the last write was over 5 seconds ago."""
        self.values[list(indices)] = values.to(self.values)
        if self._file.is_due:
            self.write()

    def write(self) -> None:
        """Write the file, if there is one."""
        self._file.write({"values": self.values}, {})
