"""What a capture changes of the whole process while it lasts, and how it is taken back."""

from __future__ import annotations

import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch

EXPECTED_TEXTS = (
    "flex_attention called without torch.compile",
    "Using `torch.compile.module.` when there are global hooks",
)
# captures under way in this thread or task, from the outermost on
ACTIVE: ContextVar[tuple[Any, ...]] = ContextVar("captures", default=())


class Setting(ABC):
    """Something of the whole process that is put, and taken back: again, where that was interrupted."""

    @abstractmethod
    def put(self) -> None: ...

    @abstractmethod
    def take_back(self) -> None: ...


class Shared:
    """A setting that lasts from the first capture that wants it until the last."""

    def __init__(self, make: Callable[[], Setting]):
        self.make, self.lock = make, threading.RLock()
        self.holders: set[Any] = set()
        self.setting: Setting | None = None

    def acquire(self, holder: Any) -> None:
        with self.lock:
            self.holders.add(holder)
            if self.setting is None:
                self.setting = self.make()
                self.setting.put()

    def release(self, holder: Any) -> None:
        with self.lock:
            self.holders.discard(holder)
            if not self.holders and self.setting is not None:
                self.setting.take_back()
                self.setting = None


class Expected(Setting):
    """Warnings about what is done here on purpose are not shown."""

    def __init__(self) -> None:
        self.added = [("ignore", re.compile(text, re.IGNORECASE), Warning, None, 0) for text in EXPECTED_TEXTS]

    def put(self) -> None:
        warnings.filters[:0] = self.added  # type: ignore[index]

    def take_back(self) -> None:
        """These alone: others may have come and gone since."""
        warnings.filters[:] = [one for one in warnings.filters if one not in self.added]  # type: ignore[index]


class Eager(Setting):
    """What was compiled runs as it was written, where it can be seen."""

    def put(self) -> None:
        self.stance = torch.compiler.set_stance("force_eager")

    def take_back(self) -> None:
        if stance := getattr(self, "stance", None):
            stance.__exit__(None, None, None)


class Inherited(Setting):
    """Threads that a forward starts belong to its captures."""

    def put(self) -> None:
        self.start = start = threading.Thread.start

        def start_inside(thread: threading.Thread) -> None:
            captures = ACTIVE.get()
            if any(one.state.running for one in captures):
                run = thread.run

                def run_inside() -> None:
                    ACTIVE.set(captures)
                    run()

                thread.run = run_inside  # type: ignore[method-assign]
            start(thread)

        self.own = start_inside
        threading.Thread.start = start_inside  # type: ignore[method-assign, assignment]

    def take_back(self) -> None:
        if threading.Thread.start is getattr(self, "own", None):  # else somebody has put another in its place since
            threading.Thread.start = self.start  # type: ignore[method-assign]


EAGER, EXPECTED, THREADS = Shared(Eager), Shared(Expected), Shared(Inherited)
