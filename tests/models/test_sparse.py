"""SparseTransformer and GraphAttention: masks, block masks and comparison with reference loops."""

import math

import pytest
import torch
from small_models import build, ids

from tfviz.layers import masks, positions
from tfviz.look import capture
from tfviz.models.graph_attention import GraphAttention
from tfviz.models.sparse import SparseTransformer

SPLIT = [masks.window, masks.dilated]
PATTERNS = {"strided": masks.strided, "fixed": masks.fixed, "split": SPLIT}
patterned = pytest.mark.parametrize("name", PATTERNS)


def allows(name, head, query, key, stride):
    """Where a query may look, from the paper's sets."""
    near, step = query - key < stride, (query - key) % stride == 0
    own, end = query // stride == key // stride, key % stride == stride - 1
    kinds = {"strided": near or step, "fixed": own or end, "split": (near, step)[head % 2]}
    return key <= query and kinds[name]


def sparse(name="strided", kind=SparseTransformer, **parts):
    shape = {"stride": 3, "context": 11, "layers": 2, "heads": 3, "dim": 6, "make_mask": PATTERNS[name]}
    return build(kind, 13, **{**shape, **parts})


def by_loops(attention, x, allowed):
    """What a `MultiHeadAttention` computes where `allowed(head, query, key)`, cell by cell."""
    width = x.shape[-1] // attention.heads
    query, key, value = (part.unflatten(-1, (-1, width)) for part in attention.in_proj(x).chunk(3, -1))
    mixed = torch.zeros_like(query)
    for b, q, h in torch.cartesian_prod(*map(torch.arange, query.shape[:3])).tolist():
        scores = torch.full((x.shape[1],), -math.inf)
        for k in range(x.shape[1]):
            if allowed(h, q, k):
                scores[k] = query[b, q, h] @ key[b, k, h] / math.sqrt(width)
        mixed[b, q, h] = scores.softmax(0) @ value[b, :, h]
    return attention.out_proj(mixed.flatten(2))


@patterned
@torch.no_grad()
def test_sparse_transformer_matches_reference(name):
    model, words = sparse(name), ids(length=10, vocab_size=13)
    x = model.tokens(words) + model.positions.vectors.weight[:10]
    for block in model.blocks:
        x = x + by_loops(block.attention, block.attention_norm(x), lambda h, q, k: allows(name, h, q, k, 3))
        x = x + block.feed_forward(block.feed_forward_norm(x))
    torch.testing.assert_close(model(words), model.norm(x) @ model.tokens.weight.T, rtol=1e-4, atol=1e-4)


def test_causal_mask_is_added_only_to_non_causal_patterns():
    assert repr(sparse("split").mask) == "(causal & per_head(window(3), dilated(3)))"
    assert repr(sparse(make_mask=masks.window).mask) == "(causal & window(3))"
    assert repr(sparse("fixed").mask) == repr(masks.fixed(3))
    with pytest.raises(ValueError, match="at least one mask"):
        sparse(make_mask=[])


@patterned
@pytest.mark.parametrize(("length", "stride"), [(7, 2), (16, 4), (23, 5)])
def test_two_layers_reach_every_earlier_position(name, length, stride):
    mask = sparse(name, stride=stride).mask
    one = mask.dense(length, length, heads=3)[0].any(0)  # some head carries it
    past = torch.ones(length, length).tril().bool()
    assert not torch.equal(one, past)
    assert torch.equal(one.float() @ one.float() > 0, past)


@patterned
def test_mask_count_grows_as_n_sqrt_n(name):
    lengths = torch.tensor([64, 256, 1024, 4096])
    cells = torch.tensor([sparse(name, stride=math.isqrt(n)).mask.count(n) for n in lengths.tolist()])
    x, y = lengths.log2().double(), cells.log2().double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert slope.item() == pytest.approx(1.5, abs=0.1)
    assert cells[-1] < 4096**2 / 20


class BlockMaskTransformer(SparseTransformer):
    """As on a GPU, on any device."""

    def attention_mask(self, batch, length, start, device):
        return self.block_mask(length, device)


@patterned
@torch.no_grad()
def test_block_masks_match_dense_masks(name):
    dense, blocked, words = sparse(name), sparse(name, BlockMaskTransformer), ids(length=11, vocab_size=13)
    with capture(dense) as seen:
        expected = dense(words)
    with capture(blocked) as flexed:  # which also runs FlexAttention eagerly
        logits = blocked(words)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    assert list(flexed) == list(seen) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    for site in seen:
        torch.testing.assert_close(flexed[site], seen[site])
        assert torch.equal(flexed.allowed(site).expand(1, 3, 11, 11), seen.allowed(site).expand(1, 3, 11, 11))


def test_attention_mask_uses_block_masks_on_gpu_if_supported(monkeypatch):
    made = []
    monkeypatch.setattr(masks.Mask, "block_mask", lambda mask, *sizes, heads, device: made.append(heads) or "blocks")
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    wide = {"dim": 48}  # heads of 16, the narrowest that FlexAttention's kernel takes
    model, biased, alike = (
        sparse("split", **wide), sparse("split", positions=positions.ALiBi, **wide), sparse(**wide)
    )  # fmt: skip
    assert model.attention_mask(2, 7, 0, gpu) == alike.attention_mask(2, 7, 0, gpu) == "blocks"
    assert made == [3, None]
    dense = model.mask.dense(1, 6, heads=3, start=5)
    assert torch.equal(model.attention_mask(2, 1, 5, cpu), dense)
    monkeypatch.setattr(masks.Mask, "dense", lambda mask, *sizes, heads, start, **rest: (*sizes, heads, start))
    assert model.attention_mask(2, 1, 5, gpu) == (1, 6, 3, 5)
    assert biased.attention_mask(2, 7, 0, gpu) == (7, 7, 3, 0)
    assert sparse("split", dim=45).attention_mask(2, 7, 0, gpu) == (7, 7, 3, 0)


def test_block_mask_is_cached_for_the_last_length():
    model, cpu = sparse("split"), torch.device("cpu")
    first = model.block_mask(7, cpu)
    assert model.block_mask(7, cpu) is first
    assert first.shape == (1, 3, 7, 7)
    assert model.block_mask(5, cpu).shape == (1, 3, 5, 5)
    assert model.block_mask(7, cpu) is not first
    assert set(model.state_dict()) == set(sparse("strided").state_dict())


def graphs(batch=2, nodes=7, seed=1):
    """Random symmetric graphs without self-loops; the last node of each is alone."""
    linked = torch.rand(batch, nodes, nodes, generator=torch.Generator().manual_seed(seed)) < 0.4
    linked = (linked | linked.mT) & ~torch.eye(nodes, dtype=torch.bool)
    linked[:, -1] = linked[:, :, -1] = False
    return linked


def network(**parts):
    return build(GraphAttention, 5, 3, **{"layers": 2, "heads": 3, "dim": 6, **parts})


def some_features(batch=2, nodes=7):
    return torch.randn(batch, nodes, 5, generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def test_graph_attention_matches_reference():
    model, features, edges = network(layers=1), some_features(), graphs()
    edges[:, 2, 2] = True  # one that sees itself as well
    edges[:, 0, 1], edges[:, 1, 0] = True, False  # 0 looks at 1
    assert not torch.equal(edges[0], edges[1])
    block, x = model.blocks[0], model.input(features)
    normed = block.attention_norm(x)
    query, key, value = (part.unflatten(-1, (3, 2)) for part in block.attention.in_proj(normed).chunk(3, -1))
    mixed = torch.zeros(2, 7, 3, 2)
    for b in range(2):
        for node in range(7):
            near = [other for other in range(7) if edges[b, node, other]]
            strength = [(query[b, node] * key[b, other]).sum(-1).div(math.sqrt(2)).exp() for other in near]
            for other, weight in zip(near, strength):
                mixed[b, node] += (weight / sum(strength))[:, None] * value[b, other]
    x = x + block.attention.out_proj(mixed.flatten(2))
    x = x + block.feed_forward(block.feed_forward_norm(x))
    torch.testing.assert_close(model(features, edges), model.output(model.norm(x)), rtol=1e-4, atol=1e-5)


def test_graph_attention_gives_isolated_nodes_zero_weights():
    model, features, edges = network(), some_features().requires_grad_(), graphs()
    with capture(model, ["*.pattern", "*.attention"]) as seen:
        logits = model(features, edges)
    for i, block in enumerate(model.blocks):
        pattern = seen[f"blocks.{i}.attention.pattern"]
        assert not pattern[:, :, -1].any()
        torch.testing.assert_close(pattern[:, :, :-1].sum(-1), edges.any(-1)[:, None, :-1].float().expand(2, 3, 6))
        torch.testing.assert_close(seen[f"blocks.{i}.attention"][:, -1], block.attention.out_proj.bias.expand(2, 6))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in [features, *model.parameters()])
    assert network(layers=1)(some_features(1, 1), torch.zeros(1, 1, 1, dtype=torch.bool)).isfinite().all()
