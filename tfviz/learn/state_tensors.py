"""Conversion of the state of models and optimizers to tensors by name, as a checkpoint stores them, and back."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.compiled import uncompiled
from tfviz.learn.distributed import shard_like

# optimizer state of the same shape as its parameter
PARAMETER_SHAPED = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum", "momentum_buffer")


class CheckpointMismatchError(ValueError):
    """An error for an intact checkpoint that belongs to another model or optimizer."""


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model within `torch.compile`, `DataParallel` and `DistributedDataParallel`."""
    model = uncompiled(model)
    while isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = uncompiled(model.module)
    return model


def model_tensors(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return a model's tensors by name, each once, and the other names of tied tensors, mapped to the first one."""
    entries = sorted(model.state_dict(keep_vars=True).items())
    first: dict[Tensor, str] = {}
    for name, tensor in entries:
        first.setdefault(tensor, name)
    aliases = {name: first[tensor] for name, tensor in entries if first[tensor] != name}
    return {name: tensor for tensor, name in first.items()}, aliases


def check_model_tensors(path: object, stored: Mapping[str, Tensor], model: nn.Module) -> None:
    """Raise CheckpointMismatchError unless stored tensors match the model's in names, shapes and dtypes."""
    expected = model.state_dict()
    for name in {**stored, **expected}:
        if name not in expected:
            raise CheckpointMismatchError(
                f"{path} holds {name} {list(stored[name].shape)}, which the model does not have"
            )
        if name not in stored:
            raise CheckpointMismatchError(
                f"the model has {name} {list(expected[name].shape)}, which {path} does not hold"
            )
        for kind in ("shape", "dtype"):
            mine, other = (_format(getattr(tensor, kind)) for tensor in (expected[name], stored[name]))
            if mine != other:
                raise CheckpointMismatchError(f"{name} has {kind} {mine} in the model and {other} in {path}")
    for name, first in model_tensors(model)[1].items():
        if not torch.equal(stored[name], stored[first]):
            raise CheckpointMismatchError(f"{first} and {name} are one tensor in the model and two in {path}")


def fill_model(stored: Mapping[str, Tensor], model: nn.Module) -> None:
    """Copy stored tensors into a model."""
    model.load_state_dict({name: shard_like(stored[name], like) for name, like in model.state_dict().items()})


def optimizer_tensors(optimizer: torch.optim.Optimizer | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the plain numbers of an optimizer's state, named `{parameter index}.{name}`."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, entries in (optimizer.state_dict()["state"] if optimizer is not None else {}).items():
        for name, value in entries.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}.{name}"] = value
    return tensors, numbers


def optimizer_state(stored: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Any]]:
    """Convert stored entries to the state by parameter index that `Optimizer.load_state_dict` takes.

    Raises:
        ValueError: an entry belongs to no parameter, or has another shape than its parameter.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for key, value in stored.items():
        index, _, name = key.partition(".")
        if not (name and index.isdecimal() and len(index) < 9 and int(index) < len(parameters)):
            raise ValueError(
                f"the optimizer's state holds {key!r}, which belongs to none of the model's {len(parameters)} "
                f"parameters"
            )
        like = parameters[int(index)]
        if name in PARAMETER_SHAPED and getattr(value, "shape", None) != like.shape and value is not None:
            raise ValueError(
                f"{key} of the optimizer's state does not have the shape of its parameter, {list(like.shape)}"
            )
        state.setdefault(int(index), {})[name] = shard_like(value, like)
    return state


def _format(value: Any) -> str:
    return str(list(value)) if isinstance(value, torch.Size) else str(value).removeprefix("torch.")
