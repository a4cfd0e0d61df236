"""Whose call it is: which modules of a model are under way, in each thread, and which captures may know.

Nothing is attached to the model, so that copies of it are copies and its fast paths stay open: hooks for all modules
tell when one begins and ends, and those that are not the model's are passed by.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks_with_kwargs as _with_kwargs
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import checkpoint

FLEX_MODULE = "torch.nn.attention.flex_attention"
# captures under way in this thread or task, from the outermost on
ACTIVE: ContextVar[tuple["Running", ...]] = ContextVar("captures", default=())
_SILENT = threading.local()


class Shared:
    """A setting of the whole process, which lasts from the first capture that wants it until the last."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]):
        self.make, self.lock, self.count = make, threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.count:
                self.setting = self.make()
                self.setting.__enter__()
            self.count += 1

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.count -= 1
            if not self.count:
                self.setting.__exit__(None, None, None)


@contextmanager
def _expected() -> Iterator[None]:
    """Warnings about what is done here on purpose are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global hooks")
        yield


EAGER = Shared(lambda: torch.compiler.set_stance("force_eager"))
EXPECTED = Shared(_expected)


class State(threading.local):
    """What is under way in one thread."""

    def __init__(self) -> None:
        self.running: list[str] = []  # paths of the modules whose forward is under way; none: it is not the model's
        self.given: list[tuple[int, ...]] = []  # the shape of the first tensor that each of them was given
        self.heads: int | None = None  # of the `multi_head_attention_forward` under way
        self.last: Any = None  # the query and the key of the last fused call, as weak references
        self.blind: list[tuple[str, Any]] = []  # modules whose insides must not be looked at, and what keeps us out


class Running(TorchFunctionMode):
    """A mode that is on while the model runs, in whatever thread, and knows which of its modules it is.

    Of captures in several threads or tasks each sees what its own runs; a thread without a capture is seen by all.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.parts = dict(model.named_modules())
        self.paths = {id(module): path for path, module in self.parts.items()}
        self.state = State()
        self.called = False
        self.ran: dict[str, None] = {}  # paths of the modules that were called
        self.batches: set[int] = set()  # of the first axes of what it was given by place
        self.sizes: set[int] = set()  # of the first two axes of what the model was given
        self.unseen: dict[str, str] = {}  # path -> why nothing could be seen in it
        self._stack = ExitStack()
        self._eager = False

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """See modules start and end while the context lasts."""
        self._stack.enter_context(EXPECTED)
        self._run_eagerly()
        own = [module for module in self.model.modules() if module._forward_hooks]
        handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, with_kwargs=True, always_call=True),
            *(module.register_forward_hook(self._after_hooks) for module in own),  # their hooks have the last word
        ]
        self._hooked = set(map(id, own))
        ACTIVE.set((*ACTIVE.get(), self))
        try:
            yield
        finally:
            ACTIVE.set(tuple(one for one in ACTIVE.get() if one is not self))
            for handle in handles:
                handle.remove()
                _with_kwargs.pop(handle.id, None)  # which PyTorch forgets
            self._leave_all()
            self._stack.close()

    def passed(self, path: str, module: nn.Module, output: Any) -> Any:
        """A module's output goes by: returns what flows on, None for the same."""
        return None

    def _path(self, module: nn.Module) -> str | None:
        """None: it is not the model's, or another capture's to see."""
        mine = ACTIVE.get()
        return self.paths.get(id(module)) if (not mine or self in mine) and not is_silent() else None

    def _begin(self, module: nn.Module, args: tuple) -> None:
        self._run_eagerly()
        path = self._path(module)
        if path is None:
            return
        self.called = True
        if not self.state.running:
            super().__enter__()
        tensors = [one for one in args if _plain(one)]
        if not self.state.running:
            self.batches |= {one.shape[0] for one in tensors if one.dim()}
        self.state.running.append(path)
        self.state.given.append(_shape(tensors[0], args) if tensors else ())
        self.ran[path] = None
        if any(isinstance(part, Tensor) and part.is_nested and part.layout is torch.strided for part in args):
            self.unseen[path] = "nested tensors"  # which go by fast paths only, and a mode would close those
            (guard := torch._C.DisableTorchFunction()).__enter__()
            self.state.blind.append((path, guard))

    def _end(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        """Called after an exception, too, and then without keyword arguments."""
        path, running = self._path(module), self.state.running
        if path is None or path not in running:
            return None
        while running.pop() != path:
            self.state.given.pop()
        self.state.given.pop()
        while self.state.blind and self.state.blind[-1][0] not in running:
            self.state.blind.pop()[1].__exit__(None, None, None)
        if not running:
            super().__exit__(None, None, None)
            given = (*args, *(rest[0].values() if len(rest) == 2 else ()))
            self.sizes |= {size for one in given if _plain(one) for size in one.shape[:2]}
        output = self._as_alone(module, path, args, rest[0], rest[1]) if len(rest) == 2 else rest[-1]
        shown = None if id(module) in self._hooked else self.passed(path, module, output)
        return shown if shown is not None else None if output is rest[-1] else output

    def _after_hooks(self, module: nn.Module, _: Any, output: Any) -> Any:
        path = self._path(module)
        return None if path is None else self.passed(path, module, output)

    def _as_alone(self, module: nn.Module, path: str, args: tuple, kwargs: dict[str, Any], output: Any) -> Any:
        """What PyTorch's encoder gives when nobody looks: its fast path leaves zeros at the padding."""
        padding = kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None)
        if not isinstance(module, nn.TransformerEncoder) or padding is None or torch.is_grad_enabled():
            return output
        with silent(), torch._C.DisableTorchFunction():
            alone = module.forward(*args, **kwargs)
        if alone.is_nested or alone.shape != output.shape:
            return output
        return torch.where((alone == 0).all(-1, keepdim=True), alone, output) if self.edits_below(path) else alone

    def edits_below(self, path: str) -> bool:
        """Whether anything inside this module was edited."""
        return False

    def _run_eagerly(self) -> None:
        """Compiled parts, since a kernel shows nothing: once there may be any, for dynamo loads slowly."""
        if not self._eager and ("torch._dynamo" in sys.modules or FLEX_MODULE in sys.modules):
            self._eager = True
            self._stack.enter_context(EAGER)

    def _leave_all(self) -> None:
        if self.state.running:  # the model was left by an exception that no hook is told of
            self.state.running.clear()
            self.state.given.clear()
            while self.state.blind:
                self.state.blind.pop()[1].__exit__(None, None, None)
            super().__exit__(None, None, None)


@contextmanager
def silent() -> Iterator[None]:
    """No capture sees what is done in here, in this thread: it is done for showing, and not by the model."""
    before, _SILENT.on = is_silent(), True
    try:
        yield
    finally:
        _SILENT.on = before


def is_silent() -> bool:
    """Whether nobody is to look."""
    return getattr(_SILENT, "on", False)


def recomputed() -> bool:
    """Whether this is the backward pass, in which checkpointed parts are computed again."""
    return torch._C._current_graph_task_id() != -1


def checkpointed() -> bool:
    """Whether the caller is a part that the backward pass will compute, or is computing, again."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == checkpoint.__file__:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _shape(tensor: Tensor, args: tuple) -> tuple[int, ...]:
    """The shape of a tensor; of a flat picture, batch place dim, batch row col dim, where rows and columns are said."""
    for given in args if tensor.dim() == 3 else ():
        pair = isinstance(given, tuple | list) and len(given) == 2 and all(type(one) is int for one in given)
        if pair and given[0] * given[1] == tensor.shape[1]:
            return (tensor.shape[0], *given, tensor.shape[2])
    return tuple(tensor.shape)


def _plain(given: Any) -> bool:
    return isinstance(given, Tensor) and not given.is_nested
