"""Memory on a CPU: what training frees, it needs again a moment later."""

import ctypes
import sys
from functools import cache
from typing import Any

GB = 2**30
# parameters of glibc's `mallopt`: when to hand free memory back, how much more to take, what to take by itself
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3


@cache
def keep() -> bool:
    """Let this process keep up to 1 GB of what it frees, rather than hand it back and take it anew.

    glibc returns every large tensor to the system at once, which then clears its pages before it gives them out
    again: a fifth of the time of a training step on a CPU. True where it could be done: with glibc, on Linux.
    """
    mallopt = _of_glibc("mallopt")
    wishes = {M_MMAP_THRESHOLD: GB, M_TRIM_THRESHOLD: GB, M_TOP_PAD: GB // 16}
    return mallopt is not None and all(mallopt(what, size) for what, size in wishes.items())


def hand_back() -> bool:
    """Return to the system what is free now, where that can be done: what one training kept, the next may not need.

    Without this a training that recomputes saves nothing in a process where another ran before.
    """
    trim = _of_glibc("malloc_trim")
    return trim is not None and bool(trim(0))


def _of_glibc(name: str) -> Any:
    """A function of glibc; None with another C library, or elsewhere than on Linux."""
    try:
        return getattr(ctypes.CDLL(None), name) if sys.platform.startswith("linux") else None
    except AttributeError:
        return None
