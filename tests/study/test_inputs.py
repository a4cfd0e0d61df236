"""Tensors with one row for all texts give the same results as tensors with a row per text, in every analysis."""

import pytest
import torch
from study_models import FAMILIES, IDS, MASK, OTHER, TEXTS, build

from tfviz import learn, study
from tfviz.study.inputs import Inputs, attention_mask_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
POSITIONS = torch.tensor([[0, 1, 2, 2, 4, 3]])
LATER = torch.arange(6)[:, None] < torch.arange(6)
WORDS = (MASK[1:2, None, None] == 1).expand(1, 1, 6, 6)
ONE_FOR_ALL = {
    "GPT-2": {"position_ids": POSITIONS, "token_type_ids": torch.tensor([[1, 2, 1, 2, 2, 2]])},
    "Llama": {"position_ids": POSITIONS, "attention_mask": ~LATER[None, None]},
    "BERT": {"token_type_ids": torch.tensor([[0, 0, 1, 1, 0, 1]]), "attention_mask": WORDS},
}


def metric(logits):
    return logits[:, -1, 5].mean() - 0.5 * logits[1, 1, 3]


def prompts(name, ids, expanded):
    more = ONE_FOR_ALL[name]
    return {
        "input_ids": ids,
        **{key: value.expand(TEXTS, *value.shape[1:]).clone() if expanded else value for key, value in more.items()},
    }


def analyses(model, name, expanded):
    clean, corrupt = prompts(name, IDS, expanded), prompts(name, OTHER, expanded)
    call = {"metric": metric, "progress": False}
    heads = study.mean_head_scores(model, [dict(reversed(clean.items()))], ["previous", "two back"], progress=False)
    other = build(*FAMILIES[name][:2])
    torch.nn.init.normal_(next(other.parameters()))
    yield model(**clean).logits.detach()
    yield study.patch(model, clean, corrupt, batch_size=7, **call).values
    yield study.patch(model, clean, corrupt, source="gradient", **call).values
    yield study.patch_path(model, clean, corrupt, batch_size=7, **call).values
    yield heads["previous"].mean.values
    yield heads["two back, uniform attention"].mean.values
    yield from (part.mean.values for part in study.compare(model, other, [clean], progress=False).values())
    yield study.logit_lens(model, clean).values
    if name != "BERT":
        yield study.logit_attribution(model, clean, target=metric, each="head").values


@pytest.mark.parametrize("name", ONE_FOR_ALL)
def test_shared_rows_match_expanded_rows_in_every_analysis(name):
    model = build(*FAMILIES[name][:2])
    for one, each in zip(analyses(model, name, False), analyses(model, name, True), strict=True):
        torch.testing.assert_close(one, each, equal_nan=True, rtol=1e-4, atol=1e-5)
        assert one.nan_to_num().abs().max() > 1e-3


def test_inputs_repeat_and_text_keep_shared_rows():
    inputs = Inputs((IDS, 4), {"position_ids": POSITIONS, "attention_mask": MASK}, TEXTS)
    twice = inputs.repeat(2)
    assert twice.size == 6
    assert torch.equal(twice.args[0], torch.cat([IDS, IDS]))
    assert torch.equal(twice.kwargs["position_ids"], POSITIONS)
    assert torch.equal(twice.kwargs["attention_mask"], torch.cat([MASK, MASK]))
    one = inputs.text(2)
    assert (one.size, one.args[1]) == (1, 4)
    assert torch.equal(one.args[0], IDS[2:])
    assert torch.equal(one.kwargs["position_ids"], POSITIONS)
    assert torch.equal(one.repeat(2).kwargs["position_ids"], POSITIONS.expand(2, -1))


def test_word_mask_accepts_any_attention_mask():
    inputs = Inputs.from_prompt("ids", {"input_ids": IDS}, build(*FAMILIES["GPT-2"][:2]))
    seen = ~LATER & (MASK[:, None, None] == 1)
    lowest = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
    for mask in (MASK, MASK.bool(), seen, seen.long(), lowest, torch.where(seen, 0.0, -torch.inf)):
        given = Inputs((), {**inputs.kwargs, "attention_mask": mask}, TEXTS)
        assert torch.equal(attention_mask_of(given, IDS), MASK == 1)
    given = Inputs((), {"attention_mask": MASK[2:]}, TEXTS)
    assert torch.equal(attention_mask_of(given, IDS), MASK[2:].expand(3, -1) == 1)
    with pytest.raises(ValueError, match=r"the attention mask is \[2, 6\], and the ids \[3, 6\]"):
        attention_mask_of(Inputs((), {"attention_mask": MASK[1:]}, TEXTS), IDS)


@pytest.mark.parametrize("parts", [1, 2])
def test_fit_with_shared_rows_matches_expanded_rows(parts):
    losses = []
    for expanded in (False, True):
        batch = prompts("GPT-2", IDS, expanded) | {"labels": OTHER}
        model = build(*FAMILIES["GPT-2"][:2])
        steps = learn.fit(model, [batch] * 2, lr=0.01, gradient_accumulation_steps=parts, progress=False)
        losses.append([step.loss for step in steps])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][0] != pytest.approx(losses[0][1], rel=1e-3)
