"""Properties shared by all language models: causality, caching, generation and training."""

from functools import partial

import pytest
import torch
from combinations import one_at_a_time
from small_models import build, close, ids

from tfviz import generate, learn, text
from tfviz.generate.sample import LanguageModel
from tfviz.layers import RNN, masks, positions, post_norm
from tfviz.models import GPT, LSTMN, ConvLM, RecurrentLM, SparseTransformer, TransformerXL

SHAPE = {"context": 24, "layers": 2, "heads": 3, "dim": 6}
GPTS = {f"gpt, {name}": partial(GPT, **SHAPE, positions=kind) for name, kind in positions.KINDS.items()}
MODELS = {
    **GPTS,
    "gpt, post-norm": partial(GPT, **SHAPE, residual=post_norm),
    "gpt, strided": partial(GPT, **SHAPE, mask=masks.strided(3), positions=positions.Rotary),
    "sparse": partial(SparseTransformer, stride=3, **SHAPE),
    "sparse, fixed": partial(SparseTransformer, stride=3, make_mask=masks.fixed, **SHAPE),
    "sparse, split": partial(SparseTransformer, stride=3, make_mask=[masks.window, masks.dilated], **SHAPE),
    "rnn": partial(RecurrentLM, cell=RNN, layers=2, dim=3, hidden=5),
    "lstm": partial(RecurrentLM, dim=3, hidden=5),
    "two lstms": partial(RecurrentLM, layers=2, dim=3, hidden=5),
    "lstmn": partial(LSTMN, dim=3, hidden=5),
    "xl": partial(TransformerXL, memory=40, layers=2, heads=3, dim=6),
    **{
        f"convolution {layers} {kernel} {dilation}": partial(
            ConvLM, dim=6, layers=layers, kernel=kernel, dilation=dilation
        )
        for layers, kernel, dilation in [(1, 2, 2), (4, 2, 2), (3, 3, 2), (2, 2, 3), (3, 1, 2)]
    },
}
models = pytest.mark.parametrize("name", MODELS)


def model_of(name, **parts):
    return build(partial(MODELS[name], **parts), 11, std=0.7)


@models
def test_model_is_causal(name):
    model, before = model_of(name), ids()
    changed = before.clone()
    changed[:, 4] = (before[:, 4] + 1) % 11
    one, other = model(before), model(changed)
    assert one.shape == (2, 7, 11)
    close(other[:, :4], one[:, :4], atol=1e-5)
    assert (other[:, 4] - one[:, 4]).abs().max() > 1e-3


@pytest.mark.parametrize(("name", "splits"), one_at_a_time(MODELS, [[2, 5, 1, 13], [1] * 21, [3, 18], [20, 1], [21]]))
def test_cached_logits_match_uncached(name, splits):
    model, text = model_of(name), ids(length=21)
    cache = model.new_cache()
    close(torch.cat([model(piece, cache) for piece in text.split(splits, dim=1)], dim=1), model(text), atol=1e-4)


@models
def test_generation_is_identical_with_and_without_cache(name):
    tokenizer, model = text.CharacterTokenizer("abcdefg h\n漢"), model_of(name, dropout=0.5)
    assert isinstance(model, LanguageModel)
    written = generate.text(model, tokenizer, "bad", 20, seed=3)
    assert written.startswith("bad")
    assert len(written) == 23
    cached, uncached = (
        list(generate.ids(model, tokenizer.encode("bad"), 20, seed=3, cache=on)) for on in (True, False)
    )
    assert cached == uncached == tokenizer.encode(written)[3:].tolist()


@pytest.mark.parametrize("name", ["rnn", "lstm", "lstmn", "convolution 4 2 2"])
def test_training_reduces_the_loss(name):
    torch.manual_seed(1)
    windows = text.Windows(torch.arange(300) ** 2 % 11, length=7, batch_size=8)
    steps = list(learn.fit(MODELS[name](11), windows, 60, lr=0.05, device="cpu", progress=False))
    assert steps[-1].loss < 0.5 * steps[0].loss


def test_full_cache_raises():
    model = model_of("gpt, rotary", context=7)
    cache = model.new_cache()
    model(ids(), cache)
    assert [part.length for part in cache] == [7, 7]
    with pytest.raises(ValueError, match="room for 7 positions, but 8 are needed"):
        model(ids(length=1), cache)


def test_cache_with_uneven_lengths_raises():
    model = model_of("gpt, learned")
    cache = model.new_cache()
    model(ids(), cache)
    cache[1].length -= 1
    with pytest.raises(ValueError, match="different lengths"):
        model(ids(length=1), cache)
