"""Whether a batch, its labels, a model and a loss go together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfviz import doors


@contextmanager
def about(model: nn.Module, batch: Sequence[Tensor]) -> Iterator[None]:
    """What a model or a loss raises in here keeps its kind and words, and gets a note on what they were given."""
    try:
        yield
    except (TypeError, RuntimeError, IndexError, AttributeError) as error:
        parts = ", ".join(f"{str(part.dtype).removeprefix('torch.')} {list(part.shape)}" for part in batch)
        given = f"the batch was ({parts}), the model {doors.what(model)}"
        error.add_note(f"the loss could not be computed; {given}: do batch, model and loss fit?")
        raise


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
