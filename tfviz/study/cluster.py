"""`aggregate` on the workers of a Dask cluster, which may be processes of one machine or of many."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tfviz.extras import extra
from tfviz.study.batch_statistics import BatchMeasurement, Result
from tfviz.study.inputs import Inputs
from tfviz.validation import describe

BATCHES_PER_THREAD = 2  # sent ahead, so that no worker waits for its next batch


def check_client(client: Any) -> None:
    """Check that a Dask client can run something.

    Raises:
        ImportError: Dask is not installed.
        TypeError: it is not a client, or one for coroutines.
        ValueError: it is closed, or has no workers.
    """
    with extra("cluster"):
        from distributed import Client
    if not isinstance(client, Client):
        raise TypeError(f"client is {describe(client)}; give a distributed.Client")
    if client.status != "running":
        raise ValueError(f"client is {client.status}; give one that is connected to a scheduler")
    if client.asynchronous:
        raise TypeError("client is asynchronous; give a distributed.Client without asynchronous=True")
    if not client.nthreads():
        raise ValueError("client has no workers; start some, and wait for them by client.wait_for_workers(1)")


def check_picklable(measurement: BatchMeasurement) -> None:
    """Check that workers can be sent a model and a measure, before Dask fails in its own words.

    Raises:
        ValueError: one of them cannot be pickled.
    """
    from cloudpickle import dump

    for name in ("model", "measure"):
        with open(os.devnull, "wb") as nowhere:
            try:
                dump(getattr(measurement, name), nowhere)
            except Exception as error:  # whatever an object's own __reduce__ raises
                raise ValueError(f"{name} cannot be pickled for the workers: {error}") from error


def measure_on_workers(
    client: Any, measurement: BatchMeasurement, batches: Iterable[tuple[int, Inputs]]
) -> Iterator[Result]:
    """Yield the statistics of each batch, in order; only a few batches are under way at a time.

    Args:
        client: a `distributed.Client`.
        measurement: what each worker gets once. Its model stays in eval mode until the end, since workers that are
            threads of this process share it.
        batches: the batches, each with the index in the data set of its first text.
    """
    sent = client.scatter(measurement, broadcast=True, hash=False)
    ahead = BATCHES_PER_THREAD * sum(client.nthreads().values())
    pending: deque[Any] = deque()
    try:
        for first, inputs in batches:
            pending.append(client.submit(_run, sent, inputs.map(lambda tensor: tensor.cpu()), first, pure=False))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        client.cancel(list(pending))


def _run(measurement: BatchMeasurement, inputs: Inputs, first: int) -> Result:
    """Measure one batch, in a worker."""
    device = next((parameter.device for parameter in measurement.model.parameters()), torch.device("cpu"))
    return measurement.run(inputs.map(lambda tensor: tensor.to(device)), first)
