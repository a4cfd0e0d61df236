"""Attention within windows of a picture (Liu et al. 2021): puts a batch of windows back together to pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.shapes import Bool, Float, Int, UInt8

Pair = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """How pictures were cut into windows.

    Attributes:
        batch: how many pictures there are.
        grid: rows and columns of positions in a picture.
        size: rows and columns of a window.
        shift: positions by which the picture was rolled up and left before.
    """

    batch: int
    grid: Pair
    size: Pair
    shift: Pair

    @classmethod
    def of(
        cls, modules: Sequence[nn.Module], input_shapes: Sequence[tuple[int, ...]], shape: Sequence[int]
    ) -> Windows | None:
        """Return the windows that weights of a shape [window, head, query, key] are of; None: of none that is known.

        Args:
            modules: around the weights, innermost first; their `window_size` and `shift_size` count.
            input_shapes: of these modules.
        """
        size, shift = _pair(_attribute(modules, "window_size")), _pair(_attribute(modules, "shift_size")) or (0, 0)
        windows, _, queries, keys = shape
        if size is None or not queries == keys == math.prod(size):
            return None
        for batch, grid in _grids(input_shapes):
            counts = [-(-places // side) for places, side in zip(grid, size)]
            if windows == batch * math.prod(counts) > batch:
                moved = (shift[0] if counts[0] > 1 else 0, shift[1] if counts[1] > 1 else 0)
                padded = any(places % side for places, side in zip(grid, size))
                return None if padded and any(moved) else cls(batch, grid, size, moved)
        return None

    @property
    def cells(self) -> int:
        return math.prod(self.grid)

    def positions(self) -> Int[Tensor, "window cell"]:
        """Return the position of each cell of each window, row by row; -1 where a window reaches beyond the picture."""
        (down, across), (tall, wide) = self.grid, self.size
        numbers = torch.arange(self.cells).view(down, across).roll((-self.shift[0], -self.shift[1]), (0, 1))
        padded = nn.functional.pad(numbers, (0, -across % wide, 0, -down % tall), value=-1)
        rows, cols = (count // side for count, side in zip(padded.shape, self.size))
        return padded.view(rows, tall, cols, wide).transpose(1, 2).reshape(rows * cols, tall * wide)

    def assemble(
        self,
        weights: Float[Tensor, "window head query key"] | UInt8[Tensor, "window head query key"],
        allowed: Tensor | None,
        row: int,
    ) -> tuple[Tensor, Bool[Tensor, "1 #head place place"]]:
        """Return the weights of one picture, [batch, head, position, position], and where its queries may look.

        All pictures of the batch are this one; a query sees its own window.
        """
        own = weights.unflatten(0, (self.batch, -1))[row].cpu()
        total = own.new_zeros(own.shape[1], self.cells, self.cells)
        open_cells = torch.ones(len(own), 1, 1, 1, dtype=torch.bool)
        if allowed is not None:
            open_cells = allowed.expand(len(weights), *allowed.shape[1:]).unflatten(0, (self.batch, -1))[row].cpu()
        mask = torch.zeros(open_cells.shape[1], self.cells, self.cells, dtype=torch.bool)
        for positions, window, may in zip(self.positions(), own, open_cells):
            there = positions >= 0
            cells = positions[there]
            total[:, cells[:, None], cells] = window[:, there][:, :, there]
            may = may.expand(-1, len(positions), len(positions))
            mask[:, cells[:, None], cells] = may[:, there][:, :, there]
        return total.expand(self.batch, *total.shape), mask[None]


def _attribute(modules: Sequence[nn.Module], name: str) -> Any:
    return next((value for module in modules if (value := getattr(module, name, None)) is not None), None)


def _pair(value: Any) -> Pair | None:
    if type(value) is int:
        value = (value, value)
    if isinstance(value, Sequence | torch.Size) and len(value) == 2 and all(type(one) is int for one in value):
        return (value[0], value[1]) if min(value) >= 0 else None
    return None


def _grids(input_shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, Pair]]:
    """Return the batches and grids that inputs may have: [batch, row, col, dim], or [batch, dim, row, col]."""
    found: list[tuple[int, Pair]] = []
    for shape in input_shapes:
        if len(shape) == 4:
            found += [(shape[0], (shape[1], shape[2])), (shape[0], (shape[2], shape[3]))]
    return found
