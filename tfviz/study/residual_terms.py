"""`ResidualTerms`: the terms that add up to the residual stream before a model's last norm.

A block adds to its input: x = x + attention(norm(x)); x = x + mlp(norm(x)). Traced back from the last norm, sum by sum,
the residual stream is the embedding plus one term for each part. The sums are observed as torch calls, independently of
the model's code, so parallel parts and norms after a part (Gemma 2) need no special rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.module_paths import blocks, is_within
from tfviz.study.block_replay import first_tensor, hooked, with_first_tensor
from tfviz.study.frozen_norm import FrozenNorm

ADD_OPS = frozenset({"add", "__add__", "__radd__", "__iadd__", "add_"})
IDENTITY_OPS = frozenset(
    {"contiguous", "clone", "to", "float", "type_as", "dropout", "view", "reshape", "view_as", "clamp"}
)
SCALE_OPS = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "div", "__truediv__"})
TRACKED_IN_PLACE = frozenset({"__iadd__", "add_", "__imul__", "mul_"})
KEEPS_NUMBERS = frozenset({"requires_grad_", "detach_", "retain_grad"})
NORM_NAME = re.compile(r"norm", re.IGNORECASE)


class Term(NamedTuple):
    """One term of the residual stream.

    Attributes:
        name: the path of the module that returned the term, or else of the module that added it.
        tensor: the value of the term, [batch, position, dim].
        time: the time of its computation, in events of the run.
    """

    name: str
    tensor: Tensor
    time: int


class ResidualTerms(TorchFunctionMode):
    """A recorder of a model's sums and of its modules' inputs and outputs in one run, inside `observe`.

    Args:
        model: the model.
        freezes_norms: whether gradients flow through the norms of blocks as if their statistics were constant, so that
            the product of gradient and input is the contribution of the input.

    Attributes:
        clock: the number of events of the run so far.
        leaves: time -> the path of the module without children that ended at this time.
        frozen: the paths of the norms whose statistics are treated as constant.
    """

    def __init__(self, model: nn.Module, freezes_norms: bool = False) -> None:
        super().__init__()
        self.model, self.freezes_norms, self.clock = model, freezes_norms, 0
        self.frozen: set[str] = set()
        self.leaves: dict[int, str] = {}
        self.norms: dict[str, tuple[Tensor, Tensor]] = {}  # norms after the blocks: path -> input and output
        self._sums: Any = WeakIdKeyDictionary()  # a sum -> its two terms, and the path of the module that adds them
        self._same: Any = WeakIdKeyDictionary()  # a tensor -> the earlier tensor with the same numbers
        self._scaled: Any = WeakIdKeyDictionary()  # a tensor -> the tensor that it is a multiple of
        self._returned: Any = WeakIdKeyDictionary()  # a tensor -> the path of the module that returned it, and the time
        self._normed: Any = WeakIdKeyDictionary()  # what norms inside blocks returned
        self._blocks: set[str] = set()
        self._norms: dict[str, bool] = {}  # path of a norm -> whether it is inside a block
        self._running: list[str] = []  # modules, outermost first
        self._kept: list[Tensor] = []  # keeps tensors alive while the model runs

    @contextmanager
    def observe(self) -> Iterator[None]:
        """Record one call of the model inside the context."""
        self._blocks = set(blocks(self.model))
        self._norms = {
            path: any(is_within(path, block) for block in self._blocks)
            for path, module in self.model.named_modules()
            if NORM_NAME.search(type(module).__name__)
        }
        with hooked(self.model.named_modules(), self._begin, self._end), self:
            yield

    def tick(self) -> int:
        """Count an event, and return its number."""
        self.clock += 1
        return self.clock

    def _begin(self, path: str, *_: Any) -> None:
        self._running.append(path)

    def _end(self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        """Record a module's output; return a replacement for norms that are frozen or whose gradient is changed."""
        self._running.pop()
        if path in self._blocks:
            self.norms.clear()  # remove norms before a block
        time, computed = self.tick(), first_tensor(output)
        if next(module.children(), None) is None:
            self.leaves[time] = path
        if computed is None:
            return None
        first_input = next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
        returned = self._with_gradient(path, module, first_input, computed)
        self._record_returned(path, returned, time)
        if self._is_norm_in_block(path):
            self._normed[returned] = path
        if self._is_outer_norm(path) and first_input is not None:
            self.norms[path] = (first_input, returned)
        return None if returned is computed else with_first_tensor(output, returned)

    def _is_norm_in_block(self, path: str) -> bool:
        return self._norms.get(path) is True

    def _is_outer_norm(self, path: str) -> bool:
        return self._norms.get(path) is False

    def _with_gradient(self, path: str, module: nn.Module, first_input: Tensor | None, computed: Tensor) -> Tensor:
        """Return a module's output; of a norm with another gradient, if the norm is to be frozen or has no gradient."""
        if self._is_norm_in_block(path) and self.freezes_norms and first_input is not None:
            return self._freeze(path, module, first_input, computed)
        lacks_gradient = torch.is_grad_enabled() and computed.is_floating_point() and not computed.requires_grad
        if self._is_outer_norm(path) and lacks_gradient:
            return computed.detach().requires_grad_() * 1  # the direction is a gradient, even if the model is frozen
        return computed

    def _record_returned(self, path: str, returned: Tensor, time: int) -> None:
        """Record which module returned a tensor: of several, one inside the other, the outermost, at the first time."""
        known = self._returned.get(returned)
        if known is None or is_within(known[0], path):
            self._returned[returned] = (path, time if known is None else known[1])
            self._kept.append(returned)

    def _freeze(self, path: str, norm: nn.Module, first_input: Tensor, returned: Tensor) -> Tensor:
        """Return the output of a norm with the gradient of the norm's linear map with constant statistics."""
        with torch._C.DisableTorchFunction():  # do not record these sums
            frozen = FrozenNorm.from_module(norm, first_input, returned)
            if frozen is None:
                return returned
            self.frozen.add(path)
            linear = frozen.apply(first_input)
            return returned.detach() + (linear - linear.detach())

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        before = None
        if name in TRACKED_IN_PLACE and isinstance(args[0], Tensor):
            before = self._move(args[0])
        elif _overwrites(name) and isinstance(args[0], Tensor):
            self._forget(args[0])
        output = func(*args, **(kwargs or {}))
        if isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 1:
            self._follow(name, output, (args[0] if before is None else before, *args[1:]))
        return output

    def _move(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor that is about to be changed in place; the copy takes over its records."""
        copy = tensor.clone()
        for known in (self._sums, self._same, self._scaled, self._returned):
            if tensor in known:
                known[copy] = known.pop(tensor)
        self._kept.append(copy)
        return copy

    def _forget(self, tensor: Tensor) -> None:
        """Delete the records of a tensor that is about to be overwritten in part or in whole."""
        for known in (self._sums, self._same, self._scaled, self._returned):
            known.pop(tensor, None)

    def _follow(self, name: str, output: Tensor, args: tuple[Any, ...]) -> None:
        """Record the terms of a sum, or the source of a tensor with the same or scaled numbers."""
        tensors = [arg for arg in args[:2] if isinstance(arg, Tensor)]
        if name in ADD_OPS and len(tensors) == 2:
            self._sums[output] = (*tensors, self._running[-1] if self._running else "", self.tick())
        elif name in IDENTITY_OPS and tensors and _is_same(name, output, tensors[0]):
            self._same[output] = tensors[0]
        elif name in SCALE_OPS and tensors:
            full = [tensor for tensor in tensors if tensor.shape == output.shape]
            if len(full) != 1 or any(tensor.numel() > 1 for tensor in tensors if tensor is not full[0]):
                return
            self._scaled[output] = full[0]
        else:
            return
        self._kept += [output, *tensors]

    def last_norm(self) -> tuple[str, Tensor, Tensor]:
        """Return the path, the input and the output of the last norm, which takes the residual stream.

        Raises:
            ValueError: there is no norm outside the blocks whose input is a sum or the edited output of a block.
        """
        for path, (first_input, returned) in reversed(self.norms.items()):
            origin = self._origin(first_input)
            is_block_output = self._returned.get(origin, ("", 0))[0] in self._blocks
            if origin in self._sums or (is_block_output and origin not in self._normed):
                return path, first_input, returned
        raise ValueError(
            f"{type(self.model).__name__} has no norm that takes the residual stream after its blocks (post-norm "
            f"models do not have one), so its logits are not the sum of its parts' outputs"
        )

    def terms(self, stream: Tensor) -> list[Term]:
        """Return the terms that add up to a residual stream, in the order of their computation."""
        found: list[Term] = []
        waiting = [(stream, "", 0)]
        while waiting:
            tensor, adder, time = waiting.pop()
            origin = self._origin(tensor)
            if origin in self._sums:
                left, right, adder, time = self._sums[origin]
                waiting += [(left, adder, time), (right, adder, time)]
            else:
                found.append(self._term(tensor, adder, time))
        shaped = []
        for term in found:
            is_whole = term.tensor.numel() == stream.numel()
            tensor = term.tensor.reshape(stream.shape) if is_whole else term.tensor.expand(stream.shape)
            shaped.append(term._replace(tensor=tensor))
        return sorted(shaped, key=lambda term: term.time)

    def _origin(self, tensor: Tensor) -> Tensor:
        """Return the earliest tensor with the same numbers."""
        while tensor in self._same:
            tensor = self._same[tensor]
        return tensor

    def _term(self, tensor: Tensor, adder: str, added: int) -> Term:
        """Return a term, named after the outermost module that returned it or the tensor of which it is a multiple."""
        chain, current = [tensor], tensor
        while (source := self._same.get(current, self._scaled.get(current))) is not None:
            chain.append(source)
            current = source
        named = [self._returned[part] for part in reversed(chain) if part in self._returned]
        if not named:
            return Term(adder or "rest", tensor, added)
        name, time = named[0]
        for path, _ in named[1:]:
            name = path if path and is_within(name, path) else name
        return Term(name, tensor, time)


def _overwrites(name: str) -> bool:
    """Return whether an operation may change its first tensor in place, by its name."""
    is_in_place = name.endswith("_") and not name.endswith("__") and name not in KEEPS_NUMBERS
    return is_in_place or name == "__setitem__"


def _is_same(name: str, output: Tensor, tensor: Tensor) -> bool:
    """Return whether the result of one of `IDENTITY_OPS` is another tensor with the same numbers."""
    if name == "clamp":  # an overflow guard for half precision (T5) that changed nothing
        return torch.equal(output, tensor)
    return output is not tensor and output.numel() == tensor.numel()
