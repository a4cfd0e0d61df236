"""Linear attention: what a query takes of each key, where a model never makes a map of it.

Keys are multiplied with values and added up over the text first, and queries meet that sum (Katharopoulos et al. 2020,
equation 6): the same as weights q.k over their sum, which are computed here to be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.aside import aside
from tfviz.look.lineage import SAME, SHAPES, learned, moving, numbers
from tfviz.look.products import Product, equation


class Sum(NamedTuple):
    """Keys times values, added up over a text: the factors, and where each axis of the sum comes from.

    Attributes:
        factors: one of them the keys, the other the values: which, the queries will tell.
        over: the axis of each factor that was added up.
        axes: of the sum, by axis: the axes of the two factors that it is; None where one does not have it.
    """

    factors: tuple[Tensor, Tensor]
    over: tuple[int, int]
    axes: tuple[tuple[int | None, int | None], ...]


class Met(NamedTuple):
    """Queries and the keys of a sum that they met.

    Attributes:
        keys: how many.
        roles: of the axes of the weights.
        weights: makes them.
    """

    keys: int
    roles: list[str]
    weights: Callable[[], Tensor]


class Implicit:
    """The sums that are under way."""

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()

    def _note(self, made: Product, output: Tensor) -> None:
        """A product: it may be a sum over a text."""
        over = [letter for letter in made.letters[0] if made.contracted(letter)]
        if len(over) != 1 or any(map(learned, made.factors)):
            return
        places = [made.letters[0].index(over[0]), made.letters[1].index(over[0])]
        axes = tuple((_place(made.letters[0], letter), _place(made.letters[1], letter)) for letter in made.output)
        if output.dim() == len(axes):
            self.known[output] = Sum(made.factors, (places[0], places[1]), axes)

    def follow(
        self, name: str, func: Callable[..., Any], made: Product | None, args: Sequence[Any], kwargs: Any, output: Any
    ) -> None:
        """A call: it may make a sum, or give one in another order of axes, or of another type."""
        if not isinstance(output, Tensor):
            return
        if made is not None:
            self._note(made, output)
        given = args[0] if args and isinstance(args[0], Tensor) else None
        was = self.known.get(given) if given is not None else None
        if given is None or was is None:
            return
        if name not in SAME | SHAPES:
            if output is given:  # changed where it stands
                del self.known[given]
            return
        if name in SAME:
            self.known[output] = was
            return
        try:
            with aside():
                order = [moving(func(numbers(given, axis), *args[1:], **kwargs)) for axis in range(given.dim())]
        except RuntimeError:  # axes were joined
            return
        axes = range(output.dim())
        if sorted(order) == [[axis] for axis in axes]:
            self.known[output] = was._replace(axes=tuple(was.axes[order.index([axis])] for axis in axes))

    def met(self, name: str, made: Product | None, args: Sequence[Any]) -> Met | None:
        """What queries take of each key, where they meet such a sum."""
        for factor, letters, output in _sides(name, made, args):
            was = self.known.get(factor[0])
            if was is None:
                continue
            shared = [axis for axis, letter in enumerate(letters[0]) if letter in letters[1] and letter not in output]
            if len(shared) != 1:
                continue
            own = was.axes[shared[0]]
            if None not in own:
                continue
            place = 0 if own[1] is None else 1
            return _met(was, place, factor[1], letters, shared[0])
        return None


def _sides(
    name: str, made: Product | None, args: Sequence[Any]
) -> Iterator[tuple[tuple[Tensor, Tensor], tuple[Any, Any], Any]]:
    """Each pair of factors, in both orders, with their letters and the output's."""
    if made is not None:
        yield made.factors, made.letters, made.output
        yield made.factors[::-1], made.letters[::-1], made.output
    elif name == "einsum" and (found := equation(args)) is not None:
        factors, sides, output = found
        for one in range(len(factors)):
            for other in range(len(factors)):
                if one != other:
                    yield (factors[one], factors[other]), (sides[one], sides[other]), output


def _met(was: Sum, place: int, query: Tensor, letters: tuple[Any, Any], axis: int) -> Met:
    """q.k over its sum, with the axes that both share first, then those of the queries, then the keys'."""
    key = was.factors[place]
    own = {axes[place]: letter for letter, axes in zip(letters[0], was.axes)}
    names = [own.get(at) for at in range(key.dim())]
    names[was.over[place]] = "over"
    feature = letters[0][axis]
    lead = [letter for letter in letters[1] if letter in names and letter != feature]
    queries = [letter for letter in letters[1] if letter not in (*lead, feature)]
    number = {letter: i for i, letter in enumerate(dict.fromkeys([*letters[1], *names]))}

    def weights() -> Tensor:
        sides = ([number[letter] for letter in some] for some in (letters[1], names, (*lead, *queries, "over")))
        first, second, output = sides
        made = torch.einsum(query.float(), first, key.float(), second, output)
        total = made.sum(-1, keepdim=True)
        return torch.where(total == 0, 0.0, made / total)

    return Met(key.shape[was.over[place]], [*["shared"] * len(lead), *["q"] * len(queries), "k"], weights)


def _place(letters: Sequence[Any], letter: Any) -> int | None:
    return letters.index(letter) if letter in letters else None
