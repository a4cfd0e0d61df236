"""PyTorch's state during a call (transforms, checkpointing, tracing), and the changes made by an open capture.

The computations of a capture itself must not be captured, counted by other modes, or rounded by autocast. While a
capture is open, compiled code runs eagerly, so that a function mode observes its calls.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch._C import _TorchDispatchModeKey as _Key
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import checkpoint
from torch.utils._python_dispatch import _disable_current_modes

# the captures that are open in this thread or task, outermost first
ACTIVE_CAPTURES: ContextVar[tuple[Any, ...]] = ContextVar("captures", default=())
_PAUSED = threading.local()
EXPECTED_WARNINGS = [  # about hooks and eager FlexAttention, which capture uses on purpose
    ("ignore", re.compile(text, re.IGNORECASE), Warning, None, 0)
    for text in (
        "flex_attention called without torch.compile",
        "Using `torch.compile.module.` when there are global hooks",
    )
]


class CaptureMode(TorchFunctionMode):
    """Base class by which other modules recognize the tracer's modes and hooks."""

    @classmethod
    def owns(cls, hook: Any) -> bool:
        """Return whether a hook is a method of a tracer."""
        return isinstance(getattr(hook, "__self__", None), cls)


class SharedSetting:
    """A process-wide change that is made for its first holder and undone after its last.

    Args:
        change: function that makes the change, and appends functions that undo it to the list passed to it. These must
            be safe to call again, since `release` may be interrupted at any point.
    """

    def __init__(self, change: Callable[[list[Callable[[], None]]], None]):
        self._change, self._lock = change, threading.RLock()
        self._holders: set[Any] = set()
        self._undo: list[Callable[[], None]] | None = None

    def acquire(self, holder: Any) -> None:
        with self._lock:
            self._holders.add(holder)
            if self._undo is None:
                self._undo = []
                self._change(self._undo)

    def release(self, holder: Any) -> None:
        with self._lock:
            self._holders.discard(holder)
            if not self._holders and self._undo is not None:
                for undo in self._undo:
                    undo()
                self._undo = None


def _hide_warnings(undo: list[Callable[[], None]]) -> None:
    def restore_filters() -> None:  # remove only these filters, since others may have been added
        warnings.filters[:] = [entry for entry in warnings.filters if entry not in EXPECTED_WARNINGS]  # type: ignore[index]

    undo.append(restore_filters)
    warnings.filters[:0] = EXPECTED_WARNINGS  # type: ignore[index]


def _disable_compile(undo: list[Callable[[], None]]) -> None:
    stance = torch.compiler.set_stance("force_eager")
    undo.append(lambda: stance.__exit__(None, None, None))


HIDDEN_WARNINGS, COMPILE_DISABLED = SharedSetting(_hide_warnings), SharedSetting(_disable_compile)


@contextmanager
def paused() -> Iterator[None]:
    """Hide torch calls inside the context from all captures of this thread."""
    before, _PAUSED.on = is_paused(), True
    try:
        yield
    finally:
        _PAUSED.on = before


def is_paused() -> bool:
    """Return whether captures are paused in this thread."""
    return getattr(_PAUSED, "on", False)


def resume() -> None:
    """End a pause that an interrupt left active."""
    _PAUSED.on = False


@contextmanager
def untraced() -> Iterator[None]:
    """Hide torch calls inside the context from captures, other dispatch modes (such as FLOP counters) and autocast."""
    with ExitStack() as stack:
        stack.enter_context(paused())
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def in_functorch() -> bool:
    """Return whether `torch.vmap` or `torch.func` is running, under which no values can be read."""
    return functorch.peek_interpreter_stack() is not None


def in_backward() -> bool:
    """Return whether the backward pass is running, which computes checkpointed parts a second time."""
    return torch._C._current_graph_task_id() != -1


def in_checkpoint() -> bool:
    """Return whether the caller runs under gradient checkpointing, in the first pass or in the recomputation."""
    return any(frame.f_code.co_filename == checkpoint.__file__ for frame in frames())


def is_tracing(tensors: list[Tensor]) -> bool:
    """Return whether no values can be read: in torch.export, torch.jit, FX or torch.func, or from meta tensors."""
    if in_functorch():
        return True
    fx = getattr(sys.modules.get("torch.fx._symbolic_trace"), "_is_fx_tracing_flag", False)
    if fx or torch._C._get_tracing_state() is not None or any(tensor.is_meta for tensor in tensors):
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in (_Key.FAKE, _Key.PROXY))


def frames() -> Iterator[Any]:
    """Yield the Python frames of the caller's caller and of those above it."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def remove_modes(ours: Callable[[Any], bool]) -> None:
    """Remove the function modes for which `ours` returns True from this thread's stack, at any depth."""
    stack = _get_current_function_mode_stack()
    if stack and ours(stack[-1]) and not any(map(ours, stack[:-1])):
        _pop_mode()
    elif any(map(ours, stack)):
        for _ in stack:
            _pop_mode()
        for mode in stack:
            if not ours(mode):
                _push_mode(mode)
