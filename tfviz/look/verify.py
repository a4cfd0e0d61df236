"""The same call once more, as it runs without a capture, and how far the outputs are apart."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as _modules
from torch.overrides import _get_current_function_mode_stack, _push_mode

from tfviz.look.running import Running, silent, take_off

NEAR = 1e-3  # of the largest output, in float32: beyond it the two runs are not the same computation
NEAR_HALF = 3e-2


class Verify:
    """Runs a model without the capture before each of its calls, and compares what it gives then.

    Attributes:
        difference: the largest between two numbers of the outputs, over all calls; None: there was no call.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.difference: float | None = None
        self.expected: list[Tensor] = []

    @contextmanager
    def hooks(self) -> Iterator[None]:
        before = self.model.register_forward_pre_hook(self._before, with_kwargs=True)
        after = self.model.register_forward_hook(self._after)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.expected:  # the model calls itself
            return
        again = [_copied(one) for one in args], {name: _copied(one) for name, one in kwargs.items()}
        with _uncaptured(self.model), _unchanged(self.model):
            self.expected = list(_tensors(module(*again[0], **again[1])))

    def _after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        given, self.expected = self.expected, []
        pairs = list(zip(given, _tensors(output)))
        apart = max((_apart(one, other) for one, other in pairs), default=0.0)
        largest = max((_largest(one) for one, _ in pairs), default=0.0)
        self.difference = max(apart, self.difference or 0.0)
        half = any(one.dtype in (torch.float16, torch.bfloat16) for one, _ in pairs)
        if apart > (NEAR_HALF if half else NEAR) * max(largest, 1e-6):
            warnings.warn(
                f"under the capture the output of the model is another than without it, by up to {apart:.2g} (the "
                f"largest is {largest:.2g}): PyTorch computes it in another way there, and the maps are of that way",
                stacklevel=3,
            )


@contextmanager
def _uncaptured(model: nn.Module) -> Iterator[None]:
    """PyTorch as it is where no capture is open: no mode and no hook of ours, and compiled parts are compiled."""
    hooks = [_modules._global_forward_pre_hooks, _modules._global_forward_hooks]
    hooks += [own for part in model.modules() for own in (part._forward_pre_hooks, part._forward_hooks) if own]
    saved = [list(some.items()) for some in hooks]
    modes = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, Running)]
    try:
        for some in hooks:
            for number in [number for number, hook in some.items() if _is_ours(hook)]:
                del some[number]
        take_off(lambda mode: isinstance(mode, Running))
        with ExitStack() as stack:
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("default"))
            stack.enter_context(silent())
            yield
    finally:
        for some, items in zip(hooks, saved):
            some.clear()
            some.update(items)
        for mode in modes:
            _push_mode(mode)


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Random generators and buffers are what they were afterwards."""
    devices = {one.device for one in model.parameters() if one.is_cuda}
    buffers = [(part, name, one, one.clone()) for part in model.modules() for name, one in _own_buffers(part)]
    with torch.random.fork_rng(devices=sorted(devices, key=str)):
        yield
    with torch.no_grad():
        for part, name, buffer, was in buffers:
            part._buffers[name] = buffer
            if not torch.equal(buffer, was):
                buffer.copy_(was)


def _own_buffers(part: nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, one) for name, one in part._buffers.items() if one is not None]


def _is_ours(hook: Any) -> bool:
    return isinstance(getattr(hook, "__self__", None), Running | Verify)


def _copied(value: Any) -> Any:
    """An argument that the call may change, such as a cache, as one of its own."""
    if isinstance(value, Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {name: _copied(one) for name, one in value.items()}
    return copy.deepcopy(value)


def _tensors(output: Any) -> Iterator[Tensor]:
    """The tensors of numbers in an output, in order; not those of a cache."""
    if isinstance(output, Tensor):
        if output.is_floating_point() and not output.is_nested:
            yield output.detach()
    elif isinstance(output, Mapping):
        for one in output.values():
            yield from _tensors(one)
    elif isinstance(output, list | tuple):
        for one in output:
            yield from _tensors(one)


def _apart(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape or not torch.equal(one.isnan(), other.isnan()):
        return float("inf")
    return _largest(one.float() - other.float())


def _largest(tensor: Tensor) -> float:
    finite = tensor.float().nan_to_num(0.0, 0.0, 0.0).abs()
    return float(finite.max()) if finite.numel() else 0.0
