"""Progress of running notebooks, cell by cell: one updated line in a terminal, periodic lines in a log."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

LOG_SECONDS = 15.0  # between two lines of a log


class Progress:
    """A display of the cell that each notebook is running.

    Args:
        stream: the text stream for the lines, such as `sys.stderr`.
        clock: returns the time in seconds.
    """

    def __init__(self, stream: Any, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock, self._renews = stream, clock, stream.isatty()
        self._cells: dict[str, str] = {}
        self._line, self._last = "", clock()

    def start(self, title: str, cell: int, count: int) -> None:
        """Note that a notebook starts a cell, counted from 1; cell 0 is the start of its kernel."""
        self._cells[title] = f"cell {cell} of {count}" if cell else "starting"

    def end(self, title: str) -> None:
        """Note that a notebook has ended, and clear the line in a terminal, so that other text can be printed."""
        self._cells.pop(title, None)
        self._renew("")

    def show(self) -> None:
        """Print the line if it has changed; in a log, at most every `LOG_SECONDS`."""
        line = " · ".join(f"{title}: {at}" for title, at in self._cells.items())
        if self._renews:
            self._renew(line)
        elif line and line != self._line and self._clock() - self._last >= LOG_SECONDS:
            print(line, file=self._stream, flush=True)
            self._line, self._last = line, self._clock()

    def _renew(self, line: str) -> None:
        """Overwrite the previous line, in a terminal only."""
        line = line[: shutil.get_terminal_size().columns - 1]
        if self._renews and line != self._line:
            self._stream.write(f"\r{line.ljust(len(self._line))}\r{line}")
            self._stream.flush()
            self._line = line
