"""The eyes of `capture`: a mode that sees what a running module calls, and knows attention when it sees it."""

from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.aside import aside, bare
from tfviz.look.recompute import Call, four, is_open, living, pattern, weights
from tfviz.look.running import is_silent
from tfviz.look.sites import Allowed, Sites

FLEX = torch.ops.higher_order.flex_attention  # what `flex_attention` calls, and the first call of it a mode sees
SOFTMAX = (functional.softmax, torch.softmax, Tensor.softmax)

# `multi_head_attention_forward` hands itself to a mode before it does anything; this is its body without that
# step, so that the attention inside it can be seen.
_MULTI_HEAD = FunctionType(
    functional.multi_head_attention_forward.__code__,
    {**vars(functional), "has_torch_function": lambda _: False},
    argdefs=functional.multi_head_attention_forward.__defaults__,
)


class Watch(Sites):
    """Sees the calls that a running module makes, and lets the parts of each attention go by as sites below it."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self.state.running or is_silent():
            return func(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if func is FLEX:
            return self._flex(*args, **kwargs)
        if func in SOFTMAX:
            return self._explicit(func, *args, **kwargs)
        if func is functional.multi_head_attention_forward:
            return self._multi_head(*args, **kwargs)
        return func(*args, **kwargs)

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
        query, key, value = self._ingredients(query, key, value)
        if query.is_nested or key.is_nested:
            self.unseen[self._site("pattern")] = "nested tensors"
        else:
            edited = self._weigh(lambda: Call.of(query, key, value, attn_mask, scale, is_causal), dropout_p)
            if edited is not None:
                return edited
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

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
        edited = self._weigh(lambda: Call.flex(query, key, value, score_mod, block_mask[-1], scale))
        output, *rows = FLEX(query, key, value, score_mod, block_mask, scale, *args, **kwargs)
        return (output if edited is None else edited, *rows)

    def _ingredients(self, *tensors: Tensor) -> Iterator[Tensor]:
        """Query, key and value go by."""
        return (self._pass(self._site(name), tensor) for name, tensor in zip(("query", "key", "value"), tensors))

    def _weigh(self, make: Callable[[], Call], dropout: float = 0.0) -> Tensor | None:
        """Scores and weights go by: returns the output that they make if they are edited."""
        scores, maps = self._site("scores"), self._site("pattern")
        if self._edits(scores) or self._edits(maps):
            with aside():
                call = make()
                edited = self._pass(scores, call.scores())
                soft = self._weighed(edited, weights(edited), call.allowed)
                return call.mix(functional.dropout(soft, dropout))
        call_of = cache(make)  # once, where both are kept, or a map and its mask
        self._note(scores, lambda: call_of().scores())
        self._note(maps, lambda: pattern(call_of(), self.dtype), lambda: call_of().allowed())
        return None

    def _weighed(self, scores: Tensor, soft: Tensor, allowed: Allowed) -> Tensor:
        """Weights of an attention that is edited; captures around this one see no call of it, and are told."""
        soft = self._pass(self._site("pattern"), soft, allowed)
        for outer in (one for one in reversed(self.outer) if one.state.running):
            outer._note(outer._site("scores"), lambda: scores.clone())
            soft = outer._pass(outer._site("pattern"), soft, allowed)
        return soft

    def _explicit(self, softmax: Callable, input: Tensor, dim: int | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax over the last of three axes or more is attention that a model writes out."""
        many = not input.is_nested and input.dim() >= 3 and dim in (-1, input.dim() - 1)
        if not many or not input.shape[-1] or input.layout is not torch.strided:
            return softmax(input, dim, *args, **kwargs)
        scores, maps = self._site("scores"), self._site("pattern")

        def allowed() -> Tensor | None:
            return _one_head(is_open(bare(self._with_heads(input))))

        if not (self._edits(scores) or self._edits(maps)):
            soft = softmax(input, dim, *args, **kwargs)  # nothing else, so that what is kept for gradients is the same
            self._note(scores, lambda: self._copy(scores, self._with_heads(input)))
            self._note(maps, lambda: self._copy(maps, self._with_heads(living(soft, input))), allowed)
            return soft
        with aside():
            edited = self._pass(scores, self._with_heads(input))
            soft = softmax(edited.reshape(input.shape), dim, *args, **kwargs)
            shown = self._with_heads(living(soft, edited.reshape(input.shape)))
            passed = self._weighed(edited, shown, allowed)
            return soft if passed is shown else passed.reshape(input.shape)

    def _multi_head(self, *args: Any, **kwargs: Any) -> Any:
        mine = [one for one in (self, *self.outer) if one.state.running]
        for one in mine:
            one.state.heads = args[4] if len(args) > 4 else kwargs["num_heads"]
        try:
            with self:
                return _MULTI_HEAD(*args, **kwargs)
        finally:
            for one in mine:
                one.state.heads = None

    def _with_heads(self, tensor: Tensor) -> Tensor:
        heads = self.state.heads
        return tensor.unflatten(0, (-1, heads)) if heads and tensor.dim() == 3 else four(tensor)


def _one_head(allowed: Tensor) -> Tensor | None:
    """One head's mask if all have the same; None if nothing is forbidden."""
    if allowed.all():
        return None
    return allowed[:, :1].clone() if (allowed == allowed[:, :1]).all() else allowed
