"""Whose call it is: which modules of a model are under way, in each thread, and which captures may know.

Nothing is attached to the model, so that copies of it are copies and its fast paths stay open: hooks for all modules
tell when one begins and ends, and those that are not the model's are passed by.

A capture owns what it puts into PyTorch: hooks, and a mode on the stack of each thread. `close` takes all of it back,
wherever an exception left off, and `open` first removes what a capture that never came to its `close` has left.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _TorchDispatchModeKey as _Key
from torch.nn.modules import module as _modules
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import checkpoint

from tfviz.look.settings import ACTIVE, EAGER, EXPECTED, THREADS, Shared

FLEX_MODULE = "torch.nn.attention.flex_attention"
OPEN: set["Running"] = set()  # captures under way, in whatever thread
_SILENT = threading.local()


class State(threading.local):
    """What is under way in one thread."""

    def __init__(self) -> None:
        self.running: list[str] = []  # paths of the modules whose forward is under way; none: it is not the model's
        self.given: list[tuple[int, ...]] = []  # the shape of the first tensor that each of them was given
        self.heads: int | None = None  # of the `multi_head_attention_forward` under way
        self.last: Any = None  # the query and the key of the last fused call, as weak references
        self.traced: str | None = None  # the module of which a call is passed by, with all that is in it
        self.blind: list[tuple[str, Any]] = []  # modules whose insides must not be looked at, and what keeps us out


class Running(TorchFunctionMode):
    """A mode that is on while the model runs, and knows which of its modules it is.

    It sees the thread or task in which the capture is open, and threads that a forward of the model starts there.
    """

    settings: tuple[Shared, ...] = (EXPECTED, THREADS)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.parts = dict(model.named_modules())
        self.paths = {id(module): path for path, module in self.parts.items()}
        self.state = State()
        self.called = False
        self.elsewhere = False  # whether the model was called in a thread that is not this capture's
        self.traced = False  # whether a call was passed by, since no numbers flow in it
        self.ran: dict[str, None] = {}  # paths of the modules that were called
        self.batches: set[int] = set()  # of the first axes of what it was given by place
        self.sizes: set[int] = set()  # of the first two axes of what the model was given
        self.unseen: dict[str, str] = {}  # path -> why nothing could be seen in it
        self._eager = False
        self._hooked: set[int] = set()

    def open(self) -> None:
        """See modules start and end from now on."""
        _sweep()
        OPEN.add(self)
        for setting in self.settings:
            setting.acquire(self)
        self._run_eagerly()
        own = [module for module in self.model.modules() if module._forward_hooks]
        self._hooked = set(map(id, own))
        register_module_forward_pre_hook(self._begin)
        register_module_forward_hook(self._end, with_kwargs=True, always_call=True)
        for module in own:  # their hooks have the last word
            module.register_forward_hook(self._after_hooks)
        ACTIVE.set((*ACTIVE.get(), self))

    def close(self) -> None:
        """Take everything back; may be called again, where it was interrupted."""
        ACTIVE.set(tuple(one for one in ACTIVE.get() if one is not self))
        _unhook(self)
        for module in self.model.modules() if self._hooked else ():
            _remove(module._forward_hooks, lambda owner: owner is self)
        self._leave_all()
        for setting in (EAGER, *self.settings):
            setting.release(self)
        OPEN.discard(self)

    def passed(self, path: str, module: nn.Module, output: Any) -> Any:
        """A module's output goes by: returns what flows on, None for the same."""
        return None

    def began(self) -> None:
        """A call of the model, or of a part of it that is called by itself, begins."""

    def ended(self, given: dict[str, Any], output: Any) -> None:
        """That call ends.

        Args:
            given: its arguments by name.
        """

    def _path(self, module: nn.Module) -> str | None:
        """None: it is not the model's, or not this capture's to see."""
        path = self.paths.get(id(module))
        if path is None or is_silent():
            return None
        if self in ACTIVE.get():
            return path
        self.elsewhere = True
        return None

    def _begin(self, module: nn.Module, args: tuple) -> None:
        self._run_eagerly()
        path = self._path(module)
        if path is None:
            return
        tensors = [one for one in args if _plain(one)]
        if not self.state.running:
            if self.state.traced is not None:
                return
            if _is_traced(tensors):
                self.traced, self.state.traced = True, path
                return
            super().__enter__()
            self.batches |= {one.shape[0] for one in tensors if one.dim()}
            self.began()
        self.called = True
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
        if path is not None and path == self.state.traced:
            self.state.traced = None
        if path is None or path not in running:
            return None
        at = len(running) - 1 - running[::-1].index(path)  # modules in it may have been left by an exception
        del running[at:], self.state.given[at:]
        while self.state.blind and self.state.blind[-1][0] not in running:
            self.state.blind.pop()[1].__exit__(None, None, None)
        kwargs = rest[0] if len(rest) == 2 else {}
        if not running:
            take_off(lambda mode: mode is self)
            given = (*args, *kwargs.values())
            self.sizes |= {size for one in given if _plain(one) for size in one.shape[:2]}
            self.ended(kwargs, rest[-1])
        output = self._as_alone(module, path, args, rest[0], rest[1]) if len(rest) == 2 else rest[-1]
        shown = None if id(module) in self._hooked else self.passed(path, module, output)
        return shown if shown is not None else None if output is rest[-1] else output

    def _after_hooks(self, module: nn.Module, _: Any, output: Any) -> Any:
        path = self._path(module)
        return None if path is None else self.passed(path, module, output)

    def _as_alone(self, module: nn.Module, path: str, args: tuple, kwargs: dict[str, Any], output: Any) -> Any:
        """What PyTorch's encoder gives when nobody looks: its fast path leaves zeros at the padding, and NaN in rows
        that see nothing."""
        padding = kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None)
        padded = isinstance(module, nn.TransformerEncoder) and padding is not None and not torch.is_grad_enabled()
        if not (padded or (isinstance(module, nn.TransformerEncoderLayer) and self.is_fast(path))):
            return output
        with silent(), torch._C.DisableTorchFunction():
            alone = module.forward(*args, **kwargs)
        if not padded:
            return output if self.edits_below(path) else alone
        if alone.is_nested or alone.shape != output.shape:
            return output
        return torch.where((alone == 0).all(-1, keepdim=True), alone, output) if self.edits_below(path) else alone

    def is_fast(self, path: str) -> bool:
        """Whether an encoder layer was shown as PyTorch's fast path computes it, which is another way than its own."""
        return False

    def edits_below(self, path: str) -> bool:
        """Whether anything inside this module was edited."""
        return False

    def _run_eagerly(self) -> None:
        """Compiled parts, since a kernel shows nothing: once there may be any, for dynamo loads slowly."""
        if not self._eager and ("torch._dynamo" in sys.modules or FLEX_MODULE in sys.modules):
            self._eager = True
            EAGER.acquire(self)

    def _leave_all(self) -> None:
        """Whatever is under way in this thread: an exception may have left the model without a hook being told."""
        self.state.running.clear()
        self.state.given.clear()
        self.state.traced = None
        while self.state.blind:
            self.state.blind.pop()[1].__exit__(None, None, None)
        take_off(lambda mode: mode is self)


def _sweep() -> None:
    """Remove what captures left that were interrupted before their end: hooks, modes of this thread, silence."""
    owners = [getattr(hook, "__self__", None) for hook in _modules._global_forward_pre_hooks.values()]
    for left in [one for one in owners if isinstance(one, Running) and one not in OPEN]:
        left.close()
    take_off(lambda mode: isinstance(mode, Running) and mode not in OPEN)
    if not any(one in OPEN for one in ACTIVE.get()):
        _SILENT.on = False


def take_off(ours: Callable[[Any], bool]) -> None:
    """Take modes off this thread's stack, wherever they stand on it."""
    stack = _get_current_function_mode_stack()
    if stack and ours(stack[-1]) and not any(map(ours, stack[:-1])):
        _pop_mode()
    elif any(map(ours, stack)):
        for _ in stack:
            _pop_mode()
        for mode in stack:
            if not ours(mode):
                _push_mode(mode)


def _unhook(owner: Running) -> None:
    """Remove the hooks for all modules that a capture registered."""
    for hooks in (_modules._global_forward_pre_hooks, _modules._global_forward_hooks):
        for number in _remove(hooks, lambda one: one is owner):
            _modules._global_forward_hooks_with_kwargs.pop(number, None)  # which PyTorch forgets
            _modules._global_forward_hooks_always_called.pop(number, None)


def _remove(hooks: dict[int, Any], ours: Callable[[Any], bool]) -> list[int]:
    """Remove the hooks that are methods of these objects; gives their numbers."""
    numbers = [number for number, hook in list(hooks.items()) if ours(getattr(hook, "__self__", None))]
    for number in numbers:
        hooks.pop(number, None)
    return numbers


def _is_traced(tensors: list[Tensor]) -> bool:
    """Whether no numbers flow: a graph is recorded (torch.export, torch.jit.trace, FX), or tensors are fake or meta."""
    fx = getattr(sys.modules.get("torch.fx._symbolic_trace"), "_is_fx_tracing_flag", False)
    if fx or torch._C._get_tracing_state() is not None or any(one.is_meta for one in tensors):
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in (_Key.FAKE, _Key.PROXY))


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
