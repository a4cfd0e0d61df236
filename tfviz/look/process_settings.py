"""What captures change in the whole process while one is open, put back when the last one closes.

Compiled code runs eagerly, and warnings about that are hidden.
"""

from __future__ import annotations

import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch

EXPECTED_TEXTS = (
    "flex_attention called without torch.compile",
    "Using `torch.compile.module.` when there are global hooks",
)


class Setting(ABC):
    """A change of the process; `restore` may be called again, if it was interrupted."""

    @abstractmethod
    def apply(self) -> None: ...

    @abstractmethod
    def restore(self) -> None: ...


class Shared:
    """A setting that is applied for its first holder and restored after its last."""

    def __init__(self, make: Callable[[], Setting]):
        self.make, self.lock = make, threading.RLock()
        self.holders: set[Any] = set()
        self.setting: Setting | None = None

    def acquire(self, holder: Any) -> None:
        with self.lock:
            self.holders.add(holder)
            if self.setting is None:
                self.setting = self.make()
                self.setting.apply()

    def release(self, holder: Any) -> None:
        with self.lock:
            self.holders.discard(holder)
            if not self.holders and self.setting is not None:
                self.setting.restore()
                self.setting = None


class HiddenWarnings(Setting):
    """Hide PyTorch's warnings about hooks and eager FlexAttention, which capture uses on purpose."""

    def __init__(self) -> None:
        self.added = [("ignore", re.compile(text, re.IGNORECASE), Warning, None, 0) for text in EXPECTED_TEXTS]

    def apply(self) -> None:
        warnings.filters[:0] = self.added  # type: ignore[index]

    def restore(self) -> None:
        """Remove these filters alone: others may have come and gone since."""
        warnings.filters[:] = [one for one in warnings.filters if one not in self.added]  # type: ignore[index]


class EagerExecution(Setting):
    """Run compiled code eagerly, where a mode can see its calls."""

    def apply(self) -> None:
        self.stance = torch.compiler.set_stance("force_eager")

    def restore(self) -> None:
        if stance := getattr(self, "stance", None):
            stance.__exit__(None, None, None)


EAGER, WARNINGS = Shared(EagerExecution), Shared(HiddenWarnings)
