"""`Mask`: a predicate over (batch, head, query, key) that defines which keys a query may attend to."""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import torch
from torch import Tensor

from tfviz import checks
from tfviz.shapes import Bool
from tfviz.validation import validated

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Cell = tuple[int, int, int, int]  # batch, head, query, key
MAX_CELLS_COUNTED = 2**32  # `count` counts cells one by one


class Mask:
    """A predicate over the cells of an attention pattern, True where the query may attend to the key.

    Masks are combined with `&`, `|` and `~`.

    Args:
        rule: function from four index tensors `(batch, head, query, key)`, which broadcast against each other, to a
            boolean tensor.
        name: the name of the mask in its repr and in the result of `explain`.
        batch, heads: the numbers of texts and heads for which the rule is defined; None: any number.

    >>> from tfviz.layers.masks import causal, window
    >>> causal.dense(3, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> (causal & window(2)).explain(query=2, key=0)
    ['window(2)']
    """

    recipe: tuple[Callable, tuple] | None = None  # how to rebuild the mask, since a lambda cannot be pickled

    def __init__(self, rule: Rule, name: str, batch: int | None = None, heads: int | None = None):
        self.rule, self.name, self.batch, self.heads = rule, name, batch, heads

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.recipe or super().__reduce_ex__(protocol)

    def __call__(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.rule(batch, head, query, key)

    def __and__(self, other: "Mask") -> "Mask":
        return _And(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: "Mask") -> "Mask":
        return _Or(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> "Mask":
        return _Not(self)

    def __bool__(self) -> bool:
        raise TypeError(f"the mask {self.name} has no truth value; combine masks with &, | and ~")

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
        """Return the mask as a tensor; batch and head have size 1 if the rule does not depend on them.

        Args:
            queries: the number of queries.
            keys: the number of keys.
            batch: the size of the batch; None: the size for which the mask is defined, or 1.
            heads: the number of heads; None: the number for which the mask is defined, or 1.
            start: the position of the first query; in generation, the number of keys already in the cache.
            device: the device of the tensor.

        Raises:
            TypeError: the predicate does not return a boolean tensor.
        """
        batch, heads = self._sizes(batch, heads)
        if not torch.compiler.is_compiling():
            checks.integer(queries=queries, keys=keys, batch=batch, heads=heads, start=start)
            checks.at_least(0, start=start, queries=queries, keys=keys)
            checks.at_least(1, batch=batch, heads=heads)
            checks.fits_memory(queries=max(1, queries), keys=max(1, keys))

        def index(size: int, axis: int, first: int = 0) -> Tensor:
            shape = [-1 if other == axis else 1 for other in range(4)]
            return torch.arange(first, first + size, device=device).view(shape)

        allowed = self(index(batch, 0), index(heads, 1), index(queries, 2, start), index(keys, 3))
        if getattr(allowed, "dtype", None) != torch.bool:
            raise TypeError(f"the rule of the mask {self.name} must return a boolean tensor, not {allowed!r}")
        return allowed.expand(*allowed.shape[:2], queries, keys)

    @validated
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
        """Return FlexAttention's `BlockMask`, with which a compiled kernel skips forbidden blocks.

        It is slow to build, so reuse it.

        Args:
            queries: the number of queries.
            keys: the number of keys.
            batch: the size of the batch; None if the rule does not depend on the text.
            heads: the number of heads; None if the rule does not depend on the head.
            start: the position of the first query, as in `dense`.
            device: the device of the mask.
            size: number of queries, and of keys, in a block.
        """
        from torch.nn.attention.flex_attention import create_block_mask

        checks.at_least(1, queries=queries, keys=keys, size=size, batch=batch or 1, heads=heads or 1)
        checks.at_least(0, start=start)
        rule = Mask(lambda b, h, query, key: self(b, h, query + start, key), self.name) if start else self
        device = torch.get_default_device() if device is None else device
        return create_block_mask(rule, batch, heads, queries, keys, device, size)

    @validated
    def count(self, length: int, *, batch: int | None = None, heads: int | None = None) -> int:
        """Return the number of allowed cells for `length` queries and keys, over all heads and rows of the batch.

        The cost of an attention that skips forbidden cells is proportional to it.

        Raises:
            ValueError: there are too many cells to count one by one.

        >>> from tfviz.layers.masks import causal, strided
        >>> causal.count(4), strided(2).count(4, heads=3)
        (10, 27)
        """
        batch, heads = self._sizes(batch, heads)
        checks.at_least(0, length=length)
        if (cells := length * length * heads * batch) > MAX_CELLS_COUNTED:
            raise ValueError(f"length is {length}: {cells:,} cells would be computed one by one; give a smaller length")
        rows = range(0, length, 128)  # in strips of 128 queries, to save memory
        strips = (self.dense(min(128, length - row), length, batch=batch, heads=heads, start=row) for row in rows)
        return sum(int(strip.expand(batch, heads, -1, -1).sum()) for strip in strips)

    @validated
    def explain(self, query: int, key: int, *, batch: int = 0, head: int = 0) -> list[str]:
        """Return the names of the masks that forbid a cell; an empty list if the cell is allowed."""
        checks.at_least(0, query=query, key=key, batch=batch, head=head)
        return self._forbidding_masks((batch, head, query, key))

    def _forbidding_masks(self, cell: Cell) -> list[str]:
        return [] if self(*map(torch.tensor, cell)) else [self.name]

    def _sizes(self, batch: int | None, heads: int | None) -> tuple[int, int]:
        return self.batch or 1 if batch is None else batch, self.heads or 1 if heads is None else heads


# Call `part.rule`, not `part`: torch.compile (2.6) calls bool() on it, which `Mask` forbids.
class _Not(Mask):
    def __init__(self, other: Mask):
        super().__init__(self._rule, f"~{other.name}", other.batch, other.heads)
        self.other = other

    def _rule(self, *cell: Tensor) -> Tensor:
        return ~self.other.rule(*cell)


class _And(Mask):
    parts: tuple[Mask, ...]

    def __init__(self, left: Mask, right: Mask):
        parts = [part for mask in (left, right) for part in (mask.parts if isinstance(mask, _And) else (mask,))]
        self.parts = tuple(dict.fromkeys(parts))  # a mask that occurs twice is named once
        super().__init__(self._rule, f"({' & '.join(map(repr, self.parts))})", *_common_sizes(self.parts))

    def _rule(self, *cell: Tensor) -> Tensor:
        return reduce(and_, (part.rule(*cell) for part in self.parts))

    def _forbidding_masks(self, cell: Cell) -> list[str]:
        return [name for part in self.parts for name in part._forbidding_masks(cell)]


class _Or(Mask):
    def __init__(self, left: Mask, right: Mask):
        self.parts = (left, right)
        super().__init__(self._rule, f"({left} | {right})", *_common_sizes(self.parts))

    def _rule(self, *cell: Tensor) -> Tensor:
        left, right = self.parts
        return left.rule(*cell) | right.rule(*cell)

    def _forbidding_masks(self, cell: Cell) -> list[str]:
        left, right = (part._forbidding_masks(cell) for part in self.parts)
        return left + right if left and right else []


class PerHead(Mask):
    """A mask that applies `parts[h % len(parts)]` to head h; see `masks.per_head`."""

    def __init__(self, parts: tuple[Mask, ...]):
        super().__init__(self._rule, f"per_head({', '.join(map(repr, parts))})", _common_sizes(parts)[0], len(parts))
        self.parts = parts

    def _rule(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        chosen = [head % len(self.parts) == index for index in range(len(self.parts))]
        return reduce(or_, (mine & part.rule(batch, head, query, key) for mine, part in zip(chosen, self.parts)))

    def _forbidding_masks(self, cell: Cell) -> list[str]:
        return self.parts[cell[1] % len(self.parts)]._forbidding_masks(cell)


def _common_sizes(parts: tuple[Mask, ...]) -> tuple[int | None, int | None]:
    """Return the common number of texts, and the largest number of heads, for which several masks are defined.

    Raises:
        ValueError: the masks are defined for different numbers of texts.
    """
    batch = {part.batch: part for part in parts if part.batch is not None}
    if len(batch) > 1:
        sizes = " and ".join(f"{part.name} of {count} texts" for count, part in batch.items())
        raise ValueError(f"{sizes} are combined; give masks of the same texts")
    return next(iter(batch), None), max((part.heads for part in parts if part.heads is not None), default=None)
