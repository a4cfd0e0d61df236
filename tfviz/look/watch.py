"""The eyes of `capture`: a mode that sees what a running module calls, and knows attention when it sees it."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.aside import aside, bare, is_wrapped
from tfviz.look.axes import Heads, Layout, layout, roles, said
from tfviz.look.lineage import Weights, learned
from tfviz.look.products import Product, product
from tfviz.look.recompute import Call, four, is_open, living, pattern, weights
from tfviz.look.running import is_silent, silent
from tfviz.look.sites import Allowed, Sites, matches

FLEX = torch.ops.higher_order.flex_attention  # what `flex_attention` calls, and the first call of it a mode sees
STARTS = {"softmax": "", "special_softmax": "", "log_softmax": "logs", "special_log_softmax": "logs", "sigmoid": "gate"}
NEAR = 3  # modules, from the innermost on, that may say how many heads there are
CLOSE = 1e-3  # to 1, of the sum of weights

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
        if func is functional.multi_head_attention_forward:
            return self._multi_head(*args, **kwargs)
        return self._written_out(func, args, kwargs)

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
                axes = self._arrangement(call)
                edited = self._pass(scores, axes.to(call.scores().reshape(axes.given)))
                soft = self._weighed(edited, weights(edited), lambda: self._mask(call))
                return call.mix(functional.dropout(axes.back(soft).reshape(call.shape), dropout))
        call_of = cache(make)  # once, where both are kept, or a map and its mask

        def arranged(tensor: Tensor) -> Tensor:
            axes = self._arrangement(call_of())
            return tensor if call_of().is_wrapped or axes.is_plain else axes.to(tensor.reshape(axes.given))

        self._note(scores, lambda: arranged(call_of().scores()))
        self._note(maps, lambda: arranged(pattern(call_of(), self.dtype)), lambda: self._mask(call_of()))
        return None

    def _arrangement(self, call: Call) -> Layout:
        """The axes of a fused call: heads may stand beside texts, or on the axis of the one query."""
        shape = (*call.lead, *call.shape[2:])
        return self._layout(shape, [*["shared"] * len(call.lead), "q", "k"])

    def _mask(self, call: Call) -> Tensor | None:
        axes, allowed = self._arrangement(call), call.allowed()
        if allowed is None or call.is_wrapped or axes.is_plain:
            return allowed
        return _one_head(axes.to(allowed.expand(call.shape).reshape(axes.given)))

    def _written_out(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """A model may write attention out: a softmax, and later a product with values over its keys."""
        name = named(func)
        if name in STARTS:
            return self._starts(STARTS[name], func, *args, **kwargs)
        made = product(name, func, args, kwargs)
        if name == "sum" and self.lineage.known:
            made = self.lineage.summed(args, kwargs) or made
        found = made and self._found(made)
        if made and found:
            return self._meet(made, *found)
        output = func(*args, **kwargs)
        if self.lineage.known:
            self.lineage.follow(name, func, args, kwargs, output)
        return output

    def _starts(
        self, stage: str, func: Callable, input: Tensor, dim: int | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """A softmax: of attention, perhaps."""
        given = (dim, *args) if stage != "gate" else args
        if input.is_nested or input.layout is not torch.strided or not input.dim() or not input.numel():
            return func(input, *given, **kwargs)
        axis = -1 if stage == "gate" else dim if dim is not None else int(input.dim() not in (0, 1, 3))
        scores = self._site("scores")
        if self._edits(scores) and input.dim() > 1:
            moved = input.movedim(axis, -1)
            edited = self._changed(scores, self._with_heads(moved)).reshape(moved.shape).movedim(-1, axis)
            input = edited
        soft = func(input, *given, **kwargs)
        if stage != "gate":
            self.softmaxes[self._site("")] = None
        self.lineage.begins(soft, input, axis, stage)
        return soft

    def _found(self, made: Product) -> tuple[int, Weights] | None:
        """Which factor has weights, if one has: what a softmax gave, or numbers whose rows add up to 1."""
        for place in (0, 1):
            weights = self.lineage.known.get(made.factors[place])
            if weights and not weights.times and weights.stage != "logs" and weights.axis is not None:
                meets = made.contracted(made.letters[place][weights.axis])
                if meets and not learned(made.factors[1 - place]):
                    return place, weights
        for place in (0, 1):
            if not learned(made.factors[1 - place]) and (axis := self._of_one(made, place)) is not None:
                numbers = torch.arange(made.factors[place].shape[axis])
                shape = [-1 if one == axis else 1 for one in range(made.factors[place].dim())]
                return place, Weights(numbers.reshape(shape).expand(made.factors[place].shape))
        return None

    def _of_one(self, made: Product, place: int) -> int | None:
        """The axis along which all rows are weights that add up to 1."""
        rows, letters = made.factors[place], made.letters[place]
        axes = [axis for axis, letter in enumerate(letters) if made.contracted(letter)]
        if (
            len(axes) != 1
            or rows.dim() < 2
            or not rows.is_floating_point()
            or rows.shape[axes[0]] < 2
            or is_wrapped(rows)
        ):
            return None
        if learned(rows) or id(rows) in self.buffers or not rows.numel():
            return None
        with aside(), torch.no_grad():
            last = rows.movedim(axes[0], -1)
            first = last[(0,) * (last.dim() - 1)]
            if not (abs(first.sum() - 1) < CLOSE and (first >= 0).all()):
                return None
            return axes[0] if bool(((last.sum(-1) - 1).abs() < CLOSE).all() and (last >= 0).all()) else None

    def _meet(self, made: Product, place: int, weights: Weights) -> Any:
        """Weights meet values: returns what the product gives."""
        given = made.factors[place]
        axes = self._layout(given.shape, roles(made, place, weights.axis or 0))
        scores, maps, soft = (self._site(name) for name in ("scores", "pattern", "softmax"))
        seen = None if weights.scores is None or weights.scores.shape != given.shape else weights.scores
        plain = given if weights.plain is None else weights.plain

        def allowed() -> Tensor | None:
            return None if seen is None else _one_head(is_open(bare(axes.to(seen))))

        def shown(tensor: Tensor) -> Tensor:
            return axes.to(tensor) if seen is None else living(axes.to(tensor), axes.to(seen))

        if seen is not None and weights.stage != "gate":
            self._note(scores, lambda: self._copy(scores, axes.to(seen)))
        if weights.changed and weights.soft is not None:
            own = weights.soft[0].movedim(weights.soft[1], -1)
            if own.shape != given.shape or not torch.equal(own, plain):
                self._note(soft, lambda: self._copy(soft, self._with_heads(own)))
        if not self._edits(maps):
            self._note(maps, lambda: self._copy(maps, shown(plain)), allowed)
            return made.again(*made.factors)
        with aside():
            passed = axes.back(self._weighed(None if seen is None else axes.to(seen), shown(plain), allowed))
            passed = passed.to(given.dtype)
            if seen is not None and not (given.requires_grad or is_wrapped(given) or 0 in plain.stride()):
                plain.copy_(passed)  # whoever reads them later, such as the caller they are returned to
            if weights.plain is not None:
                passed = torch.where((given == 0) & (plain != 0), 0.0, passed / (1 - weights.drop))
        with silent():
            return made.again(*(passed if i == place else factor for i, factor in enumerate(made.factors)))

    def _weighed(self, scores: Tensor | None, soft: Tensor, allowed: Allowed) -> Tensor:
        """Weights of an attention that is edited; captures around this one see no call of it, and are told."""
        soft = self._pass(self._site("pattern"), soft, allowed)
        for outer in (one for one in reversed(self.outer) if one.state.running):
            if scores is not None:
                outer._note(outer._site("scores"), lambda: scores.clone())
            soft = outer._pass(outer._site("pattern"), soft, allowed)
        return soft

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

    def _layout(self, shape: Sequence[int], found: Sequence[str]) -> Layout:
        modules = [self.parts[path] for path in reversed(self.state.running[-NEAR:])]
        heads = Heads.of(modules, self.state.heads)
        site = self._site("pattern")
        for glob, axes in self.axes.items():
            if matches(site, glob):
                return said(axes, shape, heads)
        if heads.count is None and sum(role == "shared" for role in found) == 1:
            self.alone.setdefault(site, shape[list(found).index("shared")])
        return layout(shape, found, heads)

    def _with_heads(self, tensor: Tensor) -> Tensor:
        heads = self.state.heads
        return tensor.unflatten(0, (-1, heads)) if heads and tensor.dim() == 3 else four(tensor)


def named(func: Callable) -> str:
    """The name of a call, without the sign that it changes its tensor."""
    name = getattr(func, "__name__", "")
    return getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name


def _one_head(allowed: Tensor) -> Tensor | None:
    """One head's mask if all have the same; None if nothing is forbidden."""
    if allowed.all():
        return None
    return allowed[:, :1].clone() if (allowed == allowed[:, :1]).all() else allowed
