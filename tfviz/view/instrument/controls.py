"""The controls of `view.interact`: their document in the page, and the argument that each value stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.view.still.formatting import formatted, stepped

VALUE = 60  # characters of a value in a line


class Control:
    """What a reader sets for an argument.

    Attributes:
        kind: its class in the page.
        start: its first value, in plain values as the page has them.
        values: of a control that stands for Python values, all of them in order; None: it stands for tensors.
    """

    kind = ""
    start: Any
    values: Sequence[Any] | None = None

    def document(self) -> dict[str, Any]:
        """Return what the page needs to draw it."""
        return {"kind": self.kind, **{name: value for name, value in vars(self).items() if name != "values"}}

    def tensor(self, value: Any) -> Tensor:
        """Return the tensor that a value stands for, where the control has no `values`."""
        raise NotImplementedError

    def index(self, value: Any) -> int:
        """Return which of `values` a page's value is."""
        return int(value)

    def argument(self, value: Any) -> Any:
        """Return the argument that the function takes for a value."""
        return self.tensor(value) if self.values is None else self.values[self.index(value)]

    def text(self, value: Any) -> str:
        """Return a value in words."""
        raise NotImplementedError

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        """Return words that pictures may name their rows and columns by."""
        return [], []

    def __repr__(self) -> str:
        return f"{type(self).__name__} ({self.text(self.start)[:VALUE]})"


class Slider(Control):
    kind = "slider"

    def __init__(self, low: float, high: float, step: float, start: float, whole: bool):
        self.low, self.high, self.step, self.start, self.whole = low, high, step, start, whole
        if whole:
            self.values = range(int(low), int(high) + 1, int(step))

    def tensor(self, value: float) -> Tensor:
        return torch.tensor(float(value))

    def index(self, value: float) -> int:
        return self.values.index(int(value))  # type: ignore[union-attr]  # whole ones have them

    def text(self, value: float) -> str:
        return stepped(value, self.step)


class Menu(Control):
    kind = "menu"

    def __init__(self, names: list[str], values: list[Any], start: int):
        self.names, self.values, self.start = names, values, start

    def text(self, value: int) -> str:
        return self.names[value]


class Switch(Control):
    kind = "switch"

    def __init__(self, on: bool):
        self.values, self.start = [False, True], on

    def text(self, value: bool) -> str:
        return "on" if value else "off"


class Points(Control):
    kind = "points"

    def __init__(self, names: list[str], places: list[list[float]], limit: float):
        self.names, self.start, self.limit = names, places, limit

    def tensor(self, value: list[list[float]]) -> Tensor:
        return torch.tensor(value, dtype=torch.float32)

    def text(self, value: list[list[float]]) -> str:
        return ", ".join(f"{name} ({formatted(x, 3)}, {formatted(y, 3)})" for name, (x, y) in zip(self.names, value))

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        return self.names, self.names


class Cells(Control):
    kind = "cells"

    def __init__(self, start: list[list[float]], rows: list[str], cols: list[str], step: float, flat: bool):
        self.start, self.rows, self.cols, self.step, self.flat = start, rows, cols, step, flat

    def tensor(self, value: list[list[float]]) -> Tensor:
        table = torch.tensor(value, dtype=torch.float32)
        return table[0] if self.flat else table

    def text(self, value: list[list[float]]) -> str:
        return "; ".join(", ".join(formatted(cell, 4) for cell in row) for row in value)

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        return self.cols if self.flat else self.rows, self.cols


class Switches(Cells):
    kind = "switches"

    def __init__(self, start: list[list[bool]], rows: list[str], cols: list[str], flat: bool):
        self.start, self.rows, self.cols, self.flat = start, rows, cols, flat

    def tensor(self, value: list[list[bool]]) -> Tensor:  # type: ignore[override]
        table = torch.tensor(value, dtype=torch.bool)
        return table[0] if self.flat else table

    def text(self, value: list[list[bool]]) -> str:  # type: ignore[override]
        if self.flat:
            return ", ".join(word for word, on in zip(self.cols, value[0]) if on) or "none"
        return f"{sum(map(sum, value))} of {len(self.rows) * len(self.cols)} on"


class Text(Control):
    kind = "text"

    def __init__(self, start: str, vocab: Any, most: int):
        self.start, self.vocab, self.most = start, vocab, most

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "start": self.start, "vocab": self.vocab.to_spec(), "most": self.most}

    def tensor(self, value: str) -> Tensor:
        return torch.as_tensor(self.vocab.encode(value)).long()[None]

    def example(self, length: int) -> Tensor:
        """Return ids of the vocabulary, [1, length], to export the function with."""
        ids = self.tensor(self.start)[0]
        ids = ids if len(ids) else torch.zeros(1, dtype=torch.long)
        return ids.repeat(-(-length // len(ids)))[None, :length]

    def text(self, value: str) -> str:
        return repr(value)

    def labels(self, value: str) -> tuple[list[str], list[str]]:
        words = self.vocab.words(self.tensor(value)[0])
        return words, words


class Order(Control):
    kind = "order"

    def __init__(self, names: list[str]):
        self.names, self.start = names, list(range(len(names)))

    def tensor(self, value: list[int]) -> Tensor:
        return torch.tensor(value)

    def text(self, value: list[int]) -> str:
        return " ".join(self.labels(value)[0])

    def labels(self, value: list[int]) -> tuple[list[str], list[str]]:
        ordered = [self.names[index] for index in value]
        return ordered, ordered


class Angle(Control):
    kind = "angle"

    def __init__(self, start: float):
        self.start = start

    def tensor(self, value: float) -> Tensor:
        return torch.tensor(float(value))

    def text(self, value: float) -> str:
        return f"{formatted(round(math.degrees(value)))}°"
