"""Statistics over data sets compared with NumPy: in one pass, merged, resumed, and in two processes."""

import copy

import numpy
import pytest
import torch
from study_models import DATA, FAMILIES, IDS, VOCAB_SIZE, build, gpt
from torch import multiprocessing
from torch.utils.data import DataLoader

from tfviz import models
from tfviz.study import HeadScores, Statistics, Table, aggregate, resumable_statistics
from tfviz.study.resumable_file import fingerprint


def first_key(seen, inputs):
    """[text, layer, head]: the mean attention to the first key; NaN for texts that begin with a small id."""
    found = torch.stack([weights[..., 0].mean(-1) for weights in seen.values()], 1)
    return torch.where(inputs.tensors[0][:, :1, None] < 4, torch.nan, found)


def values(model, measure=first_key):
    """Of every text, each run on its own."""
    from tfviz.look import capture
    from tfviz.study import Inputs

    found = []
    for row in DATA:
        with torch.no_grad(), capture(model) as seen:
            model(row[None])
        found.append(measure(seen, Inputs.from_prompt("ids", row[None], model)))
    return torch.cat(found).double().numpy()


def check(found, expected, top=5):
    count = (~numpy.isnan(expected)).sum(0)
    numpy.testing.assert_allclose(found.mean.values, numpy.nanmean(expected, 0), atol=1e-6)
    numpy.testing.assert_allclose(found.variance.values, numpy.nanvar(expected, 0, ddof=1), atol=1e-6)
    numpy.testing.assert_allclose(
        found.standard_error.values, numpy.nanstd(expected, 0, ddof=1) / count**0.5, atol=1e-6
    )
    assert found.counts.tolist() == count.tolist()
    for layer, head in numpy.ndindex(expected.shape[1:]):
        column = numpy.where(numpy.isnan(expected[:, layer, head]), -numpy.inf, expected[:, layer, head])
        best = [int(text) for text in numpy.argsort(-column, kind="stable") if column[text] > -numpy.inf][:top]
        examples = found.top_texts(str(layer), str(head))
        assert [text for text, _ in examples] == best
        assert [value for _, value in examples] == pytest.approx(column[best].tolist(), abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 4, 11])
def test_over_matches_numpy(size):
    model = gpt()
    expected = values(model)
    assert 2 < numpy.isnan(expected).any((1, 2)).sum() < 9
    check(aggregate(model, DATA.split(size), first_key, progress=False), expected)
    check(aggregate(model, iter(DATA.split(size)), first_key, progress=False, top_k=3), expected, 3)
    check(aggregate(model, DataLoader(DATA, batch_size=size), first_key, progress=False), expected)


def tokenize(texts):
    return {"ids": torch.tensor([[ord(letter) - 97 for letter in text] for text in texts])}


def test_over_accepts_strings_and_rows():
    model = gpt()
    expected = values(model)
    texts = ["".join(chr(97 + number) for number in row) for row in DATA.tolist()]
    check(aggregate(model, texts, first_key, tokenize=tokenize, batch_size=3, progress=False), expected)
    check(aggregate(model, iter(texts), first_key, tokenize=tokenize, batch_size=3, progress=False), expected)
    gpt2 = build(*FAMILIES["GPT-2"][:2])
    rows = [{"input_ids": row[: 3 + number % 3], "label": 1} for number, row in enumerate(DATA.tolist())]
    lengths = aggregate(
        gpt2, rows, lambda seen, inputs: inputs.kwargs["attention_mask"].sum(1), batch_size=4, progress=False
    )
    assert lengths.mean.values == pytest.approx(numpy.mean([len(row["input_ids"]) for row in rows]))
    whole = aggregate(gpt2, rows, HeadScores(), batch_size=4, progress=False)
    single = aggregate(gpt2, rows, HeadScores(), batch_size=1, progress=False)
    for name in whole:
        torch.testing.assert_close(whole[name].mean.values, single[name].mean.values, equal_nan=True)


def test_over_accepts_sized_iterators():
    class Reader:
        def __init__(self):
            self.rows = iter(DATA.split(2))

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.rows)

        def __len__(self):
            return 6

    assert aggregate(gpt(), Reader(), lambda seen, inputs: inputs.tensors[0][:, 0], progress=False).counts == 11


@pytest.mark.parametrize("cut", [1, 4, 10])
def test_merged_halves_match_the_whole(cut):
    model = gpt()
    halves = [aggregate(model, part.split(3), first_key, progress=False) for part in (DATA[:cut], DATA[cut:])]
    halves[1].top_indices += cut
    check(halves[0].merge(halves[1]), values(model))
    with pytest.raises(ValueError, match="the axes changed from 2 axis 1 x 3 axis 2 to 2 x"):
        halves[0].merge(
            Statistics.from_batch(Table(torch.ones(2, 2), {"text": ["0", "1"], "x": ["a", "b"]}), torch.arange(2), 5)
        )


def test_missing_values_are_nan():
    found = aggregate(
        gpt(), DATA.split(4), lambda seen, inputs: torch.full((inputs.size, 2), torch.nan), progress=False
    )
    assert found.mean.values.isnan().all()
    assert found.variance.values.isnan().all()
    assert found.top_texts("0") == []
    one = aggregate(gpt(), DATA[:1].split(1), lambda seen, inputs: torch.tensor([3.0]), progress=False)
    assert one.mean.values == 3
    assert one.variance.values.isnan()
    assert one.top_texts() == [(0, 3.0)]
    with pytest.raises(ValueError, match="there are 1 labels; give one for each axis"):
        one.top_texts("0")


def test_over_resumes_after_interruption(tmp_path, monkeypatch):
    model, file, calls, limit = gpt(), tmp_path / "statistics", [], 3

    def measure(seen, inputs):
        calls.append(1)
        if len(calls) > limit:
            raise KeyboardInterrupt
        return first_key(seen, inputs)

    def run(**more):
        return aggregate(model, DATA.split(2), measure, progress=False, resume=file, **more)

    with monkeypatch.context() as patch:
        patch.setattr(resumable_statistics, "WRITE_INTERVAL_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            run()
    calls.clear()
    limit = 100
    check(run(), values(model))
    assert len(calls) == 3
    check(run(), values(model))
    assert len(calls) == 3
    with pytest.raises(ValueError, match="of another model or measure"):
        run(top_k=2)
    with pytest.raises(ValueError, match="of another model or measure"):
        aggregate(model, DATA.split(2), HeadScores(), progress=False, resume=file)
    with pytest.raises(ValueError, match="statistics holds statistics of other texts"):
        aggregate(model, DATA.flip(0).split(2), measure, progress=False, resume=file)
    with pytest.raises(ValueError, match="of another model or measure"):
        aggregate(build(lambda: models.GPT(VOCAB_SIZE, layers=2, heads=3, dim=6), None), DATA.split(2), measure,
             progress=False, resume=file)  # fmt: skip
    Table(torch.ones(1), {"a": ["x"]}).save(file)
    with pytest.raises(ValueError, match="holds no statistics of `aggregate`"):
        run()


def test_resume_rejects_other_head_kinds(tmp_path):
    file, model = tmp_path / "scores", gpt()
    given = {"progress": False, "resume": file}
    found = aggregate(model, DATA.split(3), HeadScores(["first"]), **given)
    again = aggregate(model, DATA.split(3), HeadScores(["first"]), **given)
    assert torch.equal(found["first"].mean.values, again["first"].mean.values)
    for other in (HeadScores(["first"], ignore_first_key=True), HeadScores(["previous"])):
        with pytest.raises(ValueError, match="of another model or measure"):
            aggregate(model, DATA.split(3), other, **given)


def work(rank, world, folder, batches):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder}/meet{batches}", rank=rank, world_size=world)
    found = aggregate(gpt(), DATA.split(batches), first_key, progress=False, resume=f"{folder}/part{batches}")
    torch.save(found.state(), f"{folder}/{batches}.{rank}")
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("batches", [2, 11])  # of 11 texts there is one batch: the second process has none
def test_two_processes_match_one(batches, tmp_path):
    multiprocessing.spawn(work, (2, str(tmp_path), batches), nprocs=2)
    alone = aggregate(gpt(), DATA.split(batches), first_key, progress=False)
    for rank in range(2):
        state = torch.load(tmp_path / f"{batches}.{rank}")
        found = Statistics(alone.axes, alone.unit, **state)
        check(found, values(gpt()))
        torch.testing.assert_close(found.means, alone.means, rtol=0, atol=1e-7)
        assert torch.equal(found.top_indices, alone.top_indices)


@pytest.mark.parametrize(
    ("measure", "says"),
    [
        (lambda seen, inputs: 3.0, "measure returns 3.0; it must return a tensor"),
        (lambda seen, inputs: torch.tensor(3.0), "measure returns one number for 2 texts"),
        (lambda seen, inputs: torch.ones(5), "measure returns 5 values for a batch of 2 texts"),
        (lambda seen, inputs: {"a": torch.ones(2), "b": None}, "measure returns None"),
        (
            lambda seen, inputs: torch.ones(2, int(inputs.tensors[0].shape[1])),
            "the axes changed from 5 axis 1 to 4 axis",
        ),
    ],
)
def test_invalid_measure_results_raise(measure, says):
    with pytest.raises((TypeError, ValueError), match=says):
        aggregate(gpt(), [DATA[:2], DATA[2:4, :4]], measure, progress=False)


def test_over_restores_the_model():
    model = gpt().train()
    aggregate(model, [IDS], HeadScores(), progress=False)
    with pytest.raises(ZeroDivisionError):
        aggregate(model, [IDS], lambda seen, inputs: 1 / 0, progress=False)
    assert model.training
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_fingerprint_tells_models_with_equal_sums_and_all_tensors_apart():
    torch.manual_seed(0)
    one = torch.nn.Linear(5, 3)
    other = torch.nn.Linear(5, 3)
    with torch.no_grad():
        other.weight.copy_(one.weight.flip(0))
        other.bias.copy_(one.bias)
    assert fingerprint(one) == fingerprint(copy.deepcopy(one)) != fingerprint(other)
    numbers = torch.tensor(3.0), torch.tensor(4.0), torch.tensor([3.0]), torch.tensor(True), torch.zeros(0)
    assert len({fingerprint(one, number) for number in numbers}) == len(numbers)
