"""Tracking of tensors back to token positions, in models that cut a text into chunks or a picture into windows.

Longformer, BigBird and similar models cut a text. Swin cuts a picture, whose positions take the role of tokens.

For each tensor that is derived from token vectors only by slicing, gathering and joining, a function is stored that
repeats these operations on another tensor. Nothing is computed while the model runs. When a map is requested, the
function is applied to the indices of the positions. The result is the query and the key of each weight, by which the
chunks are joined to one map of the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.axes import Layout
from tfviz.look.products import Contraction, Operation, align_axes, is_learned
from tfviz.look.text_chunks import UNKNOWN_INPUT, ChunkOrigins, Origin, TrackedInput, position_of
from tfviz.look.weight_tracker import SHAPE_OPS

# names of chunk sizes in modules; a sliding window is only a mask
CHUNK_SIZE_NAME = re.compile(
    r"(?!sliding_window|max_window_layers|relative|chunk_size_feed).*(block|chunk|window|local|bucket).*"
)
MOVE_OPS = SHAPE_OPS | {
    "cat", "concat", "concatenate", "stack", "pad", "gather", "index_select", "take_along_dim", "as_strided", "unfold",
    "repeat", "repeat_interleave", "tile", "unsqueeze_", "squeeze_", "transpose_", "hstack", "vstack",
}  # fmt: skip
NORM_OPS = frozenset({"layer_norm", "rms_norm"})
PROJECTION_OPS = frozenset({"embedding", "linear", "addmm"})


def may_cut_text(model: nn.Module) -> bool:
    """Return whether a module, its class or its config has an attribute that is named like a chunk size."""
    parts = list(model.modules())
    configs = {id(config): config for part in parts if (config := part.__dict__.get("config")) is not None}.values()
    owners = [
        vars(owner) for owner in (*parts, *configs, *{type(part) for part in parts}) if hasattr(owner, "__dict__")
    ]
    names = {name for owner in owners for name, value in owner.items() if type(value) in (int, tuple, list) and value}
    return any(CHUNK_SIZE_NAME.fullmatch(name) for name in names)


class ChunkTracker:
    """A tracker of the live tensors whose cells come from known token positions.

    Attributes:
        tracked: tensor -> its origin in a text.
    """

    def __init__(self) -> None:
        self.tracked: Any = WeakIdKeyDictionary()

    def follow_softmax(self, scores: Tensor, weights: Tensor) -> None:
        if (origin := self.tracked.get(scores)) is not None:
            self.tracked[weights] = replace(origin, is_softmax=True)

    def find(self, product: Contraction) -> tuple[int, int] | None:
        """Return the factor of a product weights @ values that is the weights, as its index, and its key axis.

        Return None for other products.
        """
        for operand in (0, 1):
            weights, values = (self.tracked.get(product.factors[side]) for side in (operand, 1 - operand))
            axes = product.contracted_axes(operand)
            known = weights and values and weights.is_softmax and len(axes) == 1
            if known and len(weights.features) == 2 and len(values.features) == 1:
                return operand, axes[0]
        return None

    def chunk(self, product: Contraction, operand: int, layout: Layout) -> ChunkOrigins | None:
        """Return the chunk of a text that the weights in a product cover; None if they cover the whole text."""
        weights, values = self.tracked.get(product.factors[operand]), self.tracked.get(product.factors[1 - operand])
        _, _, queries, keys = layout.sizes
        is_cut = values is not None and keys != values.text.positions
        is_cut |= weights is not None and len(weights.features) == 2 and queries not in weights.position_counts
        subscripts, value_subscripts = product.subscripts[operand], product.subscripts[1 - operand]
        return ChunkOrigins(weights, values, subscripts, value_subscripts, layout) if is_cut else None

    def chunk_of_call(self, inputs: Sequence[Tensor], layout: Layout) -> ChunkOrigins | None:
        """Return the chunk of a text that a fused call covers; None if it covers the whole text, or is unknown."""
        query, key, values = origins = [self.tracked.get(part) for part in inputs]
        lead = {part.shape[:-2] for part in inputs}
        if None in origins or any(len(origin.features) != 1 for origin in origins) or len(lead) != 1:
            return None
        if (inputs[0].shape[-2], inputs[1].shape[-2]) == (query.text.positions, values.text.positions):
            return None

        def replay(which: int) -> Tensor:
            cells = origins[which].replay(0)[..., 0]
            return (cells[..., :, None] if which == 0 else cells[..., None, :]).expand(layout.shape)

        features = (query.features[0], key.features[0])
        weights = Origin(query.text, features, False, replay, is_softmax=True, other=key.text)
        axes = range(len(layout.shape) - 2)
        return ChunkOrigins(weights, values, (*axes, "query", "key"), (*axes, "key", "dim"), layout)

    def follow(self, op: Operation, output: Any) -> None:
        """Track the output of an operation."""
        if op.name == "__setitem__":
            self._assign(*op.args)
        elif op.product is not None:
            self._multiply(op.product, output)
        elif op.name in NORM_OPS or op.name in PROJECTION_OPS:
            self._project(op.args[0], output, op.name in NORM_OPS)
        elif op.name in MOVE_OPS:
            self._move(op, output)
        elif isinstance(output, Tensor):  # the cells are the same, with other numbers
            alike = (arg for arg in op.args if isinstance(arg, Tensor) and arg.shape == output.shape)
            origin = next((self.tracked[arg] for arg in alike if arg in self.tracked), None)
            if origin is not None:
                self.tracked[output] = origin

    def _project(self, source: Any, output: Any, is_norm: bool = False) -> None:
        """Track a norm or a projection; where a projection mixes positions, its output begins a new text."""
        if not isinstance(output, Tensor) or not output.is_floating_point() or output.dim() < 3:
            return
        origin = self.tracked.get(source) if isinstance(source, Tensor) else None
        is_picture = output.dim() == 4 and is_norm  # [batch, row, col, feature]
        if origin is not None and origin.is_whole:
            self.tracked[output] = _whole(origin.text, output.shape)
        elif origin is None or source.shape[-1] > origin.features[0]:  # unknown, or several positions side by side
            if output.dim() == 3 or is_picture:
                self.tracked[output] = _whole(TrackedInput(output.shape), output.shape)
        elif is_norm:
            self.tracked[output] = origin
        elif origin.features == (source.shape[-1],):
            self.tracked[output] = _projected(origin, output.shape[-1])

    def _move(self, op: Operation, output: Any) -> None:
        """Track cells that are rearranged, selected, or joined from several tensors."""
        joined: Any = op.args[0] if op.args else op.kwargs.get("input", op.kwargs.get("tensors"))
        is_list = isinstance(joined, list | tuple)
        sources: list[Any] = list(joined) if is_list else [joined]
        origins = self._common_origins(sources)
        if not origins:
            return
        repeat = _repetition(op, sources[0])

        def replay_all(which: int) -> Any:
            cells = [origin.replay(which) for origin in origins]
            return repeat(cells if is_list else cells[0])

        def replay_part(which: int, part: int) -> Tensor:
            return replay_all(which)[part]

        if isinstance(output, Tensor):
            self.tracked[output] = replace(origins[0], is_whole=False, replay=replay_all)
        elif isinstance(output, list | tuple):
            for part, tensor in enumerate(output):
                if isinstance(tensor, Tensor):
                    self.tracked[tensor] = replace(origins[0], is_whole=False, replay=partial(replay_part, part=part))

    def _common_origins(self, sources: Sequence[Any]) -> list[Origin]:
        """Return the origins of all sources; none if one is unknown, or they are in different texts."""
        origins = [self.tracked.get(source) if isinstance(source, Tensor) else None for source in sources]
        known = [origin for origin in origins if origin is not None]
        texts = {(origin.text, origin.other) for origin in known}
        return known if len(known) == len(origins) and len(texts) == 1 else []

    def _multiply(self, product: Contraction, output: Tensor) -> None:
        """Track a projection, or the scores of queries and keys."""
        if any(map(is_learned, product.factors)):
            self._project(product.factors[0], output)
            return
        sides = [self.tracked.get(factor) for factor in product.factors]
        known = [origin for origin in sides if origin is not None]
        if not known or any(len(origin.features) != 1 for origin in known) or len(product.output) != output.dim():
            return
        shape, subscripts, output_subscripts = output.shape, product.subscripts, product.output

        def replay(which: int) -> Tensor:
            if (side := sides[which]) is None:
                raise LookupError("some of its keys do not belong to the text")
            return align_axes(side.replay(0), subscripts[which], output_subscripts).expand(shape)

        texts, features = zip(*((side.text, side.features[0]) if side else (UNKNOWN_INPUT, 1) for side in sides))
        self.tracked[output] = Origin(texts[0], features, False, replay, other=texts[1])

    def _assign(self, target: Tensor, index: Any, value: Any) -> None:
        """Track cells that are overwritten, even in a tensor of unknown origin."""
        origin = self.tracked.get(value) if isinstance(value, Tensor) else None
        before, shape = self.tracked.get(target), target.shape
        if origin is None:
            return

        def replay(which: int) -> Tensor:
            cells = before.replay(which).clone() if before else torch.zeros(shape, dtype=torch.long)
            cells[index] = origin.replay(which)
            return cells

        self.tracked[target] = replace(origin, is_whole=False, replay=replay)


def _repetition(op: Operation, source: Tensor) -> Callable[[Any], Any]:
    """Return a function that repeats an operation on numbered cells without keeping the original tensors alive."""
    func, name, args = op.func, op.name, op.args[1:]
    kwargs = {key: value for key, value in op.kwargs.items() if key not in ("input", "tensors")}
    if name == "pad":
        sides = op.argument(1, "pad")
        return lambda cells: nn.functional.pad(cells, sides)  # 0: a cell without a source
    if name == "view":  # numbered cells may have other strides
        return lambda cells: cells.reshape(*args)
    if name in ("view_as", "reshape_as", "expand_as"):
        shape = args[0].shape
        return lambda cells: cells.expand(shape) if name == "expand_as" else cells.reshape(shape)
    if name == "as_strided":
        shape, stride = source.shape, source.stride()
        return lambda cells: func(torch.empty_strided(shape, stride, dtype=torch.long).copy_(cells), *args, **kwargs)
    return lambda cells: func(cells, *args, **kwargs)


def _whole(text: TrackedInput, shape: torch.Size) -> Origin:
    """Return the origin of a tensor that has one vector for each position of a text, in order."""
    return Origin(text, (shape[-1],), True, lambda _: _cell_numbers(shape))


def _projected(origin: Origin, features: int) -> Origin:
    """Return the origin of a projection to `features`: each output feature comes from the same position."""

    def replay(_: int) -> Tensor:
        first = origin.replay(0)[..., :1]
        cells = position_of(first, origin.features[0]) * features + torch.arange(features) + 1
        return torch.where(first > 0, cells, 0)

    return Origin(origin.text, (features,), False, replay)


def _cell_numbers(shape: torch.Size) -> Tensor:
    """Return a tensor of this shape whose cells are numbered from 1 on."""
    return torch.arange(1, math.prod(shape) + 1).view(shape)
