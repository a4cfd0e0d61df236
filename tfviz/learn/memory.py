"""A meter of the memory of tensors, which counts each new storage until it is freed."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["Meter"]


class Meter(TorchDispatchMode):
    """A context that counts the memory of the tensors created in it, operation by operation.

    Views and tensors changed in place take no new memory. Tensors created outside the context are not counted, nor is
    the temporary memory of a kernel. The counts are computed from sizes, so they are the same on every machine.

    Attributes:
        label: name of the current part of the computation, set by the caller; it is stored for each new tensor.
        held: bytes of the tensors that are alive, by the label under which they were created.
        log: the label and a copy of `held`, after each operation.

    >>> with Meter() as meter:
    ...     a = torch.zeros(1000)  # 4,000 bytes
    ...     b = a.view(10, 100) + 1
    ...     del a
    ...     c = b * 2
    >>> meter.total, meter.peak
    (8000, 8000)
    """

    def __init__(self) -> None:
        super().__init__()
        self.label: Any = ""
        self.held: Counter[Any] = Counter()
        self.log: list[tuple[Any, dict[Any, int]]] = []
        self._alive: set[int] = set()  # addresses of the storages that are counted

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        given = {storage.data_ptr() for storage in _storages((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for storage in _storages(result):
            address, size = storage.data_ptr(), storage.nbytes()
            if address and address not in self._alive | given:
                self._alive.add(address)
                self.held[self.label] += size
                weakref.finalize(storage, self._free, address, size, self.label)
        self.log.append((self.label, dict(self.held)))
        return result

    def _free(self, address: int, size: int, label: Any) -> None:
        self._alive.discard(address)
        self.held[label] -= size

    @property
    def total(self) -> int:
        """The current memory, in bytes."""
        return sum(self.held.values())

    @property
    def peak(self) -> int:
        """The largest memory after any operation, in bytes."""
        return max((sum(held.values()) for _, held in self.log), default=0)

    def snapshot_at_peak(self, label: Any, start: int = 0, stop: int | None = None) -> Mapping[Any, int]:
        """Return the bytes held, by label, after the operation of one part with the largest total.

        Args:
            label: the label of the part.
            start: the first entry of `log` to consider.
            stop: the entry to stop before; None: the end.

        Raises:
            LookupError: no operation in this range has this label.
        """
        moments = [held for part, held in self.log[start:stop] if part == label]
        if not moments:
            raise LookupError(f"no operation was labelled {label!r} between entries {start} and {stop or 'the end'}")
        return max(moments, key=lambda held: sum(held.values()))


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    """Return the storages of all tensors in nested lists, tuples and dicts, each once."""
    found = [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
    return list({storage.data_ptr(): storage for storage in found}.values())
