"""What the parts of one tracer share: the module stack, the recorder, the axes of weights, and notes for the user."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from tfviz.look.attention_call import as_4d
from tfviz.look.axes import Heads, Layout, layout, parse_axes
from tfviz.look.editor import matches
from tfviz.look.module_stack import ModuleStack
from tfviz.look.recorder import Recorder
from tfviz.look.text_blocks import Block

NEAR = 3  # running modules, from the innermost on, that may say how many heads there are


@dataclass
class Notes:
    """What the user should know of a capture, as `look.caveats` words it. Dictionaries without values keep an order.

    Attributes:
        softmaxes: modules that called a softmax, whatever became of it.
        channels: modules whose weights mix channels, not positions.
        unnormalized: sites whose rows need not sum to 1.
        skipped: modules where such weights met values, but whose site was not named.
        sampled: modules that read a picture at points of their own (deformable attention, Zhu et al. 2021).
        fast_path: encoder layers whose float mask PyTorch's fast path reads as a boolean one.
        dropout: sites of patterns -> probability of the dropout between them and the values.
        unclear_axes: sites -> the size of the one axis beside query and key, where the number of heads is unknown.
        without_grad: whether the model ran under `torch.no_grad`.
    """

    softmaxes: dict[str, None] = field(default_factory=dict)
    channels: dict[str, None] = field(default_factory=dict)
    unnormalized: dict[str, None] = field(default_factory=dict)
    skipped: dict[str, None] = field(default_factory=dict)
    sampled: dict[str, None] = field(default_factory=dict)
    fast_path: dict[str, None] = field(default_factory=dict)
    dropout: dict[str, float] = field(default_factory=dict)
    unclear_axes: dict[str, int] = field(default_factory=dict)
    without_grad: bool = False


class AxesResolver:
    """Finds the layout of weights: as the user says it, or by what the running modules say of heads.

    Args:
        stated: glob of sites -> axes, such as "(b h=8) q k".
    """

    def __init__(self, stack: ModuleStack, notes: Notes, stated: Mapping[str, str]) -> None:
        self.stack, self.notes, self.stated = stack, notes, stated
        self._heads: dict[tuple[object, ...], Heads] = {}  # by the modules that run

    def heads(self) -> Heads:
        """Return what the innermost running modules say of their heads."""
        state = self.stack.state
        near = (*(frame.path for frame in state.frames[-NEAR:]), state.num_heads)
        if near not in self._heads:
            self._heads[near] = Heads.of(self.stack.innermost(NEAR), state.num_heads, self.stack.first_sizes)
        return self._heads[near]

    def layout(self, shape: Sequence[int], roles: Sequence[str]) -> Layout:
        """Return the layout of weights whose axes have these roles."""
        heads, site = self.heads(), self.stack.site("pattern")
        for glob, axes in self.stated.items():
            if matches(site, glob):
                return parse_axes(axes, shape, heads)
        if heads.count is None and list(roles).count("shared") == 1:
            self.notes.unclear_axes.setdefault(site, shape[list(roles).index("shared")])
        return layout(shape, roles, heads)

    def with_heads(self, tensor: Tensor) -> Tensor:
        """Return [batch * head, query, key] of `multi_head_attention_forward`, or fewer axes, with all four."""
        heads = self.stack.state.num_heads
        return tensor.unflatten(0, (-1, heads)) if heads and tensor.dim() == 3 else as_4d(tensor)

    def note_channels(self, layout: Layout) -> None:
        """Note weights that have a row for each channel of the texts that the module was given, not for each word."""
        shape, (_, heads, queries, keys) = self.stack.state.frames[-1].input_shape, layout.sizes
        if len(shape) == 3 and queries == keys and queries not in shape[:2] and heads * queries == shape[2]:
            self.notes.channels[self.stack.path] = None


@dataclass
class Trace:
    """The parts of one capture.

    Attributes:
        outer: the `AttentionTracer`s of captures that are open around it, outermost first.
        blocks: sites that saw parts of a text -> which part, by firing.
    """

    stack: ModuleStack
    recorder: Recorder
    resolver: AxesResolver
    notes: Notes
    outer: list[Any] = field(default_factory=list)
    blocks: dict[str, dict[int, Block]] = field(default_factory=dict)

    def running_outer(self) -> list[Any]:
        """Return the tracers around this one whose model is running."""
        return [tracer for tracer in self.outer if tracer.stack.running]

    def position_counts(self) -> set[int]:
        """Return how many positions there may be in the inputs of the running modules."""
        return {count for frame in self.stack.state.frames for count in position_counts(frame.input_shape)}


def position_counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many positions, of a text or a picture, a tensor of this shape may have."""
    return (math.prod(shape[2:]), math.prod(shape[1:-1])) if len(shape) == 4 else shape[1:2]
