"""Which axes of some weights are batch, head, query and key: the way there and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from tfviz.look.products import Product

HEADS = re.compile(r"n_?heads?|num_?heads?|heads|num_attention_heads|attention_heads|num_attn_heads")
GROUPS = re.compile(r"num_key_value_heads|num_kv_heads|n_kv_heads?|kv_heads|num_groups_kv")
SAID = re.compile(r"\((?P<many>[^()]*)\)|(?P<one>\w+)")
FORMS = 'in turn, such as "b h q k", "(b h) q k" or "b q h k"; "(b h=8) q k" says how many heads there are'


class Layout(NamedTuple):
    """The axes of some weights.

    Attributes:
        given: their sizes.
        split: the same, where one axis holds texts and heads.
        order: of the split axes: those of batch, of head, of query, of key.
        four: the sizes of batch, head, query and key.
    """

    given: tuple[int, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]
    four: tuple[int, int, int, int]

    @property
    def is_plain(self) -> bool:
        """Whether they stand as batch, head, query, key already, but for axes that are missing."""
        return (
            self.split == self.given
            and self.order == tuple(sorted(self.order))
            and len(self.given) <= 4
            and self.four[-2:] == self.given[-2:]
        )

    def to(self, tensor: Tensor) -> Tensor:
        """batch head query key"""
        return tensor.reshape(self.split).permute(self.order).reshape(self.four)

    def back(self, tensor: Tensor) -> Tensor:
        """From batch head query key to the axes as they were."""
        ordered = tensor.reshape([self.split[axis] for axis in self.order])
        places = sorted(range(len(self.order)), key=self.order.__getitem__)
        return ordered.permute(places).reshape(self.given)


@dataclass(frozen=True)
class Heads:
    """What the modules around some weights say: how many heads there are, and how many of keys."""

    count: int | None = None
    groups: int | None = None
    batches: frozenset[int] = frozenset()  # sizes that may be the batch's, where that is known

    @classmethod
    def of(cls, modules: Sequence[nn.Module], count: int | None = None, batches: Iterable[int] = ()) -> Heads:
        """
        Args:
            modules: the innermost first.
            count: of heads, where it is known.
        """
        return cls(count or _stated(modules, HEADS), _stated(modules, GROUPS), frozenset(batches))


def _stated(modules: Sequence[nn.Module], names: re.Pattern[str]) -> int | None:
    for module in modules:
        for owner in (module, module.__dict__.get("config")):
            for name, value in getattr(owner, "__dict__", {}).items():
                if type(value) is int and value > 0 and names.fullmatch(name):
                    return value
    return None


def roles(made: Product, place: int, keys: int) -> list[str]:
    """Of each axis of one factor of a product that adds up over its keys: "b" or "h" are shared with the values."""
    own, other = made.letters[place], made.letters[1 - place]
    found = []
    for axis, letter in enumerate(own):
        there = letter is None or letter in made.lead or letter in other
        averaged = letter not in made.output  # over heads, say
        found.append("k" if axis == keys else "shared" if there or averaged else "q")
    return found


def layout(shape: Sequence[int], found: Sequence[str], heads: Heads) -> Layout:
    """The layout of weights whose axes have these roles."""
    shared, query, key = ([axis for axis, role in enumerate(found) if role == name] for name in ("shared", "q", "k"))
    head = _head(shared, [shape[axis] for axis in shared], heads)
    if head is None and len(query) > 1 and heads.count in (sizes := [shape[axis] for axis in query]):
        head = query.pop(sizes.index(heads.count))  # heads that share one key and value (Shazeer 2019)
    batch = [axis for axis in shared if axis != head]
    order = (*batch, *([] if head is None else [head]), *query, *key)
    many, queries, keys = (math.prod(shape[axis] for axis in axes) for axes in (batch, query, key))
    count = 1 if head is None else shape[head]
    given = tuple(shape)
    packed = heads.count and heads.groups == count < heads.count == count * queries
    if packed and queries > 1:  # heads that share a key, on the axis of the one query, as transformers packs them
        return Layout(given, given, order, (many, count * queries, 1, keys))
    if heads.count and heads.count > 1 and shared and shape[shared[0]] % heads.count == 0:
        texts = shape[shared[0]] // heads.count
        if head is None and len(batch) == 1:
            return _parted(given, order, batch[0], heads.count, (texts, heads.count, queries, keys))
        if (
            len(shared) == 2
            and count != heads.count
            and texts in heads.batches
            and shape[shared[0]] not in heads.batches
        ):
            mixed = (texts * count, heads.count, queries, keys)  # heads beside texts, and windows of each
            return _parted(given, (*shared, *query, *key), shared[0], heads.count, mixed, windows=1)
    return Layout(given, given, order, (many, count, queries, keys))


def _head(shared: list[int], sizes: list[int], heads: Heads) -> int | None:
    """The axis that counts heads."""
    if len(shared) < 2:
        return None
    if len(shared) == 2:
        return shared[1]
    stated = [axis for axis, size in zip(shared, sizes) if size == heads.count]
    return shared[-1] if shared[-1] in stated or not stated else stated[-1]


def _parted(
    given: tuple[int, ...],
    order: Sequence[int],
    axis: int,
    heads: int,
    four: tuple[int, int, int, int],
    windows: int = 0,
) -> Layout:
    """The heads of one text stand beside those of the next on one axis; windows, so many axes, come before heads."""
    split = (*given[:axis], given[axis] // heads, heads, *given[axis + 1 :])
    moved = [place + (place > axis) for place in order]
    at = moved.index(axis) + 1 + windows
    return Layout(given, split, (*moved[:at], axis + 1, *moved[at:]), four)


def said(axes: str, shape: Sequence[int], heads: Heads) -> Layout:
    """As the reader says it.

    Raises:
        ValueError: it does not fit the weights, or is none of these forms.
    """
    groups = [[one["one"]] if one["one"] else one["many"].split() for one in SAID.finditer(axes)]
    if len(groups) != len(shape) or SAID.sub("", axes).strip():
        raise ValueError(f"axes is {axes!r}, the weights have the shape {list(shape)}: name each of its axes {FORMS}")
    split: list[int] = []
    names: list[str] = []
    for size, group in zip(shape, groups):
        sizes = [_size(name, heads if len(group) > 1 else Heads()) for name in group]
        open_ = [i for i, one in enumerate(sizes) if one is None]
        rest = math.prod(one for one in sizes if one is not None)
        if len(open_) > 1 or size % rest or (not open_ and rest != size):
            raise ValueError(f"axes is {axes!r}, which does not divide an axis of {size}: name them {FORMS}")
        split += [size // rest if one is None else one for one in sizes]
        names += [name.partition("=")[0] for name in group]
    if sorted(names) not in (sorted("bhqk"), sorted("hqk"), sorted("bqk"), sorted("qk")):
        raise ValueError(f"axes is {axes!r}; the axes of the weights are b, h, q and k: name them {FORMS}")
    order = [names.index(name) for name in "bhqk" if name in names]
    four = [split[names.index(name)] if name in names else 1 for name in "bhqk"]
    return Layout(tuple(shape), tuple(split), tuple(order), (four[0], four[1], four[2], four[3]))


def _size(name: str, heads: Heads) -> int | None:
    """How many there are, where that is said or known."""
    kind, given, count = name.partition("=")
    if given and not (count.isdecimal() and int(count)):
        raise ValueError(f"{name!r} in axes: how many there are is a whole number from 1 on, as in (b h=8)")
    return int(count) if count.isdecimal() else heads.count if kind == "h" else None
