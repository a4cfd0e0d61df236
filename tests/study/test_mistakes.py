"""Misuse raises a clear error."""

import pytest
import torch
from combinations import one_at_a_time
from study_models import FAMILIES, IDS, OTHER, build

from tfviz import look, study

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
METRIC = study.logit_difference(5, 6)
QUERY = "transformer.h.1.attn.query"


def built(name):
    return build(*FAMILIES[name][:2])


def patch(model, **more):
    return study.patch(model, IDS, OTHER, **{"metric": METRIC, "progress": False, **more})


def path(model, **more):
    return study.patch_path(model, IDS, OTHER, **{"metric": METRIC, "progress": False, **more})


def counted(model):
    """Count the runs of a model, in a list."""
    runs = []
    model.register_forward_pre_hook(lambda *_: runs.append(1))
    return runs


@pytest.mark.parametrize(
    ("heads", "side"), one_at_a_time([["1", "3"], "1", ("3", 1), {"1", "3"}, "12"], ["receivers", "senders"])
)
def test_head_labels_match_numbers(heads, side):
    model, site = built("GPT-2"), QUERY if side == "receivers" else "transformer.h.0.attn.output_heads"
    if heads == "12":
        with pytest.raises(ValueError, match="has no head 12; it has 4"):
            path(model, **{side: {site: heads}})
        return
    numbers = [int(heads)] if isinstance(heads, str) else sorted(map(int, heads))
    found, expected = (path(model, **{side: {site: given}}) for given in (heads, numbers))
    assert torch.equal(found.values.nan_to_num(7), expected.values.nan_to_num(7))
    assert sorted(found.notes[side][site]) == numbers


def test_table_labels_name_a_receiver():
    model = built("GPT-2")
    ((layer, head), _), *_ = study.patch(model, IDS, OTHER, metric=METRIC, progress=False).top(1)
    found = path(model, receivers={f"transformer.h.{layer}.attn.value": head})
    assert found.notes["receivers"] == {f"transformer.h.{layer}.attn.value": [int(head)]}


@pytest.mark.parametrize(
    ("receivers", "same"),
    [
        ("*.query", ["transformer.h.0.attn.query", QUERY]),
        (["*.query", "*.h.1.*.value"], ["transformer.h.0.attn.query", QUERY, "transformer.h.1.attn.value"]),
        ({"transformer.h.1.*query": 1}, {QUERY: [1]}),
        ({"*.h.?.attn.query": "1"}, {"transformer.h.0.attn.query": [1], QUERY: [1]}),
        ({QUERY: 2, "*.query": 1}, {QUERY: [2], "transformer.h.0.attn.query": [1]}),
    ],
)
def test_receiver_glob_matches_its_sites(receivers, same):
    model = built("GPT-2")
    found, expected = path(model, receivers=receivers), path(model, receivers=same)
    assert torch.equal(found.values, expected.values)
    assert found.values.abs().max() > 1e-4
    assert found.notes["receivers"] == expected.notes["receivers"]
    assert set(found.notes["receivers"]) == set(same)


HEADLESS = {"sites": "transformer.h.?"}
TOKENS = {"each": "position", "tokens": ["a", "b"]}


@pytest.mark.parametrize(
    ("call", "more", "says"),
    [
        *((patch, {**HEADLESS, "each": each}, "has no heads") for each in ("head", "head and position")),
        *(
            (patch, {**TOKENS, "source": source}, "there are 2 tokens and 6 positions")
            for source in ("clean", "corrupt", "zero", "gradient")
        ),
        *(
            (path, {**more, "source": source}, "has no head 4; it has 4|there are 2 tokens and 6 positions")
            for more, source in one_at_a_time(
                [{"receivers": {QUERY: 4}}, {"senders": {"*.output_heads": 4}}, TOKENS], ["clean", "corrupt"]
            )
        ),
    ],
)
def test_heads_and_tokens_are_checked_after_one_run(call, more, says):
    model = built("GPT-2")
    runs = counted(model)
    with pytest.raises(ValueError, match=says):
        call(model, **more)
    assert len(runs) == 1


@pytest.mark.parametrize("make", [look.edits.zero, look.edits.uniform, look.edits.mean])
def test_edits_accept_head_labels(make):
    pattern = torch.rand(2, 4, 3, 3)
    for labels, numbers in (("1", 1), (["1", "3"], [1, 3]), ({"3", "1"}, {1, 3})):
        one, other = (edit(pattern) if edit.__class__.__name__ == "function" else edit(pattern, "pattern")
                      for edit in (make(head=labels), make(head=numbers)))  # fmt: skip
        assert torch.equal(one, other)
        assert not torch.equal(one, pattern)


CONSTANT = [lambda logits: torch.tensor(3.0), lambda logits: 3.0, lambda logits: (logits * 0).sum() + 3]


@pytest.mark.parametrize("metric", CONSTANT)
def test_constant_metric_warns(metric):
    model = built("GPT-2")
    for call in (
        lambda: study.patch(model, IDS, OTHER, metric=metric, progress=False),
        lambda: study.patch(model, IDS, metric=metric, source="zero", progress=False),
        lambda: path(model, metric=metric),
    ):
        with pytest.warns(UserWarning, match="the metric is 3 in every run, whatever is patched: does it read the lo"):
            call()


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_constant_metric_of_equal_prompts_does_not_warn(name):
    study.patch(built(name), IDS, IDS, metric=lambda logits: (logits.argmax(-1) == 50).float().mean(), progress=False)


def test_means_by_position_of_unequal_lengths_raise():
    texts = [IDS, IDS[:, :4]]
    with pytest.raises(ValueError, match="texts have 6 and 4 positions; by_position needs texts of one length"):
        study.mean_activations(built("GPT-2"), texts, by_position=True, progress=False)
    study.mean_activations(built("GPT-2"), texts, progress=False)


def previous(model, batch):
    return study.mean_head_scores(model, [batch], ["previous"], progress=False)["previous"].mean.values


@pytest.mark.parametrize(("name", "kind"), one_at_a_time(["GPT-2", "Llama", "BERT", "T5"], [tuple, list]))
def test_batch_of_ids_and_targets_raises_before_a_run(name, kind):
    """The second positional argument of these models is an attention mask, or a cache."""
    model = built(name)
    runs = counted(model)
    with pytest.raises(ValueError, match=r"positional arguments; of .* give ids alone, batch\[0\]; here"):
        previous(model, kind([IDS[:, :-1], IDS[:, 1:]]))
    assert not runs


@pytest.mark.parametrize("targets", [IDS.roll(-1, 1), torch.full_like(IDS, -100)])
def test_labels_do_not_change_scores(targets):
    model = built("GPT-2")
    assert torch.equal(previous(model, {"input_ids": IDS, "labels": targets}), previous(model, IDS))


def test_equivalent_masks_give_the_same_scores():
    model, later = built("Llama"), torch.arange(6)[:, None] < torch.arange(6)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]])
    seen = ~later & (mask[:, None, None] == 1)
    lowest = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
    expected = previous(model, {"input_ids": IDS, "attention_mask": mask})
    for same in (mask.bool(), mask.float(), seen, lowest, torch.where(seen, 0.0, -torch.inf)):
        found = previous(model, {"input_ids": IDS, "attention_mask": same})
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(expected, previous(model, IDS), atol=1e-3)
    assert torch.equal(previous(model, (IDS, mask)), expected)  # positional arguments, as they are meant


def test_image_heads_are_scored_by_kinds_without_tokens():
    model, pictures = built("ViT"), torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    found = study.mean_head_scores(model, [pictures], ["first", "previous", "current", "two back"], progress=False)
    with torch.no_grad(), look.capture(model) as seen:
        model(pictures)
    patterns = torch.stack(list(seen.values()), 1)  # [text, layer, head, query, key]
    expected = {
        "first": patterns[..., 1:, 0].mean((0, -1)),
        "previous": patterns.diagonal(-1, -2, -1).mean((0, -1)),
        "current": patterns.diagonal(0, -2, -1).mean((0, -1)),
        "two back": patterns.diagonal(-2, -2, -1).mean((0, -1)),
    }
    for kind, values in expected.items():
        torch.testing.assert_close(found[kind].mean.values, values)
    torch.testing.assert_close(found["first, uniform attention"].mean.values, torch.full((2, 4), 0.2))
    for kinds in (["first", "duplicate"], ["induction"], {"mine": lambda ids: ids[:, :, None] == ids[:, None]}):
        with pytest.raises(ValueError, match=r"the batch has no ids \[batch, position\], by which tokens are compared"):
            study.mean_head_scores(model, [pictures], kinds, progress=False)


def test_kind_without_cells_warns():
    model = built("GPT-2")
    with pytest.warns(UserWarning, match="no text has a cell of 'induction', 'none': their scores are NaN") as told:
        found = study.mean_head_scores(
            model,
            [torch.tensor([[1, 2, 3, 4]])],
            {"induction": look.head_scores.SCORE_KINDS["induction"], "none": lambda ids: torch.zeros(1, 4, 4) > 0,
             "previous": look.head_scores.SCORE_KINDS["previous"]},
            progress=False,
        )  # fmt: skip
    assert len(told) == 1
    assert found["induction"].mean.values.isnan().all()
    assert found["previous"].mean.values.isfinite().all()
    everything = study.mean_head_scores(
        model, [torch.tensor([[1, 2, 3, 4]])], progress=False
    )  # of all kinds, some lack cells
    assert everything["induction"].mean.values.isnan().all()


@pytest.mark.parametrize(
    ("metric", "error"),
    [
        (lambda out: out.logits[:, -1, 5].mean(), AttributeError),
        (lambda out: out["logits"].sum(), (IndexError, TypeError)),
        (lambda out: out[0][:, -1, 5].sum(), IndexError),
        (lambda logits: logits[:, 9, 5].mean(), IndexError),
    ],
)
def test_metric_error_names_the_argument_of_the_metric(metric, error):
    model, calls = built("GPT-2"), {"progress": False, "metric": metric}
    for name, call in (
        ("metric", lambda: study.patch(model, IDS, OTHER, **calls)),
        ("metric", lambda: study.patch(model, IDS, OTHER, source="gradient", **calls)),
        ("metric", lambda: study.patch_path(model, IDS, OTHER, **calls)),
        ("target", lambda: study.logit_attribution(model, IDS, target=metric)),
    ):
        with pytest.raises(error) as caught:
            call()
        (note,) = caught.value.__notes__
        assert note.startswith(f"{name} is called with the logits, a tensor [3, 6, 13], not with the model's output")


def test_metric_error_of_tfviz_has_no_note():
    with pytest.raises(ValueError, match="there are 2 tokens for 3 texts") as caught:
        study.patch(built("GPT-2"), IDS, OTHER, metric=study.logit([1, 2]), progress=False)
    assert not hasattr(caught.value, "__notes__")
