"""`BlockReplay`: run a model again with some blocks replaced by their recorded outputs.

A sweep edits one site in each run. The blocks before that site have the same outputs as in the unchanged run, so they
are replaced by stubs that return these outputs. This halves the work of a sweep over all layers; a logit lens runs no
block at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from tfviz.look.module_paths import blocks
from tfviz.look.module_stack import first_tensor_argument
from tfviz.study.inputs import Inputs, repeat_batch


class BlockReplay:
    """A record of one forward pass, with which later runs skip blocks whose output does not change.

    The blocks are those of `look.blocks`.

    Args:
        model: the model.
        inputs: the arguments of the recorded call; see `observe`.

    Attributes:
        blocks: path -> output of each block that ran exactly once, in the order in which they ended.
        block_inputs: path of a block -> its first input tensor.
        starts: path of a module -> the time at which its first call began, in events of the run.
        ends: path of a module -> the time at which its first call ended.
    """

    def __init__(self, model: nn.Module, inputs: Inputs) -> None:
        self.model, self.inputs = model, inputs
        self.blocks: dict[str, Any] = {}
        self.block_inputs: dict[str, Tensor] = {}
        self.starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self._clock, self._keeps_inputs = 0, True
        self._candidates = set(blocks(model))
        self._calls: dict[str, int] = {}

    @contextmanager
    def observe(self, enabled: bool = True, keep_inputs: bool = True) -> Iterator[None]:
        """Record one call of the model inside the context.

        Args:
            enabled: whether to record the call.
            keep_inputs: whether to fill `block_inputs`, which takes as much memory as the outputs.
        """
        self._keeps_inputs = keep_inputs
        with hooked(self.model.named_modules() if enabled else (), self._before, self._after):
            yield
        for path in [path for path in self.blocks if self._calls[path] > 1]:
            del self.blocks[path]

    def _before(self, path: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._clock += 1
        self.starts.setdefault(path, self._clock)
        if path in self._candidates and self._keeps_inputs:
            _, first = first_tensor_argument(args, kwargs)
            if first is not None:
                self.block_inputs.setdefault(path, first.detach().clone())

    def _after(self, path: str, _: nn.Module, __: tuple[Any, ...], ___: dict[str, Any], output: Any) -> None:
        self._clock += 1
        self.ends.setdefault(path, self._clock)
        if path in self._candidates:
            self._calls[path] = self._calls.get(path, 0) + 1
            self.blocks[path] = _map_tensors(output, lambda tensor: tensor.detach().clone())

    def before(self, path: str) -> list[str]:
        """Return the paths of the blocks that ended before a module started, which can be replayed for it."""
        return [block for block in self.blocks if self.ends[block] < self.starts.get(path, 0)]

    def stack(self) -> list[str]:
        """Return the paths of the blocks of the stack that ran last, in order.

        Raises:
            LookupError: the model has no stack of blocks that return [batch, position, dim].
        """
        stacks: dict[str, list[str]] = {}
        for path, output in self.blocks.items():
            first = first_tensor(output)
            if first is not None and first.dim() == 3 and path in self.block_inputs:
                stacks.setdefault(path.rpartition(".")[0], []).append(path)
        if not stacks:
            raise LookupError(
                f"{type(self.model).__name__} has no stack of blocks: a nn.ModuleList or nn.Sequential whose members "
                "are each called once and pass on [batch, position, dim]"
            )
        return max(stacks.values(), key=lambda paths: self.ends[paths[-1]])

    @contextmanager
    def skipping(self, paths: list[str], times: int, outputs: Mapping[str, Tensor] | None = None) -> Iterator[None]:
        """Replace blocks by stubs that return their recorded outputs inside the context.

        Hooks of these blocks, such as the edits of open captures, do not run: the outputs were recorded after them.

        Args:
            paths: the paths of the blocks.
            times: the number of repetitions of the batch; outputs are repeated as often.
            outputs: path -> a tensor, already repeated, that replaces the first tensor of the block's output.
        """
        with ExitStack() as undo:
            for path in paths:
                stub = self._stub(path, times, (outputs or {}).get(path))
                undo.enter_context(replacing_call(self.model.get_submodule(path), stub))
            yield

    def _stub(self, path: str, times: int, first: Tensor | None) -> Callable[..., Any]:
        kept, size = self.blocks[path], self.inputs.size

        def repeated(tensor: Tensor) -> Tensor:
            has_batch = tensor.dim() > 0 and tensor.shape[0] == size
            return repeat_batch(tensor, times) if has_batch else tensor.clone()

        def stub(*_: Any, **__: Any) -> Any:
            output = _map_tensors(kept, repeated)
            return output if first is None else with_first_tensor(output, first)

        return stub


@contextmanager
def hooked(
    modules: Iterable[tuple[str, nn.Module]],
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
) -> Iterator[None]:
    """Register forward hooks on modules inside the context.

    Args:
        modules: pairs of path and module, as of `named_modules`.
        before: a function of (path, module, args, kwargs), which may return other (args, kwargs).
        after: a function of (path, module, args, kwargs, output), which may return another output.
    """
    with ExitStack() as hooks:
        for path, module in modules:
            if before is not None:
                hooks.callback(module.register_forward_pre_hook(partial(before, path), with_kwargs=True).remove)
            if after is not None:
                hooks.callback(module.register_forward_hook(partial(after, path), with_kwargs=True).remove)
        yield


def replacing_forward(module: nn.Module, forward: Callable[..., Any]) -> AbstractContextManager[None]:
    """Replace the `forward` of a module inside the context; its hooks still run."""
    return _replacing(module, "forward", forward)


def replacing_call(module: nn.Module, call: Callable[..., Any]) -> AbstractContextManager[None]:
    """Replace the whole call of a module inside the context; neither its hooks nor global hooks run."""
    return _replacing(module, "_compiled_call_impl", call)  # PyTorch has no public name for it


@contextmanager
def _replacing(module: nn.Module, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Set an attribute of a module inside the context."""
    own = module.__dict__.get(name)
    module.__dict__[name] = function
    try:
        yield
    finally:
        if own is None:
            del module.__dict__[name]
        else:
            module.__dict__[name] = own


def first_tensor(output: Any) -> Tensor | None:
    """Return a module's output, or the first item of a tuple or list, if it is a tensor; else None."""
    first = output[0] if isinstance(output, tuple | list) and output else output
    return first if isinstance(first, Tensor) else None


def with_first_tensor(output: Any, first: Tensor) -> Any:
    """Return a module's output with its first tensor replaced."""
    return (first, *output[1:]) if isinstance(output, tuple | list) else first


def _map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to each tensor in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        parts = [_map_tensors(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {name: _map_tensors(part, change) for name, part in value.items()}
    return value
