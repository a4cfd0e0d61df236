"""The systems: self-attention without parameters, GPT."""

import io
import tokenize
from math import exp, sqrt
from pathlib import Path

import pytest
import torch
from torch import nn

import tfviz
from tfviz.layers import masks, positions, post_norm, pre_norm
from tfviz.models import GPT, SelfAttention

KINDS = list(positions.KINDS.values())
HOUSE = Path(tfviz.__file__).parent


def gpt(**parts):
    torch.manual_seed(5)
    model = GPT(11, **{"context": 7, "layers": 2, "heads": 3, "dim": 6, **parts}).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def some_ids(batch=2, length=7):
    return torch.randint(11, (batch, length), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(("scaled", "a"), [(False, exp(1)), (True, exp(1 / sqrt(2)))])
def test_self_attention_by_hand(scaled, a):
    words = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    high, low, both = 2 * a / (2 * a + 1), (a + 1) / (2 * a + 1), (1 + a) / (2 + a)
    expected = torch.tensor([[[high, low], [low, high], [both, both]]])
    torch.testing.assert_close(SelfAttention(scaled)(words), expected)


def test_self_attention_has_no_parameters_and_knows_no_order():
    model, x, order = SelfAttention(), torch.randn(2, 5, 3), torch.tensor([3, 0, 4, 2, 1])
    assert list(model.parameters()) == []
    torch.testing.assert_close(model(x[:, order]), model(x)[:, order])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residual", [pre_norm, post_norm])
def test_the_future_leaves_the_past_alone(kind, residual):
    model, ids = gpt(positions=kind, residual=residual), some_ids()
    changed = ids.clone()
    changed[:, 4] = (ids[:, 4] + 1) % 11
    before, after = model(ids), model(changed)
    torch.testing.assert_close(after[:, :4], before[:, :4], rtol=0, atol=1e-6)
    assert (after[:, 4:] - before[:, 4:]).abs().amax((0, 2)).min() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [masks.causal, masks.strided(3)])
@pytest.mark.parametrize("splits", [[1, 1, 1, 1, 1, 1, 1], [3, 4], [6, 1], [2, 3, 2], [7]])
def test_cached_logits_are_the_uncached(kind, mask, splits):
    model, ids = gpt(positions=kind, mask=mask), some_ids()
    cache = model.new_cache()
    pieces = [model(piece, cache) for piece in ids.split(splits, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(ids), rtol=1e-4, atol=1e-5)
    assert [kept.length for kept in cache] == [7, 7]


def test_a_full_cache_is_an_error():
    model = gpt(positions=positions.Rotary)
    cache = model.new_cache()
    model(some_ids(), cache)
    with pytest.raises(ValueError, match="room for 7 positions, 8 are needed"):
        model(some_ids(length=1), cache)


@pytest.mark.parametrize("mask", [masks.causal, masks.strided(3), masks.window(2) & masks.causal])
def test_a_token_reaches_as_far_as_the_mask(mask):
    model, ids = gpt(layers=1, mask=mask), some_ids(batch=1)
    reach = torch.zeros(7, 7, dtype=torch.bool)
    for place in range(7):
        changed = ids.clone()
        changed[:, place] = (ids[:, place] + 1) % 11
        reach[:, place] = (model(changed) - model(ids)).abs().amax((0, 2)) > 1e-6
    assert torch.equal(reach, mask.dense(7, 7)[0, 0])


def test_without_positions_the_past_is_a_set():
    model, ids = gpt(positions=positions.Positions, layers=1), some_ids()
    swapped = ids[:, [2, 0, 1, 3, 4, 5, 6]]
    torch.testing.assert_close(model(swapped)[:, 3:], model(ids)[:, 3:], rtol=1e-4, atol=1e-5)


def test_positions_tell_order():
    swapped = some_ids()[:, [2, 0, 1, 3, 4, 5, 6]]
    for kind in KINDS[1:]:
        model = gpt(positions=kind, layers=1)
        assert (model(swapped)[:, -1] - model(some_ids())[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_by_hand(kind):
    attention = (6 * 18 + 18) + (6 * 6 + 6)
    network = (6 * 24 + 24) + (24 * 6 + 6)
    block = 2 * (6 + 6) + attention + network
    own = {positions.Learned: 7 * 6, positions.Relative: 6 * 6 + 2 * 6}
    expected = 11 * 6 + 2 * block + 12 + own.get(kind, 0)
    assert sum(p.numel() for p in gpt(positions=kind).parameters()) == expected


def test_post_norm_has_no_last_norm():
    assert list(gpt(residual=post_norm).norm.parameters()) == []


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
def test_gpt_is_hugging_faces():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=11, n_positions=7, n_embd=6, n_layer=2, n_head=3, activation_function="gelu"
    )
    theirs, ours = transformers.GPT2LMHeadModel(config).eval(), gpt()

    def copy(source, target, transposed=False):
        with torch.no_grad():
            target.weight.copy_(source.weight.T if transposed else source.weight)
            if getattr(source, "bias", None) is not None:
                target.bias.copy_(source.bias)

    copy(ours.tokens, theirs.transformer.wte)
    copy(ours.positions.vectors, theirs.transformer.wpe)
    copy(ours.norm, theirs.transformer.ln_f)
    for mine, other in zip(ours.blocks, theirs.transformer.h, strict=True):
        copy(mine.attention_norm, other.ln_1)
        copy(mine.attention.in_proj, other.attn.c_attn, transposed=True)
        copy(mine.attention.out_proj, other.attn.c_proj, transposed=True)
        copy(mine.feed_forward_norm, other.ln_2)
        copy(mine.feed_forward[0], other.mlp.c_fc, transposed=True)
        copy(mine.feed_forward[2], other.mlp.c_proj, transposed=True)
    with torch.no_grad():
        torch.testing.assert_close(ours(some_ids()), theirs(some_ids()).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "source", sorted([*HOUSE.glob("models/*.py"), *HOUSE.glob("layers/*.py")]), ids=lambda p: p.name
)
def test_models_know_nothing_of_capture(source):
    tokens = tokenize.generate_tokens(io.StringIO(source.read_text()).readline)
    names = [token.string.lower() for token in tokens if token.type == tokenize.NAME]
    assert [name for name in names if any(word in name for word in ("capture", "hook", "look"))] == []
