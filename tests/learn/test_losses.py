"""Losses: what they refuse, and in what precision they are computed. Their numbers are tested beside the models."""

from math import inf, nan

import pytest
import torch
from torch import nn

from tfviz import text
from tfviz.learn import fit, losses
from tfviz.models import GPT, Seq2Seq, TransformerXL

SOURCE, TARGET = torch.tensor([[5, 3, 4], [7, 2, 0]]), torch.tensor([[1, 3, 5, 2], [1, 6, 2, 0]])


class Said(nn.Module):
    """The same logits whatever it is given, as a model under bfloat16 autocast has them."""

    def __init__(self, *shape, dtype=torch.bfloat16):
        super().__init__()
        draw = torch.Generator().manual_seed(3)
        self.logits = nn.Parameter((5 * torch.randn(*shape, generator=draw)).to(dtype))

    def forward(self, *given):
        return self.logits


LOSSES = {  # loss, shape of the logits, batch
    "next_token": (losses.next_token, (2, 3, 7), (SOURCE, TARGET[:, 1:])),
    "translation": (losses.translation(), (2, 3, 7), (SOURCE, TARGET)),
    "smoothed": (losses.translation(0.1), (2, 3, 7), (SOURCE, TARGET)),
    "scheduled": (losses.scheduled(0.5, 0.1), (2, 3, 7), (SOURCE, TARGET)),
    "label": (losses.label, (2, 5), (SOURCE, torch.tensor([4, 0]))),
    "squared": (losses.squared, (2,), (SOURCE, torch.tensor([0.5, -1.0]))),
    "carried": (losses.Carried(), (2, 3, 7), (SOURCE, TARGET[:, 1:], torch.tensor([[0, 0], [1, 0]]))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_sums_are_in_float32_where_logits_are_not(name):
    loss, shape, batch = LOSSES[name]
    model = Said(*shape)
    whole = nn.Module.__new__(Said)
    nn.Module.__init__(whole)
    whole.logits = nn.Parameter(model.logits.detach().float())
    total, count = loss(model, batch)
    expected, expected_count = loss(whole, batch)
    assert total.dtype == torch.float32
    assert (total.item(), count) == (expected.item(), expected_count)
    total.backward()
    assert model.logits.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("loss", [losses.translation(0.1), losses.scheduled(0.5, 0.1)])
def test_under_autocast_the_sum_is_that_of_float32(loss):
    torch.manual_seed(1)
    model = Seq2Seq(9, 7, dim=6, hidden=8, dropout=0.0)
    torch.manual_seed(2)
    plain, count = loss(model, (SOURCE, TARGET))
    torch.manual_seed(2)
    with torch.autocast("cpu", torch.bfloat16):
        half, half_count = loss(model, (SOURCE, TARGET))
    assert (half.dtype, half_count) == (torch.float32, count)
    assert half.item() == pytest.approx(plain.item(), rel=0.02)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 1.2, inf, nan])
@pytest.mark.parametrize("make", [losses.translation, lambda smoothing: losses.scheduled(0.5, smoothing)])
def test_a_smoothing_that_leaves_nothing_is_refused(make, smoothing):
    with pytest.raises(ValueError, match=rf"smoothing is {smoothing}; .* 0 .* below 1"):
        make(smoothing)


@pytest.mark.parametrize("wrong", [5, 99, -1, -100])
def test_a_label_that_is_no_class_is_named(wrong):
    batch = (SOURCE, torch.tensor([4, wrong]))
    with pytest.raises(ValueError, match=rf"label {wrong} .* 5 classes, .* from 0 to 4.*classes="):
        losses.label(Said(2, 5), batch)


def test_no_label_is_left_out_of_the_sum():
    """What PyTorch takes for "no label here" by default would be counted all the same."""
    for label in range(5):
        total, count = losses.label(Said(1, 5), (SOURCE[:1], torch.tensor([label])))
        assert (total.item() > 0, count) == (True, 1)


@pytest.mark.parametrize("make", [lambda: GPT(11, layers=1, heads=3, dim=6), lambda: TransformerXL(11, heads=3, dim=6)])
def test_bytes_can_be_trained_on_as_they_lie_on_disk(make):
    ids = (torch.arange(90) % 11).to(torch.uint8)
    streams = text.Streams(ids, 5, 2)
    xl = isinstance(model := make(), TransformerXL)
    batches, loss = (streams, losses.Carried()) if xl else (text.Windows(ids, 5, 2), losses.next_token)
    assert len(list(fit(model, batches, 2, loss=loss, device="cpu", progress=False))) == 2
