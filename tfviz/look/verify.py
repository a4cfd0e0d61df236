"""Runs each call of a model once more without the capture, and compares the outputs."""

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

from tfviz.look.context import CaptureOwned, paused, take_off_modes

TOLERANCE = 1e-3  # of the largest output, in float32: beyond it the two runs are not the same computation
TOLERANCE_HALF = 3e-2


class Verification(CaptureOwned):
    """Runs a model without the capture before each of its calls, and compares the outputs.

    Attributes:
        difference: the largest between two numbers of the outputs, over all calls; None before the first.
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
        copied_args, copied_kwargs = _copied(args), _copied(kwargs)
        with _uncaptured(self.model), _unchanged(self.model):
            self.expected = list(_tensors(module(*copied_args, **copied_kwargs)))

    def _after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        expected, self.expected = self.expected, []
        pairs = list(zip(expected, _tensors(output)))
        apart = max((_apart(one, other) for one, other in pairs), default=0.0)
        largest = max((_largest(one) for one, _ in pairs), default=0.0)
        self.difference = max(apart, self.difference or 0.0)
        half = any(one.dtype in (torch.float16, torch.bfloat16) for one, _ in pairs)
        if apart > (TOLERANCE_HALF if half else TOLERANCE) * max(largest, 1e-6):
            warnings.warn(
                f"under the capture the output of the model is another than without it, by up to {apart:.2g} (the "
                f"largest is {largest:.2g}): PyTorch computes it in another way there, and the maps are of that way",
                stacklevel=3,
            )


@contextmanager
def _uncaptured(model: nn.Module) -> Iterator[None]:
    """Run PyTorch as where no capture is open: without modes and hooks of captures, compiled parts compiled."""
    hooks = [_modules._global_forward_pre_hooks, _modules._global_forward_hooks]
    hooks += [own for part in model.modules() for own in (part._forward_pre_hooks, part._forward_hooks) if own]
    saved = [list(some.items()) for some in hooks]
    modes = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, CaptureOwned)]
    try:
        for some in hooks:
            for number in [number for number, hook in some.items() if CaptureOwned.owns(hook)]:
                del some[number]
        take_off_modes(lambda mode: isinstance(mode, CaptureOwned))
        with ExitStack() as stack:
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("default"))
            stack.enter_context(paused())
            yield
    finally:
        for some, items in zip(hooks, saved):
            some.clear()
            some.update(items)
        for mode in modes:
            _push_mode(mode)


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Restore random generators and buffers afterwards."""
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


def _copied(value: Any) -> Any:
    """Return a copy of an argument, which the call may change, such as a cache."""
    if isinstance(value, Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {name: _copied(one) for name, one in value.items()}
    return copy.deepcopy(value)


def _tensors(output: Any) -> Iterator[Tensor]:
    """Yield the float tensors of an output, in order; not those of a cache."""
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
