"""`AttentionTracer`: observes every torch call of a model for `look.capture`, and recognizes attention.

The tracer needs module hooks and a `TorchFunctionMode`. A hook on a module receives its output, but not the weights
inside, and a fused kernel has no weights to return. A function mode receives each torch call with its arguments, in any
model, but not the module that made the call. So hooks that PyTorch keeps for all modules record which module is
running, and the mode, which is active only while the model runs, receives the calls of that module. No hook is attached
to the model, except to modules that have hooks of their own or whose input is recorded.

The order of events:

1. Before a module's forward, `_before_forward` pushes its path on the `ModuleStack`. The first one pushes the mode.
2. `__torch_function__` receives each torch call and passes it to one matcher:
   * `FusedAttention` (SDPA, FlexAttention, external kernels) lets the kernel compute the output, and recomputes the
     weights from query, key, mask and scale, in chunks of rows and only for requested sites. A lazy capture stores the
     arguments instead, and computes a map when it is indexed.
   * `MultiHeadForward` runs the body of `F.multi_head_attention_forward`, so that the calls inside it are observed.
   * `EagerAttention` takes all other calls. A `WeightTracker` follows the output of a softmax through reshapes,
     casts, dropout and arithmetic to the product that sums over its keys. The factor there that multiplies the values
     holds the weights.
3. At a site the `Recorder` applies edits first, then stores a copy. A fused call whose weights are edited is computed
   as softmax(scores) @ values instead. If whole heads are zeroed, the kernel still computes the output.
4. After a module's forward, `_after_call` pops it, and `_after_forward` records its output. Its input is recorded only
   if a glob names it (`blocks.0.input`). Such modules get a hook of their own, since PyTorch's pre-hooks for all
   modules receive no keyword arguments.
5. In the backward pass nothing is recorded, since gradient checkpointing computes parts of the model again there.

One call, with `blocks.0.attention.pattern` as a site:

    model(ids) ── hook ──> ModuleStack: ["", "blocks.0", "blocks.0.attention"]
        │
        └─ F.scaled_dot_product_attention(q, k, v)
              │
              v
        __torch_function__ ──> FusedAttention.sdpa
                                  ├─ edit_and_record  .query  .key  .value
                                  ├─ observe ──> Recorder: .scores, .pattern (recomputed from q and k, beside)
                                  └─ F.scaled_dot_product_attention(q', k', v') ──> output of the kernel

Captures may be nested: the inner tracer receives a call first and repeats it, so that the outer one receives it, too.
`close` removes all hooks and modes of a tracer, wherever an exception occurred, and `open` first removes those of
captures that were never closed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as _modules
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from tfviz.apply_edit import Edit
from tfviz.look.capture_state import CaptureState
from tfviz.look.chunk_tracker import ChunkTracker, may_cut_text
from tfviz.look.eager import EagerAttention
from tfviz.look.external_kernels import KERNEL_CALLS
from tfviz.look.fused import FLEX_ATTENTION_OP, FusedAttention
from tfviz.look.lazy import LazyStore
from tfviz.look.module_stack import ModuleStack, first_tensor_argument, is_dense
from tfviz.look.multi_head import MultiHeadForward
from tfviz.look.recorder import Recorder
from tfviz.look.torch_modes import (
    ACTIVE_CAPTURES,
    COMPILE_DISABLED,
    HIDDEN_WARNINGS,
    CaptureMode,
    in_functorch,
    is_paused,
    is_tracing,
    remove_modes,
    resume,
)  # fmt: skip

OPEN_TRACERS: set[AttentionTracer] = set()  # of all threads
SHARED_SETTINGS = (HIDDEN_WARNINGS, KERNEL_CALLS)
FLEX_MODULE = "torch.nn.attention.flex_attention"
# the attributes of a tensor that are tensors
TENSOR_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "grad", "real", "imag"})


class AttentionTracer(CaptureMode):
    """A tracer of a model in the thread or task in which it was opened.

    Args:
        model: the model to trace.
        globs: globs of the sites to record.
        dtype: dtype of recorded patterns.
        edits: site or glob -> function.
        axes: glob of sites -> axes of their weights.
        grad: whether to record tensors of the autograd graph, so that they get gradients.
        store: the store of a lazy capture; None: the capture is not lazy.
        device: the device on which recorded tensors are stored; None: where they were computed.
    """

    def __init__(
        self,
        model: nn.Module,
        globs: list[str],
        dtype: torch.dtype,
        edits: Mapping[str, Edit],
        axes: Mapping[str, str],
        grad: bool,
        store: LazyStore | None,
        device: torch.device | None = None,
    ) -> None:
        super().__init__()
        self.stack = ModuleStack(model)
        self.recorder = Recorder(self.stack, edits, globs, dtype, grad, device)
        self.state = CaptureState(
            self.stack, self.recorder, axes, [tracer for tracer in ACTIVE_CAPTURES.get() if tracer in OPEN_TRACERS]
        )
        self.state.chunk_tracker = ChunkTracker() if may_cut_text(model) else None
        self.fused = FusedAttention(self.state, store)
        self.eager = EagerAttention(self.state)
        self.multi_head = MultiHeadForward(self.state, self)
        self._matchers: dict[Any, Callable[..., Any]] = {
            "scaled_dot_product_attention": self.fused.sdpa,
            "multi_head_attention_forward": self.multi_head.call,
        }
        self._runs_eagerly = False
        self._hooked: set[int] = set()  # modules with hooks of their own

    def open(self) -> None:
        """Start tracing modules."""
        _remove_leftovers()
        OPEN_TRACERS.add(self)
        for setting in SHARED_SETTINGS:
            setting.acquire(self)
        self._disable_compile()
        hooked = [module for module in self.stack.model.modules() if module._forward_hooks]
        self._hooked = set(map(id, hooked))
        register_module_forward_pre_hook(self._before_forward)
        register_module_forward_hook(self._after_call, with_kwargs=True, always_call=True)
        for module in hooked:  # so that a site holds the output after the modules' own hooks
            module.register_forward_hook(self._after_hooks)
        for path, module in self.stack.modules.items():
            site = self.stack.input_site(path)
            if site is not None and self.recorder.wants_input(site):
                module.register_forward_pre_hook(self._before_input, with_kwargs=True)
        ACTIVE_CAPTURES.set((*ACTIVE_CAPTURES.get(), self))

    def close(self) -> None:
        """Undo all changes; safe to call again after an interrupt."""
        ACTIVE_CAPTURES.set(tuple(tracer for tracer in ACTIVE_CAPTURES.get() if tracer is not self))
        for hooks in (_modules._global_forward_pre_hooks, _modules._global_forward_hooks):
            for number in self._remove_hooks(hooks):
                _modules._global_forward_hooks_with_kwargs.pop(number, None)  # PyTorch does not remove it
                _modules._global_forward_hooks_always_called.pop(number, None)
        for module in self.stack.modules.values():
            self._remove_hooks(module._forward_hooks)
            for number in self._remove_hooks(module._forward_pre_hooks):
                module._forward_pre_hooks_with_kwargs.pop(number, None)
        self.stack.clear()
        remove_modes(lambda mode: mode is self)
        for setting in (COMPILE_DISABLED, *SHARED_SETTINGS):
            setting.release(self)
        self.recorder.history.close()
        OPEN_TRACERS.discard(self)

    def _remove_hooks(self, hooks: dict[int, Any]) -> list[int]:
        """Remove the hooks that are this tracer's methods; return their numbers."""
        numbers = [number for number, hook in list(hooks.items()) if getattr(hook, "__self__", None) is self]
        for number in numbers:
            hooks.pop(number, None)
        return numbers

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.stack.state.frames or is_paused() or in_functorch() or _reads_attribute(func):
            return func(*args, **kwargs)
        if func is FLEX_ATTENTION_OP:
            return self.fused.flex(*args, **kwargs)
        matcher = self._matchers.get(getattr(func, "__name__", ""))  # a wrapper has the name of what it wraps
        return matcher(*args, **kwargs) if matcher else self.eager.call(func, args, kwargs)

    def _path(self, module: nn.Module) -> str | None:
        """Return the path of a module; None if it is not part of the model, or if this capture ignores its calls."""
        path = self.stack.paths.get(id(module))
        if path is None or is_paused():
            return None
        if self in ACTIVE_CAPTURES.get():
            return path
        self.stack.called_elsewhere = True
        return None

    def _before_forward(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self._disable_compile()
        path = self._path(module)
        if path is None:
            return
        state = self.stack.state
        if not state.frames:  # the model, or a part of it that is called directly
            if state.skipped is not None:
                return
            if is_tracing([arg for arg in args if is_dense(arg)]):
                self.stack.traced, state.skipped = True, path
                return
            super().__enter__()
            self.recorder.history.begin_call()
            self.state.diagnostics.without_grad |= not torch.is_grad_enabled()
        self.stack.push(path, args)

    def _before_input(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a module's input; return the changed (args, kwargs), or None."""
        path = self._path(module)
        if path is None or not self.stack.running:
            return None
        site = self.stack.input_site(path)
        if site is None:
            return None
        changed = self.recorder.record_input(site, args, kwargs)
        for outer in self.state.outer if changed is not None else ():
            outer.amend_input(module, *changed)
        return changed

    def amend_input(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Replace the recorded input of a module after an inner capture edited it."""
        path = self.stack.paths.get(id(module))
        site = None if path is None else self.stack.input_site(path)
        _, first = first_tensor_argument(args, kwargs)
        if site is not None and first is not None:
            self.recorder.amend(site, first)

    def _after_call(self, module: nn.Module, args: tuple[Any, ...], *results: Any) -> Any:
        """Handle the end of a forward: PyTorch passes (kwargs, output), or only None after an exception."""
        path = self._path(module)
        if path is not None and path == self.stack.state.skipped:
            self.stack.state.skipped = None
        if path is None or not self.stack.pop(path):
            return None
        if not self.stack.running:
            remove_modes(lambda mode: mode is self)
        return self._after_forward(module, path, args, *results) if len(results) == 2 else None

    def _after_forward(
        self, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        """Record a module's output; return its replacement, or None if it is unchanged."""
        if not self.stack.running:
            self.stack.note_inputs(*args, *kwargs.values())
            self.recorder.history.end_call(kwargs, output)
        unobserved = self.multi_head.output_without_capture(module, path, args, kwargs, output)
        edited = None if id(module) in self._hooked else self._record_output(module, path, unobserved)
        if edited is not None:
            return edited
        return None if unobserved is output else unobserved

    def _after_hooks(self, module: nn.Module, _: Any, output: Any) -> Any:
        path = self._path(module)
        return None if path is None else self._record_output(module, path, output)

    def _record_output(self, module: nn.Module, path: str, output: Any) -> Any:
        """Record a module's output, also in outer captures if it is edited here; return its replacement, or None."""
        edited = self.recorder.record_output(path, output)
        for outer in self.state.outer if edited is not None else ():
            outer_path = outer.stack.paths.get(id(module))
            first = edited[0] if isinstance(edited, tuple) else edited
            if outer_path is not None:
                outer.recorder.amend(outer_path, first)
        return edited

    def _disable_compile(self) -> None:
        """Make compiled parts run eagerly, so that their calls can be observed.

        This is done only once dynamo or FlexAttention is imported, because it imports dynamo, which is slow.
        """
        if not self._runs_eagerly and ("torch._dynamo" in sys.modules or FLEX_MODULE in sys.modules):
            self._runs_eagerly = True
            COMPILE_DISABLED.acquire(self)


def _reads_attribute(func: Any) -> bool:
    """Return whether a call only reads an attribute that is not a tensor, such as a shape or a dtype."""
    return getattr(func, "__name__", "") == "__get__" and func.__self__.__name__ not in TENSOR_ATTRIBUTES


def _remove_leftovers() -> None:
    """Remove hooks, modes and pauses of this thread that interrupted captures left behind."""
    owners = [getattr(hook, "__self__", None) for hook in _modules._global_forward_pre_hooks.values()]
    for left in [owner for owner in owners if isinstance(owner, AttentionTracer) and owner not in OPEN_TRACERS]:
        left.close()
    remove_modes(lambda mode: isinstance(mode, AttentionTracer) and mode not in OPEN_TRACERS)
    if not any(tracer in OPEN_TRACERS for tracer in ACTIVE_CAPTURES.get()):
        resume()
