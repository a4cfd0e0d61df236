"""Where the tokens of an axis lie on a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfviz.look.map_arguments import are_numbers

OTHERS = (0, 1, 2, 5)  # tokens before those of the picture: a class token; one of distillation; four registers
LEAST = 4  # cells of a picture


@dataclass(frozen=True)
class Places:
    """A picture's cells, row by row, among the tokens of an axis.

    Attributes:
        first: tokens before the first cell, which lie nowhere: a class token, registers, words.
        down, across: cells.
        upward: the first row of cells is the lowest, as in a spectrogram.
    """

    first: int
    down: int
    across: int
    upward: bool = False

    @property
    def cells(self) -> int:
        return self.down * self.across

    def words(self, given: Sequence[str], names: Sequence[str]) -> list[str]:
        """A name for each token: of a cell its row and column, counted from 0; of those before, `names`."""
        cells = [f"({row},{col})" for row in range(self.down) for col in range(self.across)]
        if self.down == 1:
            cells = [str(col) for col in range(self.across)]
        before = list(given[: self.first])
        if are_numbers(before):
            before = ["cls", *(f"register {number}" for number in range(1, self.first))][: self.first]
        before[: len(names)] = names[: self.first]
        return [*before, *cells, *given[self.first + len(cells) :]]

    def told(self) -> dict[str, Any]:
        """As a page takes it."""
        return {"first": self.first, "down": self.down, "across": self.across, "upward": self.upward}


def lie(
    words: Sequence[str], size: tuple[int, int] | None, grid: tuple[int, int] | None, runs: bool = True
) -> Places | None:
    """Where an axis lies on a picture, if it does: one without words of its own, or the run of one that repeats.

    Args:
        size: height and width of the picture; None: of sound, where each token is a cell, one after the other.
        grid: rows and columns of cells. None: as many rows as columns, since most models are given a square; else
            cells that are squares themselves. An axis of other cells of the same picture has as many of them as fit.
        runs: whether a word that repeats may be the picture.
    """
    if not (runs or are_numbers(words)):
        return None
    start, count = _run(words)
    if size is None and grid is None:
        return Places(start, 1, count, upward=True) if count >= LEAST else None
    spare = OTHERS if count == len(words) else (0,)
    fits = [(extra, *cells) for extra in spare for cells in _grids(count - extra, size, grid)]
    if not fits:
        return None
    first, down, across = min(fits, key=lambda fit: (grid is None and fit[1] != fit[2], fit))
    return Places(start + first, down, across, upward=size is None)


def both(
    rows: Sequence[str], cols: Sequence[str], size: tuple[int, int] | None, grid: tuple[int, int] | None
) -> tuple[Places | None, Places | None]:
    """As `lie`, of both sides: where one has no words of its own, a word that repeats in the other is padding."""
    runs = not (are_numbers(rows) or are_numbers(cols))
    return lie(rows, size, grid, runs), lie(cols, size, grid, runs)


def _run(words: Sequence[str]) -> tuple[int, int]:
    """Where the tokens that may lie on a picture begin, and how many they are."""
    if are_numbers(words):
        return 0, len(words)
    best, start = (0, 0), 0
    for place in range(1, len(words) + 1):
        if place == len(words) or words[place] != words[start]:
            best = max(best, (place - start, -start))
            start = place
    return (-best[1], best[0]) if best[0] >= LEAST else (0, 0)


def _grids(cells: int, size: tuple[int, int] | None, grid: tuple[int, int] | None) -> list[tuple[int, int]]:
    """Rows and columns that so many cells may have."""
    if cells < LEAST:
        return []
    if grid is not None:
        finer = math.sqrt(cells / math.prod(grid))
        down, across = (round(side * finer) for side in grid)
        return [(down, across)] if down * across == cells and down * grid[1] == across * grid[0] else []
    assert size is not None
    side = math.isqrt(cells)
    down, across = (round((cells * one / other) ** 0.5) for one, other in (size, size[::-1]))
    return [fit for fit in ((side, side), (down, across)) if math.prod(fit) == cells]
