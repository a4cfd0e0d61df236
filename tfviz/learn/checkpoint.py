"""Checkpoints: a folder of two safetensors files and a JSON file, which appears whole or not at all.

`state.json` is sealed, and seals the two others. It also says what the model is, apart from its weights.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from tfviz import bounds, files, schema, sealed
from tfviz.learn import contents, fingerprint, shards

NAME, LAST = "step-{:09d}", 10**9 - 1
WEIGHTS, MOMENTS, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
_SUM = schema.text(64)
_PLAIN = schema.dict_of(schema.scalar)
HELD = schema.record(
    {
        "step": schema.whole(0, LAST),
        "model": _PLAIN,
        "state": schema.dict_of(schema.plain),
        "optimizer": schema.record({"numbers": schema.dict_of(schema.plain), "what": _PLAIN}),
        "files": schema.record({WEIGHTS: _SUM, MOMENTS: _SUM}),
    }
)


def save(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    step: int = 0,
    keep: int = 2,
    **state: Any,
) -> Path:
    """Write `folder/step-000000123`; of all in the folder it and the newest remain, `keep` together.

    Of several processes, the first writes. Where each holds a shard of the weights, all must call.

    Args:
        state: anything JSON can hold; `load` gives it back, a tuple as a list.

    Raises:
        FloatingPointError: a weight is not finite.
        OSError: the disk is full or read-only; earlier checkpoints are untouched.
        ValueError: `step`, `keep` or `state` cannot be.
    """
    bounds.between(0, LAST, step=step)
    bounds.at_least(1, keep=keep)
    model = contents.unwrapped(model)
    bounds.filled(model)
    if optimizer is not None:
        contents.check_moves(optimizer, model)
    target = as_folder(folder) / NAME.format(step)
    what = {"step": step, "model": fingerprint.of_model(model), "state": _plain(state)}
    weights, shared = contents.named(model)
    moments, numbers = contents.flat(optimizer)
    weights, moments = shards.put_together(weights), shards.put_together(moments)
    if not shards.is_first():
        return target
    _check_finite(weights, model, step)
    what["optimizer"] = {"numbers": numbers, "what": fingerprint.of_optimizer(optimizer)}
    if target.is_dir() and not (target / STATE).is_file() and any(target.iterdir()):
        raise FileExistsError(f"{target} is a folder that is no checkpoint; move it, or save elsewhere")
    try:
        _write(target, weights, shared, moments, what)
        for old in saved(folder)[:-keep]:
            if old != target and (old / STATE).is_file():  # a folder of somebody else's may be called so
                files.discard(old)
    except (OSError, SafetensorError) as error:
        raise OSError(f"could not write the checkpoint {target}: {error}; earlier ones are untouched") from error
    return target


def saved(folder: str | Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    folder = as_folder(folder)
    files.tidy(folder)
    return sorted(path for path in folder.glob("step-" + "[0-9]" * 9) if path.is_dir())


def load(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """Fill `model` (and `optimizer`) from a checkpoint, or from the newest in a folder of them; returns its state.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a file is damaged or was altered, or it is of another model or optimizer: the first thing that
            differs is named, and nothing is filled.
    """
    bounds.filled(model)
    if optimizer is not None:
        contents.check_moves(optimizer, contents.unwrapped(model))
    found = opened(path, model, optimizer)
    found.fill(model, optimizer)
    return found.state


class Opened(NamedTuple):
    """A checkpoint that is whole and fits."""

    path: Path
    state: dict[str, Any]
    weights: contents.File
    moments: contents.File
    numbers: dict[str, Any]  # of the optimizer

    def fill(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        contents.fill_model(self.weights, contents.unwrapped(model))
        if optimizer is not None:
            contents.fill_optimizer(self.moments, self.numbers, optimizer)


def opened(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> Opened:
    """As `load`, but nothing is filled yet."""
    model, path = contents.unwrapped(model), as_folder(path)
    path = (saved(path) or [path])[-1]
    if not (path / STATE).is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; a checkpoint is a folder that holds {STATE}")
    try:
        what = _checked(path)
        weights, moments = (contents.File.read(path / name) for name in (WEIGHTS, MOMENTS))
        weights = weights.without_wrapper(model)
        contents.check_model(weights, contents.without_wrapper(what["model"], model), model)
        if optimizer is not None:
            contents.check_optimizer(path, what["optimizer"]["what"], optimizer)
            contents.check_moments(moments, what["optimizer"]["numbers"], optimizer)
        state = {"step": what["step"], **what["state"]}
        return Opened(path, state, weights, moments, what["optimizer"]["numbers"])
    except contents.Differs:
        raise
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        raise ValueError(
            f"{path} is not a whole checkpoint: {error}; delete it to go on from an earlier one"
        ) from error


def as_folder(path: str | Path) -> Path:
    """The folder that is meant; `~` is the home of the user.

    >>> as_folder("")
    Traceback (most recent call last):
    ValueError: folder is ''; give the name of a folder
    """
    if not str(path) or "\0" in str(path):
        raise ValueError(f"folder is {str(path)!r}; give the name of a folder")
    folder = files.home(path)
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; give the name of a folder")
    return folder


def _write(
    target: Path, weights: dict[str, Tensor], shared: dict[str, str], moments: dict[str, Tensor], what: dict[str, Any]
) -> None:
    with files.atomic(target) as draft:
        draft.mkdir()
        save_file(weights, draft / WEIGHTS, metadata=shared or None)
        save_file(moments, draft / MOMENTS)
        seals = {name: _digest(draft / name) for name in (WEIGHTS, MOMENTS)}
        sealed.write_json(draft / STATE, {**what, "files": seals})
        files.to_disk(draft)


def _checked(path: Path) -> dict[str, Any]:
    """What `state.json` says, once the two others are known to be as it says."""
    what = sealed.read_json(path / STATE)
    HELD(what, STATE)
    for name in (WEIGHTS, MOMENTS):
        if not (path / name).is_file():  # a pipe would be waited for without end
            raise ValueError(f"there is no file {name}")
        if _digest(path / name) != what["files"][name]:
            raise ValueError(f"{name} was altered or is damaged: its checksum is another one")
    if re.fullmatch(r"step-\d{9}", path.name) and path.name != NAME.format(what["step"]):
        raise ValueError(f"what it holds is of step {what['step']}")
    return what


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    try:
        schema.plain(state, "state")
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        wanted = "give finite numbers, strings, lists and dictionaries"
        raise ValueError(f"state holds what JSON cannot: {error}; {wanted}") from error
    return state


def _check_finite(weights: dict[str, Tensor], model: nn.Module, step: int) -> None:
    """Weights only: a mask among the buffers may hold -inf."""
    for name, _ in model.named_parameters():
        if name in weights and not _finite(weights[name]):
            raise FloatingPointError(f"{name} is not finite after {step} steps: no checkpoint was written")


def _finite(tensor: Tensor) -> bool:
    """In one pass, where the numbers have an order."""
    if not tensor.is_floating_point() or not tensor.numel():
        return bool(tensor.isfinite().all())
    return bool(torch.stack(tensor.aminmax()).isfinite().all())
