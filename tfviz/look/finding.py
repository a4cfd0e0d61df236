"""Which product of a model is that of weights and values."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.aside import aside, is_wrapped
from tfviz.look.axes import Heads
from tfviz.look.lineage import Lineage, Weights, learned
from tfviz.look.places import Places, cuts
from tfviz.look.products import Product
from tfviz.look.sites import Sites
from tfviz.look.unnormalized import FOLLOWED, Unnormalized, tensors

BY_HAND = frozenset({"logsumexp", "special_logsumexp", "sub", "__sub__", "subtract"})  # calls that a softmax is made of
NEAR = 3  # modules, from the innermost on, that may say how many heads there are
CLOSE = 200  # steps of their type from 1, of the sum of weights


class Finding(Sites):
    """Follows weights, and what may be weights, to the product in which they meet values.

    Attributes:
        sampled: modules that read a picture at points of their own (deformable attention, Zhu et al. 2021).
        skipped: modules where weights whose rows do not add up to 1 met values; see `Unnormalized`.
    """

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.lineage, self.products = Lineage(), Unnormalized()
        self.places = Places() if cuts(self.model) else None
        self.skipped: dict[str, None] = {}
        self.sampled: dict[str, None] = {}
        self.points: Any = WeakIdKeyDictionary()  # what they read there
        self.stated: dict[tuple[Any, ...], Heads] = {}  # by the modules that run
        self.buffers = {id(buffer) for buffer in self.model.buffers()}

    def _follow(
        self, name: str, func: Callable[..., Any], made: Product | None, args: tuple, kwargs: dict, output: Any
    ) -> None:
        """A call gave something, perhaps of what is known.

        Most calls of a model have nothing to do with attention, so each question is asked only where something is known
        (of the dictionary inside: the length of a weak one takes longer than the question).
        """
        if name == "grid_sample":
            self.sampled[self.state.running[-1]] = None
            self.points[output] = True
        elif self.points.data and name in FOLLOWED and any(map(self.points.get, tensors((*args, *kwargs.values())))):
            self.points.update((one, True) for one in tensors((output,)))
        if self.places:
            self.places.follow(name, func, made, args, kwargs, output)
        if made or self.products.known.data:
            self.products.follow(name, made, args, kwargs, output)
        if name in BY_HAND:
            self.lineage.by_hand(name, args, kwargs, output)
        if self.lineage.known.data:
            self.lineage.follow(name, func, made, args, kwargs, output)

    def _found(self, made: Product) -> tuple[int, Weights] | None:
        """Which factor has weights, if one has: what a softmax gave, or numbers whose rows add up to 1."""
        for place in (0, 1):
            weights = self.lineage.known.get(made.factors[place])
            if weights and not weights.times and weights.stage != "logs" and weights.axis is not None:
                meets = made.contracted(made.letters[place][weights.axis])
                if meets and not learned(made.factors[1 - place]) and not self._mixes(made, place):
                    return place, weights
        for place in (0, 1):
            if learned(made.factors[1 - place]) or (axis := self._of_one(made, place)) is None:
                continue
            if not self._mixes(made, place):
                return place, self.lineage.begins(made.factors[place], None, axis)
        if self.places and (met := self.places.meets(made)):
            return met[0], self.lineage.begins(made.factors[met[0]], None, met[1])
        return self._found_as_named(made)

    def _found_as_named(self, made: Product) -> tuple[int, Weights] | None:
        """Weights whose rows do not add up to 1, where the reader names their site, without a star."""
        met = self.products.met(made, self._words())
        if met is None:
            return None
        self.skipped[self.state.running[-1]] = None
        if self._site("pattern") not in (*self.globs, *self.edit):
            return None
        return met[0], self.lineage.begins(made.factors[met[0]], None, met[1], "gate")

    def _words(self) -> set[int]:
        """How many words there may be in what the modules that run were given."""
        return {count for shape in self.state.given for count in counts(shape)}

    def _mixes(self, made: Product, place: int) -> bool:
        """Whether these meet no values: they mix heads with each other (talking heads, Shazeer 2020), or points."""
        if made.factors[1 - place] in self.points:
            return True
        own = [letter for letter in made.letters[1 - place] if letter not in made.letters[place]]
        if len(own) < 2:  # those of a query and a key
            return False
        other = self.lineage.known.get(made.factors[1 - place])
        if other and not other.times:
            return other.axis is None or not made.contracted(made.letters[1 - place][other.axis])
        over = [axis for axis, letter in enumerate(made.letters[place]) if made.contracted(letter)]
        size = made.factors[place].shape[over[0]]
        words, heads = self._words(), self._heads().count
        return size not in words and (size == heads or (heads is None and bool(words) and len(own) > 2))

    def _of_one(self, made: Product, place: int) -> int | None:
        """The axis along which all rows are weights that add up to 1."""
        rows, letters = made.factors[place], made.letters[place]
        axes = [axis for axis, letter in enumerate(letters) if made.contracted(letter)]
        if len(axes) != 1 or rows.dim() < 2 or rows.shape[axes[0]] < 2 or not rows.numel():
            return None
        if (
            not rows.is_floating_point()
            or rows.is_meta
            or is_wrapped(rows)
            or learned(rows)
            or id(rows) in self.buffers
        ):
            return None
        with aside(), torch.no_grad():
            last = rows.movedim(axes[0], -1)
            first = last[(0,) * (last.dim() - 1)]
            close = min(CLOSE * torch.finfo(rows.dtype).eps, 1e-2)
            if not (abs(first.sum() - 1) < close and (first >= 0).all()):
                return None
            return axes[0] if bool(((last.sum(-1) - 1).abs() < close).all() and (last >= 0).all()) else None

    def _heads(self) -> Heads:
        """What the modules that run say of their heads."""
        near = (*self.state.running[-NEAR:], self.state.heads)
        if near not in self.stated:
            modules = [self.parts[path] for path in reversed(self.state.running[-NEAR:])]
            self.stated[near] = Heads.of(modules, self.state.heads, self.batches)
        return self.stated[near]


def counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many words, or places of a picture, a tensor of this shape may have."""
    return (math.prod(shape[2:]), math.prod(shape[1:-1])) if len(shape) == 4 else shape[1:2]
