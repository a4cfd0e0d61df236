"""Axes of attention weights: which are batch, head, query and key, and conversion to and from this order.

A model may compute weights as [b, h, q, k], [b * h, q, k], [b, q, h, k] and so on. The query and key axes are inferred
from the product of weights and values. The number of heads is read from the running modules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from tfviz.look.products import Contraction

HEAD_COUNT_NAME = re.compile(r"n_?heads?|num_?heads?|heads|num_attention_heads|attention_heads|num_attn_heads")
KV_HEAD_COUNT_NAME = re.compile(r"num_key_value_heads|num_kv_heads|n_kv_heads?|kv_heads|num_groups_kv")
AXIS_PATTERN = re.compile(r"\((?P<several>[^()]*)\)|(?P<single>\w+)")
AXES_EXAMPLES = 'in turn, such as "b h q k", "(b h) q k" or "b q h k"; "(b h=8) q k" says how many heads there are'


class Layout(NamedTuple):
    """The layout of the axes of a tensor of attention weights.

    Attributes:
        shape: sizes of the axes, as the model has them.
        split: sizes of the axes after an axis that combines several is split.
        order: the axes of `split` in the order batch, head, query, key.
        sizes: sizes of [batch, head, query, key].
    """

    shape: tuple[int, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]
    sizes: tuple[int, int, int, int]

    @property
    def is_plain(self) -> bool:
        """Whether the weights are already [batch, head, query, key], except for missing axes."""
        return (
            self.split == self.shape
            and self.order == tuple(sorted(self.order))
            and len(self.shape) <= 4
            and self.sizes[-2:] == self.shape[-2:]
        )

    def to_bhqk(self, tensor: Tensor) -> Tensor:
        """Rearrange a tensor with this layout to [batch, head, query, key]."""
        return tensor.reshape(self.split).permute(self.order).reshape(self.sizes)

    def from_bhqk(self, tensor: Tensor) -> Tensor:
        """Rearrange a tensor [batch, head, query, key] to this layout."""
        ordered = tensor.reshape([self.split[axis] for axis in self.order])
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return ordered.permute(inverse).reshape(self.shape)

    def with_dim(self, axis: int, dim: int) -> Layout:
        """Return the layout of a tensor that has `dim` features instead of the keys, on `axis` of the weights."""
        key_axis = self.order[-1]
        shape = (*self.shape[:axis], dim, *self.shape[axis + 1 :])
        split = (*self.split[:key_axis], dim, *self.split[key_axis + 1 :])
        return Layout(shape, split, self.order, (*self.sizes[:3], dim))


class OutputAxes(NamedTuple):
    """The batch, head, query and dim axes of the attention output before the output projection.

    Attributes:
        layout: layout of the output after its axes are permuted.
        permutation: axes of the output in the order of the weights' axes, with the dim axes instead of the keys.
    """

    layout: Layout
    permutation: tuple[int, ...]

    @classmethod
    def from_product(
        cls, layout: Layout, product: Contraction, operand: int, keys: int, output: Tensor
    ) -> OutputAxes | None:
        """Return the axes of weights times values; None if the product averages or repeats heads or texts.

        Args:
            layout: layout of the weights.
            product: the product of weights and values.
            operand: index of the factor that holds the weights.
            keys: the key axis of the weights, which is summed over.
            output: the result of the product.
        """
        weights, subscripts = product.factors[operand], product.subscripts[operand]
        if output.dim() != len(product.output):
            return None
        dims = [axis for axis, subscript in enumerate(product.output) if subscript not in subscripts]
        permutation: list[int] = []
        for axis, subscript in enumerate(subscripts):
            if axis == keys:
                permutation += dims
            elif subscript is not None or weights.shape[axis] != 1:  # without one the axis has size 1 and is broadcast
                at = product.output.index(subscript) if subscript in product.output else None
                if at is None or output.shape[at] != weights.shape[axis]:
                    return None
                permutation.append(at)
        dim = math.prod(output.shape[axis] for axis in dims)
        return cls(layout.with_dim(keys, dim), tuple(permutation))

    def to_heads(self, output: Tensor) -> Tensor:
        """Rearrange an output to [batch, head, query, dim]."""
        return self.layout.to_bhqk(output.permute(self.permutation).reshape(self.layout.shape))

    def from_heads(self, heads: Tensor, shape: Sequence[int]) -> Tensor:
        """Rearrange a tensor [batch, head, query, dim] to the axes of an output of this shape."""
        permuted = self.layout.from_bhqk(heads).reshape([shape[axis] for axis in self.permutation])
        inverse = sorted(range(len(self.permutation)), key=self.permutation.__getitem__)
        return permuted.permute(inverse)


@dataclass(frozen=True)
class HeadCounts:
    """Head counts that the enclosing modules declare.

    Attributes:
        count: number of heads; None: unknown.
        kv_count: number of heads of keys and values; None: unknown.
        batch_sizes: candidates for the batch size; empty: unknown.
    """

    count: int | None = None
    kv_count: int | None = None
    batch_sizes: frozenset[int] = frozenset()

    @classmethod
    def from_modules(
        cls, modules: Sequence[nn.Module], count: int | None = None, batch_sizes: Iterable[int] = ()
    ) -> HeadCounts:
        """Read the head counts from modules, innermost first, and their configs; a given `count` takes precedence."""
        return cls(
            count or _attribute(modules, HEAD_COUNT_NAME),
            _attribute(modules, KV_HEAD_COUNT_NAME),
            frozenset(batch_sizes),
        )


def _attribute(modules: Sequence[nn.Module], names: re.Pattern[str]) -> int | None:
    for module in modules:
        for owner in (module, module.__dict__.get("config")):
            for name, value in getattr(owner, "__dict__", {}).items():
                if type(value) is int and value > 0 and names.fullmatch(name):
                    return value
    return None


def roles(product: Contraction, operand: int, keys: int) -> list[str]:
    """Return the role of each axis of attention weights, inferred from the product of weights and values.

    The axis that is summed over holds the keys. Axes that the values also have, or that the output lacks, are batch or
    heads. The other axes are queries.

    Args:
        product: the product of weights and values.
        operand: index of the factor that holds the weights.
        keys: the axis of the weights that is summed over.

    Returns:
        for each axis "k" (keys), "q" (queries) or "shared" (batch or heads).
    """
    subscripts, value_subscripts = product.subscripts[operand], product.subscripts[1 - operand]
    axis_roles = []
    for axis, subscript in enumerate(subscripts):
        broadcast = subscript is None or subscript in product.batch or subscript in value_subscripts
        averaged = subscript not in product.output  # such as a sum over heads
        axis_roles.append("k" if axis == keys else "shared" if broadcast or averaged else "q")
    return axis_roles


def layout(shape: Sequence[int], axis_roles: Sequence[str], heads: HeadCounts) -> Layout:
    """Return the layout of attention weights from the roles of their axes.

    Args:
        shape: the shape of the weights.
        axis_roles: the role of each axis, as `roles` returns them.
        heads: the known head counts, by which an axis that combines batch and heads is recognized and split.
    """
    axes = WeightAxes.from_roles(tuple(shape), axis_roles, heads)
    return (
        _grouped_queries(axes, heads)
        or _heads_within_batch(axes, heads)
        or _heads_within_batch_of_windows(axes, heads)
        or Layout(axes.shape, axes.shape, axes.order, (axes.texts, axes.heads, axes.queries, axes.keys))
    )


@dataclass(frozen=True)
class WeightAxes:
    """The axes of attention weights of a shape, by what they hold as the model has them."""

    shape: tuple[int, ...]
    batch: tuple[int, ...]
    head: int | None
    query: tuple[int, ...]
    key: tuple[int, ...]

    @classmethod
    def from_roles(cls, shape: tuple[int, ...], axis_roles: Sequence[str], heads: HeadCounts) -> WeightAxes:
        """Return the axes by their roles; see `layout`."""
        shared, query, key = (
            [axis for axis, role in enumerate(axis_roles) if role == name] for name in ("shared", "q", "k")
        )
        head = _head_axis(shape, shared, query, heads)
        batch, queries = (tuple(axis for axis in axes if axis != head) for axes in (shared, query))
        return cls(shape, batch, head, queries, tuple(key))

    @property
    def order(self) -> tuple[int, ...]:
        """The axes in the order batch, head, query, key."""
        return (*self.batch, *(() if self.head is None else (self.head,)), *self.query, *self.key)

    @property
    def texts(self) -> int:
        return self._size(self.batch)

    @property
    def heads(self) -> int:
        return 1 if self.head is None else self.shape[self.head]

    @property
    def queries(self) -> int:
        return self._size(self.query)

    @property
    def keys(self) -> int:
        return self._size(self.key)

    def _size(self, axes: Iterable[int]) -> int:
        return math.prod(self.shape[axis] for axis in axes)


def _grouped_queries(axes: WeightAxes, heads: HeadCounts) -> Layout | None:
    """Return the layout of grouped queries of one token, [b, kv head, group, k]; None for other weights.

    Heads that share a key are on the query axis, as in transformers.
    """
    if heads.count is None or heads.kv_count != axes.heads:
        return None
    if not axes.heads < heads.count == axes.heads * axes.queries:
        return None
    return Layout(axes.shape, axes.shape, axes.order, (axes.texts, heads.count, 1, axes.keys))


def _heads_within_batch(axes: WeightAxes, heads: HeadCounts) -> Layout | None:
    """Return the layout of weights in which batch and heads share an axis, [b * h, q, k]; None for other weights."""
    count = heads.count or 1
    if count == 1 or axes.head is not None or len(axes.batch) != 1 or axes.texts % count:
        return None
    return _split_heads(axes, count, (axes.texts // count, count, axes.queries, axes.keys))


def _heads_within_batch_of_windows(axes: WeightAxes, heads: HeadCounts) -> Layout | None:
    """Return the layout in which an axis of windows follows that of batch and heads, [b * h, window, q, k].

    None for other weights. The windows are what `axes` takes for heads, though not as many as the model has.
    """
    count, windows = heads.count or 1, axes.heads
    if count == 1 or axes.head is None or len(axes.batch) != 1 or windows == count:
        return None
    texts, rest = divmod(axes.texts, count)
    is_batch_times_heads = not rest and texts in heads.batch_sizes and axes.texts not in heads.batch_sizes
    if not is_batch_times_heads:
        return None
    return _split_heads(axes, count, (texts * windows, count, axes.queries, axes.keys), windows=1)


def _head_axis(shape: Sequence[int], shared: list[int], query: list[int], heads: HeadCounts) -> int | None:
    """Return the head axis: the last shared axis, or an axis whose size is the number of heads; None if unknown."""
    if len(shared) < 2:  # with multi-query attention (Shazeer 2019), heads are an axis of the queries alone
        return next((axis for axis in query if shape[axis] == heads.count), None) if len(query) > 1 else None
    stated = [axis for axis in shared if shape[axis] == heads.count]
    return stated[-1] if len(shared) > 2 and stated else shared[-1]


def _split_heads(axes: WeightAxes, heads: int, sizes: tuple[int, int, int, int], windows: int = 0) -> Layout:
    """Return a layout that splits the batch axis into batch and head; the head follows `windows` further batch axes."""
    shape, axis = axes.shape, axes.batch[0]
    split = (*shape[:axis], shape[axis] // heads, heads, *shape[axis + 1 :])
    moved = [other + (other > axis) for other in axes.order]
    at = moved.index(axis) + 1 + windows
    return Layout(shape, split, (*moved[:at], axis + 1, *moved[at:]), sizes)


def parse_axes(axes: str, shape: Sequence[int], heads: HeadCounts) -> Layout:
    """Parse the axes given by a user, such as "(b h=8) q k", into the layout of weights of this shape.

    Raises:
        ValueError: the axes do not fit the weights, or cannot be parsed.
    """
    groups = [[axis["single"]] if axis["single"] else axis["several"].split() for axis in AXIS_PATTERN.finditer(axes)]
    if len(groups) != len(shape) or AXIS_PATTERN.sub("", axes).strip():
        raise ValueError(f"axes is {axes!r}, the weights have the shape {list(shape)}: name each axis {AXES_EXAMPLES}")
    split: list[int] = []
    names: list[str] = []
    for size, group in zip(shape, groups):
        sizes = [_stated_size(name, heads if len(group) > 1 else HeadCounts()) for name in group]
        known = math.prod(stated for stated in sizes if stated is not None)
        if sizes.count(None) > 1 or size % known or (None not in sizes and known != size):
            raise ValueError(f"axes is {axes!r}, which does not divide an axis of {size}: name them {AXES_EXAMPLES}")
        split += [size // known if stated is None else stated for stated in sizes]
        names += [name.partition("=")[0] for name in group]
    if sorted(names) not in (sorted("bhqk"), sorted("hqk"), sorted("bqk"), sorted("qk")):
        raise ValueError(f"axes is {axes!r}; the axes of the weights are b, h, q and k: name them {AXES_EXAMPLES}")
    order = tuple(names.index(name) for name in "bhqk" if name in names)
    batch, head, query, key = (split[names.index(name)] if name in names else 1 for name in "bhqk")
    return Layout(tuple(shape), tuple(split), order, (batch, head, query, key))


def _stated_size(name: str, heads: HeadCounts) -> int | None:
    """Return the size in a name such as "h=8"; for "h" the known number of heads; otherwise None."""
    letter, equals, count = name.partition("=")
    if equals and not (count.isdecimal() and int(count)):
        raise ValueError(f"{name!r} in axes: give an integer from 1 on, as in (b h=8)")
    return int(count) if equals else heads.count if letter == "h" else None
