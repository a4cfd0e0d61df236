"""Heads of any length as a still picture shows them, without all of their weights at once."""

from __future__ import annotations

from torch import Tensor

from tfviz.look.lazy import LazyAttention
from tfviz.look.maps import AttentionMaps

COARSE = 64  # cells of a block where a head is looked through


def step(maps: AttentionMaps, pixels: int) -> int:
    """Cells, down and across, that one pixel stands for where weights have to be computed."""
    computed = any(isinstance(layer, LazyAttention) for layer in maps.layers)
    return max(1, -(-max(maps.shape[2:]) // pixels)) if computed else 1


def drawn(
    maps: AttentionMaps, layer: int, head: int, pixels: int, whole: bool = True
) -> tuple[Tensor, Tensor | None, int]:
    """A head for a picture of so many pixels: weights, where queries might look, and the cells of a block.

    Args:
        whole: of weights that have to be computed, all; else one row of each block.
    """
    made, block = maps.layers[layer], step(maps, pixels)
    if block == 1 or not isinstance(made, LazyAttention):
        return maps[layer, head], maps.allowed(layer, head), 1
    return made.tile(head, block=block) if whole else made.sketch(head, block), made.allowed_blocks(head, block), block


def peak(maps: AttentionMaps, layer: int, head: int) -> tuple[int, int, float]:
    """Query and key of the largest weight, the first of several, and that weight."""
    row, col, cells = 0, 0, None
    if isinstance(maps.layers[layer], LazyAttention):
        coarse = maps.tile(layer, head, block=COARSE)
        row, col = (COARSE * place for place in divmod(int(coarse.argmax()), coarse.shape[1]))
        cells = maps[layer, head, row : row + COARSE, col : col + COARSE]
    cells = maps[layer, head] if cells is None else cells
    down, across = divmod(int(cells.argmax()), cells.shape[1])
    return row + down, col + across, float(cells.max())
