"""The eyes of `capture`: a mode that sees what a running module calls, and knows attention when it sees it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from inspect import signature, unwrap
from types import FunctionType
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz.look.aside import aside, is_wrapped
from tfviz.look.axes import Layout
from tfviz.look.call import Call, is_open
from tfviz.look.edits import ZeroHeads
from tfviz.look.fastpath import takes_fast_path
from tfviz.look.flex import by_blocks, is_compiled
from tfviz.look.ingredients import Shelf
from tfviz.look.kernels import WATCHED, Kernel
from tfviz.look.meeting import one_head
from tfviz.look.recompute import pattern, weights
from tfviz.look.running import checkpointed, is_silent, silent
from tfviz.look.signatures import of_call
from tfviz.look.sites import Dated, matches
from tfviz.look.written import Written

FLEX = torch.ops.higher_order.flex_attention  # what `flex_attention` calls, and the first call of it a mode sees

# `multi_head_attention_forward` hands itself to a mode before it does anything; this is its body without that
# step, so that the attention inside it can be seen. Some libraries leave wrappers where PyTorch had its functions.
_WHOLE = unwrap(functional.multi_head_attention_forward)
_MULTI_HEAD = FunctionType(
    _WHOLE.__code__, {**vars(functional), "has_torch_function": lambda _: False}, argdefs=_WHOLE.__defaults__
)
_ARGUMENTS = signature(_WHOLE)

VIEWS = frozenset({"T", "mT", "H", "mH", "data", "grad", "real", "imag"})  # attributes that are tensors


def _asks(func: Any) -> bool:
    """Whether a call only asks a tensor for its shape, its type, its device."""
    return getattr(func, "__name__", "") == "__get__" and func.__self__.__name__ not in VIEWS


class Watch(Written):
    """Sees the calls that a running module makes, and lets the parts of each attention go by as sites below it.

    Attributes:
        shelf: where to keep what weights are made of; None: weights are kept.
    """

    settings = (*Written.settings, WATCHED)

    def __init__(self, *given: Any, shelf: Shelf | None = None, **more: Any):
        super().__init__(*given, **more)
        self.shelf = shelf
        self.fast: dict[str, None] = {}  # modules whose mask of numbers PyTorch's fast path reads as a boolean one

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self.state.running or is_silent() or _asks(func):
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")  # a wrapper has the name of what it wraps
        if name == "scaled_dot_product_attention":
            return self._fused(*args, **kwargs)
        if func is FLEX:
            return self._flex(*args, **kwargs)
        if name == "multi_head_attention_forward":
            return self._multi_head(*args, **kwargs)
        return self.written_out(func, args, kwargs)

    def kernel(self, kernel: Kernel, given: dict[str, Any], original: Callable[[], Any]) -> Any:
        """A call of somebody else's kernel goes by."""
        with aside():
            call = kernel.call(given)
        if isinstance(call, str):
            self.unseen[self._site("pattern")] = call
            return original()
        query, key, value = self._ingredients(call.query, call.key, call.value)
        made = replace(call, query=query, key=key, value=value)
        outer: Any
        for outer in self.outer:
            if outer.state.running:
                outer._weigh(lambda: made)
        edited = self._weigh(lambda: made)
        with silent():
            given_out = original()
        if edited is None:
            return given_out
        made_out = kernel.back(edited)
        return (made_out, *given_out[1:]) if isinstance(given_out, tuple) else made_out

    def _fused(
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
        again, off = self._same(query, key), None
        if dropout_p:
            self.dropped[self._site("pattern")] = dropout_p
        query, key, value = self._ingredients(query, key, value)
        if query.is_nested or key.is_nested:
            self.unseen[self._site("pattern")] = "nested tensors"
        else:
            make = lambda: Call.of(query, key, value, attn_mask, scale, is_causal)  # noqa: E731
            off = self._off(make, query, again)
            edited = None if off is not None else self._weigh(make, dropout_p, again)
            if edited is not None:
                return edited
        output = functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        return output if off is None else output.masked_fill(off, 0.0)

    def _flex(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor],
        block_mask: tuple,
        scale: float,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, ...]:
        """The output of FlexAttention, and with it what it tells of each row, which edits of weights leave alone."""
        query, key, value = self._ingredients(query, key, value)
        if is_compiled():  # its kernel reads only the blocks that are listed, and asks no rule in those that are full
            block_mask = (*block_mask[:-1], by_blocks(block_mask))
        make = lambda: Call.flex(query, key, value, score_mod, block_mask[-1], scale)  # noqa: E731
        off = self._off(make, query)
        edited = None if off is not None else self._weigh(make)
        output, *rows = FLEX(query, key, value, score_mod, block_mask, scale, *args, **kwargs)
        output = output if off is None else output.masked_fill(off, 0.0)
        return (output if edited is None else edited, *rows)

    def _same(self, query: Tensor, key: Tensor) -> bool:
        """Whether these are the tensors of the last fused call."""
        last, self.state.last = self.state.last, (ref(query), ref(key))
        return last is not None and last[0]() is query and last[1]() is key and query is not key

    def _ingredients(self, *tensors: Tensor) -> Iterator[Tensor]:
        """Query, key and value go by."""
        return (self._pass(self._ingredient(name), one) for name, one in zip(("query", "key", "value"), tensors))

    def _ingredient(self, name: str) -> str:
        """Its site; another one where a part of the module has that name."""
        site = self._site(name)
        return f"{site}_heads" if site in self.parts else site

    def _weigh(self, make: Callable[[], Call], dropout: float = 0.0, again: bool = False) -> Tensor | None:
        """Scores and weights go by: returns the output that they make if they are edited.

        Args:
            again: these were seen already, and meet other values now.
        """
        scores, maps = self._site("scores"), self._site("pattern")
        call_of = cache(make)  # once, where both are kept, or a map and its mask
        if not again:
            self._date(maps, lambda: self._dated_call(call_of()))
        if self._edits(scores) or self._edits(maps):
            with aside():
                call = make()  # of its own: gradients flow through it
                axes = self._arrangement(call)
                edited = self._pass(scores, axes.to(call.scores().reshape(axes.given)))
                soft = self._weighed(edited, weights(edited), lambda: self._mask(call), lambda: self._dated_call(call))
                return call.mix(functional.dropout(axes.back(soft).reshape(call.shape), dropout))
        if again:
            return None
        self._note(scores, lambda: self._arranged(call_of(), call_of().scores()))
        self._note(maps, lambda: self._kept(call_of()), lambda: self._mask(call_of()))
        return None

    def _dated_call(self, call: Call) -> Dated:
        axes = self._arrangement(call)
        plain = axes.is_plain
        whole = None if plain else cache(lambda: self._mask(call))

        def seen(rows: slice) -> Tensor | None:
            if whole is None:
                return call.allowed(rows)
            return None if (mask := whole()) is None else mask[:, :, rows]

        return axes.four[2], seen, of_call(call, axes), call.key.dtype

    def _off(self, make: Callable[[], Call], query: Tensor, again: bool = False) -> Tensor | None:
        """Which heads give nothing, [head, 1, 1], where that is the only edit and needs no map; weights go by, too."""
        scores, maps = self._site("scores"), self._site("pattern")
        edits = [function for glob, function in self.edit.items() if matches(maps, glob)]
        empties = [one for one in edits if isinstance(one, ZeroHeads)]
        if not edits or len(empties) < len(edits) or self._edits(scores):
            return None
        if (self.grad and self._wants(maps)) or any(one.state.running for one in self.outer):
            return None
        if query.dim() != 4 or is_wrapped(query) or checkpointed():
            return None
        with aside():
            call = make()
            if not self._arrangement(call).is_plain:
                return None
            off = torch.stack([one.off(call.shape[1], maps) for one in empties]).any(0).to(query.device).view(-1, 1, 1)
        if again:
            return off
        self._date(maps, lambda: self._dated_call(call))
        self._note(scores, lambda: self._arranged(call, call.scores()))
        self._note(
            maps, lambda: self._arranged(call, pattern(call, self.dtype)).masked_fill(off, 0), lambda: self._mask(call)
        )
        return off

    def _kept(self, call: Call) -> Tensor | Call:
        """The weights, or what they are made of where that is to be kept and has their axes."""
        axes = self._arrangement(call)
        if self.shelf and not call.is_wrapped and axes.is_plain:
            self._look_for_channels(axes)
            return self.shelf.keep(call, self._heads().groups)
        return self._arranged(call, pattern(call, self.dtype))

    def _arranged(self, call: Call, tensor: Tensor) -> Tensor:
        axes = self._arrangement(call)
        self._look_for_channels(axes)
        return tensor if call.is_wrapped or axes.is_plain else axes.to(tensor.reshape(axes.given))

    def _arrangement(self, call: Call) -> Layout:
        """The axes of a fused call: heads may stand beside texts, or on the axis of the one query."""
        shape = (*call.lead, *call.shape[2:])
        made = self._layout(shape, [*["shared"] * len(call.lead), "q", "k"])
        count = len(made.split)
        if made.order[-2:] != (count - 2, count - 1):
            raise ValueError(
                f"axes of {self._site('pattern')}: PyTorch's own attention has queries and keys on its last two axes: "
                "leave axes out, or give them by glob for the sites that a model writes out"
            )
        return made

    def _mask(self, call: Call) -> Tensor | None:
        axes, allowed = self._arrangement(call), call.allowed()
        if allowed is None or call.is_wrapped or axes.is_plain:
            return allowed
        return one_head(axes.to(allowed.expand(call.shape).reshape(axes.given)))

    def _as_read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of multi-head attention, with the mask as PyTorch reads it where nobody looks.

        The fast path of its encoder layer forbids each cell at which a mask of numbers is not 0.
        """
        bound = _ARGUMENTS.bind(*args, **kwargs)
        given = {name: bound.arguments.get(name) for name in ("attn_mask", "key_padding_mask")}
        added = {name: one for name, one in given.items() if isinstance(one, Tensor) and one.is_floating_point()}
        if not any(bool((is_open(one) & (one != 0)).any()) for one in added.values()):  # they forbid, and no more
            return args, kwargs
        around = [self.parts[path] for path in self.state.running]
        if not any(isinstance(one, nn.TransformerEncoderLayer) and takes_fast_path(one) for one in around):
            return args, kwargs
        for name, one in added.items():
            bound.arguments[name] = torch.zeros_like(one).masked_fill_(one != 0, -torch.inf)
        self.fast[self.state.running[-1]] = None
        return bound.args, bound.kwargs

    def is_fast(self, path: str) -> bool:
        return any(module.startswith(f"{path}.".lstrip(".")) for module in self.fast)

    def _multi_head(self, *args: Any, **kwargs: Any) -> Any:
        mine = [one for one in (self, *self.outer) if one.state.running]
        args, kwargs = self._as_read(args, kwargs)
        for one in mine:
            one.state.heads = args[4] if len(args) > 4 else kwargs["num_heads"]
        try:
            with self:
                return _MULTI_HEAD(*args, **kwargs)
        finally:
            for one in mine:
                one.state.heads = None
