"""Fused attention (SDPA, FlexAttention, external kernels), whose weights are recomputed from the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.attention_call import AttentionCall, softmax_weights
from tfviz.look.capture_state import CaptureState
from tfviz.look.edits import ZeroHeads
from tfviz.look.external_kernels import AttentionKernel
from tfviz.look.flex import compiled_mask_mod, is_compiled
from tfviz.look.fused_weights import FusedWeights
from tfviz.look.lazy import LazyStore
from tfviz.look.torch_modes import in_checkpoint, paused, untraced

# The operator that `flex_attention` calls, which a mode observes first.
FLEX_ATTENTION_OP = torch.ops.higher_order.flex_attention


class FusedAttention:
    """A matcher of fused attention: the kernel computes the output, the weights are recomputed from its arguments.

    Args:
        store: the store for the arguments of a lazy capture; None: weights are computed immediately.
    """

    def __init__(self, state: CaptureState, store: LazyStore | None) -> None:
        self.state, self.recorder, self.store = state, state.recorder, store

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
        """Compute `scaled_dot_product_attention` and record its weights."""
        inputs = (query, key, value)
        is_repeated = self.state.stack.repeats_last_sdpa(query, key)
        site = self.state.stack.site("pattern")
        if dropout_p:
            self.state.diagnostics.dropout[site] = dropout_p
        query, key, value = self._edit_inputs(query, key, value)
        kernel = partial(
            functional.scaled_dot_product_attention,
            *(query, key, value, attn_mask, dropout_p, is_causal),
            scale=scale,
            enable_gqa=enable_gqa,
        )
        if query.is_nested or key.is_nested:
            self.state.stack.unseen[site] = "nested tensors"
            return kernel()
        make = partial(AttentionCall.from_arguments, query, key, value, attn_mask, scale, is_causal)
        ablated = self._zeroed_heads(make, inputs, is_repeated)
        edited = None if ablated is not None else self.observe(make, inputs, dropout_p, is_repeated)
        if edited is not None:
            return self._edit_output(edited, make, outer=True)
        output = kernel()
        return self._edit_output(output if ablated is None else output.masked_fill(ablated, 0.0), make)

    def _edit_output(self, output: Tensor, make: Callable[[], AttentionCall], outer: bool = False) -> Tensor:
        """Edit and record the outputs of the heads; `outer`: enclosing captures cannot observe the call."""
        return self.state.edit_output_heads(output, lambda: self._weights(make()).output_axes(output), outer)

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
        """Compute `flex_attention` and record its weights; edits change the output, but not the rows' logsumexp."""
        inputs = query, key, value
        query, key, value = self._edit_inputs(*inputs)
        if is_compiled():  # the compiled kernel reads only listed blocks, and does not call mask_mod in full ones
            block_mask = (*block_mask[:-1], compiled_mask_mod(block_mask))
        mask_mod = block_mask[-1]

        def masked_score(score: Tensor, *cell: Tensor) -> Tensor:
            return torch.where(mask_mod(*cell), score_mod(score, *cell), -torch.inf)

        def make() -> AttentionCall:
            return replace(AttentionCall.from_arguments(query, key, value, None, scale), score_mod=masked_score)

        ablated = self._zeroed_heads(make, inputs)
        edited = None if ablated is not None else self.observe(make, inputs)
        output, *rows = FLEX_ATTENTION_OP(query, key, value, score_mod, block_mask, scale, *args, **kwargs)
        output = output if ablated is None else output.masked_fill(ablated, 0.0)
        output = self._edit_output(output if edited is None else edited, make, outer=edited is not None)
        return (output, *rows)

    def kernel(self, kernel: AttentionKernel, arguments: dict[str, Any], original: Callable[[], Any]) -> Any:
        """Compute a kernel that was registered by `look.register_attention_kernel`, and record its weights."""
        with untraced():
            call = kernel.call(arguments)
        if isinstance(call, str):
            self.state.stack.unseen[self.state.stack.site("pattern")] = call
            return original()
        inputs = (call.query, call.key, call.value)
        query, key, value = self._edit_inputs(*inputs)
        is_changed = any(new is not old for new, old in zip((query, key, value), inputs))
        call = replace(call, query=query, key=key, value=value)
        for outer in self.state.running_outer():  # these captures cannot observe the kernel's call
            outer.fused.observe(lambda: call, (query, key, value))
        edited = self.observe(lambda: call, (query, key, value))
        with paused():
            output = original()
            if edited is None and is_changed:
                edited = call.apply_to_values(softmax_weights(call.scores()))
        first = output[0] if isinstance(output, tuple) else output
        heads = kernel.to_bhnd(first) if edited is None else edited
        changed = self._edit_output(heads, lambda: call, outer=True)
        if edited is None and changed is heads:
            return output
        first = kernel.from_bhnd(changed)
        return (first, *output[1:]) if isinstance(output, tuple) else first

    def observe(
        self,
        make: Callable[[], AttentionCall],
        inputs: Sequence[Tensor],
        dropout: float = 0.0,
        is_repeated: bool = False,
    ) -> Tensor | None:
        """Record the scores and weights of a call; return its output if they are edited, else None.

        Args:
            make: function that builds the call; edited attention builds it again, so that gradients flow through it.
            inputs: the model's own query, key and value.
            dropout: the probability with which the call drops weights.
            is_repeated: whether the weights were already recorded and are now applied to other values.
        """
        weights = cache(lambda: self._weights(make()))
        if not is_repeated:
            self.recorder.record_keys(self.state.stack.site("pattern"), lambda: weights().key_record())
        if self.state.is_edited("scores") or self.state.is_edited("pattern"):
            return self._edited_output(make, inputs, dropout)
        if not is_repeated:
            self._record(weights, inputs)
        return None

    def _record(
        self, weights: Callable[[], FusedWeights], inputs: Sequence[Tensor], ablated: Tensor | None = None
    ) -> None:
        """Record scores and weights; `ablated`, [head, 1, 1], is True for heads that are set to zero."""

        def pattern() -> Tensor | AttentionCall:
            if self.store and ablated is None and weights().layout.is_plain:
                return self.store.keep(weights().call, self.state.heads().kv_count)
            pattern = weights().pattern(self.recorder.dtype)
            return pattern if ablated is None else pattern.masked_fill(ablated, 0)

        site = self.state.stack.site("pattern")
        self.recorder.record(self.state.stack.site("scores"), lambda: weights().scores())
        with self.state.noting_chunk(site, lambda tracker: tracker.chunk_of_call(inputs, weights().layout)):
            self.recorder.record(site, pattern, lambda: weights().allowed())

    def _edited_output(self, make: Callable[[], AttentionCall], inputs: Sequence[Tensor], dropout: float) -> Tensor:
        """Return the output of a call whose scores or weights are edited."""
        with untraced():
            weights, site = self._weights(make()), self.state.stack.site("pattern")
            call, layout = weights.call, weights.layout
            scores = layout.to_bhqk(call.scores().reshape(layout.shape))
            scores = self.state.edit_in_all_captures("scores", scores)
            with self.state.noting_chunk(site, lambda tracker: tracker.chunk_of_call(inputs, layout)):
                pattern = self.state.edit_pattern(None, softmax_weights(scores), weights.allowed, weights.key_record)
            return call.apply_to_values(functional.dropout(layout.from_bhqk(pattern).reshape(call.shape), dropout))

    def _zeroed_heads(
        self, make: Callable[[], AttentionCall], inputs: Sequence[Tensor], is_repeated: bool = False
    ) -> Tensor | None:
        """Record a call and return a mask [head, 1, 1] of heads set to zero, if that is the only edit; else None.

        The kernel then computes the output. Weights are computed only if their site is requested.
        """
        site, recorder, query = self.state.stack.site("pattern"), self.recorder, inputs[0]
        edits = [edit for edit in recorder.edits_of(site) if isinstance(edit, ZeroHeads)]
        if not edits or len(edits) < len(recorder.edits_of(site)) or query.dim() != 4 or in_checkpoint():
            return None
        is_map_needed = recorder.is_edited(self.state.stack.site("scores")) or (recorder.grad and recorder.wants(site))
        if is_map_needed or self.state.running_outer():
            return None
        with untraced():
            weights = self._weights(make())
            if not weights.layout.is_plain:
                return None
            zeroed = torch.stack([edit.zeroed_mask(weights.call.shape[1], site) for edit in edits]).any(0)
            ablated = zeroed.to(query.device).view(-1, 1, 1)
        if not is_repeated:
            recorder.record_keys(site, weights.key_record)
            self._record(lambda: weights, inputs, ablated)
        return ablated

    def _edit_inputs(self, *inputs: Tensor) -> Iterator[Tensor]:
        """Edit, record and yield query, key and value.

        Where the module has a submodule called `query`, the site is `.query_heads`, and so on.
        """
        for name, tensor in zip(("query", "key", "value"), inputs):
            site = self.state.stack.site(name)
            site = f"{site}_heads" if site in self.state.stack.modules else site
            copies = 1 if name == "query" else self._copies(site, tensor)
            if copies == 1:
                yield self.recorder.edit_and_record(site, tensor)
            else:
                groups = self.recorder.edit_and_record(site, tensor[:, ::copies])
                yield groups.repeat_interleave(copies, 1) if self.recorder.is_edited(site) else tensor

    def _copies(self, site: str, tensor: Tensor) -> int:
        """Return how often each head of keys or values is repeated, for the query heads that share it; 1 if it is not.

        Hugging Face's models repeat the heads before the kernel for some masks only. The site always has one head for
        each group.
        """
        kv_count = self.state.heads().kv_count
        if not kv_count or not (self.recorder.wants(site) or self.recorder.is_edited(site)):
            return 1
        if tensor.dim() != 4 or tensor.shape[1] == kv_count or tensor.shape[1] % kv_count:
            return 1
        copies = tensor.shape[1] // kv_count
        groups = tensor.unflatten(1, (kv_count, copies))
        with untraced():
            return copies if torch.equal(groups, groups[:, :, :1].expand_as(groups)) else 1

    def _weights(self, call: AttentionCall) -> FusedWeights:
        shape = (*call.leading_shape, *call.shape[2:])
        layout = self.state.layout(shape, [*["shared"] * len(call.leading_shape), "q", "k"])
        count = len(layout.split)
        if layout.order[-2:] != (count - 2, count - 1):
            raise ValueError(
                f"axes of {self.state.stack.site('pattern')}: PyTorch's own attention has queries and keys on its last "
                "two axes: leave axes out, or give them by glob for the sites that a model computes itself"
            )
        self.state.note_channels(layout)
        return FusedWeights(call, layout)
