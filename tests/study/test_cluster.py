"""`aggregate` on the workers of a Dask cluster: as in one process, or an error in a sentence."""

import threading
from contextlib import contextmanager

import pytest
import torch
from calls import Calls
from study_models import DATA, FAMILIES, build, gpt

from tfviz.study import HeadScores, Inputs, aggregate, mean_head_scores
from tfviz.study.batch_statistics import BatchMeasurement
from tfviz.study.cluster import BATCHES_PER_THREAD, measure_on_workers

distributed = pytest.importorskip("distributed")


@contextmanager
def cluster(processes=False, workers=2, threads=1):
    settings = {"n_workers": workers, "threads_per_worker": threads, "processes": processes, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as running, distributed.Client(running) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as running:
        yield running


def check_equal(found, alone):
    assert list(found) == list(alone)
    for name, statistics in alone.items():
        assert found[name].axes == statistics.axes
        for part, tensor in statistics.state().items():
            torch.testing.assert_close(found[name].state()[part], tensor, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("processes", "threads"), [(False, 1), (True, 1), (False, 3)])
def test_workers_give_what_one_process_gives(processes, threads):
    # A dropout that is active would show; a text in training mode too, since threads share the model.
    model = gpt(dropout=0.5).train()
    alone = aggregate(model, DATA.split(2), HeadScores(), progress=False)
    with cluster(processes, threads=threads) as running:
        for _ in range(3):
            check_equal(aggregate(model, iter(DATA.split(2)), HeadScores(), progress=False, client=running), alone)
            assert model.training


def test_rows_and_a_measure_that_is_a_lambda(client):
    gpt2 = build(*FAMILIES["GPT-2"][:2])
    rows = [{"input_ids": row[: 3 + number % 3]} for number, row in enumerate(DATA.tolist())]
    measures = [lambda seen, inputs: inputs.kwargs["attention_mask"].sum(1), HeadScores(["first"])]
    for measure in measures:
        found, alone = (
            aggregate(gpt2, rows, measure, batch_size=2, progress=False, **more) for more in ({"client": client}, {})
        )
        check_equal(*({"": one} if not isinstance(one, dict) else one for one in (found, alone)))
    check_equal(*(mean_head_scores(gpt(), [DATA], progress=False, **more) for more in ({"client": client}, {})))


def test_no_more_batches_are_sent_than_workers_need(client):
    """Memory does not grow with the data set."""
    read = []

    def batches():
        for number in range(20):
            read.append(number)
            yield number, Inputs.from_prompt("texts", DATA[:1], model)

    model = gpt().eval()
    measurement = BatchMeasurement(model, lambda seen, inputs: inputs.tensors[0][:, 0], [], top_k=1)
    for number, found in enumerate(measure_on_workers(client, measurement, batches())):
        assert found["value"].top_indices.tolist() == [number]  # in order
        assert len(read) - number <= BATCHES_PER_THREAD * 2 + 1
    assert len(read) == 20


def test_a_run_that_stopped_goes_on(client, tmp_path):
    file, model = tmp_path / "statistics", gpt()

    def stopping():
        yield from DATA.split(2)[:4]
        raise KeyboardInterrupt

    from tfviz.study import resumable_statistics

    seconds, resumable_statistics.WRITE_INTERVAL_SECONDS = resumable_statistics.WRITE_INTERVAL_SECONDS, 0.0
    try:
        with pytest.raises(KeyboardInterrupt):
            aggregate(model, stopping(), HeadScores(), progress=False, client=client, resume=file)
    finally:
        resumable_statistics.WRITE_INTERVAL_SECONDS = seconds
    given = {"progress": False, "resume": file}
    check_equal(
        aggregate(model, DATA.split(2), HeadScores(), client=client, **given),
        aggregate(model, DATA.split(2), HeadScores(), progress=False),
    )


def test_what_a_measure_raises_comes_back(client):
    model = gpt().train()
    with pytest.raises(ZeroDivisionError):
        aggregate(model, DATA.split(2), lambda seen, inputs: 1 / 0, progress=False, client=client)
    with pytest.raises(TypeError, match="measure returns one number for 2 texts"):
        aggregate(model, DATA.split(2), lambda seen, inputs: torch.tensor(1.0), progress=False, client=client)
    with pytest.raises(LookupError, match="no site matches 'nothing'"):
        aggregate(model, DATA.split(2), HeadScores(), sites="nothing", progress=False, client=client)
    with pytest.raises(ValueError, match="there is no text to measure"):
        aggregate(model, [], HeadScores(), progress=False, client=client)
    assert model.training


def test_clients_and_models_that_cannot_be(client):
    given, lock = {"progress": False, "client": client}, threading.Lock()
    with pytest.raises(ValueError, match=r"^model cannot be pickled for the workers: cannot pickle"):
        aggregate(Calls(gpt(), lock=lock), [DATA], HeadScores(), **given)
    with pytest.raises(ValueError, match=r"^measure cannot be pickled for the workers: cannot pickle"):
        aggregate(gpt(), [DATA], lambda seen, inputs: lock.locked(), **given)
    with pytest.raises(TypeError, match=r"client is 'tcp://here:8786'; give a distributed\.Client"):
        aggregate(gpt(), [DATA], HeadScores(), client="tcp://here:8786")
    with cluster(workers=0) as idle, pytest.raises(ValueError, match="client has no workers; start some"):
        aggregate(gpt(), [DATA], HeadScores(), client=idle)
    with pytest.raises(ValueError, match="client is closed; give one that is connected"):
        aggregate(gpt(), [DATA], HeadScores(), client=idle)


def test_without_dask_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(
        ImportError, match=r"distributed is not installed: pip install 'tfviz\[cluster\] @ git\+https://\S+'$"
    ):
        aggregate(gpt(), [DATA], HeadScores(), client=object())
