"""Attention kernels from outside PyTorch, known by what their arguments are called.

No mode sees their calls, so while a capture is open the code of such a function is replaced by a call to the capture.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from tfviz.look.context import ACTIVE, is_paused
from tfviz.look.kernel import Kernel
from tfviz.look.process_settings import Setting, Shared

SLOT = "__tfviz_kernel__"  # in the globals of a function's module
AXES = ("b h n d", "b n h d", "n h d", "h n d")


KERNELS: dict[FunctionType, Kernel] = {}
KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("flash_attn.flash_attn_interface", "flash_attn_func"): {
        "scale": "softmax_scale",
        "window": "window_size",
        "neutral": {"softcap": 0.0, "alibi_slopes": None},
    },
    ("flash_attn.flash_attn_interface", "flash_attn_varlen_func"): {
        "scale": "softmax_scale",
        "window": "window_size",
        "cu_seqlens": ("cu_seqlens_q", "cu_seqlens_k"),
        "axes": "n h d",
        "neutral": {"softcap": 0.0, "alibi_slopes": None, "block_table": None},
    },
    ("torch.nn.attention.varlen", "varlen_attn"): {
        "query": "query",
        "key": "key",
        "value": "value",
        "scale": "scale",
        "causal": None,
        "window": "window_size",
        "cu_seqlens": ("cu_seq_q", "cu_seq_k"),
        "axes": "n h d",
        "neutral": {"seqused_k": None, "block_table": None},
    },
    ("xformers.ops.fmha", "memory_efficient_attention"): {
        "query": "query",
        "key": "key",
        "value": "value",
        "mask": "attn_bias",
        "scale": "scale",
        "causal": None,
    },
}


def attention(
    function: Callable[..., Any],
    *,
    query: str = "q",
    key: str = "k",
    value: str = "v",
    mask: str | None = None,
    scale: str | None = None,
    causal: str | None = "causal",
    window: str | None = None,
    cu_seqlens: tuple[str, str] | None = None,
    axes: str = "b n h d",
    neutral: dict[str, Any] | None = None,
) -> None:
    """Let captures see the calls of a kernel that PyTorch does not know.

    flash-attn's `flash_attn_func` and `flash_attn_varlen_func`, PyTorch's `varlen_attn` and xformers'
    `memory_efficient_attention` are known already. An open capture sees all calls of the function, by whatever name it
    was imported, and recomputes its weights as those of PyTorch's own.

    Args:
        function: a plain Python function, such as a package has around its kernel; gives the output alone.
        query, key, value: the names of its arguments.
        mask: boolean (True: may look) or float (added to the scores).
        scale: of the scores; None or no such argument: one over the root of dim.
        causal: a switch that hides the future, the last query standing at the last key.
        window: keys before and after a query that it may see, as (before, after), -1 for all.
        cu_seqlens: the cumulative lengths of texts that are packed on the axis of positions, of queries and of keys,
            from 0 on (`cu_seqlens_q`, `cu_seqlens_k` of flash-attn): a text sees itself alone.
        axes: "b n h d" or "b h n d", or without b: text, position, head, dim.
        neutral: values of other arguments with which these leave the weights alone; calls with other values are not
            captured, and a warning says so.

    Raises:
        TypeError: it is no plain Python function.
        ValueError: it has no argument of this name; other axes.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        wraps = " (one that wraps another: give the inner one)"
        inner = wraps if hasattr(function, "__wrapped__") else " (with variables of a function around it)"
        inner = inner if getattr(function, "__closure__", None) else ""
        raise TypeError(f"function is {getattr(function, '__name__', function)!r}{inner}; give a plain Python function")
    if axes not in AXES:
        raise ValueError(f"axes is {axes!r}; it can be one of {', '.join(map(repr, AXES))}")
    if cu_seqlens is not None and "b" in axes:
        raise ValueError(f"axes is {axes!r}; packed texts have no axis b: give 'n h d' or 'h n d'")
    others = tuple((neutral or {}).items())
    kernel = Kernel(function, query, key, value, mask, scale, causal, window, cu_seqlens, axes, others)
    named = [one for one in (query, key, value, mask, scale, causal, window, *(cu_seqlens or ())) if one is not None]
    there = inspect.signature(function).parameters
    if missing := [name for name in [*named, *(neutral or {})] if name not in there]:
        without = "; give causal=None, if it has no such switch" if missing[0] == causal else ""
        raise ValueError(f"{function.__name__} has no argument {missing[0]!r}; it has {', '.join(there)}{without}")
    KERNELS[function] = kernel


def _known() -> Iterator[Kernel]:
    """Yield kernels that were registered, and those of packages that are loaded."""
    for (module, name), names in KNOWN.items():
        function = getattr(sys.modules.get(module), name, None)
        if isinstance(function, FunctionType) and not function.__closure__ and function not in KERNELS:
            attention(function, **names)
    yield from KERNELS.values()


class WatchedKernels(Setting):
    """Known kernels call the open captures."""

    def __init__(self) -> None:
        self.replaced: list[tuple[FunctionType, tuple[CodeType, Any, Any]]] = []

    def apply(self) -> None:
        for kernel in list(_known()):
            function = kernel.function
            self.replaced.append((function, (function.__code__, function.__defaults__, function.__kwdefaults__)))
            _replace_code(kernel)

    def restore(self) -> None:
        for function, (code, defaults, keyword_defaults) in self.replaced:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, keyword_defaults
            function.__globals__.pop(f"{SLOT}{id(function)}", None)


KERNEL_CALLS = Shared(WatchedKernels)


def _replace_code(kernel: Kernel) -> None:
    """Replace a function's code by a call to the innermost capture.

    Other modules have imported the function by name, so the function object must stay: only its code can change. The
    new code finds what it calls in the globals of the function's own module.
    """
    function = kernel.function
    original = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    original.__kwdefaults__ = function.__kwdefaults__
    parameters = inspect.signature(original)

    def observed(*args: Any, **kwargs: Any) -> Any:
        tracers: list[Any] = [tracer for tracer in ACTIVE.get() if tracer.stack.running]
        if not tracers or is_paused():
            return original(*args, **kwargs)
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return tracers[-1].fused.kernel(kernel, dict(bound.arguments), lambda: original(*args, **kwargs))

    slot = f"{SLOT}{id(function)}"
    function.__globals__[slot] = observed
    namespace: dict[str, Any] = {}
    exec(f"def stand_in(*args, **kwargs):\n    return {slot}(*args, **kwargs)", namespace)
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = namespace["stand_in"].__code__
