"""Kernels of others: attention that PyTorch does not show, known by what its arguments are called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from tfviz.look.call import Call
from tfviz.look.running import ACTIVE, is_silent
from tfviz.look.settings import Setting, Shared
from tfviz.shapes import Bool, Int

SLOT = "__tfviz_kernel__"  # in the globals of a function's module
AXES = ("b h n d", "b n h d", "n h d", "h n d")


@dataclass(frozen=True)
class Kernel:
    """A function that computes attention, and the names of its arguments; None where it has no such argument.

    Attributes:
        causal: the argument that hides the future; rows end where keys end, as in flash-attn.
        window: the argument with how many keys before and after a query it may see, -1 for all.
        lengths: the arguments with where each of several texts begins that stand one after the other, of the queries
            and of the keys: 0, the first one's length, the first two's, ... (`cu_seqlens`).
        axes: of query, key and value: b text, h head, n position, d dim.
        plain: arguments whose values change what is computed in ways that are not known here, and their plain values.
    """

    function: FunctionType
    query: str
    key: str
    value: str
    mask: str | None
    scale: str | None
    causal: str | None
    window: str | None
    lengths: tuple[str, str] | None
    axes: str
    plain: tuple[tuple[str, Any], ...]

    def call(self, given: dict[str, Any]) -> Call | str:
        """The call with these arguments, or why it cannot be shown."""
        for name, value in self.plain:
            if given.get(name, value) is not value and given[name] != value:
                return f"{self.function.__name__} with {name}"
        query, key, value = (self.four(given[name]) for name in (self.query, self.key, self.value))
        mask, scale, causal, window = (
            None if name is None else given.get(name) for name in (self.mask, self.scale, self.causal, self.window)
        )
        if mask is not None and not isinstance(mask, Tensor):
            return f"{self.function.__name__} with a mask that is a {type(mask).__name__}"
        before, after = window or (-1, -1)
        reach = before, 0 if causal else after
        if self.lengths is None:
            seen = _seen(query.shape[-2], key.shape[-2], *reach).to(query.device)
        else:
            first, second = (given[name] for name in self.lengths)
            seen = packed(first, first if second is None else second, *reach, query.shape[-2], key.shape[-2])
        if not seen.all():
            added = mask is not None and mask.dtype != torch.bool
            mask = seen if mask is None else mask.masked_fill(~seen, -torch.inf) if added else mask & seen
        return Call.of(query, key, value, mask, scale)

    def four(self, tensor: Tensor) -> Tensor:
        """From the kernel's axes to batch head position dim.

        Raises:
            ValueError: it has more axes, or fewer.
        """
        if tensor.dim() != len(self.axes.split()):
            raise ValueError(
                f"{self.function.__name__} was called with {list(tensor.shape)}, and look.attention was told that its "
                f"axes are {self.axes!r}"
            )
        turned = self._turned(tensor)
        return turned if "b" in self.axes else turned[None]

    def back(self, tensor: Tensor) -> Tensor:
        """From batch head position dim to the kernel's axes."""
        return self._turned(tensor if "b" in self.axes else tensor[0])

    def _turned(self, tensor: Tensor) -> Tensor:
        names = self.axes.split()
        return tensor.transpose(names.index("h"), names.index("n")) if names.index("h") > names.index("n") else tensor


def _seen(queries: int, keys: int, before: int, after: int) -> Tensor:
    """Where a query may look, the last one standing at the last key."""
    gap = torch.arange(keys) - (torch.arange(queries)[:, None] + keys - queries)
    return ((gap >= -before) | (before < 0)) & ((gap <= after) | (after < 0))


def packed(
    queries: Int[Tensor, "starts"], keys: Int[Tensor, "starts"], before: int, after: int, rows: int, columns: int
) -> Bool[Tensor, "row column"]:
    """Where queries may look that are packed, text after text, with keys: at those of their own text.

    >>> packed(torch.tensor([0, 1, 3]), torch.tensor([0, 2, 4]), -1, 0, 3, 4).int().tolist()
    [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    """
    for name, starts, count in (("queries", queries, rows), ("keys", keys, columns)):
        known = starts.tolist()
        if known != sorted(known) or known[:1] != [0] or known[-1] > count:  # what is behind them sees nothing
            raise ValueError(f"texts of the {name} begin at {known}; they must rise from 0 to at most {count}")
    seen = torch.zeros(rows, columns, dtype=torch.bool, device=queries.device)
    ends = [list(pairwise(starts.tolist())) for starts in (queries, keys)]
    for (top, bottom), (left, right) in zip(*ends):
        seen[top:bottom, left:right] = _seen(bottom - top, right - left, before, after)
    return seen


KERNELS: dict[FunctionType, Kernel] = {}
KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("flash_attn.flash_attn_interface", "flash_attn_func"): {
        "scale": "softmax_scale",
        "window": "window_size",
        "plain": {"softcap": 0.0, "alibi_slopes": None},
    },
    ("flash_attn.flash_attn_interface", "flash_attn_varlen_func"): {
        "scale": "softmax_scale",
        "window": "window_size",
        "lengths": ("cu_seqlens_q", "cu_seqlens_k"),
        "axes": "n h d",
        "plain": {"softcap": 0.0, "alibi_slopes": None, "block_table": None},
    },
    ("torch.nn.attention.varlen", "varlen_attn"): {
        "query": "query",
        "key": "key",
        "value": "value",
        "scale": "scale",
        "causal": None,
        "window": "window_size",
        "lengths": ("cu_seq_q", "cu_seq_k"),
        "axes": "n h d",
        "plain": {"seqused_k": None, "block_table": None},
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
    lengths: tuple[str, str] | None = None,
    axes: str = "b n h d",
    plain: dict[str, Any] | None = None,
) -> None:
    """Let captures see the calls of a kernel that PyTorch does not know.

    flash-attn's `flash_attn_func` and `flash_attn_varlen_func`, PyTorch's `varlen_attn` and xformers'
    `memory_efficient_attention` are known already. While a capture lasts,
    calls of the function, by whatever name, go by it; its weights are recomputed beside it, as those of PyTorch's own.

    Args:
        function: a plain Python function, such as a package has around its kernel; gives the output alone.
        query, key, value: the names of its arguments.
        mask: boolean (True: may look) or float (added to the scores).
        scale: of the scores; None or no such argument: one over the root of dim.
        causal: a switch that hides the future, the last query standing at the last key.
        window: keys before and after a query that it may see, as (before, after), -1 for all.
        lengths: where each of several texts begins that stand one after the other on the axis of positions, of the
            queries and of the keys, from 0 to their number (`cu_seqlens_q`, `cu_seqlens_k`): a text sees itself alone.
        axes: "b n h d" or "b h n d", or without b: text, position, head, dim.
        plain: values of other arguments, where the weights are what is computed here; with others they are not shown,
            which is told.

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
    if lengths is not None and "b" in axes:
        raise ValueError(f"axes is {axes!r}; texts that are packed by lengths have no axis b: give 'n h d' or 'h n d'")
    made = Kernel(function, query, key, value, mask, scale, causal, window, lengths, axes, tuple((plain or {}).items()))
    named = [one for one in (query, key, value, mask, scale, causal, window, *(lengths or ())) if one is not None]
    there = inspect.signature(function).parameters
    if missing := [name for name in [*named, *(plain or {})] if name not in there]:
        without = "; give causal=None, if it has no such switch" if missing[0] == causal else ""
        raise ValueError(f"{function.__name__} has no argument {missing[0]!r}; it has {', '.join(there)}{without}")
    KERNELS[function] = made


def _known() -> Iterator[Kernel]:
    """Those that were registered, and those of packages that are loaded."""
    for (module, name), names in KNOWN.items():
        function = getattr(sys.modules.get(module), name, None)
        if isinstance(function, FunctionType) and not function.__closure__ and function not in KERNELS:
            attention(function, **names)
    yield from KERNELS.values()


class Watched(Setting):
    """Calls of these functions, from wherever they were imported, go by the captures."""

    def __init__(self) -> None:
        self.swapped: list[tuple[FunctionType, tuple[CodeType, Any, Any]]] = []

    def put(self) -> None:
        for kernel in list(_known()):
            function = kernel.function
            self.swapped.append((function, (function.__code__, function.__defaults__, function.__kwdefaults__)))
            _swap(kernel)

    def take_back(self) -> None:
        for function, (code, defaults, named) in self.swapped:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
            function.__globals__.pop(f"{SLOT}{id(function)}", None)


WATCHED = Shared(Watched)


def _swap(kernel: Kernel) -> None:
    """Put another code into the function."""
    function = kernel.function
    original = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    original.__kwdefaults__ = function.__kwdefaults__
    parameters = inspect.signature(original)

    def called(*args: Any, **kwargs: Any) -> Any:
        watches: list[Any] = [one for one in ACTIVE.get() if one.state.running]
        if not watches or is_silent():
            return original(*args, **kwargs)
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return watches[-1].kernel(kernel, dict(bound.arguments), lambda: original(*args, **kwargs))

    slot = f"{SLOT}{id(function)}"
    function.__globals__[slot] = called
    space: dict[str, Any] = {}
    exec(f"def stand_in(*args, **kwargs):\n    return {slot}(*args, **kwargs)", space)  # its globals are the function's
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = space["stand_in"].__code__
