"""Keys and values kept while generating, so that each new word is computed once."""

import torch
from torch import Tensor

from tfviz import bounds
from tfviz.shapes import Float, Int


class KeyValues:
    """The keys and values one attention module has seen so far, in room for `capacity` positions.

    The room is taken at the first use, when batch, heads, width and type are known.
    """

    def __init__(self, capacity: int):
        bounds.at_least(0, capacity=capacity)
        self.capacity = capacity
        self.length = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def extend(
        self, key: Float[Tensor, "batch head new dim"], value: Float[Tensor, "batch head new dim"]
    ) -> tuple[Float[Tensor, "batch head all dim"], Float[Tensor, "batch head all dim"]]:
        """Append the new keys and values; returns all of them."""
        start, stop = self.length, self.length + key.shape[2]
        if stop > self.capacity:
            raise ValueError(
                f"the cache has room for {self.capacity} positions, {stop} are needed; begin a new one, or build the "
                "model with a longer context="
            )
        if self.keys is None or self.values is None:
            batch, heads, _, width = key.shape
            self.keys = key.new_empty(batch, heads, self.capacity, width)
            self.values = value.new_empty(batch, heads, self.capacity, value.shape[-1])
        if len(key) != len(self.keys):
            raise ValueError(f"the cache is of {len(self.keys)} texts, these are {len(key)}; begin a new one")
        self.keys[:, :, start:stop] = key
        self.values[:, :, start:stop] = value
        self.length = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def keep(self, rows: Int[Tensor, "batch"]) -> None:
        """Go on with these texts in place of those so far; one may come several times."""
        if self.keys is not None and self.values is not None:
            (moved,) = (rows != torch.arange(len(rows), device=rows.device)).nonzero(as_tuple=True)
            for kept in (self.keys[:, :, : self.length], self.values[:, :, : self.length]):
                kept[moved] = kept[rows[moved]]

    @property
    def bytes(self) -> int:
        """Memory that the kept positions fill, in bytes."""
        if self.keys is None or self.values is None:
            return 0
        return sum(kept[:, :, : self.length].numel() * kept.element_size() for kept in (self.keys, self.values))


class Once(KeyValues):
    """Keys and values of another text, which does not grow: made in the first call and the same from then on."""

    def __init__(self) -> None:
        super().__init__(capacity=0)

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        self.keys, self.values = key, value
        return key, value

    def keep(self, rows: Tensor) -> None:
        """Nothing changes: the texts that look at the other one share it."""


class NoCache(KeyValues):
    """Keeps nothing: training, and any single pass over a whole text."""

    def __init__(self) -> None:
        super().__init__(capacity=0)

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key, value
