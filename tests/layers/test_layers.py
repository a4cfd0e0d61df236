"""Layers: position encodings, attention, caches, blocks and initialization."""

import math

import pytest
import torch
from small_models import random
from torch import nn

from tfviz.layers import (
    Block,
    DecoderBlock,
    FeedForward,
    KVCache,
    MultiHeadAttention,
    attend,
    masks,
    positions,
    post_norm,
    pre_norm,
)
from tfviz.layers.blocks import init_weights
from tfviz.layers.cache import CrossAttentionCache
from tfviz.models import GPT


@pytest.mark.parametrize("memory", [None, random(2, 7, 6)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_matches_torch(memory, masked, bias):
    ours, theirs = MultiHeadAttention(6, 3, bias=bias), nn.MultiheadAttention(6, 3, bias=bias, batch_first=True)
    x = random(2, 5, 6)
    source = x if memory is None else memory
    allowed = (random(5, source.shape[1]) > 0) | (torch.arange(source.shape[1]) == 0) if masked else None
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.in_proj.weight)
        theirs.out_proj.weight.copy_(ours.out_proj.weight)
        if bias:
            theirs.in_proj_bias.copy_(ours.in_proj.bias.normal_())
            theirs.out_proj.bias.copy_(ours.out_proj.bias.normal_())
        expected, _ = theirs(x, source, source, attn_mask=None if allowed is None else ~allowed)
        given = ours(x, memory, mask=None if allowed is None else allowed[None, None])
    torch.testing.assert_close(given, expected)
    assert sum(p.numel() for p in ours.parameters()) == 4 * 36 + bias * 24


@pytest.mark.parametrize("masked", [False, True])
def test_attend_matches_softmax_of_scaled_scores(masked):
    query, key, value = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 6)
    mask = masks.causal.dense(5, 7, start=2) if masked else None
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / 2
    weights = (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)
    torch.testing.assert_close(attend(query, key, value, mask), torch.einsum("bhqk,bhkd->bhqd", weights, value))


def test_attend_returns_zeros_for_fully_masked_queries():
    query, key, value = (random(2, 3, n, 7).requires_grad_() for n in (5, 2, 2))
    mask = torch.ones(1, 1, 5, 2, dtype=torch.bool).index_fill(2, torch.tensor([3]), False)
    mixed = attend(query, key, value, mask)
    mixed.sum().backward()
    assert torch.equal(mixed[:, :, 3], torch.zeros(2, 3, 7))
    assert all(part.grad.isfinite().all() for part in (query, key, value))


@pytest.mark.parametrize("dim", [1, 2, 5, 6])
def test_sinusoidal_matches_formula(dim):
    given = positions.Sinusoidal(context=3, dim=dim).table(7)
    for position in range(7):
        for column in range(dim):
            wave = math.cos if column % 2 else math.sin
            expected = wave(position / 10_000 ** (column // 2 * 2 / dim))
            assert given[position, column].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", [positions.Sinusoidal, positions.Learned])
def test_additive_positions_begin_at_start(kind):
    added, x = kind(7, 3), random(2, 5, 3)
    torch.testing.assert_close(added(x, 2), x + added.table(7)[2:7])
    torch.testing.assert_close(added(x)[:, 2:], x[:, 2:] + added.table(7)[2:5])
    assert added.rotate(x[None]) is not None
    assert torch.equal(added.rotate(x[None], 2), x[None])


def test_rotary_matches_complex_multiplication():
    x = random(2, 3, 5, 6)
    angles = torch.arange(4, 9)[:, None] * 10_000.0 ** -(torch.arange(3) * 2 / 6)
    turned = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones(5, 3), angles)
    expected = torch.cat((turned.real, turned.imag), -1)
    for context in (3, 20):
        torch.testing.assert_close(positions.Rotary(context, 18, 3).rotate(x, start=4), expected)


def test_key_values_accumulate_and_raise_when_full():
    cache, keys, values = KVCache(7), random(2, 3, 7, 5), random(2, 3, 7, 5) + 1
    assert cache.bytes == 0
    for start, stop in ((0, 2), (2, 3), (3, 7)):
        kept = cache.extend(keys[:, :, start:stop], values[:, :, start:stop])
        assert torch.equal(kept[0], keys[:, :, :stop])
        assert torch.equal(kept[1], values[:, :, :stop])
        assert cache.bytes == 2 * 3 * stop * (5 + 5) * 4
    with pytest.raises(ValueError, match="room for 7 positions, but 8 are needed"):
        cache.extend(keys[:, :, :1], values[:, :, :1])


def test_key_values_reorder_selects_rows():
    cache, keys, values = KVCache(7), random(4, 3, 7, 5), random(4, 3, 7, 5) + 1
    rows = torch.tensor([2, 0, 2, 1])
    cache.reorder(rows)  # nothing is there yet
    cache.extend(keys[:, :, :3], values[:, :, :3])
    cache.reorder(rows)
    kept = cache.extend(keys[:, :, 3:5], values[:, :, 3:5])
    assert torch.equal(kept[0], torch.cat((keys[rows, :, :3], keys[:, :, 3:5]), 2))
    assert torch.equal(kept[1], torch.cat((values[rows, :, :3], values[:, :, 3:5]), 2))
    before = [part.clone() for part in kept]
    cache.reorder(rows)
    cache.reorder(rows)
    again = cache.extend(keys[:, :, 5:], values[:, :, 5:])
    assert torch.equal(again[0], torch.cat((before[0][rows][rows], keys[:, :, 5:]), 2))
    assert torch.equal(again[1], torch.cat((before[1][rows][rows], values[:, :, 5:]), 2))


def test_cross_attention_cache_computes_keys_once():
    attention, memory, cache = MultiHeadAttention(6, 3, norm=nn.RMSNorm), random(2, 7, 6), CrossAttentionCache()
    for length in (4, 1):
        x = random(2, length, 6)
        torch.testing.assert_close(attention(x, memory, cache=cache), attention(x, memory))
    read = attention(x, memory, cache=cache)
    with torch.no_grad():
        attention.in_proj.weight[6:] = 0.0  # of keys and values, which are not made again
    torch.testing.assert_close(attention(x, memory, cache=cache), read)
    assert not torch.allclose(attention(x, memory), read)


def test_pre_norm_and_post_norm_match_hand_computed_values():
    x, norm = torch.tensor([1.0, 3.0]), nn.LayerNorm(2, eps=0)
    torch.testing.assert_close(pre_norm(x, norm, lambda x: 2 * x), torch.tensor([-1.0, 5.0]))
    torch.testing.assert_close(post_norm(x, norm, lambda x: 2 * x), torch.tensor([-1.0, 1.0]))


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
def test_block_applies_attention_then_feed_forward(residual):
    block, x = Block(6, 3, inner=5, residual=residual), random(2, 7, 6)
    mask = masks.causal.dense(7, 7)
    half = residual(x, block.attention_norm, lambda x: block.attention(x, mask=mask))
    torch.testing.assert_close(block(x, mask=mask), residual(half, block.feed_forward_norm, block.feed_forward))
    assert [tuple(p.shape) for p in FeedForward(3).parameters()] == [(12, 3), (12,), (3, 12), (3,)]


def test_query_and_key_norm_matches_reference():
    attention = MultiHeadAttention(6, 3, norm=nn.RMSNorm)
    with torch.no_grad():
        for norm in (attention.query_norm, attention.key_norm):
            norm.weight.copy_(random(2))
    x = random(2, 5, 6)
    query, key, value = attention.in_proj(x).view(2, 5, 3, 3, 2).permute(2, 0, 3, 1, 4)

    def normed(heads, weight):
        return heads / heads.square().mean(-1, keepdim=True).add(torch.finfo().eps).sqrt() * weight

    query, key = normed(query, attention.query_norm.weight), normed(key, attention.key_norm.weight)
    mixed = (query @ key.mT / 2**0.5).softmax(-1) @ value
    torch.testing.assert_close(attention(x), attention.out_proj(mixed.transpose(1, 2).flatten(2)))


def test_blocks_accept_custom_attention():
    block = Block(6, 3, attention=lambda dim, heads: MultiHeadAttention(dim, heads, norm=nn.RMSNorm))
    assert isinstance(block.attention.query_norm, nn.RMSNorm)
    assert block.attention.heads == 3
    assert isinstance(Block(6, 3).attention.query_norm, nn.Identity)
    decoder = DecoderBlock(6, 3, attention=lambda dim, heads: MultiHeadAttention(dim, heads, norm=nn.RMSNorm))
    assert isinstance(decoder.cross.query_norm, nn.RMSNorm)


def test_init_weights_keeps_variance_and_scales_down_branches():
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block(48, 3, inner=200) for _ in range(2))
    init_weights(blocks)
    for block in blocks:
        attention, (up, _, down) = block.attention, block.feed_forward
        for layer, share in ((attention.in_proj, 1), (attention.out_proj, 0.1), (up, 1), (down, 0.1)):
            assert layer.weight.std().item() == pytest.approx(share * layer.in_features**-0.5, rel=0.05)
            assert not layer.bias.any()
    x = random(2, 5, 48)
    assert (blocks[0](x) - x).std() < 0.15 * x.std()


@pytest.mark.usefixtures("unchecked")
def test_blocks_compile_into_one_graph():
    model, x = nn.Sequential(Block(8, 2), Block(8, 2)), random(2, 5, 8)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.usefixtures("unchecked")
def test_gpt_works_under_vmap():
    model, ids = GPT(11, context=9, layers=1, heads=2, dim=8).eval(), torch.tensor([[3, 1, 4], [1, 5, 9]])
    torch.testing.assert_close(torch.vmap(lambda ids: model(ids[None])[0])(ids), model(ids))
