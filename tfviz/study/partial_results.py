"""`PartialResults`: the values of a long analysis, kept in a file as they come."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from tfviz.files import atomic, expand_user, load_tensors, save_tensors

FORMAT = "tfviz.PartialResults/1"
SECONDS = 5.0  # between two writes


class PartialResults:
    """Values that are computed one after another, NaN until then.

    Args:
        path: of the file; None: they are kept in memory alone.
        count: how many there will be.
        fingerprint: of what they are computed from: a file of other values is refused.

    Raises:
        ValueError: the file holds something else, or was made with other arguments.
    """

    def __init__(self, path: str | Path | None, count: int, fingerprint: str) -> None:
        self.path = None if path is None else expand_user(path)
        self.values = torch.full((count,), torch.nan)
        self._fingerprint, self._written = fingerprint, time.monotonic()
        if self.path is not None and self.path.exists():
            tensors, metadata = load_tensors(self.path)
            if metadata.get("format") != FORMAT or set(tensors) != {"values"}:
                raise ValueError(f"{self.path} holds no results of an analysis that was stopped; give another file")
            if metadata.get("fingerprint") != fingerprint or tensors["values"].shape != self.values.shape:
                raise ValueError(
                    f"{self.path} holds results of another model, prompt, metric or choice of sites; give another "
                    "file, or delete it"
                )
            self.values = tensors["values"]

    def missing(self, first: int, stop: int) -> list[int]:
        """Return the numbers from `first` on, below `stop`, whose values are still to be computed."""
        return [number for number in range(first, stop) if self.values[number].isnan()]

    def add(self, numbers: Iterable[int], values: Tensor) -> None:
        """Keep values; write them if the last time is some seconds ago."""
        self.values[list(numbers)] = values.to(self.values)
        if time.monotonic() - self._written > SECONDS:
            self.write()

    def write(self) -> None:
        """Write the file, if there is one."""
        self._written = time.monotonic()
        if self.path is not None:
            with atomic(self.path) as draft:
                save_tensors(draft, {"values": self.values}, {"format": FORMAT, "fingerprint": self._fingerprint})


def fingerprint(model: nn.Module, *described: object) -> str:
    """Return a hash of a model's weights and of what else results depend on: tensors, and whatever `repr` tells."""
    digest = hashlib.sha256()
    sums = [parameter.detach().double().sum().item() for parameter in model.parameters()]
    for value in (type(model).__name__, sums, *described):
        if isinstance(value, Tensor):
            digest.update(
                str(value.shape).encode() + value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
            )
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
