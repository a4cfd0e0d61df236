"""Model constructors reject sizes below one, sizes beyond memory, and invalid dropout."""

import pytest

from tfviz import models
from tfviz.layers import positions

SIZES = {"dim": 6, "layers": 2, "heads": 3}
BUILDS = {
    models.BERT: {"vocab_size": 11, "context": 7, **SIZES},
    models.Classifier: {"vocab_size": 11, "classes": 5, "context": 7, **SIZES},
    models.ConvLM: {"vocab_size": 11, "dim": 6, "layers": 2, "kernel": 2},
    models.GPT: {"vocab_size": 11, "context": 7, **SIZES},
    models.GraphAttention: {"features": 4, "classes": 5, **SIZES},
    models.LSTMN: {"vocab_size": 11, "dim": 6, "hidden": 5},
    models.Recommender: {"users": 5, "movies": 7, "dim": 2},
    models.RecurrentLM: {"vocab_size": 11, "dim": 6, "hidden": 5, "layers": 2},
    models.Seq2Seq: {"source_vocab_size": 11, "target_vocab_size": 13, "dim": 6, "hidden": 4},
    models.Transformer: {"source_vocab_size": 11, "target_vocab_size": 13, "context": 7, **SIZES},
    models.TransformerXL: {"vocab_size": 11, **SIZES},
}
EACH = [(kind, name) for kind, sizes in BUILDS.items() for name in sizes]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_size_below_one_raises(kind, name):
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"{'vocab_size' if 'vocab_size' in name else name} is {size}"):
            kind(**{**BUILDS[kind], name: size})


@pytest.mark.parametrize(("kind", "name"), [one for one in EACH if one[1] not in ("heads", "kernel")])
def test_size_beyond_memory_raises(kind, name):
    parts = {"positions": positions.Learned} if (kind, name) == (models.Transformer, "context") else {}
    with pytest.raises(ValueError, match="more than this machine's memory"):
        kind(**{**BUILDS[kind], name: 3 * 10**12, **parts})


@pytest.mark.parametrize("kind", [kind for kind in BUILDS if kind is not models.Recommender])
def test_invalid_dropout_raises(kind):
    for dropout in (float("nan"), -0.1, 1.5):
        with pytest.raises(ValueError, match="dropout"):
            kind(**BUILDS[kind], dropout=dropout)
