"""Rules of four indices that say which key a query may look at, and what they are joined into."""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import torch
from torch import Tensor

from tfviz import bounds
from tfviz.bounds import affordable, at_least, whole
from tfviz.doors import door, takes, what
from tfviz.layers.encodings import WHOLE
from tfviz.shapes import Bool

LARGE = 2**32  # cells, from which on the memory is looked at first
Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Cell = tuple[int, int, int, int]  # batch, head, query, key


class Mask:
    """A predicate over cells of an attention map.

    Args:
        rule: from index tensors `(batch, head, query, key)` that broadcast against each other to booleans.
        name: what the mask is called when it explains why a cell is forbidden.
        texts, heads: of how many the rule tells; None: of any number.

    >>> from tfviz.layers.masks import causal, window
    >>> causal.dense(3, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> (causal & window(2)).why(query=2, key=0)
    ['window(2)']
    """

    recipe: tuple[Callable, tuple] | None = None  # what makes it again, and of what; else it is stored as it is

    def __init__(self, rule: Rule, name: str, texts: int | None = None, heads: int | None = None):
        takes("batch", "head", "query", "key", rule=rule)
        if not isinstance(name, str):
            raise TypeError(f"name is {what(name)}; give a string")
        at_least(1, texts=texts or 1, heads=heads or 1)
        self.rule, self.name, self.texts, self.heads = rule, name, texts, heads

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.recipe or super().__reduce_ex__(protocol)

    def __call__(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.rule(batch, head, query, key)

    def __and__(self, other: "Mask") -> "Mask":
        return _Both(self, _mask(other, "&"))

    def __or__(self, other: "Mask") -> "Mask":
        return _Either(self, _mask(other, "|"))

    def __rand__(self, other: object) -> "Mask":
        return _mask(other, "&")

    def __ror__(self, other: object) -> "Mask":
        return _mask(other, "|")

    def __invert__(self) -> "Mask":
        return _Not(self)

    def __bool__(self) -> bool:
        raise TypeError(f"the mask {self.name} is neither true nor false: join masks by & and |, turn one round by ~")

    def __repr__(self) -> str:
        return self.name

    def dense(
        self,
        queries: int,
        keys: int,
        *,
        batch: int | None = None,
        heads: int | None = None,
        start: int = 0,
        device: torch.device | str | None = None,
    ) -> Bool[Tensor, "batch head query key"]:
        """The mask as a tensor. Batch and head have size 1 where the rule does not tell them apart.

        Args:
            batch, heads: their number; None: as many as the mask was made of.
            start: the position of the first query; while generating, the keys already in the cache precede it.
        """

        batch = self.texts or 1 if batch is None else batch
        heads = self.heads or 1 if heads is None else heads
        known = all(
            isinstance(size, WHOLE) and not isinstance(size, bool) for size in (queries, keys, batch, heads, start)
        )
        if not known or queries < 0 or keys < 0 or start < 0 or batch < 1 or heads < 1 or queries * keys > LARGE:
            _told(queries, keys, batch, heads, start)

        if isinstance(device, str):
            bounds.device(device=device)

        def index(size: int, axis: int, first: int = 0) -> Tensor:
            shape = [-1 if other == axis else 1 for other in range(4)]
            return torch.arange(first, first + size, device=device).view(shape)

        try:
            allowed = self(index(batch, 0), index(heads, 1), index(queries, 2, start), index(keys, 3))
        except IndexError as error:
            asked = f"batch {batch}, queries from {start} to {start + queries}, keys {keys}"
            raise IndexError(f"the mask {self.name} was made of fewer texts or positions than {asked}") from error
        if not isinstance(allowed, Tensor) or allowed.dtype != torch.bool:
            given = f"a tensor {allowed.dtype}" if isinstance(allowed, Tensor) else what(allowed)
            raise TypeError(f"the mask {self.name} gave {given}; its rule must make a tensor of bools of four indices")
        try:
            return allowed.expand(*allowed.shape[:2], queries, keys)
        except RuntimeError as error:
            cells = [batch, heads, queries, keys]
            raise ValueError(f"the mask {self.name} gave {list(allowed.shape)} where {cells} was asked for") from error

    @door
    def block_mask(
        self,
        queries: int,
        keys: int,
        *,
        batch: int | None = None,
        heads: int | None = None,
        start: int = 0,
        device: torch.device | str | None = None,
        size: int = 128,
    ) -> Any:
        """The mask as FlexAttention's `BlockMask`: a compiled kernel skips what it forbids. Making it is slow: keep it.

        Args:
            batch, heads: their number, where the rule tells them apart.
            start: the position of the first query, as in `dense`.
            size: queries and keys in a block.
        """
        from torch.nn.attention.flex_attention import create_block_mask

        at_least(1, queries=queries, keys=keys, size=size, batch=batch or 1, heads=heads or 1)
        at_least(0, start=start)

        if isinstance(device, str):
            bounds.device(device=device)
        rule = Mask(lambda b, h, query, key: self(b, h, query + start, key), self.name) if start else self
        device = torch.get_default_device() if device is None else device
        return create_block_mask(rule, batch, heads, queries, keys, device, size)

    @door
    def count(self, length: int, *, batch: int | None = None, heads: int | None = None) -> int:
        """How many cells it allows, in all heads of all rows of the batch; attention needs work in proportion.

        >>> from tfviz.layers.masks import causal, strided
        >>> causal.count(4), strided(2).count(4, heads=3)
        (10, 27)
        """
        batch = self.texts or 1 if batch is None else batch
        heads = self.heads or 1 if heads is None else heads
        at_least(0, length=length)
        affordable(strip=128, length=max(1, length), heads=heads, batch=batch)
        if length * length * heads * batch > LARGE:
            raise ValueError(
                f"length is {length}: {length**2 * heads * batch:,} cells would be asked one by one; take less"
            )
        rows = range(0, length, 128)  # a strip at a time, for little memory
        parts = (self.dense(min(128, length - row), length, batch=batch, heads=heads, start=row) for row in rows)
        return sum(int(part.expand(batch, heads, -1, -1).sum()) for part in parts)

    @door
    def why(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        """The names of the predicates that forbid this cell; an empty list where it is allowed."""
        at_least(0, query=query, key=key, batch=batch, head=head)
        try:
            return self._why((batch, head, query, key))
        except IndexError as error:
            asked = f"batch {batch}, query {query}, key {key}"
            raise IndexError(f"the mask {self.name} was made of fewer texts or positions than {asked}") from error

    def _why(self, cell: Cell) -> list[str]:
        return [] if self(*map(torch.tensor, cell)) else [self.name]


class _Not(Mask):
    def __init__(self, other: Mask):
        super().__init__(self._rule, f"~{other.name}", other.texts, other.heads)
        self.other = other

    def _rule(self, *cell: Tensor) -> Tensor:
        return ~self.other(*cell)


class _Both(Mask):
    parts: tuple[Mask, ...]

    def __init__(self, left: Mask, right: Mask):
        joined = [part for mask in (left, right) for part in (mask.parts if isinstance(mask, _Both) else (mask,))]
        self.parts = tuple(dict.fromkeys(joined))  # what is joined twice is named once
        super().__init__(self._rule, f"({' & '.join(map(repr, self.parts))})", *_sizes(self.parts))

    def _rule(self, *cell: Tensor) -> Tensor:
        return reduce(and_, (part(*cell) for part in self.parts))

    def _why(self, cell: Cell) -> list[str]:
        return [name for part in self.parts for name in part._why(cell)]


class _Either(Mask):
    def __init__(self, left: Mask, right: Mask):
        self.parts = (left, right)
        super().__init__(self._rule, f"({left} | {right})", *_sizes(self.parts))

    def _rule(self, *cell: Tensor) -> Tensor:
        left, right = self.parts
        return left(*cell) | right(*cell)

    def _why(self, cell: Cell) -> list[str]:
        reasons = [part._why(cell) for part in self.parts]
        return [name for names in reasons for name in names] if all(reasons) else []


class PerHead(Mask):
    def __init__(self, masks: tuple[Mask, ...]):
        super().__init__(self._rule, f"per_head({', '.join(map(repr, masks))})", _sizes(masks)[0], len(masks))
        self.parts = masks

    def _rule(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        turns = [head % len(self.parts) == turn for turn in range(len(self.parts))]
        return reduce(or_, (turn & part(batch, head, query, key) for turn, part in zip(turns, self.parts)))

    def _why(self, cell: Cell) -> list[str]:
        return self.parts[cell[1] % len(self.parts)]._why(cell)


def _mask(other: object, sign: str) -> Mask:
    if not isinstance(other, Mask):
        raise TypeError(f"{sign} joins two masks, and one is {other!r}; give a mask, such as masks.window(8)")
    return other


def _sizes(parts: tuple[Mask, ...]) -> tuple[int | None, int | None]:
    """Of how many texts and heads masks tell together.

    Raises:
        ValueError: of different numbers of texts.
    """
    texts = {part.texts: part for part in parts if part.texts is not None}
    if len(texts) > 1:
        said = " and ".join(f"{part.name} of {count} texts" for count, part in texts.items())
        raise ValueError(f"{said} are joined; give masks of the same texts")
    return next(iter(texts), None), max((part.heads for part in parts if part.heads is not None), default=None)


def _told(queries: int, keys: int, batch: int, heads: int, start: int) -> None:
    whole(queries=queries, keys=keys, batch=batch, heads=heads, start=start)
    at_least(0, queries=queries, keys=keys, start=start)
    at_least(1, batch=batch, heads=heads)
    affordable(queries=queries, keys=keys)
