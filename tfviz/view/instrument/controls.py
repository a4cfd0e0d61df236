"""The controls of `view.interact`, which convert values from the page into arguments of a function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from tfviz.view.documents.interact import (
    AngleSpec,
    CellsSpec,
    ControlSpec,
    MenuSpec,
    OrderSpec,
    PointsSpec,
    SliderSpec,
    SwitchesSpec,
    SwitchSpec,
    TextSpec,
)
from tfviz.view.figures.formatting import format_number, format_step

MAX_VALUE_LENGTH = 60  # characters
Spec = TypeVar("Spec", bound=ControlSpec)


class Control(Generic[Spec]):
    """A control for an argument of a function.

    Args:
        spec: the specification for the page, as plain values.
        values: all Python values of the control, in order; None if it passes tensors.
    """

    def __init__(self, spec: Spec, values: Sequence[Any] | None = None):
        self.spec, self.values = spec, values

    @property
    def start(self) -> Any:
        """The initial value."""
        return self.spec["start"]

    def tensor(self, value: Any) -> Tensor:
        """Return the tensor for a value, if the control has no `values`."""
        return torch.tensor(value)

    def index(self, value: Any) -> int:
        """Return the index in `values` of a value from the page."""
        return int(value)

    def argument(self, value: Any) -> Any:
        """Return the function's argument for a value."""
        return self.tensor(value) if self.values is None else self.values[self.index(value)]

    def text(self, value: Any) -> str:
        """Return a value as text.

        Raises:
            NotImplementedError: the subclass does not implement this method.
        """
        raise NotImplementedError

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        """Return the labels that a control offers for rows and for columns; empty lists if it has none."""
        return [], []

    def __repr__(self) -> str:
        return f"{type(self).__name__} ({self.text(self.start)[:MAX_VALUE_LENGTH]})"


class Slider(Control[SliderSpec]):
    def tensor(self, value: Any) -> Tensor:
        return torch.tensor(float(value))

    def index(self, value: float) -> int:
        return round((int(value) - self.spec["low"]) / self.spec["step"])

    def text(self, value: float) -> str:
        return format_step(value, self.spec["step"])


class Menu(Control[MenuSpec]):
    def text(self, value: int) -> str:
        return self.spec["names"][value]


class Switch(Control[SwitchSpec]):
    def text(self, value: bool) -> str:
        return "on" if value else "off"


class Points(Control[PointsSpec]):
    def tensor(self, value: list[list[float]]) -> Tensor:
        return torch.tensor(value, dtype=torch.float32)

    def text(self, value: list[list[float]]) -> str:
        points = zip(self.spec["names"], value)
        return ", ".join(f"{name} ({format_number(x, 3)}, {format_number(y, 3)})" for name, (x, y) in points)

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        return self.spec["names"], self.spec["names"]


CellTable = TypeVar("CellTable", CellsSpec, SwitchesSpec)


class Table(Control[CellTable]):
    """A table of numbers or switches, passed as a tensor [row, column]; [column] if `flat` is set."""

    dtype: torch.dtype

    def tensor(self, value: list[list[Any]]) -> Tensor:
        table = torch.tensor(value, dtype=self.dtype)
        return table[0] if self.spec["flat"] else table

    def labels(self, value: Any) -> tuple[list[str], list[str]]:
        return self.spec["columns"] if self.spec["flat"] else self.spec["rows"], self.spec["columns"]


class Cells(Table[CellsSpec]):
    dtype = torch.float32

    def tensor(self, value: list[list[Any]]) -> Tensor:
        table, limits = super().tensor(value), self.spec.get("limits")
        return table if limits is None else table.clamp(*limits)

    def text(self, value: list[list[float]]) -> str:
        return "; ".join(", ".join(format_number(cell, 4) for cell in row) for row in value)


class Switches(Table[SwitchesSpec]):
    dtype = torch.bool

    def text(self, value: list[list[bool]]) -> str:
        if self.spec["flat"]:
            return ", ".join(word for word, on in zip(self.spec["columns"], value[0]) if on) or "none"
        return f"{sum(map(sum, value))} of {len(value) * len(value[0])} on"


class Text(Control[TextSpec]):
    def __init__(self, spec: TextSpec, tokenizer: Any):
        super().__init__(spec)
        self.tokenizer = tokenizer

    def tensor(self, value: str) -> Tensor:
        return torch.as_tensor(self.tokenizer.encode(value)).long()[None]

    def example(self, length: int) -> Tensor:
        """Return example ids, [1, length], repeated from the initial text, for exporting the function."""
        ids = self.tensor(self.start)[0]
        ids = ids if len(ids) else torch.zeros(1, dtype=torch.long)
        return ids.repeat(-(-length // len(ids)))[None, :length]

    def text(self, value: str) -> str:
        return repr(value)

    def labels(self, value: str) -> tuple[list[str], list[str]]:
        labels = self.tokenizer.tokens(self.tensor(value)[0])
        return labels, labels


class Order(Control[OrderSpec]):
    def text(self, value: list[int]) -> str:
        return " ".join(self.labels(value)[0])

    def labels(self, value: list[int]) -> tuple[list[str], list[str]]:
        ordered = [self.spec["names"][index] for index in value]
        return ordered, ordered


class Angle(Control[AngleSpec]):
    def tensor(self, value: float) -> Tensor:
        return torch.tensor(float(value))

    def text(self, value: float) -> str:
        return f"{format_number(round(math.degrees(value)))}°"
