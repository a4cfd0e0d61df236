"""Losses: invalid arguments, precision, and adversarial training (their values are tested beside the models)."""

from math import inf, nan

import pytest
import torch
from torch import nn
from torch.nn import functional

from tfviz import text
from tfviz.layers import BigramEmbedding
from tfviz.learn import fit, losses
from tfviz.models import GPT, Classifier, Seq2Seq, Transformer, TransformerXL

SOURCE, TARGET = torch.tensor([[5, 3, 4], [7, 2, 0]]), torch.tensor([[1, 3, 5, 2], [1, 6, 2, 0]])
LABELS = torch.tensor([2, 0])


class Constant(nn.Module):
    """The same logits for any input, in any dtype, as a model under bfloat16 autocast has them."""

    def __init__(self, *shape, dtype=torch.bfloat16):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        logits = (5 * torch.randn(*shape, generator=generator)).bfloat16()
        self.logits = nn.Parameter(logits.to(dtype))

    def forward(self, *inputs):
        return self.logits


LOSSES = {  # loss, shape of the logits, batch
    "next_token": (losses.next_token, (2, 3, 7), (SOURCE, TARGET[:, 1:])),
    "translation": (losses.translation(0.1), (2, 3, 7), (SOURCE, TARGET)),
    "classification": (losses.classification, (2, 5), (SOURCE, torch.tensor([4, 0]))),
    "squared_error": (losses.squared_error, (2,), (SOURCE, torch.tensor([0.5, -1.0]))),
    "segments": (losses.SegmentRecurrentLoss(), (2, 3, 7), (SOURCE, TARGET[:, 1:], torch.tensor([[0, 0], [1, 0]]))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_sum_in_float32(name):
    loss, shape, batch = LOSSES[name]
    model = Constant(*shape)
    total, count = loss(model, batch)
    expected, expected_count = loss(Constant(*shape, dtype=torch.float32), batch)
    assert total.dtype == torch.float32
    assert (total.item(), count) == (expected.item(), expected_count)
    total.backward()
    assert model.logits.grad.dtype == torch.bfloat16


def test_translation_loss_under_autocast_is_float32():
    torch.manual_seed(1)
    model, loss = Seq2Seq(9, 7, dim=6, hidden=8, dropout=0.0), losses.translation(0.1)
    expected, count = loss(model, (SOURCE, TARGET))
    with torch.autocast("cpu", torch.bfloat16):
        half, half_count = loss(model, (SOURCE, TARGET))
    assert (half.dtype, half_count) == (torch.float32, count)
    assert half.item() == pytest.approx(expected.item(), rel=0.02)


@pytest.mark.parametrize("value", [-0.1, 1.0, inf, nan])
def test_translation_rejects_invalid_label_smoothing(value):
    with pytest.raises(ValueError, match=f"label_smoothing is {value}"):
        losses.translation(value)


@pytest.mark.parametrize("label", [5, 99, -1, -100])
def test_classification_rejects_invalid_labels(label):
    """-100 is what PyTorch leaves out by default; counted all the same, it would make the mean too small."""
    with pytest.raises(ValueError, match=rf"label {label} .* 5 classes"):
        losses.classification(Constant(2, 5), (SOURCE, torch.tensor([4, label])))


class Pooled(nn.Module):
    """Embeddings, dropout, a mean over the row, logits."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.tokens, self.unused = nn.Embedding(9, 4), nn.Embedding(9, 4)
        self.dropout, self.to_logits = nn.Dropout(0.4), nn.Linear(4, 3)

    def forward(self, ids):
        return self.classify(self.tokens(ids))

    def classify(self, vectors):
        return self.to_logits(self.dropout(vectors).tanh().mean(1))


def cross_entropy(logits):
    return functional.cross_entropy(logits, LABELS, reduction="sum")


def test_adversarial_averages_both_passes_with_same_dropout():
    model = Pooled()
    torch.manual_seed(8)
    total, count = losses.adversarial(epsilon=0.3)(model, (SOURCE, LABELS))
    after = torch.rand(1)

    vectors = model.tokens(SOURCE).detach().requires_grad_()
    torch.manual_seed(8)
    clean = cross_entropy(model.classify(vectors))
    assert torch.rand(1).equal(after)  # as if there had been one pass
    (gradient,) = torch.autograd.grad(clean, vectors)
    moved = []
    for row, slope in zip(vectors.detach(), gradient):
        moved.append(row + 0.3 * row.norm() * slope / slope.norm())
        assert (moved[-1] - row).norm() == pytest.approx(0.3 * row.norm())
    torch.manual_seed(8)
    worse = cross_entropy(model.classify(torch.stack(moved)))
    assert worse > clean
    torch.testing.assert_close(total, (clean + worse) / 2)
    assert count == 2


def test_adversarial_gradients_match_fixed_perturbation():
    model = Pooled().train()
    model.dropout.p = 0.0
    losses.adversarial(epsilon=0.3)(model, (SOURCE, LABELS))[0].backward()
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert set(found) == {"tokens.weight", "to_logits.weight", "to_logits.bias"}
    vectors = model.tokens(SOURCE)
    clean = cross_entropy(model.classify(vectors))
    (gradient,) = torch.autograd.grad(clean, vectors, retain_graph=True)
    norms = [one.detach().flatten(1).norm(dim=1)[:, None, None] for one in (vectors, gradient)]
    total = (clean + cross_entropy(model.classify(vectors + 0.3 * gradient * norms[0] / norms[1]))) / 2
    names = ["tokens.weight", "to_logits.weight"]
    for name, expected in zip(names, torch.autograd.grad(total, [model.get_parameter(name) for name in names])):
        torch.testing.assert_close(found[name], expected)


def test_adversarial_equals_plain_loss_in_evaluation():
    model = Pooled().eval()
    assert losses.adversarial()(model, (SOURCE, LABELS)) == losses.classification(model, (SOURCE, LABELS))
    with torch.no_grad():
        model.train()
        model.dropout.p = 0.0
        assert losses.adversarial()(model, (SOURCE, LABELS)) == losses.classification(model, (SOURCE, LABELS))


@pytest.mark.parametrize(
    ("options", "labels", "says"),
    [({"embedding": "unused"}, [2, 0], "unused"), ({"embedding": "words"}, [2, 0], "words"), ({}, [2, 3], "label 3")],
)
def test_adversarial_raises_and_leaves_no_hooks(options, labels, says):
    model = Pooled()
    with pytest.raises(ValueError, match=says):
        losses.adversarial(**options)(model, (SOURCE, torch.tensor(labels)))
    assert not any(module._forward_hooks for module in model.modules())
    losses.adversarial()(model, (SOURCE, LABELS))
    assert not any(module._forward_hooks for module in model.modules())


def test_adversarial_supports_shared_and_nested_embeddings():
    """An encoder-decoder reads two texts by one table; a classifier's embedding has a module of its name inside."""
    torch.manual_seed(4)
    model = Transformer(9, layers=1, heads=3, dim=6, dropout=0.0)
    loss = losses.adversarial(losses.translation(), embedding="source")
    assert len(list(fit(model, [(SOURCE, TARGET)] * 3, 3, loss=loss, device="cpu", progress=False))) == 3
    model = Classifier(
        9, layers=1, heads=2, dim=6, embedding=lambda vocab_size, dim: BigramEmbedding(vocab_size, dim, rows=7)
    )
    losses.adversarial()(model, (SOURCE, torch.tensor([1, 0])))[0].backward()
    assert model.tokens.pairs.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("make", [GPT, TransformerXL])
def test_fit_trains_on_uint8_ids(make):
    ids = (torch.arange(90) % 11).to(torch.uint8)
    batches, loss = text.Windows(ids, 5, 2), losses.next_token
    if make is TransformerXL:
        batches, loss = text.Streams(ids, 5, 2), losses.SegmentRecurrentLoss()
    model = make(11, layers=1, heads=3, dim=6)
    assert len(list(fit(model, batches, 2, loss=loss, device="cpu", progress=False))) == 2
