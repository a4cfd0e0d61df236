"""`Statistics`: mean, variance and largest values of a measure over texts, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.shapes import Float
from tfviz.study.table import Table
from tfviz.study.table_labels import label_index
from tfviz.validation import unchecked

STATE_FIELDS = ("counts", "means", "squared_deviations", "top_values", "top_indices")


@dataclass(eq=False)
class Statistics:
    """Statistics over texts of one value for each cell, such as each head.

    A text whose value is NaN does not count in that cell. Means are updated batch by batch (Chan et al. 1979), so the
    statistics of two halves of a data set merge into those of the whole.

    Attributes:
        axes: name of an axis -> its labels.
        unit: the unit of the values.
        counts: [*axes], the number of texts with a value.
        means: [*axes], the mean over these texts, float64.
        squared_deviations: [*axes], the sum of squared deviations from the mean, float64.
        top_values: [*axes, rank], the largest values, in descending order; -inf where there are fewer.
        top_indices: [*axes, rank], the index in the data set of the text of each of the largest values.
    """

    axes: Mapping[str, Sequence[str]]
    unit: str
    counts: Tensor
    means: Tensor
    squared_deviations: Tensor
    top_values: Tensor
    top_indices: Tensor

    @classmethod
    def from_batch(cls, values: Table, numbers: Tensor, top_k: int) -> Statistics:
        """Return the statistics of one batch.

        Args:
            values: a table [text, *axes] of the values; NaN for a text without a value.
            numbers: [text], the index of each text in the data set.
            top_k: the number of largest values to keep for each cell.
        """
        _, *axes = values.axes.items()
        given = values.values.double()
        known = ~given.isnan()
        counts = known.sum(0)
        means = torch.where(known, given, 0.0).sum(0) / counts.clamp(min=1)
        squares = torch.where(known, (given - means).square(), 0.0).sum(0)
        ranked = torch.where(known, given, -torch.inf).movedim(0, -1)
        texts = numbers.expand(ranked.shape)
        return unchecked(cls, dict(axes), values.unit, counts, means, squares, *_largest(ranked, texts, top_k))

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of the union of two disjoint sets of texts.

        Raises:
            ValueError: the two have different axes.
        """
        if {name: list(labels) for name, labels in self.axes.items()} != {
            name: list(labels) for name, labels in other.axes.items()
        }:
            raise ValueError(
                f"the axes changed from {_sizes(self)} to {_sizes(other)}; measure must return the same axes for "
                f"each batch"
            )
        counts = self.counts + other.counts
        share = other.counts / counts.clamp(min=1)
        change = other.means - self.means
        values = torch.cat([self.top_values, other.top_values], -1)
        texts = torch.cat([self.top_indices, other.top_indices], -1)
        return unchecked(
            Statistics,
            self.axes,
            self.unit,
            counts,
            self.means + change * share,
            self.squared_deviations + other.squared_deviations + change.square() * self.counts * share,
            *_largest(values, texts, max(self.top_values.shape[-1], other.top_values.shape[-1])),
        )

    @property
    def mean(self) -> Table:
        """The mean over the texts; NaN where no text had a value."""
        return self._table(torch.where(self.counts > 0, self.means, torch.nan), "Mean")

    @property
    def variance(self) -> Table:
        """The unbiased variance over the texts (division by n - 1); NaN where fewer than two had a value."""
        variance = self.squared_deviations / (self.counts - 1).clamp(min=1)
        return self._table(torch.where(self.counts > 1, variance, torch.nan), "Variance")

    @property
    def standard_error(self) -> Table:
        """The standard error of the mean; NaN where fewer than two texts had a value."""
        squared_error = self.squared_deviations / ((self.counts - 1) * self.counts).clamp(min=1)
        return self._table(torch.where(self.counts > 1, squared_error.sqrt(), torch.nan), "Standard error")

    def _table(self, values: Float[Tensor, "*axes"], title: str) -> Table:
        count = int(self.counts.max()) if self.counts.numel() else 0
        return Table(values, self.axes, self.unit, f"{title} over {count:,} texts", {"texts": count})

    def top_texts(self, *labels: str | int) -> list[tuple[int, float]]:
        """Return the largest values of a cell as pairs (index of the text in the data set, value), in descending order.

        Args:
            *labels: the label or position of the cell on each axis, as for a `Table`.

        Raises:
            LookupError: there is no such label or position.
            ValueError: the number of labels is not that of the axes.
        """
        cell = self._cell(labels)
        values, texts = self.top_values[cell], self.top_indices[cell]
        return [(int(text), float(value)) for text, value in zip(texts, values) if value > -torch.inf]

    def _cell(self, labels: Sequence[str | int]) -> tuple[int, ...]:
        """Return the indices of a cell from its labels."""
        if len(labels) != len(self.axes):
            raise ValueError(f"there are {len(labels)} labels; give one for each axis: {', '.join(self.axes)}")
        return tuple(label_index(self.axes, axis, label) for axis, label in zip(self.axes, labels))

    def state(self) -> dict[str, Tensor]:
        """Return the tensors by name, as they are written to a file."""
        return {name: getattr(self, name) for name in STATE_FIELDS}

    def __repr__(self) -> str:
        return repr(self.mean)


def _largest(values: Tensor, texts: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return the `top_k` largest values of the last axis and their texts; of equal values, the earlier text first."""
    missing = top_k - values.shape[-1]
    if missing > 0:
        values, texts = functional.pad(values, (0, missing), value=-torch.inf), functional.pad(texts, (0, missing))
    order = texts.argsort(dim=-1, stable=True)
    values, texts = values.gather(-1, order), texts.gather(-1, order)
    best = values.argsort(dim=-1, descending=True, stable=True)[..., :top_k]
    return values.gather(-1, best), texts.gather(-1, best)


def _sizes(statistics: Statistics) -> str:
    return " x ".join(f"{len(labels)} {name}" for name, labels in statistics.axes.items())
