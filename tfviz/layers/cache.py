"""Keys and values kept while generating, so that each new word is computed once."""

import torch
from torch import Tensor

from tfviz import bounds
from tfviz.doors import what
from tfviz.shapes import Float, Int

LARGE = 100_000  # positions, from which on it is asked whether there is memory for them


class KeyValues:
    """The keys and values one attention module has seen so far, in room for `capacity` positions.

    The room is taken at the first use, when batch, heads, width and type are known. In memory positions come first, so
    that what is filled lies together, which `reorder` copies.
    """

    def __init__(self, capacity: int):
        bounds.at_least(0, capacity=capacity)
        self.capacity = capacity
        self.length = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self._spare: tuple[Tensor, ...] = ()  # where `reorder` writes, in turns with those

    def extend(
        self, key: Float[Tensor, "batch head new dim"], value: Float[Tensor, "batch head new dim"]
    ) -> tuple[Float[Tensor, "batch head all dim"], Float[Tensor, "batch head all dim"]]:
        """Append the new keys and values; returns all of them."""
        if not torch.compiler.is_compiling() and (self.keys is None or key.shape[2] != value.shape[2]):
            _alike(key, value)
        start, stop = self.length, self.length + key.shape[2]
        if stop > self.capacity:
            raise ValueError(
                f"the cache has room for {self.capacity} positions, {stop} are needed; begin a new one, or build the "
                "model with a longer context="
            )
        if self.keys is None or self.values is None:
            self.keys, self.values = (self._room(of) for of in (key, value))
        if key.dtype != self.keys.dtype or key.shape[1:2] + key.shape[3:] != self.keys.shape[1:2] + self.keys.shape[3:]:
            raise ValueError(
                f"the cache is of {self.keys.dtype} {list(self.keys.shape)}, these are {key.dtype} {list(key.shape)}; "
                "begin a new one"
            )
        if len(key) != len(self.keys):
            raise ValueError(f"the cache is of {len(self.keys)} texts, these are {len(key)}; begin a new one")
        self.keys[:, :, start:stop] = key
        self.values[:, :, start:stop] = value
        self.length = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def reorder(self, rows: Int[Tensor, "batch"]) -> None:
        """Go on with these texts in place of those so far; one may come several times."""
        if not isinstance(rows, Tensor) or rows.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"rows are {what(rows)}; give a tensor of whole numbers, one for each text")
        if self.keys is None or self.values is None:
            return
        texts = len(self.keys)
        if rows.shape != (texts,):
            raise ValueError(f"rows are {list(rows.shape)}; give {texts} whole numbers, one for each text")
        if rows.device.type == "cpu" and not 0 <= int(rows.min()) <= int(rows.max()) < texts:
            raise ValueError(f"rows are {rows.tolist()}; the cache is of {texts} texts, counted from 0")
        now = self.keys, self.values
        self.keys, self.values = new = self._spare or tuple(self._room(of) for of in now)
        self._spare = now
        for here, there in zip(now, new, strict=True):
            seen, room = (kept.permute(2, 0, 1, 3)[: self.length] for kept in (here, there))
            torch.index_select(seen, 1, rows, out=room)

    def _room(self, of: Float[Tensor, "batch head any dim"]) -> Float[Tensor, "batch head capacity dim"]:
        batch, heads, _, width = of.shape
        if not torch.compiler.is_compiling() and self.capacity > LARGE:
            bounds.affordable(capacity=self.capacity, batch=batch, heads=heads, width=width)
        return of.new_empty(self.capacity, batch, heads, width).permute(1, 2, 0, 3)

    @property
    def bytes(self) -> int:
        """Memory that the kept positions fill, in bytes."""
        if self.keys is None or self.values is None:
            return 0
        return sum(kept[:, :, : self.length].numel() * kept.element_size() for kept in (self.keys, self.values))


def _alike(key: object, value: object) -> None:
    if not isinstance(key, Tensor) or not isinstance(value, Tensor) or not key.dim() == value.dim() == 4:
        raise ValueError(f"key is {what(key)}, value is {what(value)}; each must be batch head position dim")
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(f"key is {list(key.shape)}, value is {list(value.shape)}; there must be as many of either")


class CrossAttentionCache(KeyValues):
    """Keys and values of another text, which does not grow: made in the first call and the same from then on."""

    def __init__(self) -> None:
        super().__init__(capacity=0)
        self.source: Tensor | None = None  # what they were made of

    def of(self, source: Float[Tensor, "sources source dim"]) -> None:
        """These keys are, or will be, of this source.

        Raises:
            ValueError: they were made of another one.
        """
        made = self.source
        if made is None or made is source or torch.compiler.is_compiling():
            self.source = source
        elif made.shape != source.shape or not torch.equal(made, source):
            raise ValueError("the cache was begun with another memory; give the same one, or begin a new cache")

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        self.keys, self.values = key, value
        return key, value

    def reorder(self, rows: Tensor) -> None:
        """Nothing changes: the texts that look at the other one share it."""


class NoCache(KeyValues):
    """Keeps nothing: training, and any single pass over a whole text."""

    def __init__(self) -> None:
        super().__init__(capacity=0)

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key, value
