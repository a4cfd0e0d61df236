"""Weights whose rows do not add up to 1: `relu(scores) / n`, `exp / (1 + sum of exp)`, scores as they are.

Nothing in their numbers says that they are weights. What is known of them is where they come from: a product of two
tensors that no model has learned, changed cell by cell, meets a third in another product that adds up over the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.lineage import DROPS, SAME, SHAPES, learned
from tfviz.look.products import Product

FOLLOWED = SHAPES | SAME | DROPS | {"cat", "concat", "concatenate", "stack"}


class Unnormalized:
    """The products under way that may become weights."""

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()

    def follow(
        self, name: str, made: Product | None, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """A call gave something: a product, or one in other shapes, or with other numbers in its cells."""
        if made:  # of one that is known and one that is not there come values
            if not any(map(learned, made.factors)) and len({one in self.known for one in made.factors}) == 1:
                self._add(output)
        else:
            for given in tensors((*args, *kwargs.values())):
                for one in tensors((output,)) if given in self.known else ():
                    if name in FOLLOWED or one.shape == given.shape:
                        self._add(one)

    def _add(self, output: Any) -> None:
        if isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 1:
            self.known[output] = True

    def met(self, made: Product, counts: set[int]) -> tuple[int, int] | None:
        """Which factor may be weights, and its axis of keys.

        Args:
            counts: how many words there may be; none: it is not known.
        """
        for place in (0, 1):
            weights, other = made.factors[place], made.factors[1 - place]
            over = [axis for axis, letter in enumerate(made.letters[place]) if made.contracted(letter)]
            meets = len(over) == 1 and weights in self.known and other not in self.known and not learned(other)
            if meets and (not counts or weights.shape[over[0]] in counts):
                return place, over[0]
        return None


def tensors(given: Sequence[Any]) -> Iterator[Tensor]:
    for one in given:
        for part in one if isinstance(one, list | tuple) else (one,):
            if isinstance(part, Tensor):
                yield part
