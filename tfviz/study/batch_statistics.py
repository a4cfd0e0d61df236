"""`BatchMeasurement`: the statistics of a measure over one batch, and the merge of several batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfviz.look.capture import capture
from tfviz.look.capture_result import Capture
from tfviz.schema import describe
from tfviz.study.inputs import Inputs
from tfviz.study.padding import warning_of_shifted_positions
from tfviz.study.statistics import Statistics
from tfviz.study.table import Table

Measure = Callable[
    [Capture, Inputs], Table | Tensor | Mapping[str, Table] | Mapping[str, Tensor] | Mapping[str, Table | Tensor]
]
Result = dict[str, Statistics]
SINGLE_TABLE_NAME = "value"  # the name of the table of a measure that returns only one


@dataclass(frozen=True)
class BatchMeasurement:
    """The settings with which `aggregate` measures each batch, in its own process or on a worker.

    Args:
        model: the model to measure, in eval mode.
        measure: the measure, as for `aggregate`.
        sites: globs of the sites to capture for the measure.
        top_k: the number of texts with the largest values to keep.
    """

    model: nn.Module
    measure: Measure
    sites: str | Sequence[str]
    top_k: int

    def run(self, inputs: Inputs, first: int) -> Result:
        """Run the model on a batch; return the statistics of its measures, by name.

        Args:
            inputs: the batch, on the model's device.
            first: the index of the batch's first text in the data set.

        Raises:
            LookupError: no site matches.
            TypeError: the measure returns neither a tensor nor a `Table` of one value for each text.
            ValueError: the number of values is not the number of texts.
        """
        with torch.no_grad():
            is_lazy = bool(getattr(self.measure, "lazy", False))
            with (
                warning_of_shifted_positions(self.model, inputs),
                capture(self.model, self.sites, lazy=is_lazy) as captured,
            ):
                inputs.run(self.model)
            numbers = first + torch.arange(inputs.size)
            tables = _tables(self.measure, captured, inputs)
            return {name: Statistics.from_batch(table, numbers, self.top_k) for name, table in tables}


def _tables(measure: Measure, captured: Capture, inputs: Inputs) -> Iterator[tuple[str, Table]]:
    """Yield the name and the values of each table that a measure returns; a tensor is converted to a `Table`."""
    given = measure(captured, inputs)
    for name, value in given.items() if isinstance(given, Mapping) else [(SINGLE_TABLE_NAME, given)]:
        if isinstance(value, Tensor):
            if not value.dim():
                raise TypeError(
                    f"measure returns one number for {inputs.size} texts; it must return one for each, [batch]"
                )
            axes = {f"axis {axis}": list(map(str, range(size))) for axis, size in enumerate(value.shape) if axis}
            value = Table(
                value if value.is_floating_point() else value.float(),
                {"text": list(map(str, range(len(value)))), **axes},
            )
        if not isinstance(value, Table):
            raise TypeError(
                f"measure returns {describe(value)}; it must return a tensor [batch, ...], or a Table for each text"
            )
        if len(value.values) != inputs.size:
            raise ValueError(f"measure returns {len(value.values)} values for a batch of {inputs.size} texts")
        yield str(name), value


def merge_results(known: Result, found: Result) -> Result:
    """Merge the statistics of two disjoint sets of texts, by name; either may be empty.

    Raises:
        ValueError: the two have different names or axes.
    """
    if not known or not found:
        return known or found
    if set(found) != set(known):
        raise ValueError(
            f"the measure returned {sorted(found)}, and {sorted(known)} before; return the same names for every batch"
        )
    return {name: known[name].merge(batch) for name, batch in found.items()}
