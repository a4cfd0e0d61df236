"""Kernels of others: attention that PyTorch does not show, known by what its arguments are called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from tfviz.look.call import Call
from tfviz.look.running import ACTIVE, Shared, is_silent

SLOT = "__tfviz_kernel__"  # in the globals of a function's module
AXES = ("b h n d", "b n h d", "n h d", "h n d")


@dataclass(frozen=True)
class Kernel:
    """A function that computes attention, and the names of its arguments; None where it has no such argument.

    Attributes:
        causal: the argument that hides the future; rows end where keys end, as in flash-attn.
        window: the argument with how many keys before and after a query it may see, -1 for all.
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
    axes: str
    plain: tuple[tuple[str, Any], ...]

    def call(self, given: dict[str, Any]) -> Call | str:
        """The call with these arguments, or why it cannot be shown."""
        for name, value in self.plain:
            if given.get(name, value) is not value and given[name] != value:
                return f"{self.function.__name__} with {name}"
        query, key, value = (self.turned(given[name]) for name in (self.query, self.key, self.value))
        mask, scale, causal, window = (
            None if name is None else given.get(name) for name in (self.mask, self.scale, self.causal, self.window)
        )
        if mask is not None and not isinstance(mask, Tensor):
            return f"{self.function.__name__} with a mask that is a {type(mask).__name__}"
        before, after = window or (-1, -1)
        seen = _seen(query.shape[-2], key.shape[-2], before, 0 if causal else after).to(query.device)
        if not seen.all():
            added = mask is not None and mask.dtype != torch.bool
            mask = seen if mask is None else mask.masked_fill(~seen, -torch.inf) if added else mask & seen
        return Call.of(query, key, value, mask, scale)

    def turned(self, tensor: Tensor) -> Tensor:
        """Between the kernel's axes and batch head position dim, either way."""
        names = self.axes.split()
        return tensor.transpose(names.index("h"), names.index("n")) if names.index("h") > names.index("n") else tensor


def _seen(queries: int, keys: int, before: int, after: int) -> Tensor:
    """Where a query may look, the last one standing at the last key."""
    gap = torch.arange(keys) - (torch.arange(queries)[:, None] + keys - queries)
    return ((gap >= -before) | (before < 0)) & ((gap <= after) | (after < 0))


KERNELS: dict[FunctionType, Kernel] = {}
KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("flash_attn.flash_attn_interface", "flash_attn_func"): {
        "scale": "softmax_scale",
        "window": "window_size",
        "plain": {"softcap": 0.0, "alibi_slopes": None},
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
    axes: str = "b n h d",
    plain: dict[str, Any] | None = None,
) -> None:
    """Let captures see the calls of a kernel that PyTorch does not know.

    flash-attn's `flash_attn_func` and xformers' `memory_efficient_attention` are known already. While a capture lasts,
    calls of the function, by whatever name, go by it; its weights are recomputed beside it, as those of PyTorch's own.

    Args:
        function: a plain Python function, such as a package has around its kernel; gives the output alone.
        query, key, value: the names of its arguments.
        mask: boolean (True: may look) or float (added to the scores).
        scale: of the scores; None or no such argument: one over the root of dim.
        causal: a switch that hides the future, the last query standing at the last key.
        window: keys before and after a query that it may see, as (before, after), -1 for all.
        axes: "b n h d" or "b h n d", or without b: text, position, head, dim.
        plain: values of other arguments, where the weights are what is computed here; with others they are not shown,
            which is told.

    Raises:
        TypeError: it is no plain Python function.
        ValueError: it has no argument of this name; other axes.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        inner = " (one that wraps another: give the inner one)" if getattr(function, "__closure__", None) else ""
        raise TypeError(f"function is {getattr(function, '__name__', function)!r}{inner}; give a plain Python function")
    if axes not in AXES:
        raise ValueError(f"axes is {axes!r}; it can be one of {', '.join(map(repr, AXES))}")
    made = Kernel(function, query, key, value, mask, scale, causal, window, axes, tuple((plain or {}).items()))
    named = [name for name in (query, key, value, mask, scale, causal, window) if name is not None]
    there = inspect.signature(function).parameters
    if missing := [name for name in [*named, *(plain or {})] if name not in there]:
        raise ValueError(f"{function.__name__} has no argument {missing[0]!r}; it has {', '.join(there)}")
    KERNELS[function] = made


def _known() -> Iterator[Kernel]:
    """Those that were registered, and those of packages that are loaded."""
    for (module, name), names in KNOWN.items():
        function = getattr(sys.modules.get(module), name, None)
        if isinstance(function, FunctionType) and not function.__closure__ and function not in KERNELS:
            attention(function, **names)
    yield from KERNELS.values()


@contextmanager
def _watched() -> Iterator[None]:
    """Calls of these functions, from wherever they were imported, go by the captures."""
    swapped = [(kernel.function, _swap(kernel)) for kernel in list(_known())]
    try:
        yield
    finally:
        for function, (code, defaults, named) in swapped:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
            del function.__globals__[f"{SLOT}{id(function)}"]


WATCHED = Shared(_watched)


def _swap(kernel: Kernel) -> tuple[CodeType, Any, Any]:
    """Put another code into the function; gives what was there."""
    function = kernel.function
    was = function.__code__, function.__defaults__, function.__kwdefaults__
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
    return was
