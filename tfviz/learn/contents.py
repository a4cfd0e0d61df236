"""What a checkpoint holds of a model and an optimizer: named tensors, plain numbers, and what they are of."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor, nn

from tfviz.learn import fingerprint, shards

# plays no part once a model has learned, or is its user's to set: dropout, a configuration of Hugging Face's
FREE = re.compile(r"drop|(^|\.)p$|(^|\.)config\b")
ALIKE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer")  # state that has its parameter's shape
MOVED = re.compile(r"(\d+\.shapes)?")  # of an optimizer: its class and the parameters it moves


class Differs(ValueError):
    """A checkpoint is whole, but of another model or optimizer."""


class File(NamedTuple):
    """The tensors of a safetensors file; a tensor of several names is stored under one, and `shared` leads to it."""

    path: Path
    tensors: dict[str, Tensor]
    shared: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> "File":
        with safe_open(path, framework="pt") as stored:
            names = stored.keys()
            return cls(path, {name: stored.get_tensor(name) for name in names}, stored.metadata() or {})

    def without_wrapper(self, model: nn.Module) -> "File":
        """Named as in a model that is compiled or parallel no more."""
        shared = without_wrapper(self.shared, model)
        firsts = without_wrapper(dict.fromkeys(shared.values()), model)
        renamed = dict(zip(dict.fromkeys(shared.values()), firsts))
        shared = {name: renamed[first] for name, first in shared.items()}
        return self._replace(tensors=without_wrapper(self.tensors, model), shared=shared)


COMPILED = re.compile(r"(?<=\.)_orig_mod\.")  # in the name of a part


def unwrapped(model: nn.Module) -> nn.Module:
    """The model within `torch.compile`, `DataParallel` and `DistributedDataParallel`."""
    while True:
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod  # type: ignore[assignment]
        elif isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


def without_wrapper(names: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """Names of what was saved with wrappers around it, as the model has them: `_orig_mod.norm` is `norm`."""
    own = {name for name, _ in model.named_modules()}
    if not any(name.rpartition(".")[2] == "_orig_mod" for name in own):  # parts were compiled then that are not now
        names = {COMPILED.sub("", name): value for name, value in names.items()}
    for whole in ("_orig_mod", "module"):
        prefix = f"{whole}."
        if not hasattr(model, whole) and (whole in names or all(name.startswith(prefix) for name in names)):
            inner = {name: value for name, value in names.items() if name == whole or name.startswith(prefix)}
            names = {name.removeprefix(whole).removeprefix("."): value for name, value in inner.items()}
    return names


def named(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a model, each under its first name, and for every further name the first."""
    entries = sorted(model.state_dict(keep_vars=True).items())
    first: dict[Tensor, str] = {}
    for name, tensor in entries:
        first.setdefault(tensor, name)
    return {name: tensor for tensor, name in first.items()}, {n: first[t] for n, t in entries if first[t] != n}


def check_moves(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """The optimizer is of this model.

    Raises:
        ValueError: it moves none of its weights.
    """
    moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in moved for parameter in model.parameters()):
        raise ValueError("optimizer moves no weight of this model; make it of model.parameters()")


def flat(optimizer: torch.optim.Optimizer | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state as named tensors, and the plain numbers among it."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, entries in (optimizer.state_dict()["state"] if optimizer is not None else {}).items():
        for name, value in entries.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}.{name}"] = value
    return tensors, numbers


def check_model(file: File, before: fingerprint.Plain, model: nn.Module) -> None:
    """The file's tensors are those of the model, and it is made as the one they are from.

    Raises:
        Differs: they are not; the first that is not is named.
    """
    there, here = file.tensors, model.state_dict()
    for name in {**there, **here}:
        if name not in here:
            raise Differs(f"{file.path} holds {name} {list(there[name].shape)}, which the model does not have")
        if name not in there and name not in file.shared:
            raise Differs(f"the model has {name} {list(here[name].shape)}, which {file.path} does not hold")
        stored = name if name in there else file.shared[name]
        if stored not in there:
            raise Differs(f"{file.path} says that {name} is the same as {stored}, which it does not hold")
        for what in ("shape", "dtype"):
            mine, other = _said(getattr(here[name], what)), _said(getattr(there[stored], what))
            if mine != other:
                raise Differs(f"{name} has {what} {mine} in the model and {other} in {file.path}")
    for name, first in named(model)[1].items():
        if name in there and first in there:
            raise Differs(f"{first} and {name} are one tensor in the model and two in {file.path}")
    settled = {name: value for name, value in before.items() if not FREE.search(name)}
    if found := fingerprint.difference(settled, fingerprint.of_model(model)):
        raise Differs(f"{file.path} is of another model: {fingerprint.told(found, 'its ')}; build the model as it was")


def fill_model(file: File, model: nn.Module) -> None:
    where = {name: name if name in file.tensors else file.shared[name] for name in model.state_dict()}
    model.load_state_dict(
        {name: shards.cut(file.tensors[where[name]], like) for name, like in model.state_dict().items()}
    )


def check_optimizer(path: Path, before: fingerprint.Plain, optimizer: torch.optim.Optimizer) -> None:
    """What it moves has the shapes, in the same order, of what it was saved with.

    Raises:
        Differs: it has not.
    """
    if not before:
        raise Differs(f"{path} was saved without an optimizer; load the model alone")
    now = fingerprint.of_optimizer(optimizer)
    moved = [{name: value for name, value in each.items() if MOVED.fullmatch(name)} for each in (before, now)]
    found = fingerprint.difference(*moved)
    if found or moved[0].keys() != moved[1].keys():
        what = (
            fingerprint.told(found, "its ") if found else f"it has {len(moved[0]) - 1} groups, not {len(moved[1]) - 1}"
        )
        raise Differs(
            f"{path} is of another optimizer: {what}; make it as it was, of the same parameters in their order"
        )


def check_moments(file: File, numbers: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Each belongs to a parameter that the optimizer moves, and has its shape, or is one number.

    Raises:
        ValueError: it is not so; the first that does not fit is named.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for where, value in {**file.tensors, **numbers}.items():
        number, point, name = where.partition(".")
        if not (point and name and number.isdecimal() and len(number) < 9 and int(number) < len(parameters)):
            raise ValueError(f"{file.path.name} holds {where!r}, which is of none of {len(parameters)} parameters")
        shape = parameters[int(number)].shape
        if name in ALIKE and (not isinstance(value, Tensor) or value.shape != shape):
            raise ValueError(f"{where} in {file.path.name} has not the shape of its parameter, {list(shape)}")


def fill_optimizer(file: File, numbers: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    content: dict[int, dict[str, Any]] = {}
    for where, value in {**file.tensors, **numbers}.items():
        index, name = where.split(".", 1)
        content.setdefault(int(index), {})[name] = shards.cut(value, parameters[int(index)])
    optimizer.load_state_dict({"state": content, "param_groups": optimizer.state_dict()["param_groups"]})


def _said(value: Any) -> str:
    return str(list(value)) if isinstance(value, torch.Size) else str(value).removeprefix("torch.")
