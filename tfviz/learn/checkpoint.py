"""Checkpoints: a folder of two safetensors files and a JSON file, which appears whole or not at all."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

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

    Of several processes, the first writes. Where each holds a shard of the weights, all must call.

    Args:
        state: anything JSON can hold; `load` gives it back.

    Raises:
        OSError: the disk is full or read-only; earlier checkpoints are untouched.
    """
    target = Path(folder) / NAME.format(step)
    weights, shared = _names(model)
    tensors, rest = _flatten(optimizer)
    weights, tensors = _put_together(weights), _put_together(tensors)
    if not _is_first():
        return target
    try:
        with atomic(target) as draft:
            draft.mkdir()
            save_file(weights, draft / "model.safetensors", metadata=shared or None)
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
        sources = _sources(path / "model.safetensors", model)
        weights = load_file(path / "model.safetensors")
        named = model.state_dict().items()
        model.load_state_dict({name: _shards(weights[sources[name]], tensor) for name, tensor in named})
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


def _sources(file: Path, model: nn.Module) -> dict[str, str]:
    """For every tensor of the model, the name under which the file holds it."""
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
    for name, first in _names(model)[1].items():
        if name in there and first in there:
            raise _Differs(f"{first} and {name} are one tensor in the model and two in {file}")
    return {name: name if name in there else shared[name] for name in shapes}


def _names(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a model, each under its first name, and for every further name the first."""
    named = sorted(model.state_dict(keep_vars=True).items())
    first: dict[Tensor, str] = {}
    for name, tensor in named:
        first.setdefault(tensor, name)
    return {name: tensor for tensor, name in first.items()}, {n: first[t] for n, t in named if first[t] != n}


def _flatten(optimizer: torch.optim.Optimizer | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state as named tensors, and the plain numbers among it."""
    tensors: dict[str, Tensor] = {}
    rest: dict[str, Any] = {}
    for index, entries in (optimizer.state_dict()["state"] if optimizer else {}).items():
        for name, value in entries.items():
            (tensors if isinstance(value, Tensor) else rest)[f"{index}.{name}"] = value
    return tensors, rest


def _restore(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], rest: dict[str, Any]) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    content: dict[int, dict[str, Any]] = {}
    for where, value in {**tensors, **rest}.items():
        index, name = where.split(".", 1)
        content.setdefault(int(index), {})[name] = _shards(value, parameters[int(index)])
    optimizer.load_state_dict({"state": content, "param_groups": optimizer.state_dict()["param_groups"]})


def whole(tensor: Any) -> Tensor:
    """A tensor in full, its shards (`torch.distributed.tensor`) put together; all processes that hold one must call."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _put_together(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors in the first process; the others do not keep them."""
    found = {}
    for name, tensor in tensors.items():
        full = whole(tensor.detach())
        if _is_first():
            found[name] = full.cpu().contiguous()
    return found


def _shards(value: Any, like: Any) -> Any:
    """A value in the shards of a tensor, if that has any and it has its shape."""
    if not hasattr(like, "full_tensor") or getattr(value, "shape", None) != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)


def _is_first() -> bool:
    group = torch.distributed
    return not (group.is_available() and group.is_initialized()) or group.get_rank() == 0
