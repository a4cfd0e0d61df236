"""Grids of image patches, found among the tokens of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tfviz.look.map_arguments import are_numbers

EXTRA_TOKEN_COUNTS = (0, 1, 2, 5)  # before the patches: none; a class token; and a distillation token; or 4 registers
MIN_PATCHES = 4  # in a picture
Shape = tuple[int, int]  # rows, columns


@dataclass(frozen=True)
class PatchGrid:
    """A grid of image patches, row by row, among the tokens of an axis.

    Attributes:
        first: the index of the first patch; a class token, registers or text tokens may precede it.
        rows: the number of rows.
        columns: the number of columns.
        upward: whether the first row of patches is the lowest, as in a spectrogram.
    """

    first: int
    rows: int
    columns: int
    upward: bool = False

    @property
    def patches(self) -> slice:
        """The indices of the tokens that are patches."""
        return slice(self.first, self.first + self.rows * self.columns)

    def token_names(self, tokens: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return a label for each token of the axis: "(row,column)", from 0, for patches; `names` for tokens before.

        In a grid of one row, patches are numbered from 0.

        Args:
            tokens: the labels of all tokens of the axis, used for tokens that have no other name.
            names: the names of the first tokens before the patches.
        """
        patches = [f"({row},{column})" for row in range(self.rows) for column in range(self.columns)]
        if self.rows == 1:
            patches = [str(column) for column in range(self.columns)]
        before = list(tokens[: self.first])
        if are_numbers(before):
            before = ["cls", *(f"register {index}" for index in range(1, self.first))][: self.first]
        before[: len(names)] = names[: self.first]
        return [*before, *patches, *tokens[self.patches.stop :]]


def find_grids(
    rows: Sequence[str], columns: Sequence[str], size: Shape | None, shape: Shape | None
) -> tuple[PatchGrid | None, PatchGrid | None]:
    """Return the results of `find_grid` for the labels of the queries (rows) and of the keys (columns).

    If one axis is unlabelled, a label that repeats on the other axis is padding, not the image.
    """
    runs = not (are_numbers(rows) or are_numbers(columns))
    return find_grid(rows, size, shape, runs), find_grid(columns, size, shape, runs)


def find_grid(tokens: Sequence[str], size: Shape | None, shape: Shape | None, runs: bool = True) -> PatchGrid | None:
    """Return the grid that an unlabelled axis, or the longest run of one repeated label, forms; None if there is none.

    Args:
        tokens: the labels of the axis; numbers from 0 mean that it is unlabelled.
        size: height and width of the picture; None: a spectrogram, whose tokens are successive in time.
        shape: rows and columns of the grid, or of a coarser or finer grid of the same proportions. None: a square grid,
            since most models take square images, otherwise square patches.
        runs: whether a run of one repeated label may be the picture.
    """
    if are_numbers(tokens):
        start, count = 0, len(tokens)
    elif runs:
        lengths = [len(list(run)) for _, run in groupby(tokens)]
        longest = lengths.index(max(lengths))
        start, count = sum(lengths[:longest]), lengths[longest]
    else:
        return None
    extras = EXTRA_TOKEN_COUNTS if count == len(tokens) else (0,)
    if size is None and shape is None:
        return PatchGrid(start, 1, count, upward=True) if count >= MIN_PATCHES else None
    found = [(extra, *fit) for extra in extras for fit in _shapes(count - extra, size, shape)]
    if not found:
        return None
    first, rows, columns = min(found, key=lambda fit: (shape is None and fit[1] != fit[2], fit))
    return PatchGrid(start + first, rows, columns, upward=size is None)


def _shapes(count: int, size: Shape | None, shape: Shape | None) -> list[Shape]:
    """Return the grid shapes, (rows, columns), that this many patches can form; see `find_grid`."""
    if count < MIN_PATCHES:
        return []
    if shape is not None:
        finer = math.sqrt(count / math.prod(shape))
        rows, columns = (round(side * finer) for side in shape)
        return [(rows, columns)] if rows * columns == count and rows * shape[1] == columns * shape[0] else []
    assert size is not None
    height, width = size
    square = (math.isqrt(count), math.isqrt(count))
    of_squares = (round(math.sqrt(count * height / width)), round(math.sqrt(count * width / height)))
    return [fit for fit in (square, of_squares) if math.prod(fit) == count]
