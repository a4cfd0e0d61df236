"""Fused attention: calls whose kernel never makes a map, which is recomputed from their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.attention_call import AttentionCall
from tfviz.look.axes import Layout
from tfviz.look.context import in_checkpoint, paused, untraced
from tfviz.look.eager import edit_through_captures, without_repeated_heads
from tfviz.look.edits import ZeroHeads
from tfviz.look.flex import compiled_mask_mod, is_compiled
from tfviz.look.history import KeyRecord
from tfviz.look.kernel import Kernel
from tfviz.look.key_signatures import of_call
from tfviz.look.lazy import LazyStore
from tfviz.look.recompute import attention_pattern, softmax_weights
from tfviz.look.trace import Trace

FLEX = torch.ops.higher_order.flex_attention  # what `flex_attention` calls: the first call of it that a mode sees


@dataclass
class FusedWeights:
    """The weights of a fused call, and the layout of their axes.

    Heads may stand beside texts on one axis, or on the axis of the one query.
    """

    call: AttentionCall
    layout: Layout

    def arrange(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the call's shape as [batch, head, query, key]."""
        return tensor if self.layout.is_plain else self.layout.to_bhqk(tensor.reshape(self.layout.shape))

    def scores(self) -> Tensor:
        return self.arrange(self.call.scores())

    def pattern(self, dtype: torch.dtype) -> Tensor:
        return self.arrange(attention_pattern(self.call, dtype))

    def allowed(self) -> Tensor | None:
        """Return True where a query may look; None if all may look everywhere."""
        allowed = self.call.allowed()
        if allowed is None or self.layout.is_plain:
            return allowed
        return without_repeated_heads(self.arrange(allowed.expand(self.call.shape)))

    def key_record(self) -> KeyRecord:
        """Return what the history keeps of the keys, by which maps are joined over time."""
        full_mask = cache(self.allowed)

        def allowed(rows: slice) -> Tensor | None:
            if self.layout.is_plain:
                return self.call.allowed(rows)
            mask = full_mask()
            return None if mask is None else mask[:, :, rows]

        return KeyRecord(self.layout.sizes[2], allowed, of_call(self.call, self.layout), self.call.key.dtype)


class FusedAttention:
    """Watches SDPA, FlexAttention and kernels of others: lets them compute the output, and recomputes their weights.

    Args:
        store: where to keep what weights are computed from; None: weights are computed at once.
    """

    def __init__(self, trace: Trace, store: LazyStore | None) -> None:
        self.trace, self.store = trace, store

    def sdpa(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Compute `scaled_dot_product_attention`."""
        is_repeated, off = self._repeats_last(query, key), None
        site = self.trace.stack.site("pattern")
        if dropout_p:
            self.trace.notes.dropout[site] = dropout_p
        query, key, value = self._edit_inputs(query, key, value)
        if query.is_nested or key.is_nested:
            self.trace.stack.unseen[site] = "nested tensors"
        else:
            make = lambda: AttentionCall.of(query, key, value, attn_mask, scale, is_causal)  # noqa: E731
            off = self._zeroed_heads(make, query, is_repeated)
            edited = None if off is not None else self.observe(make, dropout_p, is_repeated)
            if edited is not None:
                return edited
        output = functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        return output if off is None else output.masked_fill(off, 0.0)

    def flex(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor],
        block_mask: tuple[Any, ...],
        scale: float,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, ...]:
        """Compute `flex_attention`: its output, and the sums of its rows, which edits of weights leave alone."""
        query, key, value = self._edit_inputs(query, key, value)
        if is_compiled():  # its kernel reads the listed blocks only, and asks no mask_mod in those that are full
            block_mask = (*block_mask[:-1], compiled_mask_mod(block_mask))
        make = lambda: AttentionCall.flex(query, key, value, score_mod, block_mask[-1], scale)  # noqa: E731
        off = self._zeroed_heads(make, query)
        edited = None if off is not None else self.observe(make)
        output, *rows = FLEX(query, key, value, score_mod, block_mask, scale, *args, **kwargs)
        output = output if off is None else output.masked_fill(off, 0.0)
        return (output if edited is None else edited, *rows)

    def kernel(self, kernel: Kernel, arguments: dict[str, Any], original: Callable[[], Any]) -> Any:
        """Compute a kernel that `look.attention` has registered."""
        with untraced():
            call = kernel.call(arguments)
        if isinstance(call, str):
            self.trace.stack.unseen[self.trace.stack.site("pattern")] = call
            return original()
        query, key, value = self._edit_inputs(call.query, call.key, call.value)
        call = replace(call, query=query, key=key, value=value)
        for outer in self.trace.running_outer():  # which see no torch call of it
            outer.fused.observe(lambda: call)
        edited = self.observe(lambda: call)
        with paused():
            output = original()
        if edited is None:
            return output
        changed = kernel.from_bhnd(edited)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    def _repeats_last(self, query: Tensor, key: Tensor) -> bool:
        """Return whether these are the tensors of the last call, whose weights now meet other values (DiffLlama)."""
        state = self.trace.stack.state
        last, state.last_sdpa = state.last_sdpa, (ref(query), ref(key))
        return last is not None and last[0]() is query and last[1]() is key and query is not key

    def _edit_inputs(self, *inputs: Tensor) -> Iterator[Tensor]:
        """Edit and record query, key and value: at `.query_heads` and so on, where the module has a part `query`."""
        for name, tensor in zip(("query", "key", "value"), inputs):
            site = self.trace.stack.site(name)
            site = f"{site}_heads" if site in self.trace.stack.modules else site
            yield self.trace.recorder.edit_and_record(site, tensor)

    def observe(
        self, make: Callable[[], AttentionCall], dropout: float = 0.0, is_repeated: bool = False
    ) -> Tensor | None:
        """Record the scores and weights of a call; return its output if they are edited, else None.

        Args:
            make: returns the call, anew where gradients are to flow through it.
            is_repeated: its weights were recorded already, and meet other values now.
        """
        recorder, site = self.trace.recorder, self.trace.stack.site("pattern")
        weights = cache(lambda: self._weights(make()))
        if not is_repeated:
            recorder.record_keys(site, lambda: weights().key_record())
        if recorder.changes(self.trace.stack.site("scores")) or recorder.changes(site):
            return self._edited_output(make, dropout)
        if not is_repeated:
            recorder.record(self.trace.stack.site("scores"), lambda: self._noting_channels(weights()).scores())
            recorder.record(site, lambda: self._stored(weights()), lambda: weights().allowed())
        return None

    def _edited_output(self, make: Callable[[], AttentionCall], dropout: float) -> Tensor:
        """Return the output of a call whose scores or weights are edited."""
        with untraced():
            weights = self._weights(make())
            call, layout = weights.call, weights.layout
            scores = layout.to_bhqk(call.scores().reshape(layout.shape))
            scores = self.trace.recorder.edit_and_record(self.trace.stack.site("scores"), scores)
            pattern = edit_through_captures(
                self.trace, scores, softmax_weights(scores), weights.allowed, weights.key_record
            )
            return call.apply_to_values(functional.dropout(layout.from_bhqk(pattern).reshape(call.shape), dropout))

    def _zeroed_heads(
        self, make: Callable[[], AttentionCall], query: Tensor, is_repeated: bool = False
    ) -> Tensor | None:
        """Record a call and return True for heads that give nothing, [head, 1, 1], if that is the only edit.

        The kernel computes the output then, and no map is made for it.
        """
        site, recorder = self.trace.stack.site("pattern"), self.trace.recorder
        edits = self._only_zero_edits(site, query)
        if not edits:
            return None
        with untraced():
            weights = self._weights(make())
            if not weights.layout.is_plain:
                return None
            zeroed = torch.stack([edit.off(weights.call.shape[1], site) for edit in edits]).any(0)
            off = zeroed.to(query.device).view(-1, 1, 1)
        if not is_repeated:
            recorder.record_keys(site, weights.key_record)
            recorder.record(self.trace.stack.site("scores"), lambda: self._noting_channels(weights).scores())
            pattern = lambda: self._noting_channels(weights).pattern(recorder.dtype).masked_fill(off, 0)  # noqa: E731
            recorder.record(site, pattern, weights.allowed)
        return off

    def _only_zero_edits(self, site: str, query: Tensor) -> list[ZeroHeads]:
        """Return the edits of a pattern if all zero heads, and nothing else needs the map of this call."""
        recorder = self.trace.recorder
        edits = recorder.editor.of(site)
        zeroing = [edit for edit in edits if isinstance(edit, ZeroHeads)]
        if not edits or len(zeroing) < len(edits) or recorder.changes(self.trace.stack.site("scores")):
            return []
        if (recorder.grad and recorder.wants(site)) or self.trace.running_outer():
            return []
        return [] if query.dim() != 4 or in_checkpoint() else zeroing

    def _stored(self, weights: FusedWeights) -> Tensor | AttentionCall:
        """Return the weights, or what they are computed from where that is to be kept and has their axes."""
        self._noting_channels(weights)
        if self.store and weights.layout.is_plain:
            return self.store.keep(weights.call, self.trace.resolver.heads().kv_count)
        return weights.pattern(self.trace.recorder.dtype)

    def _noting_channels(self, weights: FusedWeights) -> FusedWeights:
        self.trace.resolver.note_channels(weights.layout)
        return weights

    def _weights(self, call: AttentionCall) -> FusedWeights:
        shape = (*call.batch_shape, *call.shape[2:])
        layout = self.trace.resolver.layout(shape, [*["shared"] * len(call.batch_shape), "q", "k"])
        count = len(layout.split)
        if layout.order[-2:] != (count - 2, count - 1):
            raise ValueError(
                f"axes of {self.trace.stack.site('pattern')}: PyTorch's own attention has queries and keys on its last "
                "two axes: leave axes out, or give them by glob for the sites that a model computes itself"
            )
        return FusedWeights(call, layout)
