"""Analyses by a metric that gives one number for each text, compared with calls of one text each."""

import pytest
import torch
from study_models import FAMILIES, IDS, build

from tfviz.study import (
    log_probability,
    logit,
    logit_attribution,
    logit_difference,
    logit_lens,
    metric_by_layer,
    patch,
    patch_path,
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
OTHER = IDS.flip(0).roll(1, -1)
RIGHT, WRONG = torch.tensor([3, 5, 7])[: len(IDS)], torch.tensor([4, 4, 1])[: len(IDS)]
SENDERS = {"*.1.*output_heads": [0, 1]}


@pytest.fixture(scope="module")
def models():
    return {name: build(*FAMILIES[name][:2], torch.float32) for name in ("GPT-2", "Llama")}


@pytest.fixture(scope="module")
def model(models):
    return models["GPT-2"]


def metric(text, reduction="none"):
    """The metric of all texts, or of one alone."""
    chosen = slice(None) if text is None else slice(text, text + 1)
    return logit_difference(RIGHT[chosen], WRONG[chosen], reduction=reduction)


CALLS = {
    "patch": lambda model, clean, corrupt, metric: patch(model, clean, corrupt, metric=metric, progress=False),
    "patch at positions": lambda model, clean, corrupt, metric: patch(
        model, clean, corrupt, metric=metric, each="head and position", progress=False, batch_size=4
    ),
    "zeros": lambda model, clean, _, metric: patch(model, clean, metric=metric, source="zero", progress=False),
    "gradient": lambda model, clean, corrupt, metric: patch(
        model, clean, corrupt, metric=metric, source="gradient", progress=False
    ),
    "direct path": lambda model, clean, corrupt, metric: patch_path(
        model, clean, corrupt, metric=metric, progress=False
    ),
    "path to queries": lambda model, clean, corrupt, metric: patch_path(
        model, clean, corrupt, metric=metric, progress=False, receivers={"*.1.*.query": 1}
    ),
    "some senders": lambda model, clean, corrupt, metric: patch_path(
        model, clean, corrupt, metric=metric, progress=False, senders={"*.0.*output_heads": [0]}
    ),
    "parts": lambda model, clean, _, metric: logit_attribution(model, clean, target=metric),
    "heads": lambda model, clean, _, metric: logit_attribution(model, clean, target=metric, each="head"),
    "layers": lambda model, clean, _, metric: metric_by_layer(model, clean, metric),
}


@pytest.mark.parametrize(
    ("name", "call"), [*(("GPT-2", call) for call in CALLS), ("Llama", "patch"), ("Llama", "parts")]
)
def test_each_text_matches_the_text_alone(models, name, call):
    model = models[name]
    together = CALLS[call](model, IDS, OTHER, metric(None))
    assert next(iter(together.axes)) == "text"
    assert together.axes["text"] == [str(text) for text in range(len(IDS))]
    for text in range(len(IDS)):
        alone = CALLS[call](model, IDS[text : text + 1], OTHER[text : text + 1], metric(text))
        assert dict(alone.axes) == {**together.axes, "text": ["0"]}  # of a batch of one, too
        torch.testing.assert_close(together.values[text], alone.values[0], rtol=1e-4, atol=1e-5, equal_nan=True)
        for note in ("clean", "corrupt", "target"):
            if note in alone.notes:
                assert together.notes[note][text] == pytest.approx(alone.notes[note][0], abs=1e-5)


@pytest.mark.parametrize("call", ["patch", "gradient", "direct path", "heads", "layers"])
def test_mean_over_texts_matches_mean_metric(model, call):
    each = CALLS[call](model, IDS, OTHER, metric(None))
    mean = CALLS[call](model, IDS, OTHER, metric(None, "mean"))
    assert dict(mean.axes) == {name: labels for name, labels in each.axes.items() if name != "text"}
    torch.testing.assert_close(each.values.mean(0), mean.values, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("by", ["mean", "resample", "corrupt"])
def test_other_sources_keep_texts_apart(model, by):
    each, mean = (
        patch(model, IDS, OTHER, metric=metric(None, reduction), source=by, progress=False)
        for reduction in ("none", "mean")
    )
    torch.testing.assert_close(each.values.mean(0), mean.values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [logit, log_probability])
def test_token_metrics_return_one_number_per_text(model, function):
    with torch.no_grad():
        logits = model(IDS).logits
    each, mean = function(RIGHT, 2, reduction="none")(logits), function(RIGHT, 2)(logits)
    assert each.shape == (len(IDS),)
    torch.testing.assert_close(each.mean(), mean)


def test_custom_metric_may_return_one_number_per_text(model):
    table = patch(model, IDS, OTHER, metric=lambda logits: logits[:, -1, 3] - logits[:, -1, 4], progress=False)
    known = patch(model, IDS, OTHER, metric=logit_difference(3, 4, reduction="none"), progress=False)
    torch.testing.assert_close(table.values, known.values, rtol=1e-4, atol=1e-5)


def test_results_per_text_are_resumed(model, tmp_path):
    file = tmp_path / "sweep.safetensors"
    calls = [patch(model, IDS, OTHER, metric=metric(None), resume=file, progress=False).values for _ in range(2)]
    assert torch.equal(*calls)
    with pytest.raises(ValueError, match="another model, prompt, metric"):
        patch(model, IDS, OTHER, metric=metric(None, "mean"), resume=file, progress=False)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_resume_rejects_slightly_different_metric(model, tmp_path, reduction):
    file, first = tmp_path / "sweep.safetensors", metric(None, reduction)
    patch(model, IDS, OTHER, metric=first, resume=file, progress=False)
    with pytest.raises(ValueError, match="another model, prompt, metric"):
        patch(model, IDS, OTHER, metric=lambda logits: first(logits) * 1.000005, resume=file, progress=False)


def test_table_per_text_round_trips(model, tmp_path):
    from tfviz.study import Table

    table = patch(model, IDS, OTHER, metric=metric(None), progress=False)
    table.save(tmp_path / "table.safetensors")
    again = Table.load(tmp_path / "table.safetensors")
    assert torch.equal(again.values, table.values)
    assert again.notes == table.notes


def test_metric_by_layer_matches_the_lens(model):
    table = logit_lens(model, IDS, token=3)
    read = metric_by_layer(model, IDS, lambda logits: logits.softmax(-1)[:, -1, 3])
    torch.testing.assert_close(read.values, table.values[:, :, -1], rtol=1e-4, atol=1e-6)
    assert list(read.axes["layer"]) == list(table.axes["layer"])


def test_metric_by_layer_ends_with_what_the_model_says(model):
    with torch.no_grad():
        expected = metric(None, "mean")(model(IDS).logits)
    table = metric_by_layer(model, IDS, metric(None, "mean"))
    assert table.unit == "logit difference"
    assert table.values[-1].item() == pytest.approx(expected.item(), abs=1e-5)


def test_metric_that_no_patch_changes_warns(model):
    with pytest.warns(UserWarning, match=r"the metric is 1 in every run"):
        patch(model, IDS, OTHER, metric=lambda logits: torch.arange(len(logits)) * 1.0, progress=False)


@pytest.mark.parametrize(
    "wrong", [lambda logits: logits[:, -1, :2], lambda logits: logits[0, -1], lambda logits: logits[:2, -1, 3]]
)
def test_other_shapes_are_refused(model, wrong):
    for call in CALLS.values():
        with pytest.raises(
            TypeError, match=r"it must return one number, such as the mean over the batch, or one per text"
        ):
            call(model, IDS, OTHER, wrong)


def test_number_that_is_not_finite_is_named(model):
    with pytest.raises(ValueError, match=r"metric returns -?inf, by which runs cannot be compared"):
        patch(model, IDS, OTHER, metric=lambda logits: logits[:, -1, 3] / torch.tensor([1.0, 0.0, 1.0]), progress=False)
