"""Checkpoints of training runs: folders of two safetensors files and a JSON file, read without unpickling.

A folder gets its name only when it is complete, so that a run that is killed while writing can be resumed from the
previous checkpoint.
"""

import json
import re
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz import checks, files, schema
from tfviz.learn import distributed, run_description
from tfviz.learn.batch_checks import check_optimizer_of
from tfviz.learn.state_tensors import (
    CheckpointMismatchError,
    check_model_tensors,
    fill_model,
    model_tensors,
    optimizer_state,
    optimizer_tensors,
    unwrap,
)

__all__ = ["Checkpoint", "as_folder", "list_checkpoints", "load", "read", "save"]

FOLDER_FORMAT, FOLDER_GLOB, MAX_STEP = "step-{:09d}", "step-" + "[0-9]" * 9, 10**9 - 1
MODEL_FILE, OPTIMIZER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"
# Settings that do not affect a trained model, or that users may change: dropout, the config of Hugging Face's models.
UNCOMPARED_SETTINGS = re.compile(r"drop|(^|\.)p$|(^|\.)config\b")
STATE_SCHEMA = schema.object_of(
    {
        "step": schema.integer(0, MAX_STEP),
        "model": schema.dict_of(schema.scalar),
        "optimizer": schema.optional(schema.string()),
        "optimizer_numbers": schema.dict_of(schema.scalar),
        "state": schema.dict_of(schema.json_value),
    }
)


class Checkpoint(NamedTuple):
    """The content of a checkpoint, checked against a model and an optimizer."""

    path: Path
    state: dict[str, Any]
    tensors: dict[str, Tensor]
    optimizer_state: dict[int, dict[str, Any]]

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        """Copy the stored state into the model, and into the optimizer if there is one."""
        fill_model(self.tensors, unwrap(model))
        if optimizer is not None:
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": self.optimizer_state, "param_groups": groups})


def save(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    step: int = 0,
    keep: int = 2,
    **state: Any,
) -> Path:
    """Save a checkpoint, such as `folder/step-000000123`, and delete the oldest ones in the folder beyond `keep`.

    With several processes, only the first one writes. If each holds a shard of the weights, all must call this
    function.

    Args:
        folder: the folder of the checkpoints.
        model: the model, whose weights and buffers are saved.
        optimizer: the optimizer, whose state is saved; None: no optimizer is saved.
        step: the number of the step, for the name of the checkpoint.
        keep: number of checkpoints to keep.
        state: values that JSON can represent, which `load` returns (a tuple as a list).

    Raises:
        FloatingPointError: a weight is not finite.
        OSError: the disk is full or read-only, or another folder has the name; earlier checkpoints are untouched.
        ValueError: `step` or `keep` is out of range, or JSON cannot represent `state`.
    """
    checks.between(0, MAX_STEP, step=step)
    checks.at_least(1, keep=keep)
    model = unwrap(model)
    checks.require_weights(model)
    if optimizer is not None:
        check_optimizer_of(model, optimizer)
    target = as_folder(folder) / FOLDER_FORMAT.format(step)
    _check_state(state)
    tensors, aliases = model_tensors(model)
    moments, numbers = optimizer_tensors(optimizer)
    tensors, moments = distributed.gather(tensors), distributed.gather(moments)
    if not distributed.is_main_process():
        return target
    _check_finite(tensors, model, step)
    content = {
        "step": step,
        "model": run_description.describe_config(model),
        "optimizer": optimizer and type(optimizer).__qualname__,
        "optimizer_numbers": numbers,
        "state": state,
    }
    if target.is_dir() and not (target / STATE_FILE).is_file() and any(target.iterdir()):
        raise FileExistsError(f"{target} is a folder that is not a checkpoint; move it, or save elsewhere")
    with files.atomic(target) as draft:
        draft.mkdir()
        files.save_tensors(draft / MODEL_FILE, tensors, aliases)
        files.save_tensors(draft / OPTIMIZER_FILE, moments)
        (draft / STATE_FILE).write_text(json.dumps(content, allow_nan=False), encoding="utf-8", newline="\n")
    _delete_oldest(target, keep)
    return target


def list_checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    return sorted(path for path in as_folder(folder).glob(FOLDER_GLOB) if path.is_dir())


def load(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """Load a checkpoint, or the newest in a folder, into `model` (and `optimizer`); return its `step` and state.

    Raises:
        FileNotFoundError: there is no checkpoint at this path.
        ValueError: a file is damaged, or the checkpoint belongs to another model or optimizer; the message names the
            first difference, and nothing is loaded.
    """
    checks.require_weights(model)
    if optimizer is not None:
        check_optimizer_of(unwrap(model), optimizer)
    checkpoint = read(path, model, optimizer)
    checkpoint.restore(model, optimizer)
    return checkpoint.state


def read(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> Checkpoint:
    """Read a checkpoint, or the newest in a folder, and check that it fits, without changing model or optimizer.

    Raises:
        FileNotFoundError: there is no checkpoint at this path.
        CheckpointMismatchError: the checkpoint belongs to another model or optimizer.
        ValueError: the checkpoint is damaged.
    """
    model, path = unwrap(model), as_folder(path)
    path = (list_checkpoints(path) or [path])[-1]
    if not (path / STATE_FILE).is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; a checkpoint is a folder that holds {STATE_FILE}")
    try:
        content = files.read_json(path / STATE_FILE)
        STATE_SCHEMA(content, STATE_FILE)
        if re.fullmatch(FOLDER_GLOB, path.name) and path.name != FOLDER_FORMAT.format(content["step"]):
            raise ValueError(f"its content is of step {content['step']}")
        tensors, aliases = files.load_tensors(path / MODEL_FILE)
        tensors |= {name: tensors[first] for name, first in aliases.items() if first in tensors}
        moments, _ = files.load_tensors(path / OPTIMIZER_FILE)
        _check_same(path, content, tensors, model, optimizer)
        entries = moments | content["optimizer_numbers"]
        state = {} if optimizer is None else optimizer_state(entries, optimizer)
    except CheckpointMismatchError:
        raise
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is a damaged checkpoint: {error}; delete it to resume from an earlier one") from error
    return Checkpoint(path, {"step": content["step"], **content["state"]}, tensors, state)


def as_folder(path: str | Path) -> Path:
    """Return the path of a folder, which need not exist; `~` is expanded to the user's home.

    Raises:
        ValueError: the path is empty or contains a null character.
        NotADirectoryError: the path is a file.

    >>> as_folder("")
    Traceback (most recent call last):
    ValueError: folder is ''; give the name of a folder
    """
    if not str(path) or "\0" in str(path):
        raise ValueError(f"folder is {str(path)!r}; give the name of a folder")
    folder = files.expand_user(path)
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; give the name of a folder")
    return folder


def _delete_oldest(newest: Path, keep: int) -> None:
    """Delete the oldest checkpoints beyond `keep`, but no other folders that have such a name."""
    for old in list_checkpoints(newest.parent)[:-keep]:
        if old != newest and (old / STATE_FILE).is_file():
            draft = old.with_name(f".{old.name}{files.DRAFT_SUFFIX}")
            with suppress(PermissionError) if files.WINDOWS else nullcontext():  # another program has a file of it open
                shutil.rmtree(old.rename(draft))  # renamed first, so that a kill leaves no incomplete checkpoint
    # drafts of a run that was killed while writing
    for draft in newest.parent.glob(f".{FOLDER_GLOB}*{files.DRAFT_SUFFIX}"):
        shutil.rmtree(draft, ignore_errors=True)


def _check_same(path: Path, content: dict[str, Any], tensors: dict[str, Tensor], model: nn.Module,
                optimizer: torch.optim.Optimizer | None) -> None:  # fmt: skip
    """Raise CheckpointMismatchError unless a checkpoint belongs to this model, and to this optimizer if it is given."""
    check_model_tensors(path / MODEL_FILE, tensors, model)
    compared = {name: value for name, value in content["model"].items() if not UNCOMPARED_SETTINGS.search(name)}
    if difference := run_description.first_difference(compared, run_description.describe_config(model)):
        name, stored, current = difference
        difference_text = f"its {name or 'class'} is {stored} there and {current} here"
        raise CheckpointMismatchError(
            f"{path} is a checkpoint of another model: {difference_text}; build the model as it was"
        )
    if optimizer is not None and content["optimizer"] is None:
        raise CheckpointMismatchError(f"{path} was saved without an optimizer; load the model alone")
    if optimizer is not None and content["optimizer"] != (current := type(optimizer).__qualname__):
        raise CheckpointMismatchError(
            f"{path} is a checkpoint of another optimizer: {content['optimizer']}, not {current}"
        )


def _check_state(state: dict[str, Any]) -> None:
    """Raise ValueError for values that JSON cannot represent exactly."""
    try:
        schema.json_value(state, "state")
        json.dumps(state, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"state holds a value that JSON cannot store: {error}; give finite numbers, strings and lists"
        ) from error


def _check_finite(tensors: dict[str, Tensor], model: nn.Module, step: int) -> None:
    """Raise FloatingPointError for a weight that is not finite; masks among the buffers may hold -inf."""
    for name, _ in model.named_parameters():
        if name in tensors and not tensors[name].isfinite().all():
            raise FloatingPointError(f"{name} is not finite after {step} steps: no checkpoint was written")
