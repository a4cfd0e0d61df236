"""The sparse Transformer and attention on a graph: structure through masks."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from tfviz import generate
from tfviz.layers import masks, positions
from tfviz.look import capture
from tfviz.models.gpt import GPT
from tfviz.models.graph import GraphAttention
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
    torch.manual_seed(5)
    given = {"stride": 3, "context": 11, "layers": 2, "heads": 3, "dim": 6, "pattern": PATTERNS[name], **parts}
    model = kind(13, **given).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def some_ids(batch=2, length=11):
    return torch.randint(13, (batch, length), generator=torch.Generator().manual_seed(3))


def by_loops(attention, x, allowed):
    """What a `MultiHead` computes where `allowed(head, query, key)`, cell by cell."""
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
def test_it_is_the_dense_computation_under_the_same_mask(name):
    model, ids = sparse(name), some_ids(length=10)
    x = model.tokens(ids) + model.positions.vectors.weight[:10]
    for block in model.blocks:
        x = x + by_loops(block.attention, block.attention_norm(x), lambda h, q, k: allows(name, h, q, k, 3))
        x = x + block.feed_forward(block.feed_forward_norm(x))
    torch.testing.assert_close(model(ids), model.norm(x) @ model.tokens.weight.T, rtol=1e-4, atol=1e-4)


def test_it_is_a_gpt_with_a_mask():
    model, plain = sparse(), GPT(13, context=11, layers=2, heads=3, dim=6, mask=masks.strided(3))
    plain.load_state_dict(model.state_dict())
    assert repr(model.mask) == repr(plain.mask)
    assert torch.equal(model(some_ids()), plain(some_ids()))


def test_what_is_given_causally_is_not_made_so_twice():
    assert repr(sparse("split").mask) == "(causal & per_head(window(3), dilated(3)))"
    assert repr(sparse(pattern=masks.window).mask) == "(causal & window(3))"
    assert repr(sparse("fixed").mask) == repr(masks.fixed(3))
    with pytest.raises(ValueError, match="at least one mask"):
        sparse(pattern=[])


@patterned
@pytest.mark.parametrize(("length", "stride"), [(7, 2), (16, 4), (23, 5)])
def test_two_layers_reach_every_earlier_position(name, length, stride):
    mask = sparse(name, stride=stride).mask
    one = mask.dense(length, length, heads=3)[0].any(0)  # some head carries it
    past = torch.ones(length, length).tril().bool()
    assert not torch.equal(one, past)
    assert torch.equal(one.float() @ one.float() > 0, past)


@patterned
@torch.no_grad()
def test_a_changed_word_is_felt_where_the_mask_lets_it(name):
    ids = some_ids(batch=1)
    for layers, heads in ((1, 3), (2, 3)):
        model = sparse(name, layers=layers, heads=heads)
        for place in range(11):
            changed = ids.clone()
            changed[:, place] = (ids[:, place] + 1) % 13
            moved = (model(changed) - model(ids)).abs().amax((0, 2)) > 1e-6
            for query in range(11):
                direct = any(allows(name, h, query, place, 3) for h in range(heads))
                assert moved[query] == (direct if layers == 1 else place <= query)


@patterned
@pytest.mark.parametrize("splits", [[1] * 11, [4, 1, 6], [11]])
def test_cached_logits_are_the_uncached(name, splits):
    model, ids = sparse(name), some_ids()
    cache = model.new_cache()
    pieces = [model(piece, cache) for piece in ids.split(splits, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), model(ids), rtol=1e-4, atol=1e-5)


@patterned
def test_generation_is_the_same_without_a_cache(name):
    model, prompt = sparse(name), some_ids(1, 4)[0]
    made = list(generate.ids(model, prompt, 7))
    assert made == list(generate.ids(model, prompt, 7, cache=False))
    assert len(set(made)) > 2


@patterned
def test_cells_grow_as_n_sqrt_n(name):
    lengths = torch.tensor([64, 256, 1024, 4096])
    cells = torch.tensor([sparse(name, stride=math.isqrt(n)).mask.count(n) for n in lengths.tolist()])
    x, y = lengths.log2().double(), cells.log2().double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert slope.item() == pytest.approx(1.5, abs=0.1)
    assert cells[-1] < 4096**2 / 20


def test_cells_by_hand():
    # strided, n = 16, stride 4: below the fourth row all, then the last 4, and one for each 4 before the third last
    rows = [query + 1 if query < 4 else 4 + query // 4 for query in range(16)]
    assert masks.strided(4).count(16) == sum(rows) == 82


class Blocked(SparseTransformer):
    """As on a GPU, on any device."""

    def attention_mask(self, batch, length, start, device):
        return self.block_mask(length, device)


@patterned
@torch.no_grad()
def test_block_masks_change_nothing(name):
    dense, blocked, ids = sparse(name), sparse(name, Blocked), some_ids()
    with capture(dense) as seen:
        expected = dense(ids)
    with capture(blocked) as flexed:  # which also runs FlexAttention eagerly
        logits = blocked(ids)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    assert list(flexed) == list(seen) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    for site in seen:
        torch.testing.assert_close(flexed[site], seen[site])
        assert torch.equal(flexed.allowed(site).expand(1, 3, 11, 11), seen.allowed(site).expand(1, 3, 11, 11))


def test_a_block_mask_is_kept_while_the_length_stays():
    model, cpu = sparse("split"), torch.device("cpu")
    first = model.block_mask(7, cpu)
    assert model.block_mask(7, cpu) is first
    assert first.shape == (1, 3, 7, 7)
    assert model.block_mask(5, cpu).shape == (1, 3, 5, 5)
    assert model.block_mask(7, cpu) is not first
    assert set(model.state_dict()) == set(sparse("strided").state_dict())


class Names:
    """A mask that tells in which form it was asked for."""

    def dense(self, *sizes, **given):
        return "dense", *sizes, given["heads"], given["start"]

    def block_mask(self, *sizes, **given):
        return "block_mask", *sizes, given["heads"]


def test_a_gpu_gets_blocks_where_the_kernel_can_use_them():
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    model, biased, merged = sparse("split", dropout=0.5), sparse("split", positions=positions.ALiBi), sparse()
    model.mask = biased.mask = merged.mask = Names()
    assert merged.attention_mask(2, 7, 0, gpu) == ("block_mask", 7, 7, None)
    assert model.attention_mask(2, 7, 0, gpu) == ("block_mask", 7, 7, 3)
    assert model.attention_mask(2, 7, 0, cpu) == ("dense", 7, 7, 3, 0)
    assert model.attention_mask(2, 1, 5, gpu) == ("dense", 1, 6, 3, 5)
    assert biased.attention_mask(2, 7, 0, gpu) == ("dense", 7, 7, 3, 0)


def graphs(batch=2, nodes=7, seed=1):
    """Random symmetric graphs without self-loops; the last node of each is alone."""
    linked = torch.rand(batch, nodes, nodes, generator=torch.Generator().manual_seed(seed)) < 0.4
    linked = (linked | linked.mT) & ~torch.eye(nodes, dtype=torch.bool)
    linked[:, -1] = linked[:, :, -1] = False
    return linked


def network(**parts):
    torch.manual_seed(5)
    model = GraphAttention(5, 3, **{"layers": 2, "heads": 3, "dim": 6, **parts}).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    return model


def some_features(batch=2, nodes=7):
    return torch.randn(batch, nodes, 5, generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def test_a_node_averages_its_neighbours():
    model, features, edges = network(layers=1), some_features(), graphs()
    edges[:, 2, 2] = True  # one that sees itself as well
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


def test_a_node_without_edges_attends_to_nothing():
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


@torch.no_grad()
def test_what_is_not_connected_changes_nothing():
    model, features = network(layers=2), some_features()
    chain = torch.zeros(2, 7, 7, dtype=torch.bool)  # 0-1-2-3 and 4-5, and 6 alone
    for one, other in ((0, 1), (1, 2), (2, 3), (4, 5)):
        chain[:, one, other] = chain[:, other, one] = True
    hops = {0: [0, 1, 2], 1: [0, 1, 2, 3], 4: [4, 5], 6: [6]}  # in two layers
    for changed, reached in hops.items():
        moved = features.clone()
        moved[:, changed] += 1
        felt = (model(moved, chain) - model(features, chain)).abs().amax((0, 2)) > 1e-6
        assert felt.nonzero().flatten().tolist() == reached


@torch.no_grad()
def test_an_edge_has_a_direction():
    model, features, one_way = network(layers=1), some_features(1), torch.zeros(1, 7, 7, dtype=torch.bool)
    one_way[0, 2, 5] = True  # 2 looks at 5
    felt = (model(features, one_way) - model(features, ~one_way & one_way)).abs().amax((0, 2)) > 1e-6
    assert felt.nonzero().flatten().tolist() == [2]


@torch.no_grad()
def test_nodes_in_another_order_answer_in_that_order():
    model, features, edges, order = network(), some_features(), graphs(), torch.tensor([3, 6, 0, 5, 1, 4, 2])
    shuffled = model(features[:, order], edges[:, order][:, :, order])
    torch.testing.assert_close(shuffled, model(features, edges)[:, order], rtol=1e-4, atol=1e-5)


def majority(batch, nodes, seed):
    """Graphs whose nodes carry a 0 or a 1, and for each node which of them most of its neighbours carry."""
    random = torch.Generator().manual_seed(seed)
    edges = torch.rand(batch, nodes, nodes, generator=random) < 0.3
    edges = (edges | edges.mT) & ~torch.eye(nodes, dtype=torch.bool)
    carried = torch.randint(2, (batch, nodes), generator=random)
    balance = (edges.float() @ (2.0 * carried - 1).unsqueeze(-1)).squeeze(-1)
    labels = (balance > 0).long().masked_fill(balance == 0, -100)  # a draw, or nobody to ask
    return functional.one_hot(carried, 2).float(), edges, labels


def test_it_learns_what_most_neighbours_say():
    torch.manual_seed(1)
    model = GraphAttention(2, 2, layers=1, heads=2, dim=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(100):
        features, edges, labels = majority(16, 11, seed=step)
        loss = functional.cross_entropy(model(features, edges).flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    features, edges, labels = majority(64, 13, seed=-1)
    right = model(features, edges).argmax(-1) == labels
    assert right[labels >= 0].float().mean() > 0.95
    alone = model(features, torch.zeros_like(edges)).argmax(-1) == labels
    assert alone[labels >= 0].float().mean() < 0.7
