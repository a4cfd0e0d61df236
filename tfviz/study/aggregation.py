"""`aggregate`: statistics of a measure over a data set, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from torch import Tensor, nn

from tfviz import checks
from tfviz.eval_mode import eval_mode
from tfviz.look.capture_result import Capture
from tfviz.study.batch_statistics import SINGLE_TABLE_NAME, BatchMeasurement, Measure, Result
from tfviz.study.cluster import check_client, check_picklable, measure_on_workers
from tfviz.study.collate import Tokenize, as_batches
from tfviz.study.inputs import Inputs
from tfviz.study.resumable_file import fingerprint
from tfviz.study.resumable_statistics import ResumableStatistics, merge_processes, process_rank
from tfviz.study.statistics import Statistics
from tfviz.study.table import Table
from tfviz.validation import check_callable

OneMeasure = Callable[[Capture, Inputs], Table | Tensor]
SeveralMeasures = Callable[[Capture, Inputs], Mapping[str, Table] | Mapping[str, Tensor] | Mapping[str, Table | Tensor]]


@overload
def aggregate(
    model: nn.Module,
    texts: Iterable[Any],
    measure: OneMeasure,
    *,
    sites: str | Sequence[str] = ...,
    tokenize: Tokenize | None = ...,
    batch_size: int = ...,
    top_k: int = ...,
    progress: bool = ...,
    resume: str | Path | None = ...,
    client: Any = ...,
) -> Statistics: ...
@overload
def aggregate(
    model: nn.Module,
    texts: Iterable[Any],
    measure: SeveralMeasures,
    *,
    sites: str | Sequence[str] = ...,
    tokenize: Tokenize | None = ...,
    batch_size: int = ...,
    top_k: int = ...,
    progress: bool = ...,
    resume: str | Path | None = ...,
    client: Any = ...,
) -> dict[str, Statistics]: ...
def aggregate(
    model: nn.Module,
    texts: Iterable[Any],
    measure: Measure,
    *,
    sites: str | Sequence[str] = "*.pattern",
    tokenize: Tokenize | None = None,
    batch_size: int = 16,
    top_k: int = 5,
    progress: bool = True,
    resume: str | Path | None = None,
    client: Any = None,
) -> Statistics | dict[str, Statistics]:
    """Return statistics of a measure over a data set: mean, variance and the texts with the largest values.

    Memory does not grow with the data set. If `torch.distributed` has a process group (as after `learn.fit` under
    `torchrun` or `accelerate launch`), each process measures a share of the batches and returns the complete result.
    Without a process group, results of separate processes can be merged by `Statistics.merge`. With a Dask client, its
    workers measure the batches, and the result equals that of one process.

    Args:
        model: the model to measure.
        texts: batches, such as those of a `DataLoader`: ids [batch, position], or a model's arguments by name or in a
            tuple. Or single texts, a list of strings or a `datasets.Dataset`, which are collated into batches. Every
            process iterates over all of them.
        measure: a function of the capture and the `Inputs` of each batch, such as `study.HeadScores()`. It returns a
            tensor [batch, ...], a `Table` whose first axis is "text", or a dictionary of several; a value is NaN where
            a text has none. If its attribute `lazy` is true, the capture is lazy: a map is computed when it is read.
        sites: globs of the sites to capture for the measure.
        tokenize: strings -> the model's arguments, padded, such as a Hugging Face tokenizer with `padding=True` and
            `return_tensors="pt"`; for strings only.
        batch_size: the number of single texts in a batch.
        top_k: the number of texts with the largest values to keep.
        progress: whether to show a progress bar.
        resume: a file to which the statistics are written about every 30 seconds; a call with the same arguments
            continues from it.
        client: a `distributed.Client` of Dask (the extra `cluster`). The model and the measure are copied to its
            workers once, and the texts batch by batch. None: the model runs in this process.

    Returns:
        `Statistics`, or name -> `Statistics` if the measure returns a dictionary.

    Raises:
        ImportError: a client is given, and Dask is not installed.
        LookupError: no site matches.
        TypeError: the measure returns neither a tensor nor a `Table` of one value for each text.
        ValueError: there is no text; the number of values of a batch is not its number of texts; the file belongs to
            another analysis; the client is closed or has no workers; the model or the measure cannot be pickled.

    >>> import torch
    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.randint(0, 11, (4, 5))
    >>> aggregate(gpt, ids.split(2), lambda captured, inputs: torch.ones(2), sites=[], progress=False).mean.values
    tensor(1.)
    """
    check_callable("capture", "inputs", measure=measure)
    checks.at_least(1, batch_size=batch_size, top_k=top_k)
    if client is not None:
        check_client(client)
    run = ResumableStatistics(
        resume,
        "" if resume is None else fingerprint(model, sites, top_k, batch_size, _measure_key(measure), process_rank()),
    )
    with eval_mode(model):
        batches = run.own_batches(as_batches(texts, tokenize, batch_size), model, progress)
        for found in _measure_batches(BatchMeasurement(model, measure, sites, top_k), batches, client):
            run.add(found)
    run.write()
    result = merge_processes(run.statistics)
    if not result:
        raise ValueError("there is no text to measure")
    return result[SINGLE_TABLE_NAME] if list(result) == [SINGLE_TABLE_NAME] else result


def _measure_batches(
    measurement: BatchMeasurement, batches: Iterator[tuple[int, Inputs]], client: Any
) -> Iterator[Result]:
    """Return the statistics of each batch, in order, computed in this process or by the workers of a client."""
    if client is None:
        return (measurement.run(inputs, first) for first, inputs in batches)
    check_picklable(measurement)
    return measure_on_workers(client, measurement, batches)


def _measure_key(measure: Measure) -> str:
    """Return the repr of a measure without memory addresses, so that it is the same in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(measure))
