"""Weights of a head at the resolution of a picture, read without computing all weights of a long text."""

from __future__ import annotations

from torch import Tensor

from tfviz.look import AttentionMaps, LazyAttention

SEARCH_BLOCK_CELLS = 64  # side of a block in which the largest weight is searched for


def find_pool_size(maps: AttentionMaps, pixels: int) -> int:
    """Return the side, in cells, of the block that one pixel shows; 1 unless weights are computed lazily."""
    computed = any(isinstance(layer, LazyAttention) for layer in maps.layers)
    return max(1, -(-max(maps.shape[2:]) // pixels)) if computed else 1


def read_head(
    maps: AttentionMaps, layer: int, head: int, pixels: int, all_rows: bool = True
) -> tuple[Tensor, Tensor | None, int]:
    """Return the weights of a head for a picture of `pixels` x `pixels`, their mask, and the side of a block in cells.

    The weights are [query, key] if the side is 1; otherwise each number stands for a block of cells.

    Args:
        maps: the attention maps.
        layer: the index of the layer.
        head: the index of the head.
        pixels: the side of the picture.
        all_rows: whether to compute all rows of lazy weights, or only one row of each block.
    """
    source, pool_size = maps.layers[layer], find_pool_size(maps, pixels)
    if pool_size == 1 or not isinstance(source, LazyAttention):
        return maps[layer, head], maps.allowed(layer, head), 1
    return (
        source.max_pool(head, pool_size=pool_size) if all_rows else source.downsampled(head, pool_size),
        source.pooled_mask(head, pool_size),
        pool_size,
    )


def largest_weight(maps: AttentionMaps, layer: int, head: int) -> tuple[int, int, float]:
    """Return the query and the key of a head's largest weight, and that weight; the first of several equal ones."""
    row, col, cells = 0, 0, None
    if isinstance(maps.layers[layer], LazyAttention):
        coarse = maps.max_pool(layer, head, pool_size=SEARCH_BLOCK_CELLS)
        row, col = (SEARCH_BLOCK_CELLS * index for index in divmod(int(coarse.argmax()), coarse.shape[1]))
        cells = maps[layer, head, row : row + SEARCH_BLOCK_CELLS, col : col + SEARCH_BLOCK_CELLS]
    cells = maps[layer, head] if cells is None else cells
    down, across = divmod(int(cells.argmax()), cells.shape[1])
    return row + down, col + across, float(cells.max())
