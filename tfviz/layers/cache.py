"""Key-value caches, so that generation computes the keys and values of each position only once."""

from collections.abc import Sized

import torch
from torch import Tensor

from tfviz import checks
from tfviz.shapes import Float, Int


class KVCache:
    """The keys and values of an attention module at past positions, at most `capacity` of them.

    Memory is allocated at the first use, when batch size, heads, width and dtype are known. Positions are its first
    axis, so that the filled part is contiguous, which makes `reorder` fast.
    """

    def __init__(self, capacity: int):
        checks.at_least(0, capacity=capacity)
        self.capacity = capacity
        self.length = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self._spare: tuple[Tensor, ...] = ()  # `reorder` copies between two buffers in turn

    def extend(
        self, key: Float[Tensor, "batch head new dim"], value: Float[Tensor, "batch head new dim"]
    ) -> tuple[Float[Tensor, "batch head all dim"], Float[Tensor, "batch head all dim"]]:
        """Append new keys and values, and return all of them.

        Raises:
            ValueError: the cache is full, or holds another batch size, number of heads, width or dtype.
        """
        start, stop = self.length, self.length + key.shape[2]
        if stop > self.capacity:
            raise ValueError(
                f"the cache has room for {self.capacity} positions, but {stop} are needed; begin a new one, or build "
                "the model with a longer context="
            )
        if self.keys is None or self.values is None:
            self.keys, self.values = self._allocate(key), self._allocate(value)
        _check_fits("key", key, self.keys, key.shape)
        _check_fits("value", value, self.values, key.shape)
        self.keys[:, :, start:stop] = key
        self.values[:, :, start:stop] = value
        self.length = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def reorder(self, rows: Int[Tensor, "batch"]) -> None:
        """Replace the text in each row `i` of the batch by the text in row `rows[i]`, as beam search requires.

        Raises:
            ValueError: the number of rows is not the batch size of the cache.
        """
        if self.keys is None or self.values is None:
            return
        if rows.shape != self.keys.shape[:1]:
            raise ValueError(f"rows are {list(rows.shape)}; give one for each of {len(self.keys)} texts")
        old = self.keys, self.values
        self.keys, self.values = new = self._spare or (self._allocate(self.keys), self._allocate(self.values))
        self._spare = old
        for source, target in zip(old, new, strict=True):
            source, target = (part.permute(2, 0, 1, 3)[: self.length] for part in (source, target))
            torch.index_select(source, 1, rows, out=target)

    def _allocate(self, like: Float[Tensor, "batch head any dim"]) -> Float[Tensor, "batch head capacity dim"]:
        batch, heads, _, width = like.shape
        checks.fits_memory(batch=batch, heads=heads, capacity=self.capacity, width=width)
        return like.new_empty(self.capacity, batch, heads, width).permute(1, 2, 0, 3)

    @property
    def bytes(self) -> int:
        """Memory of the filled positions, in bytes."""
        if self.keys is None or self.values is None:
            return 0
        return sum(part[:, :, : self.length].numel() * part.element_size() for part in (self.keys, self.values))


def _check_fits(name: str, new: Tensor, stored: Tensor, key_shape: torch.Size) -> None:
    """Raise ValueError for keys or values that would be broadcast or cast when they are written to the cache."""
    expected = (stored.shape[0], stored.shape[1], key_shape[2], stored.shape[3])
    if new.shape != expected or key_shape[0] != stored.shape[0] or new.dtype != stored.dtype:
        takes = f"{stored.dtype} {list(expected)}"
        raise ValueError(f"{name} is {new.dtype} {list(new.shape)}, the cache takes {takes}; begin a new one")


class CrossAttentionCache(KVCache):
    """The keys and values of a source for cross-attention, computed in the first call and reused in later ones."""

    def __init__(self) -> None:
        super().__init__(capacity=0)
        self.source: Tensor | None = None

    def check_source(self, source: Float[Tensor, "sources source dim"]) -> None:
        """Store the states from which the keys are computed; in later calls, check that they are the same.

        Raises:
            ValueError: the keys were computed from other states.
        """
        made_of = self.source
        if made_of is None or made_of is source or torch.compiler.is_compiling():
            self.source = source
        elif made_of.shape != source.shape or not torch.equal(made_of, source):
            raise ValueError("the cache belongs to another source; give the same one, or a new cache")

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        self.keys, self.values = key, value
        return key, value

    def reorder(self, rows: Tensor) -> None:
        """Do nothing: all texts of a source share its keys and values."""


def check_entries(cache: Sized, parts: int) -> None:
    """Raise ValueError unless a cache has as many entries as the model needs."""
    if len(cache) != parts:
        raise ValueError(f"cache has {len(cache)} entries, this model needs {parts}; use model.new_cache()")
