"""Chunk-wise attention is joined into one map of the whole text, or rejected."""

import gc
import warnings
import weakref
from functools import partial

import pytest
import torch
from combinations import one_at_a_time
from small_models import randomize_weights
from torch import nn
from torch.nn import functional

from tfviz.look import AttentionMaps, capture, groups

B, H, T, D, W = 2, 3, 20, 5, 4


def chunks(x):
    """[batch, chunk, head, position, dim]"""
    return x.unflatten(1, (-1, W)).transpose(2, 3)


def padded(x):
    return functional.pad(x, (0, 0, 0, 0, W, 0))


def own(q, k, v):
    made = (chunks(q) @ chunks(k).mT).softmax(-1) @ chunks(v)
    return made.transpose(2, 3).flatten(1, 2)


def fused(q, k, v):
    made = functional.scaled_dot_product_attention(*map(chunks, (q, k, v)), scale=1.0)
    return made.transpose(2, 3).flatten(1, 2)


def with_the_block_before(q, k, v):
    k, v = (torch.cat([chunks(padded(x))[:, :-1], chunks(padded(x))[:, 1:]], 3) for x in (k, v))
    scores = chunks(q) @ k.mT
    scores[:, 0, :, :, :W] = -torch.inf
    return (scores.softmax(-1) @ v).transpose(2, 3).flatten(1, 2)


def sliding(q, k, v):
    """Each word and the three before it, by `unfold`."""
    keys, values = (functional.pad(x, (0, 0, 0, 0, W - 1, 0)).unfold(1, W, 1) for x in (k, v))
    scores = torch.einsum("bthd,bthdw->bthw", q, keys)
    gone = torch.arange(T)[:, None] + torch.arange(W) < W - 1
    return torch.einsum("bthw,bthdw->bthd", scores.masked_fill(gone[:, None], -torch.inf).softmax(-1), values)


def gathered(q, k, v):
    """Blocks look at a block chosen for them, and the first words at all, in a call of their own."""
    chosen = torch.tensor([3, 0, 4, 1, 2])
    blocked = [chunks(x) for x in (q, k, v)]
    made = (blocked[0] @ blocked[1][:, chosen].mT).softmax(-1) @ blocked[2].index_select(1, chosen)
    first = torch.einsum("bqhd,bkhd->bhqk", q[:, :W], k).softmax(-1)
    first = torch.einsum("bhqk,bkhd->bqhd", first, v)
    return torch.cat([first, made.transpose(2, 3).flatten(1, 2)[:, W:]], 1)


def sorted_by_hash(q, k, v):
    order = torch.arange(T).view(-1, W).T.flatten()
    made = own(*(x[:, order] for x in (q, k, v)))
    return made[:, order.argsort()]


def overlapping(q, k, v):
    """By `as_strided`: each block and the one after it; the last has none."""
    size, step = (B, T // W - 1, 2 * W, H, D), (T * H * D, W * H * D, H * D, D, 1)
    k, v = (x.contiguous().as_strided(size, step).transpose(2, 3) for x in (k, v))
    most = (chunks(q)[:, :-1] @ k.mT).softmax(-1) @ v
    last = (chunks(q)[:, -1] @ chunks(k[:, -1, :, W:].transpose(1, 2))[:, 0].mT).softmax(-1)
    last = last @ v[:, -1, :, W:]
    return torch.cat([most, last[:, None]], 1).transpose(2, 3).flatten(1, 2)


CUTS = {
    "own": own,
    "fused": fused,
    "with the block before": with_the_block_before,
    "sliding": sliding,
    "gathered": gathered,
    "sorted": sorted_by_hash,
    "overlapping": overlapping,
}


class Local(nn.Module):
    def __init__(self, cut):
        super().__init__()
        torch.manual_seed(0)
        self.cut, self.block_size, self.num_heads = cut, W, H
        self.parts = nn.ModuleList(nn.Linear(H * D, H * D) for _ in range(3))
        self.norm = nn.LayerNorm(H * D)

    def projected(self, x):
        return [part(self.norm(x)).unflatten(-1, (H, D)) for part in self.parts]

    def forward(self, x):
        query, key, value = self.projected(x)
        return self.cut(query, key / D**0.5, value).flatten(2)


X = torch.randn(B, T, H * D, generator=torch.Generator().manual_seed(1))


def apply_map(maps, value):
    """What a map of the whole text makes of the values of one text [word, head, dim]."""
    return torch.einsum("hqk,khd->qhd", maps[0], value).flatten(1)


@pytest.mark.parametrize(("cut", "dtype"), one_at_a_time(CUTS, [torch.float32, torch.uint8]))
def test_joined_map_reproduces_block_attention(cut, dtype):
    model = Local(CUTS[cut])
    plain = model(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with capture(model, dtype=dtype) as seen:
            assert torch.equal(model(X), plain)
        for batch in range(B):
            maps = AttentionMaps.from_capture(seen, batch=batch)
            assert maps.shape == (1, H, T, T)
            value = model.projected(X)[2][batch]
            near = 1e-6 if dtype == torch.float32 else 0.05
            assert (apply_map(maps, value) - plain[batch]).abs().max() < near
            assert torch.equal(maps.mask[0], maps[0] > 0) or dtype == torch.uint8
            (grouped,) = groups(seen, batch=batch).values()
            assert torch.equal(grouped.weights, maps.weights)
            assert torch.equal(AttentionMaps.over_time(seen, batch=batch).weights, maps.weights)
    with pytest.raises(ValueError, match="batch is 2; the capture holds a batch of 2"):
        AttentionMaps.from_capture(seen, batch=B)


def test_layers_and_calls_are_joined_separately():
    model = nn.Sequential(Local(gathered), Local(gathered))
    with capture(model) as seen:
        model(X)
        model(2 * X)
    assert len(seen.over_time("0.pattern")) == 4
    maps = AttentionMaps.from_capture(seen, invocations="layers")
    assert maps.sites == [f"{layer}.pattern, {number} of 2" for layer in (0, 1) for number in (1, 2)]
    torch.testing.assert_close(maps.weights.sum(-1), torch.ones(4, H, T))


@pytest.mark.parametrize("cut", [own, fused])
def test_edits_of_chunks_appear_in_the_joined_map(cut):
    model = Local(cut)
    with capture(model, ["pattern"], edit={"pattern": lambda weights: weights * 0.5}) as seen:
        model(X)
    torch.testing.assert_close(AttentionMaps.from_capture(seen).weights.sum(-1), torch.full((1, H, T), 0.5))


@pytest.mark.parametrize("cut", CUTS)
def test_chunk_tracking_keeps_no_model_tensors(cut):
    model, projected = Local(CUTS[cut]), []
    for part in model.parts:
        part.register_forward_hook(lambda module, args, output: projected.append(weakref.ref(output)))
    with torch.no_grad(), capture(model) as seen:
        model(X)
    gc.collect()
    assert seen.chunk_sites
    assert [output() for output in projected] == [None] * 3


def test_chunks_of_unknown_position_raise():
    """Beside the words stand means of blocks, which are no words."""

    def with_means(q, k, v):
        k, v = (torch.cat([chunks(x), chunks(x).mean(-2, keepdim=True)], -2) for x in (k, v))
        return ((chunks(q) @ k.mT).softmax(-1) @ v).transpose(2, 3).flatten(1, 2)

    model = Local(with_means)
    with capture(model) as seen:
        model(X)
    says = "chunks of a text of 20 tokens"
    for make in (AttentionMaps.from_capture, AttentionMaps.over_time, groups):
        with pytest.raises(ValueError, match=says):
            make(seen)
    assert seen["pattern"].shape[-2:] == (W, W + 1)  # as they are


def test_full_attention_has_no_chunk_sites():
    whole = lambda q, k, v: torch.einsum(  # noqa: E731
        "bhqk,bkhd->bqhd", torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1), v
    )
    with capture(model := Local(whole)) as seen:
        model(X)
    assert seen.chunk_sites == []
    assert AttentionMaps.from_capture(seen).shape == (1, H, T, T)


transformers = pytest.importorskip("transformers")
IDS = torch.randint(5, 60, (2, 64), generator=torch.Generator().manual_seed(0))
OPEN = (torch.arange(64) < torch.tensor([64, 50])[:, None]).long()
SMALL = {"vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
small_weights = partial(randomize_weights, seed=0, std=0.2)


def big_bird(kind):
    config = transformers.BigBirdConfig(
        **SMALL, block_size=4, num_random_blocks=2, attention_type=kind, max_position_embeddings=64
    )
    return small_weights(transformers.BigBirdModel(config))


def longformer():
    config = transformers.LongformerConfig(**SMALL, attention_window=[8, 8], max_position_embeddings=80, pad_token_id=1)
    return small_weights(transformers.LongformerModel(config))


@pytest.mark.parametrize("make", [lambda: big_bird("block_sparse"), longformer], ids=["BigBird", "Longformer"])
def test_hugging_face_block_attention_is_joined(make):
    model = make()
    with torch.no_grad(), capture(model, ["*.pattern", "*.self", "*.self.value"]) as seen:
        model(input_ids=IDS, attention_mask=OPEN)
    for batch, words in ((0, 64), (1, 50)):
        maps = AttentionMaps.from_capture(seen, batch=batch)
        assert maps.shape == (2, 4, 64, 64)
        for layer in range(2):
            site = f"encoder.layer.{layer}.attention.self"
            value = seen[f"{site}.value"]
            value = value if len(value) == 2 else value.transpose(0, 1)
            made = torch.einsum("hqk,khd->qhd", maps[layer], value[batch].unflatten(-1, (4, 6))).flatten(1)
            torch.testing.assert_close(made[:words], seen[site][batch, :words], atol=1e-5, rtol=1e-5)


def test_longformer_global_attention_is_joined():
    model, everywhere = longformer(), torch.zeros_like(IDS)
    everywhere[:, 0] = everywhere[1, 5] = 1
    with torch.no_grad(), capture(model) as seen:
        output = model(input_ids=IDS, attention_mask=OPEN, global_attention_mask=everywhere, output_attentions=True)
    for batch, words in ((0, [0]), (1, [0, 5])):
        maps = AttentionMaps.from_capture(seen, batch=batch)
        for layer in range(2):
            for number, word in enumerate(words):  # [batch, head, key, global word], as the model returns them
                own = output.global_attentions[layer][batch, :, :, number]
                torch.testing.assert_close(maps[layer][:, word], own)
            local, reach = output.attentions[layer][batch], len(everywhere.sum(0).nonzero())
            row = maps[layer][:, 20]
            wide = local.shape[-1] - 9
            torch.testing.assert_close(row[:, 16:25], local[:, 20, wide:])
            assert reach >= wide
            torch.testing.assert_close(row[:, words], local[:, 20, : len(words)])


def test_longt5_local_attention_is_joined():
    config = transformers.LongT5Config(
        vocab_size=60, d_model=24, num_layers=2, num_heads=4, d_kv=6, d_ff=32, local_radius=5, pad_token_id=1
    )
    model = small_weights(transformers.LongT5EncoderModel(config))
    kinds = [f"encoder.block.{layer}.layer.0.LocalSelfAttention" for layer in (0, 1)]
    with torch.no_grad(), capture(model, ["*.pattern", *kinds, *(f"{kind}.v" for kind in kinds)]) as seen:
        model(input_ids=IDS, attention_mask=OPEN)
    maps = AttentionMaps.from_capture(seen)
    for layer, kind in enumerate(kinds):
        module = model.encoder.block[layer].layer[0].LocalSelfAttention
        value = seen[f"{kind}.v"][0].unflatten(-1, (4, 6))
        made = module.o(torch.einsum("hqk,khd->qhd", maps[layer], value).flatten(1))
        torch.testing.assert_close(made, seen[kind][0], atol=1e-5, rtol=1e-5)


def test_longt5_transient_global_attention_raises():
    config = transformers.LongT5Config(
        vocab_size=60, d_model=24, num_layers=1, num_heads=4, d_kv=6, d_ff=32, local_radius=5, global_block_size=4,
        encoder_attention_type="transient-global",
    )  # fmt: skip
    with torch.no_grad(), capture(model := small_weights(transformers.LongT5EncoderModel(config))) as seen:
        model(input_ids=IDS)
    with pytest.raises(ValueError, match="chunks of a text of 64 tokens"):
        AttentionMaps.from_capture(seen)
