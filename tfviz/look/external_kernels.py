"""Attention kernels from outside PyTorch (flash-attn, xformers), described by the names of their arguments.

Function modes do not observe calls of such kernels. While a capture is open, the code of each kernel's function is
therefore replaced by a call to the capture, which recomputes the weights from the arguments.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from tfviz.look.attention_call import AttentionCall
from tfviz.look.torch_modes import ACTIVE_CAPTURES, SharedSetting, is_paused
from tfviz.shapes import Bool, Int

KERNEL_GLOBAL = "__tfviz_kernel__"  # name in the globals of a kernel's module
KERNEL_AXES = ("b h n d", "b n h d", "n h d", "h n d")
FLASH_ARGUMENTS = {"scale": "softmax_scale", "window": "window_size", "neutral": {"softcap": 0.0, "alibi_slopes": None}}
TORCH_ARGUMENTS = {"query": "query", "key": "key", "value": "value", "scale": "scale", "causal": None}
KERNEL_ARGUMENTS: dict[tuple[str, str], dict[str, Any]] = {  # (module, name) -> arguments of `attention`
    ("flash_attn.flash_attn_interface", "flash_attn_func"): FLASH_ARGUMENTS,
    ("flash_attn.flash_attn_interface", "flash_attn_varlen_func"): {
        **FLASH_ARGUMENTS,
        "cu_seqlens": ("cu_seqlens_q", "cu_seqlens_k"),
        "axes": "n h d",
        "neutral": {"softcap": 0.0, "alibi_slopes": None, "block_table": None},
    },
    ("torch.nn.attention.varlen", "varlen_attn"): {
        **TORCH_ARGUMENTS,
        "window": "window_size",
        "cu_seqlens": ("cu_seq_q", "cu_seq_k"),
        "axes": "n h d",
        "neutral": {"seqused_k": None, "block_table": None},
    },
    ("xformers.ops.fmha", "memory_efficient_attention"): {**TORCH_ARGUMENTS, "mask": "attn_bias"},
}


@dataclass(frozen=True)
class AttentionKernel:
    """A function that computes attention, and the names of its arguments; None for those that it does not have.

    Attributes:
        causal: name of a boolean that masks later keys, with the last query aligned to the last key, as in flash-attn.
        window: name of a pair: the numbers of keys before and after a query that it may attend to; -1: all.
        cu_seqlens: names of the cumulative lengths of packed texts, of queries and of keys.
        axes: the axes of query, key and value: b text, h head, n position, d dim.
        neutral: other arguments, each with the value for which it does not affect the weights.
    """

    function: FunctionType
    query: str
    key: str
    value: str
    mask: str | None
    scale: str | None
    causal: str | None
    window: str | None
    cu_seqlens: tuple[str, str] | None
    axes: str
    neutral: tuple[tuple[str, Any], ...]

    def call(self, arguments: dict[str, Any]) -> AttentionCall | str:
        """Return the attention call with these arguments, or the reason why its weights cannot be computed."""
        for name, value in self.neutral:
            if arguments.get(name, value) is not value and arguments[name] != value:
                return f"{self.function.__name__} with {name}"
        query, key, value = (self.to_bhnd(arguments[name]) for name in (self.query, self.key, self.value))
        mask, scale, causal, window = (
            None if name is None else arguments.get(name) for name in (self.mask, self.scale, self.causal, self.window)
        )
        if mask is not None and not isinstance(mask, Tensor):
            return f"{self.function.__name__} with a mask that is a {type(mask).__name__}"
        before, after = window or (-1, -1)
        rows, columns = query.shape[-2], key.shape[-2]
        starts = [torch.tensor([0, rows]), torch.tensor([0, columns])]  # one text
        if self.cu_seqlens is not None:
            queries, keys = (arguments[name] for name in self.cu_seqlens)
            starts = [queries, queries if keys is None else keys]
        allowed = packed_mask(starts[0], starts[1], before, 0 if causal else after, rows, columns).to(query.device)
        if mask is None:
            mask = None if allowed.all() else allowed
        else:
            mask = mask & allowed if mask.dtype == torch.bool else mask.masked_fill(~allowed, -torch.inf)
        return AttentionCall.from_arguments(query, key, value, mask, scale)

    def to_bhnd(self, tensor: Tensor) -> Tensor:
        """Reorder a tensor from the kernel's axes to [batch, head, position, dim]."""
        if tensor.dim() != len(self.axes.split()):
            raise ValueError(
                f"{self.function.__name__} was called with {list(tensor.shape)}; look.register_attention_kernel was "
                f"told that its axes are {self.axes!r}"
            )
        tensor = self._swap_heads(tensor)
        return tensor if "b" in self.axes else tensor[None]

    def from_bhnd(self, tensor: Tensor) -> Tensor:
        """Reorder a tensor from [batch, head, position, dim] to the kernel's axes."""
        return self._swap_heads(tensor if "b" in self.axes else tensor[0])

    def _swap_heads(self, tensor: Tensor) -> Tensor:
        names = self.axes.split()
        head, position = names.index("h"), names.index("n")
        return tensor.transpose(head, position) if head > position else tensor


def packed_mask(
    queries: Int[Tensor, "starts"], keys: Int[Tensor, "starts"], before: int, after: int, rows: int, columns: int
) -> Bool[Tensor, "row column"]:
    """Return the mask of texts packed one after the other, each of which attends only to itself.

    Args:
        queries: cumulative lengths of the texts in queries, starting with 0 (`cu_seqlens`).
        keys: cumulative lengths of the texts in keys, starting with 0.
        before: the number of keys before a query that it may attend to; -1: all.
        after: the number of keys after a query that it may attend to; -1: all.
        rows: the number of queries; queries after the last text attend to nothing.
        columns: the number of keys.

    Raises:
        ValueError: the cumulative lengths do not rise from 0 to at most the number of rows or columns.

    >>> packed_mask(torch.tensor([0, 1, 3]), torch.tensor([0, 2, 4]), -1, 0, 3, 4).int().tolist()
    [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    """
    for name, starts, count in (("queries", queries, rows), ("keys", keys, columns)):
        known = starts.tolist()
        if known != sorted(known) or known[:1] != [0] or known[-1] > count:
            raise ValueError(f"texts of the {name} begin at {known}; they must rise from 0 to at most {count}")
    allowed = torch.zeros(rows, columns, dtype=torch.bool)
    for (top, bottom), (left, right) in zip(pairwise(queries.tolist()), pairwise(keys.tolist())):
        # distance from query to key; the last query is at the last key
        distance = torch.arange(left - right, 0) - torch.arange(top - bottom, 0)[:, None]
        is_near = ((distance >= -before) | (before < 0)) & ((distance <= after) | (after < 0))
        allowed[top:bottom, left:right] = is_near
    return allowed


KERNELS_BY_FUNCTION: dict[FunctionType, AttentionKernel] = {}


def register_attention_kernel(
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
    """Register an attention kernel from outside PyTorch, so that captures record its calls.

    flash-attn's `flash_attn_func` and `flash_attn_varlen_func`, PyTorch's `varlen_attn` and xformers'
    `memory_efficient_attention` are already registered. An open capture observes all calls of the function, under
    whatever name it was imported, and recomputes its weights as it does for PyTorch's own kernels.

    Args:
        function: a Python function, such as a package's wrapper of its kernel, that returns the output, or a tuple that
            begins with it.
        query: the name of the argument for queries.
        key: the name of the argument for keys.
        value: the name of the argument for values.
        mask: the name of the mask, boolean (True: may attend) or float (added to the scores).
        scale: the name of the factor of the scores; None, or an argument of None: 1 / sqrt(dim).
        causal: the name of a boolean that masks later keys, with the last query aligned to the last key.
        window: the name of a pair (before, after): numbers of keys that a query may attend to; -1: all.
        cu_seqlens: the names of the cumulative lengths of texts packed along the position axis, of queries and of keys,
            starting with 0 (flash-attn's `cu_seqlens_q`, `cu_seqlens_k`); each text attends only to itself.
        axes: "b n h d" or "b h n d", or without b: text, position, head, dim.
        neutral: other arguments, each with the value for which it does not affect the weights. Calls with other values
            are not captured, and a warning is given.

    Raises:
        TypeError: `function` is not a plain Python function.
        ValueError: the function has no argument of a given name; `axes` is none of these forms, or has b although texts
            are packed.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        wraps = " (one that wraps another: give the inner one)"
        inner = wraps if hasattr(function, "__wrapped__") else " (with variables of a function around it)"
        inner = inner if getattr(function, "__closure__", None) else ""
        raise TypeError(f"function is {getattr(function, '__name__', function)!r}{inner}; give a plain Python function")
    if axes not in KERNEL_AXES:
        raise ValueError(f"axes is {axes!r}; it can be one of {', '.join(map(repr, KERNEL_AXES))}")
    if cu_seqlens is not None and "b" in axes:
        raise ValueError(f"axes is {axes!r}; packed texts have no axis b: give 'n h d' or 'h n d'")
    others = tuple((neutral or {}).items())
    kernel = AttentionKernel(function, query, key, value, mask, scale, causal, window, cu_seqlens, axes, others)
    named = [name for name in (query, key, value, mask, scale, causal, window, *(cu_seqlens or ())) if name is not None]
    there = inspect.signature(function).parameters
    if missing := [name for name in [*named, *(neutral or {})] if name not in there]:
        without = "; give causal=None, if it has no such switch" if missing[0] == causal else ""
        raise ValueError(f"{function.__name__} has no argument {missing[0]!r}; it has {', '.join(there)}{without}")
    KERNELS_BY_FUNCTION[function] = kernel


def _watch(undo: list[Callable[[], None]]) -> None:
    """Replace the code of registered kernels, and of known kernels whose packages are loaded."""
    for (module, name), arguments in KERNEL_ARGUMENTS.items():
        function = getattr(sys.modules.get(module), name, None)
        if isinstance(function, FunctionType) and not function.__closure__ and function not in KERNELS_BY_FUNCTION:
            register_attention_kernel(function, **arguments)
    for kernel in list(KERNELS_BY_FUNCTION.values()):
        function = kernel.function
        undo.append(partial(_restore, function, function.__code__, function.__defaults__, function.__kwdefaults__))
        _replace_code(kernel)


def _restore(function: FunctionType, code: CodeType, defaults: Any, keyword_defaults: Any) -> None:
    function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, keyword_defaults
    function.__globals__.pop(f"{KERNEL_GLOBAL}{id(function)}", None)


KERNEL_CALLS = SharedSetting(_watch)


def _replace_code(kernel: AttentionKernel) -> None:
    """Replace a function's code with a call to the innermost capture.

    Other modules have imported the function by name, so the function object must stay: only its code can change. The
    new code looks up the replacement in the globals of the function's own module.
    """
    function = kernel.function
    original = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    original.__kwdefaults__ = function.__kwdefaults__
    parameters = inspect.signature(original)

    def observed(*args: Any, **kwargs: Any) -> Any:
        tracers: list[Any] = [tracer for tracer in ACTIVE_CAPTURES.get() if tracer.stack.running]
        if not tracers or is_paused():
            return original(*args, **kwargs)
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return tracers[-1].fused.kernel(kernel, dict(bound.arguments), lambda: original(*args, **kwargs))

    slot = f"{KERNEL_GLOBAL}{id(function)}"
    function.__globals__[slot] = observed
    namespace: dict[str, Any] = {}
    exec(f"def stand_in(*args, **kwargs):\n    return {slot}(*args, **kwargs)", namespace)
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = namespace["stand_in"].__code__
