"""PyTorch's threads, on a processor that others use too.

The threads of OpenMP spin while they wait for each other: at full speed they look whether it goes on. With the
processor to oneself that is fastest. Where others want to run, it keeps away the very threads that are waited for, and
a step takes many times as long. So a training step looks how many others there are, and its threads do as fits:

* each has a core of its own: all spin, as PyTorch has it;
* about half of the cores they need are free: as many threads as free cores;
* fewer are free: all threads, and those that wait sleep; of two threads, one, which has nobody to wait for.

Another number of threads adds up sums in another order: beside others, losses may differ in their last digits.
"""

import ctypes
import os
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

import torch

PROC = Path("/proc")
EVERY, LOOKS = 0.2, 5  # seconds from one look at the machine to the next, and how many of them count
LATE = (
    "the processor is busy, and torch was imported before tfviz: its threads spin while they wait, and a step may take "
    "many times as long; import tfviz before torch, or set OMP_WAIT_POLICY=PASSIVE before Python starts"
)


@contextmanager
def share(*, fixed: bool = False) -> Iterator[None]:
    """While this lasts, PyTorch takes no more threads than there is room for; they sleep where spinning would cost.

    Whether they sleep is left as it is then, for what comes after training. `fixed` keeps the number of threads, which
    compiled code has built in.
    """
    most = torch.get_num_threads()
    if most == 1:
        yield
        return
    free = (os.cpu_count() or 1) - _machine().others()
    few = most if fixed else room(free, most)
    _machine().let_spin(few <= free + 0.25)
    if few == most:
        yield
        return
    torch.set_num_threads(few)
    try:
        yield
    finally:
        torch.set_num_threads(most)


def room(free: float, most: int) -> int:
    """How many of `most` threads to take where so many cores are free.

    >>> [room(free, most=2) for free in (2, 1, 0)], [room(free, most=8) for free in (8, 4, 3)]
    ([2, 1, 1], [8, 4, 8])
    """
    return most if most > 2 and free < (most - 1) / 2 else max(1, min(most, round(free)))


def waiting() -> int:
    """How many threads of other processes run or wait for a core at this moment.

    Raises:
        OSError: the system does not say; Linux does.
    """
    everyone = int((PROC / "loadavg").read_text().split()[3].partition("/")[0])
    own = sum(_runs(task) for task in (PROC / "self/task").iterdir())
    return max(0, everyone - own)


def _runs(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(") ")[2].startswith("R")
    except OSError:  # it has ended
        return False


class _Machine:
    """What was seen of the others, and the crowd that makes threads sleep, if it is there."""

    def __init__(self) -> None:
        self.seen: deque[int] = deque(maxlen=LOOKS)
        self.next_look = 0.0
        self.crowd: Event | None = None
        self.gomp: Any = ctypes.CDLL(None) if PROC.is_dir() else None  # GNU's OpenMP, which PyTorch has on Linux
        self.known = hasattr(self.gomp, "GOMP_parallel")

    def others(self) -> float:
        """How many threads of other processes want to run: the mean of the last looks."""
        if time.monotonic() >= self.next_look:
            self.next_look = time.monotonic() + EVERY
            try:
                self.seen.append(waiting() if self.known else _warn())
            except OSError:
                self.seen.append(_warn())
        return sum(self.seen) / len(self.seen)

    def let_spin(self, spin: bool) -> None:
        if self.known and not spin and self.crowd is None:
            self.crowd = Event()
            Thread(target=self._crowd, args=[self.crowd], daemon=True, name="tfviz: crowd").start()
        elif spin and self.crowd is not None:
            self.crowd.set()
            self.crowd = None

    def _crowd(self, leave: Event) -> None:
        """Hold more threads than there are cores, asleep. While there are so many, GNU's OpenMP hardly ever spins.

        (Its manual, on GOMP_SPINCOUNT.) The function that they are given to run is as good as none.
        """
        self.gomp.GOMP_parallel(self.gomp.omp_get_num_threads, None, self.gomp.omp_get_num_procs() + 1, 0)
        leave.wait()


@cache
def _machine() -> _Machine:
    return _Machine()


def _warn() -> int:
    """Where others cannot be counted: say what to do, once, if the machine is busy."""
    import psutil

    if "OMP_WAIT_POLICY" not in os.environ and psutil.getloadavg()[0] > (os.cpu_count() or 1) + 0.5:
        warnings.warn(LATE, RuntimeWarning, stacklevel=2)
    return 0
