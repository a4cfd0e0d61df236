"""The eyes of `capture`: hooks that know which module is running, a mode that sees what it calls."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tfviz.look.recompute import Call, four, is_open, pack, pattern, weights

Edit = Callable[[Tensor], Tensor]
Allowed = Callable[[], Tensor | None]

FLEX_MODULE = "torch.nn.attention.flex_attention"
FLEX = torch.ops.higher_order.flex_attention  # what `flex_attention` calls, and the first call of it a mode sees
SOFTMAX = (functional.softmax, torch.softmax, Tensor.softmax)

# `multi_head_attention_forward` hands itself to a mode before it does anything; this is its body without that
# step, so that the attention inside it can be seen.
_MULTI_HEAD = FunctionType(
    functional.multi_head_attention_forward.__code__,
    {**vars(functional), "has_torch_function": lambda _: False},
    argdefs=functional.multi_head_attention_forward.__defaults__,
)


@lru_cache(maxsize=2**14)
def matches(site: str, glob: str) -> bool:
    """Whether a site is meant by a glob; `*.pattern` also means the `pattern` of a model that is itself attention."""
    return fnmatchcase(site, glob) or fnmatchcase(f".{site}", glob)


class Watch(TorchFunctionMode):
    """Notes every site that fires, edits what is to be edited, keeps what was asked for.

    Attributes:
        fired: the sites there were, in order, kept or not.
        kept: site -> its firings, each a tensor and, for a pattern, where queries might look.
    """

    def __init__(self, globs: list[str], dtype: torch.dtype, edit: dict[str, Edit]):
        super().__init__()
        self.globs, self.dtype, self.edit = globs, dtype, edit
        self.fired: dict[str, None] = {}
        self.kept: dict[str, list[tuple[Tensor, Tensor | None]]] = {}
        self._running: list[str] = []  # paths of the modules whose forward is under way; none: it is not the model's
        self._eager = False  # whether compiled parts are made to run eagerly
        self._heads: int | None = None  # of the `multi_head_attention_forward` under way

    @contextmanager
    def hooks(self, model: nn.Module) -> Iterator[None]:
        """See modules start and end while the context lasts."""
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())  # it is run eagerly here, and on purpose
            warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
            self._uncompile(stack)
            for path, module in model.named_modules():
                starts = module.register_forward_pre_hook(lambda *_, path=path: self._enter(path, stack))
                ends = module.register_forward_hook(lambda _m, _a, out, path=path: self._leave(path, out))
                stack.callback(starts.remove)
                stack.callback(ends.remove)
            yield

    def _uncompile(self, stack: ExitStack) -> None:
        """Run compiled parts eagerly, since a kernel shows nothing: once there may be any, for dynamo loads slowly."""
        if not self._eager and ("torch._dynamo" in sys.modules or FLEX_MODULE in sys.modules):
            self._eager = True
            stack.enter_context(torch.compiler.set_stance("force_eager"))

    def _enter(self, path: str, stack: ExitStack) -> None:
        self._uncompile(stack)
        self._running.append(path)

    def _leave(self, path: str, output: Any) -> Any:
        while self._running and self._running.pop() != path:
            pass  # a module inside this one ended by an exception that somebody caught
        if isinstance(output, Tensor):
            return self._pass(path, output) if path else None
        if path and isinstance(output, tuple) and output and isinstance(output[0], Tensor):
            return (self._pass(path, output[0]), *output[1:])
        return None

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self._running:
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
        edited = self._weigh(Call.of(query, key, value, attn_mask, scale, is_causal), dropout_p)
        if edited is not None:
            return edited.reshape(*query.shape[:-1], value.shape[-1])
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
        edited = self._weigh(Call.flex(query, key, value, score_mod, block_mask[-1], scale))
        output, *rows = FLEX(query, key, value, score_mod, block_mask, scale, *args, **kwargs)
        return (output if edited is None else edited, *rows)

    def _ingredients(self, *tensors: Tensor) -> Iterator[Tensor]:
        """Query, key and value go by."""
        return (self._pass(self._site(name), tensor) for name, tensor in zip(("query", "key", "value"), tensors))

    def _weigh(self, call: Call, dropout: float = 0.0) -> Tensor | None:
        """Scores and weights go by: returns the output that they make if they are edited."""
        scores, maps = self._site("scores"), self._site("pattern")
        if self._means(self.edit, scores) or self._means(self.edit, maps):
            soft = self._pass(maps, weights(self._pass(scores, call.scores())), call.allowed)
            return call.mix(functional.dropout(soft, dropout))
        self._note(scores, call.scores)
        self._note(maps, lambda: pattern(call, self.dtype), call.allowed)
        return None

    def _explicit(self, softmax: Callable, scores: Tensor, dim: int | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax over the last of three axes or more is attention that a model writes out."""
        if scores.dim() < 3 or dim not in (-1, scores.dim() - 1):
            return softmax(scores, dim, *args, **kwargs)
        with_heads = self._with_heads(scores)
        edited = self._pass(self._site("scores"), with_heads)
        soft = softmax(edited.view(scores.shape), dim, *args, **kwargs).view(with_heads.shape)
        dead = edited.amax(-1, keepdim=True) == -torch.inf
        shown = soft.masked_fill(dead, 0.0) if dead.any() else soft
        passed = self._pass(self._site("pattern"), shown, lambda: _one_head(is_open(edited)))
        return (soft if passed is shown else passed).reshape(scores.shape)

    def _multi_head(self, *args: Any, **kwargs: Any) -> Any:
        self._heads = args[4] if len(args) > 4 else kwargs["num_heads"]
        try:
            with self:
                return _MULTI_HEAD(*args, **kwargs)
        finally:
            self._heads = None

    def _with_heads(self, tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (-1, self._heads)) if self._heads and tensor.dim() == 3 else four(tensor)

    def _site(self, name: str) -> str:
        return f"{self._running[-1]}.{name}".removeprefix(".")

    def _means(self, globs: Any, site: str) -> bool:
        return any(matches(site, glob) for glob in globs)

    def _pass(self, site: str, tensor: Tensor, allowed: Allowed = lambda: None) -> Tensor:
        """A tensor goes by: returns what flows on."""
        for glob, function in self.edit.items():
            if matches(site, glob):
                tensor = _edited(site, tensor, function)
        self._note(site, lambda: self._copy(site, tensor), allowed)
        return tensor

    def _note(self, site: str, make: Callable[[], Tensor], allowed: Allowed = lambda: None) -> None:
        self.fired[site] = None
        if self._means(self.globs, site):
            self.kept.setdefault(site, []).append((make().detach(), allowed()))

    def _copy(self, site: str, tensor: Tensor) -> Tensor:
        """A copy that later steps of the model cannot change, in the form it is to be kept in."""
        if not tensor.is_floating_point():
            return tensor.clone()
        if self.dtype == torch.uint8:
            return pack(tensor.float()) if site.endswith("pattern") else tensor.float().clone()
        return tensor.to(self.dtype, copy=True)


def _edited(site: str, tensor: Tensor, function: Edit) -> Tensor:
    edited = function(tensor)
    if not isinstance(edited, Tensor) or edited.shape != tensor.shape:
        what = f"shape {list(edited.shape)}" if isinstance(edited, Tensor) else type(edited).__name__
        raise ValueError(f"the edit of {site} returned {what}; it must return a tensor of shape {list(tensor.shape)}")
    return edited


def _one_head(allowed: Tensor) -> Tensor | None:
    """One head's mask if all have the same; None if nothing is forbidden."""
    if allowed.all():
        return None
    return allowed[:, :1].clone() if (allowed == allowed[:, :1]).all() else allowed
