"""Losses: what they refuse, and in what precision they are computed. Their numbers are tested beside the models."""

from math import inf, nan

import pytest
import torch
from torch import nn

from tfviz import text
from tfviz.layers import Bigrams
from tfviz.learn import fit, losses
from tfviz.models import GPT, Classifier, Seq2Seq, Transformer, TransformerXL

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
    "scheduled": (losses.scheduled_sampling(0.5, 0.1), (2, 3, 7), (SOURCE, TARGET)),
    "label": (losses.classification, (2, 5), (SOURCE, torch.tensor([4, 0]))),
    "squared": (losses.squared_error, (2,), (SOURCE, torch.tensor([0.5, -1.0]))),
    "carried": (losses.SegmentRecurrentLoss(), (2, 3, 7), (SOURCE, TARGET[:, 1:], torch.tensor([[0, 0], [1, 0]]))),
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


@pytest.mark.parametrize("loss", [losses.translation(0.1), losses.scheduled_sampling(0.5, 0.1)])
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
@pytest.mark.parametrize("make", [losses.translation, lambda smoothing: losses.scheduled_sampling(0.5, smoothing)])
def test_a_smoothing_that_leaves_nothing_is_refused(make, smoothing):
    with pytest.raises(ValueError, match=rf"smoothing is {smoothing}; .* 0 .* below 1"):
        make(smoothing)


@pytest.mark.parametrize("wrong", [5, 99, -1, -100])
def test_a_label_that_is_no_class_is_named(wrong):
    batch = (SOURCE, torch.tensor([4, wrong]))
    with pytest.raises(ValueError, match=rf"label {wrong} .* 5 classes, .* from 0 to 4.*classes="):
        losses.classification(Said(2, 5), batch)


def test_no_label_is_left_out_of_the_sum():
    """What PyTorch takes for "no label here" by default would be counted all the same."""
    for label in range(5):
        total, count = losses.classification(Said(1, 5), (SOURCE[:1], torch.tensor([label])))
        assert (total.item() > 0, count) == (True, 1)


class Pooled(nn.Module):
    """Embeddings, dropout, a mean over the row, logits."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.tokens, self.unused = nn.Embedding(9, 4), nn.Embedding(9, 4)
        self.dropout, self.to_logits = nn.Dropout(0.4), nn.Linear(4, 3)

    def forward(self, ids):
        return self.after(self.tokens(ids))

    def after(self, vectors):
        return self.to_logits(self.dropout(vectors).tanh().mean(1))


LABELS = torch.tensor([2, 0])


def test_adversarial_is_the_mean_of_both_passes_under_one_dropout():
    model = Pooled()
    torch.manual_seed(8)
    total, count = losses.adversarial(epsilon=0.3)(model, (SOURCE, LABELS))
    after = torch.rand(1)

    vectors = model.tokens(SOURCE).detach().requires_grad_()
    torch.manual_seed(8)
    clean = nn.functional.cross_entropy(model.after(vectors), LABELS, reduction="sum")
    assert torch.rand(1).equal(after)  # as if there had been one pass
    (slope,) = torch.autograd.grad(clean, vectors)
    moved = []
    for row, down in zip(vectors.detach(), slope):
        moved.append(row + 0.3 * row.norm() * down / down.norm())
        assert (moved[-1] - row).norm() == pytest.approx(0.3 * row.norm())
    torch.manual_seed(8)
    worse = nn.functional.cross_entropy(model.after(torch.stack(moved)), LABELS, reduction="sum")
    assert worse > clean
    torch.testing.assert_close(total, (clean + worse) / 2)
    assert count == 2


def test_adversarial_gradients_are_those_of_fixed_moves():
    model = Pooled().train()
    model.dropout.p = 0.0
    losses.adversarial(epsilon=0.3)(model, (SOURCE, LABELS))[0].backward()
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert set(found) == {"tokens.weight", "to_logits.weight", "to_logits.bias"}
    vectors = model.tokens(SOURCE)
    clean = nn.functional.cross_entropy(model.after(vectors), LABELS, reduction="sum")
    (slope,) = torch.autograd.grad(clean, vectors, retain_graph=True)
    lengths = [one.detach().flatten(1).norm(dim=1)[:, None, None] for one in (vectors, slope)]
    worse = model.after(vectors + 0.3 * slope * lengths[0] / lengths[1])
    total = (clean + nn.functional.cross_entropy(worse, LABELS, reduction="sum")) / 2
    names = ["tokens.weight", "to_logits.weight"]
    for name, wanted in zip(names, torch.autograd.grad(total, [model.get_parameter(name) for name in names])):
        torch.testing.assert_close(found[name], wanted)


def test_adversarial_measures_as_the_loss_does():
    model = Pooled().eval()
    assert losses.adversarial()(model, (SOURCE, LABELS)) == losses.classification(model, (SOURCE, LABELS))
    with torch.no_grad():
        model.train()
        model.dropout.p = 0.0
        assert losses.adversarial()(model, (SOURCE, LABELS)) == losses.classification(model, (SOURCE, LABELS))


def test_adversarial_leaves_no_hook_and_says_what_it_cannot_move():
    model = Pooled()
    with pytest.raises(ValueError, match="unused has no part in the loss"):
        losses.adversarial(embedding="unused")(model, (SOURCE, LABELS))
    with pytest.raises(ValueError, match="Pooled has no words: embedding= names the module"):
        losses.adversarial(embedding="words")(model, (SOURCE, LABELS))
    with pytest.raises(ValueError, match="label 3 is none"):
        losses.adversarial()(model, (SOURCE, torch.tensor([2, 3])))
    losses.adversarial()(model, (SOURCE, LABELS))
    assert not any(module._forward_hooks for module in model.modules())


def test_adversarial_moves_each_call_of_a_shared_table_and_trains():
    """An encoder-decoder reads two texts by one table; a classifier's embedding has a module of its name inside."""
    torch.manual_seed(4)
    pairs = [(SOURCE, TARGET)] * 3
    model = Transformer(9, layers=1, heads=3, dim=6, dropout=0.0)
    loss = losses.adversarial(losses.translation(), embedding="source")
    steps = list(fit(model, pairs, 3, loss=loss, device="cpu", progress=False))
    assert len(steps) == 3
    model = Classifier(9, layers=1, heads=2, dim=6, embedding=lambda vocab, dim: Bigrams(vocab, dim, rows=7))
    total, _ = losses.adversarial()(model, (SOURCE, torch.tensor([1, 0])))
    total.backward()
    assert model.tokens.pairs.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("make", [lambda: GPT(11, layers=1, heads=3, dim=6), lambda: TransformerXL(11, heads=3, dim=6)])
def test_bytes_can_be_trained_on_as_they_lie_on_disk(make):
    ids = (torch.arange(90) % 11).to(torch.uint8)
    streams = text.Streams(ids, 5, 2)
    xl = isinstance(model := make(), TransformerXL)
    batches, loss = (streams, losses.SegmentRecurrentLoss()) if xl else (text.Windows(ids, 5, 2), losses.next_token)
    assert len(list(fit(model, batches, 2, loss=loss, device="cpu", progress=False))) == 2
