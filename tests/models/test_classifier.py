"""The classifier: pooling, padding, masks and bigram embeddings."""

import pytest
import torch
from small_models import build, close
from torch import nn

from tfviz.layers import BigramEmbedding, masks, positions, post_norm, pre_norm
from tfviz.models import Classifier
from tfviz.models.classifier import first, maximum, mean

IDS = torch.tensor([[4, 9, 5, 10, 3, 12, 8], [7, 2, 6, 11, 1, 0, 0]])
KINDS = list(positions.KINDS.values())
kinds = pytest.mark.parametrize("kind", KINDS)
poolings = pytest.mark.parametrize("pooling", [mean, maximum, first])


def classifier(**parts):
    return build(Classifier, 13, **{"classes": 5, "context": 11, "layers": 2, "heads": 3, "dim": 6, **parts})


def test_pooling_matches_hand_computed_values():
    x = torch.tensor([[[1.0, -2.0], [3.0, -6.0], [100.0, 100.0]], [[-1.0, 5.0], [7.0, 0.0], [0.5, 1.0]]])
    words = torch.tensor([[True, True, False], [True, True, True]])
    close(mean(x, words), torch.tensor([[2.0, -4.0], [6.5 / 3, 2.0]]))
    close(maximum(x, words), torch.tensor([[3.0, -2.0], [7.0, 5.0]]))
    close(first(x, words), torch.tensor([[1.0, -2.0], [-1.0, 5.0]]))


@pytest.mark.parametrize("pooling", [mean, maximum])
def test_pooling_of_padding_alone_is_zero(pooling):
    x, words = torch.ones(2, 3, 5, requires_grad=True), torch.tensor([[False] * 3, [True, False, False]])
    pooled = pooling(x, words)
    pooled.sum().backward()
    assert pooled.tolist() == [[0.0] * 5, [1.0] * 5]
    assert x.grad.sum(-1).tolist() == [[0.0] * 3, [5.0, 0.0, 0.0]]
    model = classifier(pooling=pooling)
    close(model(torch.zeros(2, 3, dtype=torch.long)), model.to_logits.bias.expand(2, 5))


@torch.no_grad()
@poolings
@kinds
@pytest.mark.parametrize("mask", [masks.full, masks.window(2)])
def test_padding_does_not_change_logits(pooling, kind, mask):
    model = classifier(pooling=pooling, positions=kind, mask=mask).double()  # so that rounding is not in the way
    logits = model(IDS)
    close(model(torch.cat((IDS, torch.zeros(2, 4, dtype=torch.long)), dim=1)), logits, 1e-12)
    close(model(IDS[1:, :5])[0], logits[1], 1e-12)
    model.tokens.weight[0] = 3.0
    close(model(IDS), logits, 1e-12)


@torch.no_grad()
@poolings
@pytest.mark.parametrize("residual", [pre_norm, post_norm])
def test_classifier_matches_reference(pooling, residual):
    model = classifier(pooling=pooling, residual=residual)
    x = model.tokens.weight[IDS] + model.positions.vectors.weight[:7]
    for block in model.blocks:
        x = block(x, mask=(IDS != 0)[:, None, None, :])
    if residual is pre_norm:
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
        x = x * model.norm.weight + model.norm.bias
    by_row = {
        mean: lambda row, length: row[:length].mean(0),
        maximum: lambda row, length: row[:length].max(0).values,
        first: lambda row, length: row[0],
    }[pooling]
    expected = [model.to_logits.weight @ by_row(row, length) + model.to_logits.bias for row, length in zip(x, (7, 5))]
    close(model(IDS), torch.stack(expected), 1e-5)
    assert isinstance(model.norm, nn.LayerNorm) == (residual is pre_norm)


@torch.no_grad()
@kinds
@pytest.mark.parametrize(("mask", "layers", "reach"), [(2, 1, 1), (2, 2, 2), (3, 1, 2), (None, 1, 6)])
def test_mask_limits_the_receptive_field(kind, mask, layers, reach):
    mask = masks.full if mask is None else masks.window(mask)
    model = classifier(pooling=first, mask=mask, layers=layers, positions=kind)
    moved = []
    for position in range(7):
        changed = IDS[:1].clone()
        changed[0, position] = 1
        moved.append((model(changed) - model(IDS[:1])).abs().max().item() > 1e-5)
    assert moved == [position <= reach for position in range(7)]


def test_classifier_applies_masks_per_text_and_per_head():
    ids, owners = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]), torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]])
    both = classifier(mask=masks.documents(owners))(ids)
    for row in (0, 1):
        close(both[row], classifier(mask=masks.documents(owners[row : row + 1]))(ids[row : row + 1])[0])
    assert (classifier(mask=masks.documents(owners[[0, 0]]))(ids)[1] - both[1]).abs().max() > 1e-3
    assert classifier(mask=masks.per_head(masks.window(1), masks.full))(ids).shape == (2, 5)


def bigrams(vocab_size, dim):
    return BigramEmbedding(vocab_size, dim, rows=4096)


def test_bigrams_give_each_pair_its_own_vector():
    embed = build(bigrams, 13, 6)
    nn.init.zeros_(embed.tokens.weight[0])
    rows = embed.row(torch.tensor([[4, 9, 4, 9, 5]]))[0].tolist()
    assert rows[1] == rows[3]
    assert len({rows[0], rows[1], rows[2], rows[4]}) == 4
    ids = torch.tensor([[4, 9, 4], [9, 4, 0]])
    after_9, at_start = embed.pairs.weight[rows[2]], embed.pairs.weight[rows[0]]
    close(embed(ids)[0, 2], embed.tokens.weight[4] + after_9)
    close(embed(ids)[0, 0], embed.tokens.weight[4] + at_start)
    close(embed(ids)[1, 1], embed.tokens.weight[4] + after_9)
    assert embed(ids)[1, 2].eq(0).all()


def test_bigrams_hash_evenly():
    first, second = (grid.flatten() for grid in torch.meshgrid(*2 * [torch.arange(1, 101)], indexing="ij"))
    rows = BigramEmbedding(101, 1, rows=2**16).row(torch.stack([first, second], 1))[:, 1]
    expected = 2**16 * (1 - (1 - 2**-16) ** 10_000)  # of 10,000 balls thrown into as many bins
    assert 0.95 * expected < len(rows.unique()) <= 10_000


@torch.no_grad()
def test_bigrams_ignore_padding_and_encode_order():
    model = classifier(embedding=bigrams, positions=positions.PositionEncoding)
    close(model(IDS)[1:], model(IDS[1:, :5]), atol=1e-5)
    assert (model(IDS) - model(IDS.flip(1)))[0].abs().max() > 1e-3
