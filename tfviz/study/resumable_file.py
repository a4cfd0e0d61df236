"""`ResumableFile`: the file of a long analysis, from which a later call with the same arguments continues."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from tfviz.files import atomic, expand_user, load_tensors, save_tensors

SAMPLES = 256  # numbers of each weight, about, that tell models with equal sums apart


class ResumableFile:
    """A file of tensors and texts with the fingerprint of an analysis, written at intervals, each time completely.

    Args:
        path: the path of the file; None: nothing is written.
        format: the format's name and version, which the file states.
        fingerprint: a hash of the arguments of the analysis; a file with another hash is rejected.
        contents: what the file holds, in messages.
        differences: in which arguments a file of another hash may differ, in messages.
        interval: the least time between two writes, in seconds; see `is_due`.
    """

    def __init__(
        self,
        path: str | Path | None,
        format: str,
        fingerprint: str,
        *,
        contents: str,
        differences: str,
        interval: float,
    ) -> None:
        self.path = None if path is None else expand_user(path)
        self._format, self._fingerprint = format, fingerprint
        self._contents, self._differences = contents, differences
        self._interval, self._written = interval, time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last write was longer ago than the interval."""
        return time.monotonic() - self._written > self._interval

    def read(self) -> tuple[dict[str, Tensor], dict[str, str]] | None:
        """Return the tensors and the metadata of the file; None if there is no file.

        Raises:
            ValueError: the file has another format, or was written with other arguments.
        """
        if self.path is None or not self.path.exists():
            return None
        tensors, metadata = load_tensors(self.path)
        if metadata.get("format") != self._format:
            raise ValueError(f"{self.path} holds no {self._contents}; give another file")
        if metadata.get("fingerprint") != self._fingerprint:
            raise self.mismatch()
        return tensors, metadata

    def mismatch(self) -> ValueError:
        """Return the error that the file was written with other arguments."""
        return ValueError(f"{self.path} holds {self._differences}; give another file, or delete it")

    def write(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write the file, if there is one."""
        self._written = time.monotonic()
        if self.path is not None:
            identity = {"format": self._format, "fingerprint": self._fingerprint}
            with atomic(self.path) as draft:
                save_tensors(draft, dict(tensors), {**identity, **metadata})


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
