"""Measure the batches of `aggregate` on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tfviz.extras import extra
from tfviz.schema import describe
from tfviz.study.batch_statistics import BatchMeasurement, Result
from tfviz.study.inputs import Inputs

BATCHES_PER_THREAD = 2  # sent ahead, so that no worker waits for its next batch


def check_client(client: Any) -> None:
    """Check that an object is a Dask client that can run tasks.

    Raises:
        ImportError: Dask is not installed.
        TypeError: the object is not a client, or the client is asynchronous.
        ValueError: the client is closed, or has no workers.
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
    """Check that the model and the measure can be pickled for the workers, with a clearer error than Dask's.

    Raises:
        ValueError: the model or the measure cannot be pickled.
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
    """Yield the statistics of each batch, in order; only a few batches are submitted at a time.

    Args:
        client: a `distributed.Client`.
        measurement: the model and the measure, sent to each worker once. The model must stay in eval mode until the
            end, since workers that are threads of this process share it.
        batches: pairs of the index of a batch's first text in the data set, and the batch.
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
    """Return the statistics of one batch; runs on a worker."""
    device = next((parameter.device for parameter in measurement.model.parameters()), torch.device("cpu"))
    return measurement.run(inputs.map(lambda tensor: tensor.to(device)), first)
