"""The classifier: pooling, padding, reach."""

import pytest
import torch
from torch import nn

from tfviz.layers import masks, positions
from tfviz.models import Classifier
from tfviz.models.classifier import first, maximum, mean

STATES = torch.tensor([[[1.0, 8.0], [3.0, 2.0], [50.0, 90.0]], [[5.0, -4.0], [-7.0, -6.0], [2.0, -5.0]]])
WORDS = torch.tensor([[True, True, False], [True, True, True]])
IDS = torch.randint(1, 11, (2, 7), generator=torch.Generator().manual_seed(1))


def classifier(**parts):
    torch.manual_seed(5)
    model = Classifier(11, 3, **{"context": 10, "layers": 2, "heads": 3, "dim": 6, **parts}).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def test_pooling_by_hand():
    torch.testing.assert_close(mean(STATES, WORDS), torch.tensor([[2.0, 5.0], [0.0, -5.0]]))
    torch.testing.assert_close(maximum(STATES, WORDS), torch.tensor([[3.0, 8.0], [5.0, -4.0]]))
    torch.testing.assert_close(first(STATES, WORDS), torch.tensor([[1.0, 8.0], [5.0, -4.0]]))


@pytest.mark.parametrize("pooling", [mean, maximum, first])
@pytest.mark.parametrize("kind", positions.KINDS.values())
def test_padding_changes_nothing(pooling, kind):
    model, padded = classifier(pooling=pooling, positions=kind), torch.cat((IDS, torch.zeros(2, 3).long()), dim=1)
    with torch.no_grad():
        torch.testing.assert_close(model(padded), model(IDS), rtol=1e-5, atol=1e-5)


def test_a_window_limits_what_a_word_reaches_in_one_layer():
    model = classifier(layers=1, mask=masks.window(2), pooling=first)
    moved = []
    for place in range(7):
        other = IDS.clone()
        other[:, place] = IDS[:, place] % 10 + 1
        with torch.no_grad():
            moved.append(bool((model(other) - model(IDS)).abs().max() > 1e-6))
    assert moved == [True, True, False, False, False, False, False]


def test_a_text_longer_than_the_positions_says_so():
    with pytest.raises(ValueError, match="11 positions asked for, 10 were learned"):
        classifier()(torch.ones(2, 11, dtype=torch.long))
