"""Whether a batch, its labels, a model and a loss go together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import doors

MAKERS = {  # by their rooms
    "tfviz.learn.losses": ("translation", "scheduled", "adversarial"),
    "tfviz.learn.schedule": ("cosine", "linear", "inverse_square_root"),
}


@contextmanager
def about(model: nn.Module, batch: Sequence[Tensor]) -> Iterator[None]:
    """What a model or a loss raises in here keeps its kind and words, and gets a note on what they were given."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        parts = ", ".join(f"{str(part.dtype).removeprefix('torch.')} {list(part.shape)}" for part in batch)
        given = f"the batch was ({parts}), the model {doors.what(model)}"
        error.add_note(f"the loss could not be computed; {given}: do batch, model and loss fit?")
        raise


def makes_no_other(**given: object) -> None:
    """Each is a loss or a schedule, and none of the functions of `losses` and `schedule` that make one.

    >>> from tfviz.learn.losses import translation
    >>> makes_no_other(loss=translation)
    Traceback (most recent call last):
    TypeError: loss is the function translation, which makes one; give losses.translation(...)
    """
    for name, one in given.items():
        room, own = getattr(one, "__module__", None), getattr(one, "__name__", "")
        if room in MAKERS and own in MAKERS[room]:
            made = f"{room.rpartition('.')[2]}.{own}(...)"
            raise TypeError(f"{name} is {doors.what(one)}, which makes one; give {made}")


def parts(batch: Any, *names: str, more: bool = False) -> Sequence[Tensor]:
    """A batch of these parts, and no others, or of more like the first.

    >>> parts((torch.ones(2),), "inputs", "targets")
    Traceback (most recent call last):
    ValueError: the batch has 1 part; this loss takes (inputs, targets)
    """
    taken = f"this loss takes ({', '.join(names)})"
    if not isinstance(batch, list | tuple):
        raise TypeError(f"the batch is {doors.what(batch)}; {taken}")
    if len(batch) < len(names) or (len(batch) > len(names) and not more):
        raise ValueError(f"the batch has {len(batch)} part{'s' * (len(batch) != 1)}; {taken}")
    wrong = next((one for one in (batch[-1:] if more else batch) if not isinstance(one, Tensor)), None)
    if wrong is not None:
        raise TypeError(f"a part of the batch is {doors.what(wrong)}; {taken}, all tensors")
    return batch


def check_labels(labels: Tensor, rows: Sequence[int], classes: int, what: str = "label") -> None:
    """Each row has one of the classes.

    Raises:
        ValueError: it has not. On a GPU, which would have to be waited for, and in compiled code only shape and type
            are looked at.
    """
    if labels.shape != tuple(rows) or labels.dtype not in (torch.int64, torch.uint8):
        kind = str(labels.dtype).removeprefix("torch.")
        raise ValueError(f"{what}s are {kind} {list(labels.shape)}; give whole numbers (int64) {list(rows)}, one a row")
    if labels.device.type != "cpu" or torch.compiler.is_compiling():
        return
    wrong = labels[(labels < 0) | (labels >= classes)]
    if len(wrong):
        of, more = {"label": ("classes", "classes="), "target": ("tokens", "vocab=")}[what]
        raise ValueError(
            f"{what} {int(wrong[0])} is none of the model's {classes} {of}, which count from 0 to {classes - 1}: "
            f"number the {what}s so, leave out rows that have none, or build the model with more {more}"
        )
