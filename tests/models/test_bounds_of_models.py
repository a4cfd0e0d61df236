"""Models of nothing, of too much, and with shares that are none: told when they are built, whichever system it is."""

import pytest
import torch

from tfviz import models
from tfviz.layers import masks, positions

SIZES = {"dim": 6, "layers": 2, "heads": 3}
BUILDS = {
    models.BERT: {"vocab": 11, "context": 7, **SIZES},
    models.Classifier: {"vocab": 11, "classes": 5, "context": 7, **SIZES},
    models.Convolution: {"vocab": 11, "dim": 6, "layers": 2, "kernel": 2},
    models.GPT: {"vocab": 11, "context": 7, **SIZES},
    models.GraphAttention: {"features": 4, "classes": 5, **SIZES},
    models.LSTMN: {"vocab": 11, "dim": 6, "hidden": 5},
    models.Recommender: {"users": 5, "movies": 7, "dim": 2},
    models.RecurrentLM: {"vocab": 11, "dim": 6, "hidden": 5, "layers": 2},
    models.Seq2Seq: {"source_vocab": 11, "target_vocab": 13, "dim": 6, "hidden": 4},
    models.Transformer: {"source_vocab": 11, "target_vocab": 13, "context": 7, **SIZES},
    models.TransformerXL: {"vocab": 11, **SIZES},
}
WRONG = [(kind, name, size) for kind, sizes in BUILDS.items() for name in sizes for size in (0, -1)]
MUCH = [(kind, name) for kind, sizes in BUILDS.items() for name in sizes if name not in ("heads", "kernel")]


@pytest.mark.parametrize(("kind", "name", "size"), WRONG)
def test_a_size_of_nothing(kind, name, size):
    vocab = "vocab" if "vocab" in name else name
    with pytest.raises(ValueError, match=f"^{vocab} is {size}; it must be at least 1$"):
        kind(**{**BUILDS[kind], name: size})


@pytest.mark.parametrize(("kind", "name"), MUCH)
def test_more_than_any_machine_has(kind, name):
    parts = {"positions": positions.Learned} if (kind, name) == (models.Transformer, "context") else {}
    with pytest.raises(ValueError, match="GB of numbers, more than this machine's memory; take less"):
        kind(**{**BUILDS[kind], name: 3 * 10**12, **parts})


@pytest.mark.parametrize("kind", [kind for kind in BUILDS if kind is not models.Recommender])
@pytest.mark.parametrize("share", [float("nan"), -0.1, 1.5, 2])
def test_a_dropout_that_is_none(kind, share):
    with pytest.raises(ValueError, match=r"^dropout is .*; it must be from 0 to 1$"):
        kind(**BUILDS[kind], dropout=share)


def test_a_classifier_obeys_a_mask_of_each_text_and_each_head():
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    kinds = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]])

    def build(rows):
        torch.manual_seed(1)
        return models.Classifier(**BUILDS[models.Classifier], mask=masks.documents(kinds[rows])).eval()

    both = build([0, 1])(ids)
    for row in (0, 1):
        torch.testing.assert_close(both[row], build([row])(ids[row : row + 1])[0])
    assert not torch.allclose(build([0, 0])(ids)[1], both[1])
    heads = models.Classifier(**BUILDS[models.Classifier], mask=masks.per_head(masks.window(1), masks.full))
    assert heads(ids).shape == (2, 5)
