"""What runs at present, cell by cell: one line that is renewed in a terminal, and a new line now and then elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

LOG_SECONDS = 15.0  # between two lines where no line can be renewed


class Progress:
    """The cells that notebooks are at.

    Args:
        stream: the text stream for the lines, such as `sys.stderr`.
        clock: the time in seconds.
    """

    def __init__(self, stream: Any, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock, self._renews = stream, clock, stream.isatty()
        self._cells: dict[str, str] = {}
        self._line, self._last = "", clock()

    def start(self, title: str, cell: int, count: int) -> None:
        """Note that a notebook starts a cell, counted from 1; cell 0 is the start of its kernel."""
        self._cells[title] = f"cell {cell} of {count}" if cell else "starting"

    def end(self, title: str) -> None:
        """Note that a notebook has ended, and clear the line for what is printed about it."""
        self._cells.pop(title, None)
        self._renew("")

    def show(self) -> None:
        """Show the line, if it has changed and, in a log, if it is time."""
        line = " · ".join(f"{title}: {at}" for title, at in self._cells.items())
        if self._renews:
            self._renew(line)
        elif line and line != self._line and self._clock() - self._last >= LOG_SECONDS:
            print(line, file=self._stream, flush=True)
            self._line, self._last = line, self._clock()

    def _renew(self, line: str) -> None:
        """Write a line over the one before, in a terminal."""
        line = line[: shutil.get_terminal_size().columns - 1]
        if self._renews and line != self._line:
            self._stream.write(f"\r{line.ljust(len(self._line))}\r{line}")
            self._stream.flush()
            self._line = line
