"""Which words some weights are of, in models that cut a text into blocks (Beltagy et al. 2020, Zaheer et al. 2020).

Of each tensor that is made of words only by cutting, gathering and joining it is written down how; nothing is computed
while the model runs. Where a map is wanted, the same is done with the numbers of the words: so it is known of each
weight which query and which key it is of, and the blocks come back to one map of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.axes import Layout
from tfviz.look.blocks import UNKNOWN, Node, Piece, Text, lettered, word_of, words_of
from tfviz.look.lineage import SHAPES, learned
from tfviz.look.products import Product

# what modules call sizes of blocks; a sliding window is a mask
CUTS = re.compile(r"(?!sliding_window|max_window_layers|relative|chunk_size_feed).*(block|chunk|window|local|bucket).*")
MOVES = SHAPES | {
    "cat", "concat", "concatenate", "stack", "pad", "gather", "index_select", "take_along_dim", "as_strided", "unfold",
    "repeat", "repeat_interleave", "tile", "unsqueeze_", "squeeze_", "transpose_", "hstack", "vstack",
}  # fmt: skip
NORMS = frozenset({"layer_norm", "rms_norm", "embedding", "linear", "addmm"})


def cuts(model: nn.Module) -> bool:
    """Whether a model may cut its texts: whether a part of it, or its configuration, has a size of blocks."""
    parts = list(model.modules())
    configs = {id(one): one for part in parts if (one := part.__dict__.get("config")) is not None}.values()
    owners = [vars(one) for one in (*parts, *configs, *{type(part) for part in parts}) if hasattr(one, "__dict__")]
    named = {name for owner in owners for name, value in owner.items() if type(value) in (int, tuple, list) and value}
    return any(CUTS.fullmatch(name) for name in named)


class Places:
    """The tensors under way that are made of words."""

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()

    def same(self, given: Tensor, output: Tensor) -> None:
        """Other numbers in the same cells."""
        if (node := self.known.get(given)) is not None:
            self.known[output] = node

    def softens(self, scores: Tensor, soft: Tensor) -> None:
        """A softmax of scores, perhaps."""
        if (node := self.known.get(scores)) is not None:
            self.known[soft] = replace(node, soft=True)

    def meets(self, made: Product) -> tuple[int, int] | None:
        """Which factor of a product is weights of words that the other has the values of, and its axis of keys."""
        for place in (0, 1):
            weights, values = (self.known.get(made.factors[one]) for one in (place, 1 - place))
            over = [axis for axis, letter in enumerate(made.letters[place]) if made.contracted(letter)]
            if weights and values and weights.soft and len(weights.wide) == 2 > len(values.wide) and len(over) == 1:
                return place, over[0]
        return None

    def follow(
        self,
        name: str,
        func: Callable[..., Any],
        made: Product | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        output: Any,
    ) -> None:
        """A call gave something."""
        if name == "__setitem__":
            self._set(*args)
        elif made is not None:
            self._product(made, output)
        elif name in NORMS:
            self._begins(args[0], output)
        elif name in MOVES:
            self._moved(name, func, args, kwargs, output)
        elif isinstance(output, Tensor):
            for one in args:
                if isinstance(one, Tensor) and one.shape == output.shape and one in self.known:
                    self.same(one, output)
                    break

    def _begins(self, given: Any, output: Any) -> None:
        """A norm, or one of the projections: of a text, or of parts of it."""
        if not isinstance(output, Tensor) or output.dim() != 3 or not output.is_floating_point():
            return
        node = self.known.get(given) if isinstance(given, Tensor) else None
        wide = output.shape[-1]
        if node is None or node.whole:
            text, shape = (node.text if node else Text(output.shape)), output.shape
            self.known[output] = Node(text, (wide,), True, lambda _: _numbers(shape))
        elif len(node.wide) == 1:

            def replay(_: int) -> Tensor:
                numbers = node.replay(0)[..., :1]
                return torch.where(numbers > 0, word_of(numbers, node.wide[0]) * wide + torch.arange(wide) + 1, 0)

            self.known[output] = Node(node.text, (wide,), False, replay)

    def _moved(self, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Any, output: Any) -> None:
        """The same cells in another order, some of them, or those of several."""
        first = args[0] if args else kwargs.get("input", kwargs.get("tensors"))
        given = list(first) if isinstance(first, list | tuple) else [first]
        nodes = [self.known.get(one) if isinstance(one, Tensor) else None for one in given]
        one = nodes[0] if nodes else None
        if one is None or any(node is None or (node.text, node.other) != (one.text, one.other) for node in nodes):
            return
        stride = given[0].stride() if name == "as_strided" else ()
        shape = given[0].shape

        def part(which: int, number: int | None) -> Tensor:
            some = [node.replay(which) for node in nodes if node]
            if name == "pad":
                return nn.functional.pad(some[0], args[1] if len(args) > 1 else kwargs["pad"])
            if name == "as_strided":
                some[0] = torch.empty_strided(shape, stride, dtype=torch.long).copy_(some[0])
            if name in ("view", "view_as"):
                return some[0].reshape(*args[1:]) if name == "view" else some[0].reshape(args[1].shape)
            again = func(some if isinstance(first, list | tuple) else some[0], *args[1:], **kwargs)
            return again if number is None else again[number]

        several = list(enumerate(output)) if isinstance(output, list | tuple) else [(None, output)]
        for number, tensor in several:
            if isinstance(tensor, Tensor):
                self.known[tensor] = replace(one, whole=False, replay=partial(part, number=number))

    def _product(self, made: Product, output: Tensor) -> None:
        """A projection, or scores of queries and keys."""
        if any(map(learned, made.factors)):
            self._begins(made.factors[0], output)
            return
        sides = [self.known.get(factor) for factor in made.factors]
        known = [node for node in sides if node is not None]
        if not known or any(len(node.wide) != 1 for node in known) or len(made.output) != output.dim():
            return
        shape = output.shape

        def replay(which: int) -> Tensor:
            if (side := sides[which]) is None:
                raise LookupError("not all of its keys are of the text")
            return lettered(side.replay(0), made.letters[which], made.output).expand(shape)

        texts, wide = zip(*((side.text, side.wide[0]) if side else (UNKNOWN, 1) for side in sides))
        self.known[output] = Node(texts[0], wide, False, replay, other=texts[1])

    def _set(self, target: Tensor, index: Any, value: Any) -> None:
        """Cells of a tensor are written over, of one in which nothing was known perhaps."""
        node = self.known.get(value) if isinstance(value, Tensor) else None
        before, shape = self.known.get(target), target.shape
        if node is None:
            return

        def replay(which: int) -> Tensor:
            numbers = before.replay(which).clone() if before else torch.zeros(shape, dtype=torch.long)
            numbers[index] = node.replay(which)
            return numbers

        self.known[target] = replace(node, whole=False, replay=replay)

    def piece(self, made: Product, place: int, axes: Layout) -> Piece | None:
        """Where weights that meet values are of a text, if they are of a part of it."""
        weights, values = self.known.get(made.factors[place]), self.known.get(made.factors[1 - place])
        _, _, queries, count = axes.four
        cut = values is not None and count != values.text.words
        cut = cut or (weights is not None and len(weights.wide) == 2 and queries not in words_of(weights))
        return Piece(weights, values, made.letters[place], made.letters[1 - place], axes) if cut else None


def _numbers(shape: Sequence[int]) -> Tensor:
    count = 1
    for size in shape:
        count *= size
    return torch.arange(1, count + 1).view(*shape)
