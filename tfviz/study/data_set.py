"""`over`: statistics of any measure over a data set of any size."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import length_hint
from pathlib import Path
from typing import Any, overload

from torch import Tensor, distributed, nn

from tfviz import checks, schema
from tfviz.eval_mode import eval_mode
from tfviz.files import atomic, expand_user, load_tensors, save_tensors
from tfviz.look.capture import Capture
from tfviz.study.batch_statistics import SINGLE_TABLE_NAME, BatchMeasurement, Measure, Result, merge_results
from tfviz.study.cluster import check_client, check_picklable, measure_on_workers
from tfviz.study.collate import Tokenize, as_batches
from tfviz.study.inputs import Inputs
from tfviz.study.partial_results import fingerprint
from tfviz.study.statistics import STATE_FIELDS, Statistics
from tfviz.study.table import Table
from tfviz.validation import check_callable

OneMeasure = Callable[[Capture, Inputs], Table | Tensor]
SeveralMeasures = Callable[[Capture, Inputs], Mapping[str, Table] | Mapping[str, Tensor] | Mapping[str, Table | Tensor]]
FORMAT = "tfviz.over/1"
WRITE_INTERVAL_SECONDS = 30.0
_AXES_SCHEMA = schema.dict_of(schema.list_of(schema.string()))
_TABLES_SCHEMA = schema.list_of(
    schema.object_of({"name": schema.string(), "axes": _AXES_SCHEMA, "unit": schema.string()})
)


@overload
def over(
    model: nn.Module,
    texts: Iterable[Any],
    measure: OneMeasure,
    *,
    sites: str | Sequence[str] = ...,
    tokenize: Tokenize | None = ...,
    batch_size: int = ...,
    top: int = ...,
    progress: bool = ...,
    resume: str | Path | None = ...,
    client: Any = ...,
) -> Statistics: ...
@overload
def over(
    model: nn.Module,
    texts: Iterable[Any],
    measure: SeveralMeasures,
    *,
    sites: str | Sequence[str] = ...,
    tokenize: Tokenize | None = ...,
    batch_size: int = ...,
    top: int = ...,
    progress: bool = ...,
    resume: str | Path | None = ...,
    client: Any = ...,
) -> dict[str, Statistics]: ...
def over(
    model: nn.Module,
    texts: Iterable[Any],
    measure: Measure,
    *,
    sites: str | Sequence[str] = "*.pattern",
    tokenize: Tokenize | None = None,
    batch_size: int = 16,
    top: int = 5,
    progress: bool = True,
    resume: str | Path | None = None,
    client: Any = None,
) -> Statistics | dict[str, Statistics]:
    """Return statistics of a measure over a data set: mean, variance and the texts with the largest values.

    Memory does not grow with the data set. Where `torch.distributed` has a process group (as after `learn.fit` under
    `torchrun` or `accelerate launch`), every process takes its share of the batches and has the complete result at the
    end; others merge theirs by `Statistics.merge`. With a Dask client, its workers measure the batches, and the result
    is that of one process.

    Args:
        model: the model to measure.
        texts: batches, as a `DataLoader` gives them: ids [batch, position], a model's arguments by name or in a tuple;
            or single texts, a list of strings or a `datasets.Dataset`, which are batched here. Every process goes
            through all of them.
        measure: called with the capture and the inputs of each batch; returns values for each of its texts: a tensor
            [batch, ...], a `Table` whose first axis is "text", or several by name, with NaN for a text without a value.
            An example is `study.HeadScores()`. If it has an attribute `lazy` that is true, so is the capture: a map is
            computed when the measure asks for it.
        sites: globs of the sites to capture for the measure.
        tokenize: strings -> the model's arguments, padded, such as a Hugging Face tokenizer with `padding=True` and
            `return_tensors="pt"`; for strings only.
        batch_size: number of single texts in a batch.
        top: number of texts with the largest values to keep.
        progress: show a bar.
        resume: a file to which the statistics are written from time to time; a call with the same arguments continues
            from it.
        client: a `distributed.Client` of Dask (the extra `cluster`), to whose workers the model and the measure are
            copied once, and texts batch by batch; None: the model runs here.

    Returns:
        `Statistics`; or name -> `Statistics`, if the measure returns several.

    Raises:
        ImportError: a client is given, and Dask is not installed.
        LookupError: no site matches.
        TypeError: the measure returns something else.
        ValueError: there is no text; a batch has another number of values than texts; the file is of another analysis;
            the client is closed or has no workers, or the model cannot be pickled for them.

    >>> import torch
    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.randint(0, 11, (4, 5))
    >>> over(gpt, ids.split(2), lambda seen, inputs: torch.ones(2), sites=[], progress=False).mean.values
    tensor(1.)
    """
    check_callable("capture", "inputs", measure=measure)
    checks.at_least(1, batch_size=batch_size, top=top)
    if client is not None:
        check_client(client)
    run = _Run(
        resume, "" if resume is None else fingerprint(model, sites, top, batch_size, _measure_key(measure), _rank())
    )
    with eval_mode(model):
        batches = run.own_batches(as_batches(texts, tokenize, batch_size), model, progress)
        for found in _measured(BatchMeasurement(model, measure, sites, top), batches, client):
            run.add(found)
    run.write()
    result = _reduced(run.statistics)
    if not result:
        raise ValueError("there is no text to measure")
    return result[SINGLE_TABLE_NAME] if list(result) == [SINGLE_TABLE_NAME] else result


def _measured(measurement: BatchMeasurement, batches: Iterator[tuple[int, Inputs]], client: Any) -> Iterator[Result]:
    """Return the statistics of each batch, in order, measured here or by the workers of a client."""
    if client is None:
        return (measurement.run(inputs, first) for first, inputs in batches)
    check_picklable(measurement)
    return measure_on_workers(client, measurement, batches)


def _measure_key(measure: Measure) -> str:
    """Return the repr of a measure without the addresses of functions."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(measure))


class _Run:
    """The statistics so far, in a file if there is one.

    Attributes:
        statistics: by name.
        done: number of this process's batches in the statistics.
    """

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        rank, self.world = _rank()
        self.rank = rank
        self.path = None if path is None else expand_user(path)
        if self.path is not None and self.world > 1:
            self.path = self.path.with_name(f"{self.path.name}.{rank}")
        self.statistics: Result = {}
        self.done, self._fingerprint, self._written = 0, fingerprint, time.monotonic()
        self._first_batch = ""  # a hash of the first texts, stored in the file
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def own_batches(self, batches: Iterable[Any], model: nn.Module, progress: bool) -> Iterator[tuple[int, Inputs]]:
        """Yield the batches of this process that are not done, each with the number of its first text."""
        from tqdm import tqdm

        first, own, done = 0, 0, self.done
        total = length_hint(batches) or None
        with tqdm(batches, total=total, unit="batch", disable=not progress or self.rank > 0, mininterval=0.5) as bar:
            for number, batch in enumerate(bar):
                inputs = Inputs.of("a batch of texts", batch, model)
                if number == 0 and self.path is not None:
                    self._check_first(fingerprint(nn.Identity(), *inputs.tensors), self.path)
                if number % self.world == self.rank:
                    own += 1
                    if own > done:
                        yield first, inputs
                first += inputs.size

    def _check_first(self, batch: str, path: Path) -> None:
        """Raise ValueError if the file belongs to texts with another beginning."""
        if self._first_batch not in ("", batch):
            raise ValueError(f"{path} holds statistics of other texts; give another file, or delete it")
        self._first_batch = batch

    def add(self, found: Result) -> None:
        """Merge the statistics of this process's next batch; write the file if the last write was some time ago."""
        self.statistics = merge_results(self.statistics, found)
        self.done += 1
        if time.monotonic() - self._written > WRITE_INTERVAL_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the file, if there is one."""
        self._written = time.monotonic()
        if self.path is None:
            return
        tensors = {
            f"{number}.{part}": tensor
            for number, statistics in enumerate(self.statistics.values())
            for part, tensor in statistics.state().items()
        }
        described = [
            {"name": name, "axes": dict(part.axes), "unit": part.unit} for name, part in self.statistics.items()
        ]
        metadata = {
            "format": FORMAT,
            "fingerprint": self._fingerprint,
            "done": str(self.done),
            "first": self._first_batch,
        }
        with atomic(self.path) as draft:
            save_tensors(draft, tensors, {**metadata, "described": json.dumps(described)})

    def _read(self, path: Path) -> None:
        tensors, metadata = load_tensors(path)
        if metadata.get("format") != FORMAT:
            raise ValueError(f"{path} holds no statistics of `over`; give another file")
        if metadata.get("fingerprint") != self._fingerprint:
            raise ValueError(
                f"{path} holds statistics of another model or measure, of other sites or of another number of "
                "processes; give another file, or delete it"
            )
        with schema.errors_name(path):
            described = schema.parse(metadata.get("described", ""), "described")
            _TABLES_SCHEMA(described, "described")
            for number, part in enumerate(described):
                kept = {name: tensors[f"{number}.{name}"] for name in STATE_FIELDS if f"{number}.{name}" in tensors}
                if len(kept) < len(STATE_FIELDS):
                    raise ValueError(f"tensors of {part['name']!r} are missing")
                self.statistics[part["name"]] = Statistics(part["axes"], part["unit"], **kept)
            if not metadata.get("done", "").isdecimal():
                raise ValueError(f"done is {metadata.get('done')!r}; it must be an integer")
            self.done, self._first_batch = int(metadata["done"]), metadata.get("first", "")


def _rank() -> tuple[int, int]:
    """Return the rank of this process and the number of processes."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _reduced(own: Result) -> Result:
    """Merge the statistics of all processes, in each of them."""
    _, world = _rank()
    if world == 1:
        return own
    gathered: list[Any] = [None] * world
    distributed.all_gather_object(gathered, own)
    return reduce(merge_results, gathered)
