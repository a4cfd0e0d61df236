"""`PartialResults`: the values of a long analysis, in a file from which a later call continues."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from tfviz.files import atomic, expand_user, load_tensors, save_tensors

FORMAT = "tfviz.PartialResults/1"
WRITE_INTERVAL_SECONDS = 5.0
SAMPLES = 256  # numbers of each weight, about, that tell models with equal sums apart


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
        self.path = None if path is None else expand_user(path)
        self.values = torch.full(tuple(shape), torch.nan)
        self._fingerprint, self._written = fingerprint, time.monotonic()
        if self.path is not None and self.path.exists():
            tensors, metadata = load_tensors(self.path)
            if metadata.get("format") != FORMAT or set(tensors) != {"values"}:
                raise ValueError(f"{self.path} holds no results of an interrupted analysis; give another file")
            if metadata.get("fingerprint") != fingerprint or tensors["values"].shape != self.values.shape:
                raise ValueError(
                    f"{self.path} holds results of another model, prompt, metric or choice of sites; give another "
                    "file, or delete it"
                )
            self.values = tensors["values"]

    def missing(self, first: int, stop: int) -> list[int]:
        """Return the indices from `first` to `stop - 1` whose values are not computed yet."""
        return [index for index in range(first, stop) if self.values[index].isnan().any()]

    def add(self, indices: Iterable[int], values: Tensor) -> None:
        """Store values at indices of the first axis; write the file if the last write was over 5 seconds ago."""
        self.values[list(indices)] = values.to(self.values)
        if time.monotonic() - self._written > WRITE_INTERVAL_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the file, if there is one."""
        self._written = time.monotonic()
        if self.path is not None:
            with atomic(self.path) as draft:
                save_tensors(draft, {"values": self.values}, {"format": FORMAT, "fingerprint": self._fingerprint})


def fingerprint(model: nn.Module, *described: object) -> str:
    """Return a hash of a model's class, sums and samples of its weights, tensors, and the `repr` of other arguments."""
    digest = hashlib.sha256()
    weights = [parameter.detach() for parameter in model.parameters()]
    sums = [weight.double().sum().item() for weight in weights]
    samples = [weight.flatten()[:: max(1, weight.numel() // SAMPLES)].double().tolist() for weight in weights]
    for value in (type(model).__name__, sums, samples, *described):
        if isinstance(value, Tensor):
            numbers = value.detach().cpu().contiguous().flatten().view(torch.uint8)
            digest.update(str(value.shape).encode() + numbers.numpy().tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
