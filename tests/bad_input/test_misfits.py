"""Mismatched ids, labels, masks, logits and values raise errors and are never silently accepted."""

from functools import partial

import pytest
import small_models
import torch
from calls import Calls

from tfviz import generate, learn, look, models, text, view
from tfviz.layers import masks
from tfviz.learn import losses

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
gpt = partial(small_models.gpt, std=None)


def constant_model(said):
    """A model that says the same to everything."""
    return Calls(lambda *_: said)


def zero_model(*shape):
    return constant_model(torch.zeros(*shape))


def test_capture_affects_only_its_model():
    one, other = gpt(), gpt()
    with pytest.raises(LookupError, match="was not called"), look.capture(one):
        other(IDS)
    whole = models.Transformer(11, heads=3, dim=6, layers=2).eval()
    with look.capture(whole.decoder[1]) as seen:
        whole(IDS, IDS)
    assert list(seen) == ["attention.pattern", "cross.pattern"]
    plain = other(IDS)
    with look.capture(one, "*.pattern", edit={"*.pattern": torch.zeros_like}):
        one(IDS)
        assert torch.equal(other(IDS), plain)


@pytest.mark.parametrize(
    ("loss", "logits", "batch"),
    [
        (losses.next_token, zero_model(2, 3, 11), (IDS, torch.tensor([[1, 2, -100], [3, 4, 5]]))),
        (losses.next_token, zero_model(2, 3, 11), (IDS, IDS.T)),
        (
            losses.masked_lm,
            constant_model(models.bert.BERTOutput(torch.zeros(6, 11), torch.zeros(2, 2))),
            (IDS, IDS * 0 - 100),
        ),
        (losses.classification, zero_model(4, 3), (IDS, torch.tensor([0.0, 1, 2, 0]))),
        (losses.classification, zero_model(4, 3), (IDS, torch.tensor([[0], [1], [2], [0]]))),
        (losses.classification, zero_model(4, 3), (IDS, torch.tensor([0, 1, 3, 0]))),
        (losses.squared_error, zero_model(4), (IDS, torch.zeros(4, 1))),
    ],
)
def test_losses_reject_mismatched_targets(loss, logits, batch):
    with pytest.raises(ValueError, match=r"target|label|values"):
        loss(logits, batch)


def test_documents_mask_applies_to_each_text():
    kinds = torch.tensor([[0, 0, 0], [0, 1, 1]])
    model = gpt(mask=masks.causal & masks.documents(kinds))
    both = model(IDS)
    for row in range(2):
        alone = gpt(mask=masks.causal & masks.documents(kinds[row : row + 1]))
        assert torch.allclose(both[row], alone(IDS[row : row + 1])[0], atol=1e-6)


def test_beam_search_with_nan_logits_raises():
    model = models.Transformer(11, heads=2, dim=8, layers=1)
    torch.nn.init.constant_(model.decoder_norm.weight, torch.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        generate.beam.search(model, IDS, bos=1, eos=2)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: view.curves([]),
        lambda: view.lines({}, x="x", y="y", title="t"),
        lambda: view.lines({"a": ([], [])}, x="x", y="y", title="t"),
        lambda: view.bars([], {}, "t"),
        lambda: view.bar_table(["a"], {}, "t"),
        lambda: view.bars(["a", "b", "c"], {"x": [0.5]}, "t"),
        lambda: view.bar_table(["a"], {"x": [float("nan")]}, "t"),
        lambda: view.head_table({"a": torch.rand(2, 3), "b": torch.rand(3, 2)}),
        lambda: view.head_table({"a": torch.full((2, 3), torch.nan)}),
        lambda: view.head_table({"a": torch.full((2, 3), 9.0)}),
        lambda: view.head_table({}),
    ],
)
def test_charts_reject_invalid_values(draw):
    with pytest.raises((ValueError, TypeError), match=r"draw|must be|alike|shares lie|columns|holds nan"):
        draw()


def test_curves_accept_training_run():
    batches = text.Windows(torch.arange(50) % 11, 7, 2)
    assert "after 3 steps" in repr(view.curves(learn.fit(gpt(), batches, 3, device="cpu", progress=False)))
