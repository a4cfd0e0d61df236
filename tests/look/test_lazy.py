"""Lazy captures give the same maps as eager ones, for any part of them."""

import itertools

import pytest
import torch
from calls import Calls
from hypothesis import given
from hypothesis import strategies as st
from small_models import random
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tfviz.look import AttentionMaps, capture, groups
from tfviz.look import lazy as lazy_attention
from tfviz.look.attention_call import AttentionCall
from tfviz.look.key_ranges import KeyRanges
from tfviz.look.lazy import LazyAttention
from tfviz.look.quantization import max_pool_2d

TEXTS, HEADS, GROUPS, QUERIES, KEYS, DIM = 2, 6, 3, 7, 11, 4
CAUSAL = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(KEYS - QUERIES)
WINDOW = CAUSAL & ~CAUSAL.tril(-2)
PADDED = torch.stack([CAUSAL, CAUSAL & (torch.arange(KEYS) >= 6)])[:, None]  # left: the first rows of one see nothing
GAPS = torch.arange(KEYS) % 3 != torch.arange(QUERIES)[:, None] % 3


def added(mask, lowest=-torch.inf):
    return torch.zeros(mask.shape).masked_fill(~mask, lowest)


class Fused(nn.Module):
    """Attention with any mask, over keys that heads may share."""

    def __init__(self, mask=None, causal=False, groups=HEADS, dtype=torch.float32):
        super().__init__()
        self.mask, self.causal, self.num_key_value_heads, self.num_heads = mask, causal, groups, HEADS
        self.query = random(TEXTS, HEADS, QUERIES, DIM).to(dtype) * 2
        self.key, self.value = (random(TEXTS, groups, KEYS, DIM, seed=seed).to(dtype) for seed in (1, 2))

    def forward(self, repeat=True):
        query, key, value = self.query, self.key, self.value
        if repeat:
            key, value = (part.repeat_interleave(HEADS // part.shape[1], 1) for part in (key, value))
        return functional.scaled_dot_product_attention(
            query, key, value, self.mask, is_causal=self.causal, enable_gqa=not repeat, scale=0.7
        )


MODELS = {
    "plain": Fused(),
    "causal": Fused(causal=True),
    "mask": Fused(CAUSAL),
    "window": Fused(WINDOW),
    "padded": Fused(PADDED),
    "added": Fused(added(PADDED)),
    "added, lowest": Fused(added(PADDED, torch.finfo(torch.float32).min)),
    "gaps": Fused(GAPS),
    "gaps by head": Fused(GAPS & (random(HEADS, 1, KEYS, seed=5) > -1)),
    "bias": Fused(random(HEADS, QUERIES, KEYS, seed=3)),
    "bias, lowest": Fused(random(HEADS, QUERIES, KEYS).masked_fill(~PADDED, torch.finfo(torch.float32).min)),
    "groups": Fused(CAUSAL, groups=GROUPS),
    "one key": Fused(CAUSAL, groups=1),
    "bfloat16": Fused(CAUSAL, dtype=torch.bfloat16),
}
PARTS = [
    (slice(None), slice(None), 1),
    (slice(None), slice(None), 3),
    (slice(2, 6), slice(1, 10), 1),
    (slice(2, 6), slice(1, 10), 2),
    (slice(1, 2), slice(4, 5), 4),
    (slice(0, 0), slice(None), 2),
    (slice(0, 7, 2), slice(None), 1),
    (slice(None), slice(0, 11, 3), 1),
    (slice(None, None, 2), slice(1, None, 2), 2),
    (slice(-5, None, 3), slice(-9, -1, 4), 2),
    (slice(-99, 99, 2), slice(5, None, 99), 3),
    (slice(5, 2), slice(None), 1),
    (slice(None), slice(-1, -4, 2), 2),
    (slice(99, None, 2), slice(99, None), 2),
]


@pytest.mark.parametrize("name", MODELS)
def test_lazy_maps_match_eager_maps(name):
    model = MODELS[name]
    with capture(model) as whole:
        model()
    with capture(model, lazy=True) as lazy:
        model()
    assert lazy.shapes == {"pattern": (TEXTS, HEADS, QUERIES, KEYS)}
    assert repr(lazy) == repr(whole)
    torch.testing.assert_close(lazy["pattern"], whole["pattern"])
    for text in range(TEXTS):
        plain, made = (AttentionMaps.from_capture(seen, batch=text) for seen in (whole, lazy))
        assert isinstance(made.layers[0], LazyAttention)
        torch.testing.assert_close(made.weights, plain.weights)
        for head in (0, 4):
            assert_same_maps(plain, made, head)
    assert groups(lazy)["attention"].shape == (1, HEADS, QUERIES, KEYS)


def assert_same_maps(plain, made, head):
    torch.testing.assert_close(made[0, head], plain[0, head])
    torch.testing.assert_close(made[0, head, 3], plain[0, head, 3])
    torch.testing.assert_close(made[0, head, -1, 2:5], plain[0, head, -1, 2:5])
    torch.testing.assert_close(made[0, head, 1:6:2, 4], plain[0, head, 1:6:2, 4])
    assert torch.equal(made.as_uint8(0, head, 2), plain.as_uint8(0, head, 2))
    for rows, keys, block in PARTS:
        torch.testing.assert_close(made[0, head, rows, keys], plain[0, head, rows, keys])
        for tile in (made.max_pool(0, head, rows, keys, block), plain.max_pool(0, head, rows, keys, block)):
            torch.testing.assert_close(tile, max_pool_2d(plain[0, head, rows, keys], block))
        one, other = (maps.allowed(0, head, rows, keys) for maps in (plain, made))
        assert other is None if one is None else (other is None and one.all()) or torch.equal(one, other)


@pytest.mark.parametrize("tile_bytes", [1, 4 * KEYS * 3, 2**24])  # a row, three, or all of them at a time
@pytest.mark.parametrize("name", ["plain", "causal", "window", "padded", "gaps by head", "bias, lowest"])
def test_max_pool_of_a_part_matches_eager_maps_when_read_first(name, tile_bytes, monkeypatch):
    monkeypatch.setattr(lazy_attention, "TILE_BYTES", tile_bytes)
    with capture(MODELS[name], lazy=True) as seen:
        MODELS[name]()
    for text, (rows, keys, block) in itertools.product(range(TEXTS), PARTS):
        maps = AttentionMaps.from_capture(seen, batch=text)  # which has computed no row yet
        expected = max_pool_2d(seen["pattern"][text, 4, rows, keys], block)
        for _ in range(2):  # the second time from the rows' normalizers
            torch.testing.assert_close(maps.max_pool(0, 4, rows, keys, block), expected)


@pytest.mark.parametrize("name", ["plain", "causal", "padded", "added", "gaps by head", "bias, lowest", "groups"])
def test_pooled_mask_matches_allowed_cells(name):
    with capture(MODELS[name], lazy=True) as seen:
        MODELS[name]()
    for text in range(TEXTS):
        (layer,) = AttentionMaps.from_capture(seen, batch=text).layers
        for head, block in ((head, block) for head in (0, 4) for block in (1, 2, 3, 5)):
            allowed, found = layer.allowed(head), layer.pooled_mask(head, block)
            if allowed is None:
                assert found is None
                continue
            for down, across in torch.cartesian_prod(*map(torch.arange, found.shape)).tolist():
                rows, keys = (slice(at * block, (at + 1) * block) for at in (down, across))
                assert found[down, across] == allowed[rows, keys].any()
            assert found.shape == (-(-QUERIES // block), -(-KEYS // block))


@pytest.mark.parametrize("name", ["padded", "bias", "groups", "bfloat16"])
def test_lazy_maps_round_trip(name, tmp_path):
    model = MODELS[name]
    with capture(nn.ModuleList([model, MODELS["causal"]]), lazy=True) as seen:
        model(), MODELS["causal"](), model()
    maps = AttentionMaps.from_capture(seen, invocations="layers", batch=1)
    again = AttentionMaps.load(maps.save(tmp_path / "maps.safetensors"))
    assert all(isinstance(layer, LazyAttention) for layer in again.layers)
    assert again.sites == maps.sites
    assert torch.equal(again.weights, maps.weights)
    assert again.layers[0].call.query.dtype == model.query.dtype


def test_mixed_lazy_and_eager_maps_round_trip(tmp_path):
    def both():
        model.fused()
        scores = random(TEXTS, HEADS, QUERIES, KEYS).masked_fill(~CAUSAL, -torch.inf)
        return scores.softmax(-1) @ random(TEXTS, HEADS, KEYS, DIM)

    model = Calls(both, fused=Fused(causal=True), num_heads=HEADS)
    with capture(model, lazy=True) as seen:
        model()
    maps = AttentionMaps.from_capture(seen)
    assert [type(layer) for layer in maps.layers] == [LazyAttention, torch.Tensor]
    assert maps.allowed(0, 2).sum() == 28
    assert torch.equal(maps.allowed(1, 2), CAUSAL)
    again = AttentionMaps.load(maps.save(tmp_path / "maps.safetensors"))
    assert torch.equal(again.weights, maps.weights)
    assert torch.equal(again.allowed(1, 2), CAUSAL)


def test_lazy_capture_stores_compact_inputs():
    with capture(model := Fused(CAUSAL, groups=GROUPS, dtype=torch.float16), lazy=True) as seen:
        model(), model(repeat=False)
    first, second = (call for call, _ in seen.stored("pattern"))
    for call in (first, second):
        assert call.key.shape == (TEXTS, GROUPS, KEYS, DIM)
        assert call.key.dtype == torch.float16
        assert call.query.untyped_storage().nbytes() == 2 * call.query.numel()  # nothing else is held with it
        assert isinstance(call.mask, KeyRanges)
        assert call.value.numel() == 0
    assert first.mask is second.mask  # of the same tensor


def test_lazy_capture_is_independent_of_later_changes():
    model = Fused(mask := GAPS.clone())
    with capture(model, lazy=True) as seen:
        model()
        before = seen["pattern"].clone()
        model.query.zero_(), model.key.zero_(), mask.fill_(True)
        model()
    first, second = seen.over_time("pattern")
    assert torch.equal(first, before)
    torch.testing.assert_close(second, torch.full_like(second, 1 / KEYS))


def test_lazy_flex_attention_matches_eager(tmp_path):
    slopes = torch.linspace(0.1, 1, HEADS)
    block = create_block_mask(lambda b, h, q, k: q >= k - b, TEXTS, None, QUERIES, KEYS, device="cpu")

    class Flex(Fused):
        def forward(self):
            change = lambda score, b, h, q, k: score - slopes[h] * (q - k).abs() * (b + 1)  # noqa: E731
            return flex_attention(self.query, self.key, self.value, change, block)

    model = Flex()
    with capture(model) as whole:
        model()
    with capture(model, lazy=True) as lazy:
        model()
    for text in range(TEXTS):
        plain, made = (AttentionMaps.from_capture(seen, batch=text) for seen in (whole, lazy))
        for head in (0, 5):
            assert_same_maps(plain, made, head)
    with pytest.raises(ValueError, match="cannot be saved"):
        made.save(tmp_path / "x.safetensors")


def test_lazy_over_time_matches_eager():
    query, key = (random(1, HEADS, KEYS, DIM, seed=seed) for seed in (0, 1))

    def part(start, stop):
        call = functional.scaled_dot_product_attention
        return call(query[:, :, start:stop], key[:, :, :stop], key[:, :, :stop], is_causal=start == 0)

    def read():
        for start, stop in ((0, 4), (4, 5), (5, 6)):
            model(start, stop)

    model = Calls(part)
    with capture(model) as whole:
        read()
    with capture(model, lazy=True) as lazy:
        read()
    one, other = (AttentionMaps.over_time(seen) for seen in (whole, lazy))
    torch.testing.assert_close(one.weights, other.weights)
    assert torch.equal(one.mask, other.mask)
    assert one.shape == (1, HEADS, 6, 6)


def test_lazy_shapes_compute_no_scores(monkeypatch):
    model = Fused(causal=True)
    with capture(model, lazy=True) as seen:
        model()
    monkeypatch.setattr(AttentionCall, "scores", None)
    assert seen.shapes["pattern"] == (TEXTS, HEADS, QUERIES, KEYS)
    assert "6 x 7 x 11" in repr(seen)


@given(st.integers(0, 3), st.integers(1, 4), st.data())
def test_key_ranges_match_masks_without_gaps(rows, keys, data):
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * rows * keys, max_size=2 * rows * keys)))
    mask = mask.bool().view(2, 1, rows, keys)
    gaps = [text[0][i].diff().nonzero().numel() for text in mask for i in range(rows)]
    found = KeyRanges.from_mask(mask)
    texts = ["".join("01"[int(cell)] for cell in text[0][i]) for text in mask for i in range(rows)]
    assert (found is None) == any("0" in text.strip("0") for text in texts), gaps
    if found:
        assert torch.equal(found.dense(), mask)
        assert torch.equal(found.select(1).dense(slice(0, 2), slice(1, 3)), mask[1:, :, :2, 1:3])
        for start in range(rows):
            reach = found.key_range(slice(start, rows))
            seen = mask[:, :, start:].any(0).any(0).any(0).nonzero().flatten().tolist()
            assert (reach.start, reach.stop) == ((seen[0], seen[-1] + 1) if seen else (0, 0))
