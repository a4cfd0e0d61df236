"""`CaptureState`, which the parts of one capture share: running modules, recorder, axes of weights, diagnostics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from tfviz.look.attention_call import as_4d
from tfviz.look.axes import HeadCounts, Layout, OutputAxes, layout, parse_axes
from tfviz.look.chunk_tracker import ChunkTracker
from tfviz.look.key_signatures import KeyRecord
from tfviz.look.module_stack import ModuleStack
from tfviz.look.recorder import MaskFactory, Recorder, matches
from tfviz.look.text_chunks import ChunkOrigins
from tfviz.look.torch_modes import untraced

MAX_MODULES_ASKED = 3  # innermost running modules whose attributes may declare the number of heads


@dataclass
class CaptureDiagnostics:
    """Facts about a capture that `look.capture_checks` turns into messages; dictionaries to None are sets.

    They belong to one `CaptureState`. Those who observe the model's calls (`eager`, `fused`, `multi_head`, `tracer`,
    `weight_finder`) add facts while it runs, and none is removed. They are read when the capture's context ends, for
    warnings, and later whenever the `Capture` is asked for its summary or caveats, of which a copy or a pickle has its
    own.

    Attributes:
        softmaxes: modules that called a softmax, for attention or not.
        channels: modules whose weights mix channels instead of positions.
        unnormalized: sites whose rows need not sum to 1.
        skipped: modules that multiplied such weights with values, but whose site was not named.
        sampled: modules that sample a picture at computed points (deformable attention, Zhu et al. 2021).
        fast_path: attention modules of encoder layers whose float mask is read as boolean, as in PyTorch's fast path.
        dropout: site of a pattern -> probability of the dropout between the pattern and the values.
        unclear_axes: site -> size of the only axis besides query and key, where the number of heads is unknown.
        without_grad: whether the model ran with gradients disabled.
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


@dataclass
class CaptureState:
    """The state that the parts of one capture share.

    An `AttentionTracer` makes and owns it, one for each `look.capture`; it changes only inside the capture's context.
    Afterwards the `Capture` reads it, and keeps the model alive by it; a copy or a pickle keeps only the messages.

    Attributes:
        axes: glob of sites -> axes of their weights, as the user gave them, such as "(b h=8) q k".
        outer: the `AttentionTracer`s of the enclosing captures, outermost first.
        diagnostics: the facts from which messages are made.
        chunks: site -> index of an invocation -> the chunk of a text that it covers.
        chunk_tracker: the tracker for a model that may cut a text into chunks; None for other models.
    """

    stack: ModuleStack
    recorder: Recorder
    axes: Mapping[str, str]
    outer: list[Any]
    diagnostics: CaptureDiagnostics = field(default_factory=CaptureDiagnostics)
    chunks: dict[str, dict[int, ChunkOrigins]] = field(default_factory=dict)
    chunk_tracker: ChunkTracker | None = None
    _heads: dict[tuple[object, ...], HeadCounts] = field(default_factory=dict)  # by the paths of the running modules

    def heads(self) -> HeadCounts:
        """Return the head counts that the innermost running modules declare."""
        state = self.stack.state
        near = (*(frame.path for frame in state.frames[-MAX_MODULES_ASKED:]), state.num_heads)
        if near not in self._heads:
            self._heads[near] = HeadCounts.from_modules(
                self.stack.innermost(MAX_MODULES_ASKED), state.num_heads, self.stack.first_sizes
            )
        return self._heads[near]

    def layout(self, shape: Sequence[int], roles: Sequence[str]) -> Layout:
        """Return the layout of weights by the axes that the user gave, or else by these roles and the head count."""
        heads, site = self.heads(), self.stack.site("pattern")
        for glob, axes in self.axes.items():
            if matches(site, glob):
                return parse_axes(axes, shape, heads)
        if heads.count is None and list(roles).count("shared") == 1:
            self.diagnostics.unclear_axes.setdefault(site, shape[list(roles).index("shared")])
        return layout(shape, roles, heads)

    def note_channels(self, layout: Layout) -> None:
        """Note weights that have a row for each channel of the module's input instead of each position."""
        shape, (_, heads, queries, keys) = self.stack.state.frames[-1].input_shape, layout.sizes
        if len(shape) == 3 and queries == keys and queries not in shape[:2] and heads * queries == shape[2]:
            self.diagnostics.channels[self.stack.path] = None

    def with_heads(self, tensor: Tensor) -> Tensor:
        """Reshape to [batch, head, query, key], splitting the heads of `multi_head_attention_forward`."""
        heads = self.stack.state.num_heads
        return tensor.unflatten(0, (-1, heads)) if heads and tensor.dim() == 3 else as_4d(tensor)

    @contextmanager
    def noting_chunk(self, site: str, find: Callable[[ChunkTracker], ChunkOrigins | None]) -> Iterator[None]:
        """Record, on leaving the context, the chunk of a text that the weights cover, if the text was cut."""
        before = len(self.recorder.invocations.get(site, ()))
        yield
        is_recorded = len(self.recorder.invocations.get(site, ())) > before
        if is_recorded and self.chunk_tracker is not None and (chunk := find(self.chunk_tracker)) is not None:
            self.chunks.setdefault(site, {})[before] = chunk

    def running_outer(self) -> list[Any]:
        """Return the tracers of the enclosing captures whose model is running."""
        return [tracer for tracer in self.outer if tracer.stack.running]

    def is_edited(self, name: str) -> bool:
        """Return whether this capture edits scores or weights, or records them and an enclosing capture edits them."""
        site = self.stack.site(name)
        if self.recorder.is_edited(site):
            return True
        outer = self.running_outer() if self.recorder.wants(site) else []
        return any(tracer.recorder.is_edited(tracer.stack.site(name)) for tracer in outer)

    def edit_in_all_captures(self, name: str, tensor: Tensor, allowed: MaskFactory = lambda: None) -> Tensor:
        """Edit and record scores or a pattern here and in enclosing captures, which cannot observe the call.

        The edits of all captures are applied before any of them records the result.
        """
        tracers = reversed(self.running_outer())
        here = [(self.recorder, self.stack.site(name))]
        sites = [*here, *((tracer.recorder, tracer.stack.site(name)) for tracer in tracers)]
        for recorder, site in sites:
            tensor = recorder.edit(site, tensor)
        for recorder, site in sites:
            tensor = recorder.keep(site, tensor, allowed)
        return tensor

    def edit_pattern(
        self, scores: Tensor | None, pattern: Tensor, allowed: MaskFactory, key_record: Callable[[], KeyRecord]
    ) -> Tensor:
        """Edit and record a pattern here and in enclosing captures, which cannot observe calls of edited attention.

        Args:
            scores: the scores, [batch, head, query, key], to record in enclosing captures; None: unknown, or already
                recorded.
            pattern: [batch, head, query, key].
            allowed: function that returns the mask, True where a query may attend, or None.
            key_record: function that returns the keys, by which maps are joined over time.
        """
        for outer in reversed(self.running_outer()):
            outer.state.recorder.record_keys(outer.stack.site("pattern"), key_record)
            if scores is not None:
                outer.state.recorder.record(outer.stack.site("scores"), scores.clone)
        return self.edit_in_all_captures("pattern", pattern, allowed)

    def edit_output_heads(self, output: Tensor, find_axes: Callable[[], OutputAxes], outer: bool = False) -> Tensor:
        """Edit and record the attention output before the output projection as [batch, head, query, dim]; return it.

        Args:
            output: the output, in the model's own order of axes, which the returned tensor also has.
            find_axes: a function that returns the axes of the output.
            outer: whether to edit and record in enclosing captures too, because they cannot observe the call.
        """
        for tracer in reversed(self.running_outer()) if outer else ():
            output = tracer.state.edit_output_heads(output, find_axes)
        site = self.stack.site("output_heads")
        if not self.recorder.is_edited(site):
            self.recorder.record(site, lambda: find_axes().to_heads(output).clone())
            return output
        with untraced():
            axes = find_axes()
            heads = axes.to_heads(output)
            edited = self.recorder.edit_and_record(site, heads)
            if edited is heads:
                return output
            for tracer in self.running_outer():
                tracer.recorder.amend(tracer.stack.site("output_heads"), edited)
            return axes.from_heads(edited, output.shape)

    def position_counts(self) -> set[int]:
        """Return the possible numbers of positions, of a text or a picture, from the inputs of the running modules."""
        counts: set[int] = set()
        for frame in self.stack.state.frames:
            shape = frame.input_shape
            counts.update((math.prod(shape[2:]), math.prod(shape[1:-1])) if len(shape) == 4 else shape[1:2])
        return counts
