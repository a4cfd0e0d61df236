"""Properties shared by the Transformer and Seq2Seq: causality, padding, caching and tied embeddings."""

from functools import partial

import pytest
import torch
from small_models import build, close, ids, source, target
from torch import nn
from torch.nn import functional

from tfviz.layers import RNN, AdditiveAttention, DotAttention, positions, post_norm
from tfviz.learn import checkpoint, losses
from tfviz.models import Seq2Seq, Transformer

SHAPE = {"context": 12, "layers": 2, "heads": 3, "dim": 6, "inner": 10}
MODELS = {
    **{f"transformer, {name}": partial(Transformer, **SHAPE, positions=kind) for name, kind in positions.KINDS.items()},
    "transformer, post-norm": partial(Transformer, **SHAPE, residual=post_norm),
    **{
        f"lstm, {getattr(kind, '__name__', 'no attention')}": partial(Seq2Seq, attention=kind, dim=3, hidden=8)
        for kind in (None, AdditiveAttention, DotAttention)
    },
    "rnn, AdditiveAttention": partial(Seq2Seq, attention=AdditiveAttention, cell=RNN, dim=3, hidden=8),
}
models = pytest.mark.parametrize("name", MODELS)
shared = pytest.mark.parametrize("target_vocab_size", [None, 13])


def model_of(name, target_vocab_size=13, **parts):
    return build(partial(MODELS[name], **parts), 11, target_vocab_size, std=0.6)


@models
def test_decoder_is_causal(name):
    model, changed = model_of(name), target()
    changed[:, 3] = changed[:, 3] % 12 + 1
    before, after = model(source(), target()), model(source(), changed)
    assert before.shape == (4, 5, 13)
    close(after[:, :3], before[:, :3], atol=1e-6)
    assert (after[:, 3:] - before[:, 3:]).abs().amax((0, 2)).min() > 1e-3


@models
def test_padding_does_not_change_logits_or_loss(name):
    model, loss = model_of(name), losses.translation(0.1)
    text = target() * (torch.arange(5) < torch.tensor([[5], [2], [4], [3]]))
    wide = functional.pad(source(), (0, 3))
    close(model(wide, target()), model(source(), target()))
    total, count = loss(model, (wide, functional.pad(text, (0, 2))))
    alone = [loss(model, (row[row != 0][None], words[words != 0][None])) for row, words in zip(source(), text)]
    assert count == sum(number for _, number in alone) == 4 + 1 + 3 + 2
    torch.testing.assert_close(total, sum(value for value, _ in alone), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@models
@pytest.mark.parametrize("splits", [[1] * 5, [2, 3]])
def test_cached_decoding_matches_uncached(name, splits):
    model, texts = model_of(name), ids(8, 5, seed=4)
    memory, cache = model.encode(source()), model.new_cache(5)
    each = model(source().repeat_interleave(2, 0), texts)
    close(torch.cat([model.decode(piece, memory, cache) for piece in texts.split(splits, 1)], 1), each)
    rows = torch.tensor([1, 0, 2, 2, 5, 4, 7, 7])  # as a beam search goes on with some of its texts
    cache = model.new_cache(5)
    model.decode(texts[:, :3], memory, cache)
    for part in cache:
        part.reorder(rows)
    chosen = model.decode(texts[rows][:, 3:], memory, cache)
    close(chosen, model(source().repeat_interleave(2, 0), texts[rows])[:, 3:])


@pytest.mark.parametrize("name", ["transformer, sinusoidal", "lstm, AdditiveAttention"])
@shared
def test_checkpoint_keeps_tied_embeddings(tmp_path, name, target_vocab_size):
    model, other = model_of(name, target_vocab_size), model_of(name, target_vocab_size)
    assert (model.source is model.target) == (target_vocab_size is None)
    nn.init.zeros_(other.target.weight)
    checkpoint.save(tmp_path, model)
    checkpoint.load(tmp_path, other)
    assert torch.equal(other(source(), target()), model(source(), target()))
    if name.startswith("lstm"):
        assert other.to_logits.weight is other.target.weight
