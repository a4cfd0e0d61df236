"""`ModuleStack`: the modules whose forward is running in a thread, to which a tracer assigns the calls it observes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor, nn


class Frame(NamedTuple):
    """A running module and the shape of its first tensor argument (empty: none)."""

    path: str
    input_shape: tuple[int, ...]


class ThreadState(threading.local):
    """The modules that are running in one thread."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []  # outermost first
        self.skipped: str | None = None  # the module of a call on tensors without values, as in torch.export
        self.guards: list[tuple[str, Any]] = []  # modules that run with torch functions disabled
        self.num_heads: int | None = None  # of the `multi_head_attention_forward` that is running
        self.last_sdpa: Any = None  # query and key of the last fused call, as weak references


class ModuleStack:
    """The running modules of one model, by their paths, and the sizes of their inputs.

    Attributes:
        called: paths of the modules that ran, in order.
        called_elsewhere: whether the model ran in a thread that is not the capture's.
        traced: whether a call was skipped because a graph was traced from tensors without values.
        first_sizes: sizes of the first axes of the model's positional tensors: candidates for the batch size.
        sizes: sizes of the first two axes of all tensors passed to the model.
        unseen: path or site -> the reason why nothing in it can be captured.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        self.paths = {id(module): path for path, module in self.modules.items()}
        self.state = ThreadState()
        self.called: dict[str, None] = {}
        self.called_elsewhere = self.traced = False
        self.first_sizes: set[int] = set()
        self.sizes: set[int] = set()
        self.unseen: dict[str, str] = {}

    @property
    def running(self) -> bool:
        """Whether a module of the model is running in this thread."""
        return bool(self.state.frames)

    @property
    def path(self) -> str:
        """The path of the innermost running module."""
        return self.state.frames[-1].path

    def site(self, name: str) -> str:
        """Return the site called `name` below the innermost running module."""
        return f"{self.path}.{name}".removeprefix(".")

    def input_site(self, path: str) -> str | None:
        """Return the site of a module's input; None where a part of the module is called `input`."""
        site = f"{path}.input".removeprefix(".")
        return None if site in self.modules else site

    def innermost(self, count: int) -> list[nn.Module]:
        """Return up to `count` running modules, innermost first."""
        return [self.modules[frame.path] for frame in reversed(self.state.frames[-count:])]

    def push(self, path: str, args: tuple[Any, ...]) -> None:
        """Push a module whose forward begins."""
        tensors = [arg for arg in args if is_dense(arg)]
        if not self.state.frames:
            self.first_sizes |= {tensor.shape[0] for tensor in tensors if tensor.dim()}
        self.state.frames.append(Frame(path, tuple(tensors[0].shape) if tensors else ()))
        self.called[path] = None
        if any(isinstance(arg, Tensor) and arg.is_nested and arg.layout is torch.strided for arg in args):
            self.unseen[path] = "nested tensors"  # only PyTorch's fast paths accept them, which a mode disables
            guard = torch._C.DisableTorchFunction()
            guard.__enter__()
            self.state.guards.append((path, guard))

    def pop(self, path: str) -> bool:
        """Pop a module, and modules within it that an exception left behind; return whether it was running."""
        frames = self.state.frames
        depth = len(frames) - 1
        while depth >= 0 and frames[depth].path != path:
            depth -= 1
        if depth < 0:
            return False
        del frames[depth:]
        guards = self.state.guards
        while guards and guards[-1][0] not in [frame.path for frame in frames]:
            guards.pop()[1].__exit__(None, None, None)
        return True

    def repeats_last_sdpa(self, query: Tensor, key: Tensor) -> bool:
        """Return whether a fused call has the same query and key as the thread's last one, with other values.

        DiffLlama applies the same weights twice.
        """
        last, self.state.last_sdpa = self.state.last_sdpa, (ref(query), ref(key))
        return last is not None and last[0]() is query and last[1]() is key and query is not key

    def note_inputs(self, *inputs: Any) -> None:
        """Record the sizes of the model's inputs when its outermost call ends."""
        self.sizes |= {size for value in inputs if is_dense(value) for size in value.shape[:2]}

    def clear(self) -> None:
        """Clear this thread's stack, since an exception may end the model's forward without a call of its hook."""
        self.state.frames.clear()
        self.state.skipped = None
        while self.state.guards:
            self.state.guards.pop()[1].__exit__(None, None, None)


def first_tensor_argument(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Tensor | None]:
    """Return (index or name, tensor) of the first tensor among a call's arguments; (None, None) if there is none."""
    named = (*enumerate(args), *kwargs.items())
    return next(((name, value) for name, value in named if isinstance(value, Tensor)), (None, None))


def is_dense(value: Any) -> bool:
    """Return whether a value is a tensor that is not nested."""
    return isinstance(value, Tensor) and not value.is_nested
