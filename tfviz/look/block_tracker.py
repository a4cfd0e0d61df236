"""Tracks which words tensors are made of, in models that cut a text into blocks (Longformer, BigBird and their like).

Of each tensor that is made of words only by cutting, gathering and joining, a function is kept that does the same to
another tensor; nothing is computed while the model runs. Where a map is wanted, it is applied to the numbers of the
words: so it is known of each weight which query and which key it is of, and the blocks become one map of the text.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.axes import Layout
from tfviz.look.lineage import SHAPE_OPS
from tfviz.look.products import Operation, Product
from tfviz.look.text_blocks import UNKNOWN, Block, Origin, Text, word_of
from tfviz.look.tracked_weights import align_axes, is_learned

# what modules call the sizes of blocks; a sliding window is a mask
SIZES = re.compile(
    r"(?!sliding_window|max_window_layers|relative|chunk_size_feed).*(block|chunk|window|local|bucket).*"
)
MOVE_OPS = SHAPE_OPS | {
    "cat", "concat", "concatenate", "stack", "pad", "gather", "index_select", "take_along_dim", "as_strided", "unfold",
    "repeat", "repeat_interleave", "tile", "unsqueeze_", "squeeze_", "transpose_", "hstack", "vstack",
}  # fmt: skip
TEXT_OPS = frozenset(
    {"layer_norm", "rms_norm", "embedding", "linear", "addmm"}
)  # [batch, word, feature] comes of these


def may_cut_text(model: nn.Module) -> bool:
    """Return whether a part of a model, or its configuration, has a size of blocks."""
    parts = list(model.modules())
    configs = {id(config): config for part in parts if (config := part.__dict__.get("config")) is not None}.values()
    owners = [vars(one) for one in (*parts, *configs, *{type(part) for part in parts}) if hasattr(one, "__dict__")]
    names = {name for owner in owners for name, value in owner.items() if type(value) in (int, tuple, list) and value}
    return any(SIZES.fullmatch(name) for name in names)


class BlockTracker:
    """The tensors that are alive and made of words.

    Attributes:
        known: tensor -> how it came of a text.
    """

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()

    def follow_softmax(self, scores: Tensor, weights: Tensor) -> None:
        if (origin := self.known.get(scores)) is not None:
            self.known[weights] = replace(origin, is_softmax=True)

    def find(self, product: Product) -> tuple[int, int] | None:
        """Return which factor is weights of words that the other has the values of, and its axis of keys."""
        for place in (0, 1):
            weights, values = (self.known.get(product.factors[side]) for side in (place, 1 - place))
            axes = product.contracted_axes(place)
            known = weights and values and weights.is_softmax and len(axes) == 1
            if known and len(weights.features) == 2 and len(values.features) == 1:
                return place, axes[0]
        return None

    def block(self, product: Product, place: int, layout: Layout) -> Block | None:
        """Return which part of a text the weights in a product are of; None: they are of all of it."""
        weights, values = self.known.get(product.factors[place]), self.known.get(product.factors[1 - place])
        _, _, queries, keys = layout.sizes
        is_cut = values is not None and keys != values.text.words
        is_cut |= weights is not None and len(weights.features) == 2 and queries not in weights.word_counts
        return Block(weights, values, product.letters[place], product.letters[1 - place], layout) if is_cut else None

    def follow(self, op: Operation, output: Any) -> None:
        """Track the output of an operation."""
        if op.name == "__setitem__":
            self._assign(*op.args)
        elif op.product is not None:
            self._multiply(op.product, output)
        elif op.name in TEXT_OPS:
            self._begin(op.args[0], output)
        elif op.name in MOVE_OPS:
            self._move(op, output)
        elif isinstance(output, Tensor):  # other numbers in the same cells
            alike = (arg for arg in op.args if isinstance(arg, Tensor) and arg.shape == output.shape)
            origin = next((self.known[arg] for arg in alike if arg in self.known), None)
            if origin is not None:
                self.known[output] = origin

    def _begin(self, source: Any, output: Any) -> None:
        """A norm or a projection, of a text or of a part of one."""
        if not isinstance(output, Tensor) or output.dim() != 3 or not output.is_floating_point():
            return
        origin = self.known.get(source) if isinstance(source, Tensor) else None
        features, shape = output.shape[-1], output.shape
        if origin is None or origin.is_whole:
            text = origin.text if origin else Text(shape)
            self.known[output] = Origin(
                text, (features,), True, lambda _: torch.arange(1, math.prod(shape) + 1).view(shape)
            )
        elif len(origin.features) == 1:

            def replay(_: int) -> Tensor:
                first = origin.replay(0)[..., :1]
                cells = word_of(first, origin.features[0]) * features + torch.arange(features) + 1
                return torch.where(first > 0, cells, 0)

            self.known[output] = Origin(origin.text, (features,), False, replay)

    def _move(self, op: Operation, output: Any) -> None:
        """The same cells in another order, some of them, or those of several tensors."""
        first: Any = op.args[0] if op.args else op.kwargs.get("input", op.kwargs.get("tensors"))
        is_list = isinstance(first, list | tuple)
        sources: list[Any] = list(first) if is_list else [first]
        origins = [self.known.get(one) if isinstance(one, Tensor) else None for one in sources]
        known = [origin for origin in origins if origin is not None]
        if not known or len(known) < len(origins) or len({(one.text, one.other) for one in known}) > 1:
            return
        shape, stride = sources[0].shape, sources[0].stride() if op.name == "as_strided" else ()

        def replay(which: int, part: int | None) -> Tensor:
            cells = [origin.replay(which) for origin in known]
            if op.name == "as_strided":
                cells[0] = torch.empty_strided(shape, stride, dtype=torch.long).copy_(cells[0])
            moved = _repeat(op, cells if is_list else cells[0])
            return moved if part is None else moved[part]

        parts: list[tuple[int | None, Any]] = [(None, output)]
        if isinstance(output, list | tuple):
            parts = list(enumerate(output))
        for number, tensor in parts:
            if isinstance(tensor, Tensor):
                self.known[tensor] = replace(known[0], is_whole=False, replay=partial(replay, part=number))

    def _multiply(self, product: Product, output: Tensor) -> None:
        """A projection, or scores of queries and keys."""
        if any(map(is_learned, product.factors)):
            self._begin(product.factors[0], output)
            return
        sides = [self.known.get(factor) for factor in product.factors]
        known = [origin for origin in sides if origin is not None]
        if not known or any(len(origin.features) != 1 for origin in known) or len(product.output) != output.dim():
            return
        shape = output.shape

        def replay(which: int) -> Tensor:
            if (side := sides[which]) is None:
                raise LookupError("not all of its keys are of the text")
            return align_axes(side.replay(0), product.letters[which], product.output).expand(shape)

        texts, features = zip(*((side.text, side.features[0]) if side else (UNKNOWN, 1) for side in sides))
        self.known[output] = Origin(texts[0], features, False, replay, other=texts[1])

    def _assign(self, target: Tensor, index: Any, value: Any) -> None:
        """Cells of a tensor are overwritten, of one perhaps in which nothing was known."""
        origin = self.known.get(value) if isinstance(value, Tensor) else None
        before, shape = self.known.get(target), target.shape
        if origin is None:
            return

        def replay(which: int) -> Tensor:
            cells = before.replay(which).clone() if before else torch.zeros(shape, dtype=torch.long)
            cells[index] = origin.replay(which)
            return cells

        self.known[target] = replace(origin, is_whole=False, replay=replay)


def _repeat(op: Operation, cells: Any) -> Any:
    """Apply an operation to numbered cells, whose memory may lie in another way."""
    if op.name == "pad":
        return nn.functional.pad(cells, op.argument(1, "pad"))  # of numbers, with 0, whatever it was before
    if op.name == "view":
        return cells.reshape(*op.args[1:])
    if op.name == "view_as":
        return cells.reshape(op.args[1].shape)
    return op.func(cells, *op.args[1:], **op.kwargs)
