"""Checkpoints: a folder of two safetensors files and a JSON file, which appears whole or not at all."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn

from tfviz.files import atomic

NAME = "step-{:09d}"


def save(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    step: int = 0,
    keep: int = 2,
    **state: Any,
) -> Path:
    """Write `folder/step-000000123` and remove all but the `keep` newest.

    Args:
        state: anything JSON can hold; `load` gives it back.

    Raises:
        OSError: the disk is full or read-only; earlier checkpoints are untouched.
    """
    target = Path(folder) / NAME.format(step)
    try:
        with atomic(target) as draft:
            draft.mkdir()
            save_model(model, str(draft / "model.safetensors"))
            tensors, rest = _flatten(optimizer)
            save_file(tensors, draft / "optimizer.safetensors")
            (draft / "state.json").write_text(json.dumps({"step": step, "optimizer": rest, **state}))
    except (OSError, SafetensorError) as error:
        raise OSError(f"could not write the checkpoint {target}: {error}; earlier ones are untouched") from error
    for old in saved(folder)[:-keep]:
        shutil.rmtree(old)
    return target


def saved(folder: str | Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return sorted(Path(folder).glob("step-" + "[0-9]" * 9))


def load(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """Fill `model` (and `optimizer`) from a checkpoint, or from the newest in a folder of them; returns its state.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a file is damaged, or the model has other tensors; the first that differs is named.
    """
    path = Path(path)
    if newest := saved(path)[-1:]:
        path = newest[0]
    if not (path / "state.json").is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; a checkpoint is a folder that holds state.json")
    try:
        state = json.loads((path / "state.json").read_text())
        _compare(path / "model.safetensors", model)
        load_model(model, str(path / "model.safetensors"))
        if optimizer is not None:
            _restore(optimizer, load_file(path / "optimizer.safetensors"), state["optimizer"])
        state.pop("optimizer")
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, OSError, RuntimeError) as error:
        if isinstance(error, _Differs):
            raise
        raise ValueError(
            f"{path} is not a whole checkpoint: {error!r}; delete it to go on from an earlier one"
        ) from error
    return state


class _Differs(ValueError):
    """The file is whole, but of another model."""


def _compare(file: Path, model: nn.Module) -> None:
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    with safe_open(file, framework="pt") as stored:
        there = {name: stored.get_slice(name).get_shape() for name in stored.keys()}  # noqa: SIM118 (not a dictionary)
        shared = stored.metadata() or {}  # names of tensors that are another one's, and were not stored twice
    for name in {**there, **shapes}:
        if name not in shapes:
            raise _Differs(f"{file} holds {name} {there[name]}, which the model does not have")
        if name not in there and name not in shared:
            raise _Differs(f"the model has {name} {shapes[name]}, which {file} does not hold")
        if name in there and there[name] != shapes[name]:
            raise _Differs(f"{name} has shape {shapes[name]} in the model and {there[name]} in {file}")


def _flatten(optimizer: torch.optim.Optimizer | None) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """An optimizer's state as named tensors, and the plain numbers among it."""
    tensors: dict[str, torch.Tensor] = {}
    rest: dict[str, Any] = {}
    for index, entries in (optimizer.state_dict()["state"] if optimizer else {}).items():
        for name, value in entries.items():
            (tensors if isinstance(value, torch.Tensor) else rest)[f"{index}.{name}"] = value
    return tensors, rest


def _restore(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], rest: dict[str, Any]) -> None:
    content: dict[int, dict[str, Any]] = {}
    for where, value in {**tensors, **rest}.items():
        index, name = where.split(".", 1)
        content.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": content, "param_groups": optimizer.state_dict()["param_groups"]})
