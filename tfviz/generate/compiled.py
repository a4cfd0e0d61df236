"""A language model's step of one token in machine code: made once in the background, kept on disk, used when there.

A small model's step is some sixty calls of PyTorch, each of which takes longer than what it computes. When a model has
written `WORTH` tokens, a process of low priority compiles the whole step (`tfviz.generate.building`); nobody waits for
it. The file serves every model of the same build on this machine, whatever its weights.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from tfviz.generate.fast import CACHED
from tfviz.shapes import Float, Int
from tfviz.text import corpora

WORTH = 2_000  # tokens that a model writes before its step is compiled, which takes a core for 20 seconds
CLOSE = 1e-3  # how near the first logits must be to the model's own
OFF = "TFVIZ_COMPILE"  # set to 0, nothing is compiled, and nothing compiled is used
PLAIN = bool | int | float | str | None

_written: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
_steps: WeakKeyDictionary[nn.Module, Step] = WeakKeyDictionary()
_begun: set[Path] = set()


class Step:
    """The compiled step of one model, which reads the weights where they lie.

    Raises:
        KeyError: it asks for other weights than this model has, or leaves some out.
        RuntimeError: the file is none for this machine.
    """

    def __init__(self, file: Path, model: nn.Module):
        from torch._inductor import aoti_load_package

        self.package = aoti_load_package(str(file))
        self.run = self.package.loader.run
        self.names = self.package.get_constant_fqns()
        self.take(model)

    def take(self, model: nn.Module) -> None:
        """Look at where the model's weights lie now."""
        there = {f"model.{name}": one.detach() for name, one in [*model.named_parameters(), *model.named_buffers()]}
        weights = {name: there[name] for name in self.names}
        if missing := {f"model.{name}" for name, _ in model.named_parameters()} - weights.keys():
            raise KeyError(f"it was compiled without {', '.join(sorted(missing))}")
        self.package.load_constants(weights, check_full_update=True, user_managed=True)


class Reader:
    """Reads a text that grows: several tokens by the model, then one after the other by its step.

    The first token that the step reads is read by the model, too. Where they disagree, as where a module does
    something else than when it was compiled, the model goes on alone.
    """

    def __init__(self, model: Any, step: Step):
        self.model, self.run, self.cache = model, step.run, model.new_cache()
        self.kept: Tensor | None = None  # layer key-and-value head position width
        self.alone, self.length = False, 0

    def __call__(self, fresh: Int[Tensor, "1 position"]) -> Float[Tensor, "vocab"]:
        """The logits after the last of these tokens."""
        if self.kept is not None:
            return self._next(fresh, self.kept)
        before = self.cache[0].length
        logits = self.model(fresh, self.cache)[0, -1]
        if fresh.shape[1] == 1 and before > 1 and not self.alone:
            self._begin(fresh, logits, before)
        return logits

    def _begin(self, fresh: Tensor, logits: Tensor, before: int) -> None:
        kept = torch.stack([torch.cat((one.keys, one.values)) for one in self.cache])
        self.length = before
        self.alone = not torch.allclose(self._next(fresh, kept), logits, CLOSE, CLOSE)
        self.kept = None if self.alone else kept

    def _next(self, fresh: Tensor, kept: Tensor) -> Tensor:
        logits, kept[:, :, :, self.length] = self.run([fresh, kept[:, :, :, : self.length]])
        self.length += 1
        return logits


def reader(model: Any) -> Reader | None:
    """A reader of one text, if there is a step for this model and nothing looks into it."""
    if not possible(model):
        return None
    try:
        if model not in _steps:
            file = place(model)
            if not file.is_file():
                return None
            _steps[model] = Step(file, model)
        _steps[model].take(model)
        return Reader(model, _steps[model])
    except (KeyError, RuntimeError, OSError):  # of another machine, half gone: the model itself is always there
        return None


def possible(model: Any) -> bool:
    """Whether a model can be compiled: small, on the CPU, with keys and values kept, and nothing that looks into it."""
    if os.environ.get(OFF) == "0" or not isinstance(model, nn.Module) or not callable(getattr(model, "new_cache", 0)):
        return False
    weights = [*model.parameters(), *model.buffers()]
    plain = all(one.device.type == "cpu" and one.is_contiguous() for one in weights)
    single = all(one.dtype == torch.float32 for one in model.parameters())
    small = sum(one.nbytes for one in weights) <= CACHED
    return plain and single and small and not _looked_into(model) and all(hasattr(k, "extend") for k in _cache(model))


def _cache(model: Any) -> Any:
    return model.new_cache() or [None]


def _looked_into(model: nn.Module) -> bool:
    hooked = any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    return hooked or bool(_has_any_global_hook() or torch._C._len_torch_function_stack())


def wrote(model: Any, tokens: int) -> None:
    """Note that a model has written so many tokens; once it is worth it, its step is compiled in the background."""
    if not isinstance(model, nn.Module):
        return
    _written[model] = _written.get(model, 0) + tokens
    if _written[model] >= WORTH and model not in _steps and _compiler() and possible(model):
        file = place(model)
        if file not in _begun and not file.is_file() and not _failure(file).is_file():
            _begun.add(file)
            with suppress(OSError, AttributeError, TypeError, ValueError):  # no room, or a part that cannot be pickled
                build(model, file)


def build(model: nn.Module, file: Path) -> subprocess.Popen:
    """Begin to compile a model's step; on failure the reason is written beside `file`."""
    import pickle

    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(suffix=".model")
    os.close(handle)
    try:
        torch.save(model, draft)
    except (pickle.PicklingError, OSError, AttributeError, TypeError, ValueError):
        os.unlink(draft)
        raise
    command = [sys.executable, "-m", "tfviz.generate.building", draft, str(file), str(_failure(file))]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    return subprocess.Popen(command, start_new_session=True, **quiet)  # type: ignore[call-overload]


def place(model: nn.Module) -> Path:
    """Where the step of such a model is kept: the name is a sum of its parts, PyTorch's version and the processor."""
    told = [torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability()]
    for name, module in model.named_modules():
        kind, own = type(module), vars(module)
        settings = sorted((key, _named(value)) for key, value in own.items() if key[0] != "_" and key != "training")
        told.append(f"{name} {kind.__module__}.{kind.__qualname__} {settings}")
    told += [f"{name} {list(one.shape)}" for name, one in model.state_dict(keep_vars=True).items()]
    return corpora.cache() / "steps" / f"{hashlib.sha256(chr(10).join(told).encode()).hexdigest()[:20]}.pt2"


def _named(value: Any) -> str:
    """Plain values as they are; functions, classes and other things by name, masks by their rule's."""
    if isinstance(value, PLAIN):
        return repr(value)
    return getattr(value, "__qualname__", f"{type(value).__qualname__} {getattr(value, 'name', '')}")


def _failure(file: Path) -> Path:
    return file.with_suffix(".failed")


def _compiler() -> bool:
    """Whether there is a C++ compiler, which the code is made by."""
    return bool(os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++"))
