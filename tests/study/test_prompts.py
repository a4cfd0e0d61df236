"""Prompts that would be misread: padding where a metric reads, shifted positions, strings, ids of no token."""

import warnings

import pytest
import torch
from combinations import one_at_a_time
from study_models import FAMILIES, IDS, MASK, OTHER, SMALL, TEXTS, build, config

from tfviz import study

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
ENDS = MASK.sum(-1) - 1
DECODED = torch.tensor([[0, 5, 8, 2], [0, 9, 8, 1], [0, 4, 1, 2]])
METRICS = {
    "logit": lambda **more: study.logit(5, **more),
    "difference": lambda **more: study.logit_difference([5, 2, 1], torch.tensor([4, 4, 2]), **more),
    "log-probability": lambda **more: study.log_probability([5, 2, 1], **more),
}
CALLS = {
    "patch": lambda model, clean, corrupt, metric: study.patch(model, clean, corrupt, metric=metric, progress=False),
    "patch_path": lambda model, clean, corrupt, metric: study.patch_path(
        model, clean, corrupt, metric=metric, progress=False
    ),
    "attribute": lambda model, clean, corrupt, metric: study.logit_attribution(
        model, clean, target=metric, each="head"
    ),
}
LINEAR = [(call, metric) for call in CALLS for metric in METRICS if (call, metric) != ("attribute", "log-probability")]


def built(name):
    return build(*FAMILIES[name][:2])


def right_padded():
    return {"input_ids": IDS, "attention_mask": MASK}, {"input_ids": OTHER, "attention_mask": MASK}


def left_padded(ids=IDS, positions=False):
    """The same texts with padding in front."""
    mask = MASK.flip(1)
    rows = torch.stack([row.roll(6 - int(count)) for row, count in zip(ids, MASK.sum(-1))])
    more = {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0)} if positions else {}
    return {"input_ids": rows, "attention_mask": mask, **more}


@pytest.mark.parametrize(("call", "metric"), LINEAR)
def test_metric_at_padding_raises(call, metric):
    with pytest.raises(ValueError, match=r"reads position -1, which is padding in text 1: pad on the left, or give"):
        CALLS[call](built("GPT-2"), *right_padded(), METRICS[metric]())


@pytest.mark.parametrize("position", [4, -2, [5, 4, 4]])
def test_any_padding_position_raises(position):
    with pytest.raises(ValueError, match="is padding in text 2"):
        CALLS["patch"](built("GPT-2"), *right_padded(), study.logit(5, position=position))


@pytest.mark.parametrize(("call", "metric"), LINEAR)
def test_position_per_text_matches_mean_of_single_texts(call, metric):
    model, prompts = built("GPT-2"), right_padded()
    ids = {"logit": [(5,)] * 3, "difference": [(5, 4), (2, 4), (1, 2)], "log-probability": [(5,), (2,), (1,)]}[metric]
    kind = {"logit": study.logit, "difference": study.logit_difference, "log-probability": study.log_probability}
    found = CALLS[call](model, *prompts, METRICS[metric](position=ENDS))
    alone = [
        CALLS[call](
            model, *(prompt["input_ids"][text : text + 1, : ENDS[text] + 1] for prompt in prompts), kind[metric](*own)
        ).values
        for text, own in enumerate(ids)
    ]
    torch.testing.assert_close(found.values, torch.stack(alone).mean(0), rtol=1e-4, atol=1e-5)
    assert found.values.abs().max() > 1e-3


def test_encoder_padding_does_not_mask_decoder():
    model, (clean, corrupt) = built("T5"), right_padded()
    call = {"metric": study.logit(5), "sites": "decoder.*.SelfAttention.output_heads", "progress": False}
    clean["decoder_input_ids"] = corrupt["decoder_input_ids"] = DECODED
    assert study.patch(model, clean, corrupt, **call).values.abs().max() > 1e-3
    clean["decoder_attention_mask"] = corrupt["decoder_attention_mask"] = MASK[:, 2:]
    with pytest.raises(ValueError, match="reads position -1, which is padding in text 1"):
        study.patch(model, clean, corrupt, **call)


def test_classifier_metric_ignores_padding():
    classifier = build(
        "BertForSequenceClassification", lambda: config("Bert", max_position_embeddings=8, num_labels=4, **SMALL)
    )
    assert CALLS["patch"](classifier, *right_padded(), study.logit(3)).values.abs().max() > 1e-3


def test_custom_metric_may_read_padding():
    values = CALLS["patch"](built("GPT-2"), *right_padded(), lambda logits: logits[:, -1, 5].mean()).values
    assert values.isfinite().all()


@pytest.mark.parametrize("name", ["attention_mask", "decoder_attention_mask"])
def test_prompts_with_different_masks_raise(name):
    model = built("T5" if name.startswith("decoder") else "GPT-2")
    clean, corrupt = ({"input_ids": ids, "attention_mask": torch.ones_like(MASK)} for ids in (IDS, OTHER))
    if name.startswith("decoder"):
        clean["decoder_input_ids"] = corrupt["decoder_input_ids"] = DECODED
        clean[name] = torch.ones_like(DECODED)
        corrupt[name] = MASK.flip(1)[:, :4]
    else:
        corrupt[name] = MASK.flip(1)
    for call in ("patch", "patch_path"):
        with pytest.raises(ValueError, match=f"clean and corrupt differ in {name}, so that"):
            CALLS[call](model, clean, corrupt, study.logit(5))


READERS = {
    "patch": lambda model, prompt: CALLS["patch"](model, prompt, prompt, study.logit(5)),
    "patch_path": lambda model, prompt: CALLS["patch_path"](model, prompt, prompt, study.logit(5)),
    "attribute": lambda model, prompt: CALLS["attribute"](model, prompt, prompt, study.logit(5)),
    "lens": study.logit_lens,
    "mean_head_scores": lambda model, prompt: study.mean_head_scores(model, [prompt], ["previous"], progress=False),
    "mean_activations": lambda model, prompt: study.mean_activations(model, [prompt], progress=False),
}


@pytest.mark.parametrize("call", READERS)
def test_left_padding_without_position_ids_warns(call):
    with pytest.warns(UserWarning, match=r"padded on the left, and transformer\.wpe counts .*; give position_ids"):
        READERS[call](built("GPT-2"), left_padded())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        READERS[call](built("GPT-2"), left_padded(positions=True))
        READERS[call](built("Llama"), left_padded())  # whose positions are relative
        READERS[call](built("GPT-2"), {"input_ids": IDS, "attention_mask": torch.ones_like(MASK)})


def test_left_padding_with_position_ids_matches_right_padding():
    model = built("GPT-2")
    right = CALLS["patch"](model, *right_padded(), METRICS["difference"](position=ENDS))
    left = CALLS["patch"](
        model, left_padded(positions=True), left_padded(OTHER, positions=True), METRICS["difference"]()
    )
    torch.testing.assert_close(left.values, right.values, rtol=1e-4, atol=1e-5)


TEXT_PROMPTS = ["a text", ["a text", "another"], [["a", "text"]], {"input_ids": "a text"}, {"input_ids": ["a", "b"]}]


@pytest.mark.parametrize(("call", "prompt"), one_at_a_time(READERS, TEXT_PROMPTS))
def test_string_prompts_raise(call, prompt):
    with pytest.raises((TypeError, ValueError), match="tokenize"):
        READERS[call](built("GPT-2"), prompt)


INVALID_IDS = [
    (torch.full((TEXTS, 6), 13), ValueError, "input_ids holds 13; GPT2LMHeadModel has 13 tokens, counted from 0"),
    (torch.full((TEXTS, 6), -1), ValueError, "input_ids holds -1; GPT2LMHeadModel has 13 tokens"),
    (torch.ones(TEXTS, 6), TypeError, r"input_ids are torch\.float32; give whole numbers"),
]


@pytest.mark.parametrize(
    ("call", "named", "invalid"),
    one_at_a_time(["patch", "attribute", "lens", "mean_head_scores"], [False, True], INVALID_IDS),
)
def test_invalid_ids_raise_before_the_model_runs(call, named, invalid):
    model, (ids, error, message) = built("GPT-2"), invalid
    model.register_forward_pre_hook(lambda *_: pytest.fail("the model was run"))
    with pytest.raises(error, match=message):
        READERS[call](model, {"input_ids": ids} if named else ids)


def test_float_tokens_and_positions_raise():
    bad = torch.tensor([2.0])
    for name, call in (
        ("token", lambda: study.log_probability(bad)),
        ("position", lambda: study.log_probability(2, position=bad)),
        ("incorrect", lambda: study.logit_difference(2, bad)),
    ):
        with pytest.raises(TypeError, match=f"{name} is .*; give "):
            call()


def test_there_are_as_many_positions_as_texts():
    with pytest.raises(ValueError, match="there are 2 positions for 3 texts; give one, or one for each text"):
        study.logit(2, position=[0, 1])(torch.zeros(3, 4, 5))
