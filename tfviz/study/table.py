"""`Table`: the labelled numbers that an analysis returns, which `view.table` draws."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from tfviz import checks, schema
from tfviz.files import atomic, check_safetensors_name, expand_user, load_tensors, save_tensors
from tfviz.shapes import Float
from tfviz.study.table_labels import label_index

_LABELS: dict[str, schema.Check] = {
    "title": schema.string(),
    "unit": schema.string(),
    "axes": schema.dict_of(schema.list_of(schema.string(), 1)),
    "notes": schema.dict_of(schema.json_value),
}


@dataclass(eq=False, repr=False)
class Table:
    """A tensor of numbers with a name for each axis and a label for each position on it.

    Attributes:
        values: the numbers, [*axes], float32 on the CPU.
        axes: name of an axis -> its labels, in order, such as `{"layer": ["0", "1"], "head": ["0", "1", "2"]}`.
        unit: the unit of the values, such as "nats".
        title: a description in one line.
        notes: the provenance of the values, by name; values that JSON can represent.

    Raises:
        ValueError: the numbers of labels are not the shape of the values.

    >>> table = Table(torch.tensor([[0.5, -1.0]]), {"layer": ["0"], "head": ["0", "1"]}, "nats")
    >>> table
    layer x head, 1 x 2, in nats: from -1 to 0.5
    >>> table.top(1)
    [(('0', '1'), -1.0)]
    """

    values: Float[Tensor, "*axes"]
    axes: Mapping[str, Sequence[str]]
    unit: str = ""
    title: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    format: ClassVar[str] = "tfviz.Table/1"  # in the metadata of the file
    more_tensors: ClassVar[tuple[str, ...]] = ()  # attributes of a subclass that the file holds
    more_labels: ClassVar[Mapping[str, schema.Check]] = {}

    def __post_init__(self) -> None:
        checks.materialized(values=self.values)
        self.values = self.values.detach().to("cpu", torch.float32)
        self.axes = {name: [str(label) for label in labels] for name, labels in self.axes.items()}
        sizes = [len(labels) for labels in self.axes.values()]
        if list(self.values.shape) != sizes:
            names = ", ".join(self.axes) or "no axis"
            raise ValueError(f"values are {list(self.values.shape)}, and the labels of {names} are {sizes}")

    def __repr__(self) -> str:
        names, sizes = " x ".join(self.axes), " x ".join(map(str, self.values.shape))
        known = self.values[self.values.isfinite()]
        span = f": from {known.min().item():.3g} to {known.max().item():.3g}" if len(known) else ""
        title = f"{self.title}: " if self.title else ""
        shape = f"{names}, {sizes}" if self.axes else "one number"
        return f"{title}{shape}{f', in {self.unit}' if self.unit else ''}{span}"

    def __getitem__(self, labels: Any) -> Any:
        """Return the values at labels or positions, in the order of the axes: one number if all axes are indexed.

        A string is a label. An integer is a position, counted from 0, or from the end with -1; if it is out of range,
        it is looked up as a label. A slice is one of positions.

        Raises:
            LookupError: there is no such label, or it is at several positions; an integer is a position, and also the
                label of another position.

        >>> Table(torch.tensor([[0.5, -1.0]]), {"layer": ["0"], "head": ["0", "1"]})["0", "1"]
        -1.0
        """
        labels = labels if isinstance(labels, tuple) else (labels,)
        if len(labels) > len(self.axes):
            raise LookupError(f"there are {len(labels)} labels; give one for each of: {', '.join(self.axes) or 'none'}")
        chosen = (
            label if isinstance(label, slice) else label_index(self.axes, axis, label)
            for axis, label in zip(self.axes, labels)
        )
        values = self.values[tuple(chosen)]
        return values if values.dim() else values.item()

    def __sub__(self, other: Table) -> Table:
        """Return the difference of two tables with the same axes and units, with the title and notes of the first."""
        if not isinstance(other, Table):
            return NotImplemented
        for mine, theirs, what in ((self.axes, other.axes, "axes"), (self.unit, other.unit, "units")):
            if mine != theirs:
                raise ValueError(f"the tables have different {what}, {mine} and {theirs}; take a.values - b.values")
        return Table(self.values - other.values, self.axes, self.unit, self.title, self.notes)

    def top(self, count: int = 5, largest: bool | None = None) -> list[tuple[tuple[str, ...], float]]:
        """Return the most prominent values and their labels as pairs (labels, value), in order; NaN is left out.

        Labels are strings, as in `axes`. `look.edits` and the receivers of `patch_path` accept labels of heads; for
        other uses, convert them by `int(label)`.

        Args:
            count: the number of values to return.
            largest: True: the largest values, in descending order; False: the smallest, in ascending order; None: the
                values farthest from 0.

        >>> Table(torch.tensor([0.5, -1.0]), {"head": ["0", "1"]}).top(1, largest=True)
        [(('0',), 0.5)]
        """
        checks.at_least(1, count=count)
        values = self.values.flatten()
        ranks = values.abs() if largest is None else values if largest else -values
        known = (~ranks.isnan()).nonzero()[:, 0]
        indices = known[ranks[known].argsort(descending=True, stable=True)[:count]]
        labels = list(self.axes.values())
        found = [torch.unravel_index(flat_index, self.values.shape) for flat_index in indices]
        return [
            (tuple(names[int(at)] for names, at in zip(labels, index)), self.values[index].item()) for index in found
        ]

    def relative_to(self, whole: float | Sequence[float] | Tensor, unit: str = "share") -> Table:
        """Return the values divided by a whole, such as the difference between the clean and the corrupt run.

        Args:
            whole: one number, or one for each text if the first axis is the text.
            unit: the unit of the result.

        Raises:
            ValueError: a whole is 0 or not finite; `whole` is neither one number nor one for each text.
        """
        wholes = torch.as_tensor(whole, dtype=torch.float32).cpu()
        texts = [len(self.axes["text"])] if next(iter(self.axes), "") == "text" else []
        if wholes.dim() and list(wholes.shape) != texts:
            axes = ", ".join(self.axes) or "none"
            raise ValueError(
                f"whole is {list(wholes.shape)}, and the axes are {axes}; give one number, or one per text"
            )
        if not wholes.isfinite().all() or (wholes == 0).any():
            raise ValueError(f"the whole is {wholes.tolist()}; there are no shares of it")
        divisors = wholes.reshape(-1, *[1] * (self.values.dim() - 1)) if wholes.dim() else wholes
        notes = {**self.notes, "whole": wholes.tolist()}
        return Table(self.values / divisors, self.axes, unit, self.title, notes)

    def to_pandas(self) -> Any:
        """Return a pandas Series of one axis, or a DataFrame with the last axis as columns and the others as index.

        Raises:
            ImportError: pandas is not installed.
            ValueError: the table is one number without axes.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        if not self.axes:
            raise ValueError("the table is one number without axes: take float(table.values)")
        *rows, (name, columns) = self.axes.items()
        if not rows:
            return pandas.Series(self.values.numpy(), pandas.Index(columns, name=name), name=self.unit or None)
        index = (
            pandas.Index(rows[0][1], name=rows[0][0])
            if len(rows) == 1
            else pandas.MultiIndex.from_product([labels for _, labels in rows], names=[row for row, _ in rows])
        )
        return pandas.DataFrame(self.values.flatten(0, -2).numpy(), index, pandas.Index(columns, name=name))

    def save(self, path: str | Path) -> Path:
        """Write the table as one safetensors file, which `Table.load` reads; return its path.

        Raises:
            ValueError: the path has the suffix of another format, such as ".csv"; JSON cannot represent the notes.
        """
        check_safetensors_name(path, "a table is", ", or take table.to_pandas().to_csv('x.csv')")
        described = {name: getattr(self, name) for name in (*_LABELS, *self.more_labels)}
        schema.json_value(described["notes"], "notes")
        metadata = {name: json.dumps(value) for name, value in described.items()}
        tensors = {name: getattr(self, name) for name in ("values", *self.more_tensors)}
        with atomic(path) as draft:
            save_tensors(draft, tensors, {"format": self.format, **metadata})
        return expand_user(path)

    @classmethod
    def load(cls, path: str | Path) -> Table:
        """Return a table that `save` wrote, as a `LensTable` if it is one.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or does not hold a table.
        """
        tensors, metadata = load_tensors(path)
        kind = next((kind for kind in (cls, *cls.__subclasses__()) if kind.format == metadata.get("format")), None)
        if kind is None:
            raise ValueError(f"{path} holds no table; Table.save writes those")
        with schema.prefix_errors(Path(path)):
            described = {name: schema.parse(text, name) for name, text in metadata.items() if name != "format"}
            schema.object_of({**_LABELS, **kind.more_labels})(described, "metadata")
            if set(tensors) != {"values", *kind.more_tensors} or not tensors["values"].is_floating_point():
                raise ValueError(f"it holds the tensors {list(tensors)}; a table has `values`, of floats")
            values: dict[str, Any] = {**tensors, **described}
            return kind(**values)
