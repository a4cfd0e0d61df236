"""Position biases: ALiBi, relative positions, and the shift that computes them fast."""

import math

import pytest
import torch
from small_models import close, gpt, random
from torch import nn

from tfviz.layers import MultiHeadAttention, masks
from tfviz.layers.positions import KINDS, ALiBi, Learned, Relative, Rotary, Sinusoidal, alibi, shift
from tfviz.look import capture
from tfviz.models import GPT, Classifier, Transformer

kinds = pytest.mark.parametrize("kind", [ALiBi, Relative])
SIZES = [(1, 1), (1, 5), (2, 3), (3, 3), (4, 7), (7, 7)]


def built(kind, context=7, dim=6, heads=3):
    torch.manual_seed(7)
    made = kind(context, dim, heads)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def wave(distance, dim):
    """The sinusoid of one distance, column by column."""
    angles = [distance / 10_000 ** (column // 2 * 2 / dim) for column in range(dim)]
    return torch.tensor([(math.cos if column % 2 else math.sin)(angle) for column, angle in enumerate(angles)])


def dot(one, other):
    return sum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))


@pytest.mark.parametrize("heads", [1, 2, 3, 8])
def test_alibi_matches_formula(heads):
    given = alibi(5, heads)
    for head in range(heads):
        for query in range(5):
            for key in range(5):
                slope = 2 ** (-8 * (head + 1) / heads)  # section 3: with 8 heads 1/2, 1/4, ..., 1/256
                assert given[head, query, key].item() == pytest.approx(-slope * abs(query - key), rel=1e-6)


@pytest.mark.parametrize(("queries", "keys"), SIZES)
@pytest.mark.parametrize("context", [0, 3, 9])
def test_alibi_bias_covers_the_last_queries(queries, keys, context):
    bias = ALiBi(context, 6, 3).bias(random(2, 3, queries, 2), random(2, 3, keys, 2))
    assert bias.shape == (1, 3, queries, keys)
    assert torch.equal(bias[0], alibi(keys, 3)[:, keys - queries :])


endless = pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind is not Learned])


@endless
@pytest.mark.parametrize("model", [GPT, Classifier])
def test_positions_grown_in_inference_mode_allow_training(kind, model):
    torch.manual_seed(5)
    model, ids = model(11, context=3, layers=1, heads=3, dim=6, positions=kind), torch.arange(14).view(2, 7) % 11
    with torch.inference_mode():
        model(ids)
    model(ids).square().sum().backward()
    assert model.blocks[0].attention.in_proj.weight.grad.isfinite().all()
    assert not any(table.is_inference() for table in model.positions.buffers())


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("cached", [False, True])
def test_positions_beyond_context_extrapolate_or_raise(kind, cached):
    """Learned positions end; all others go on, as if the model had been built for the longer text."""
    short, ids = gpt(positions=kind, context=4), torch.tensor([[4, 9, 5, 10, 3, 2, 8], [1, 1, 7, 0, 6, 2, 5]])
    if cached:
        kept = short.new_cache()
        short(ids[:, :3], kept)
        with pytest.raises(
            ValueError, match=r"7 positions are needed, but only 4 were learned|room for 4 positions, but 7 are needed"
        ):
            short(ids[:, 3:], kept)
    elif kind is Learned:
        with pytest.raises(
            ValueError, match="7 positions are needed, but only 4 were learned; shorten the text or build the model"
        ):
            short(ids)
    else:
        long = gpt(positions=kind, context=7)
        assert short.load_state_dict(long.state_dict())
        close(short(ids), long(ids))


@pytest.mark.parametrize(("queries", "keys"), [*SIZES, (5, 2)])
def test_shift_matches_indexing(queries, keys):
    scores = random(2, 3, queries, queries + keys - 1)
    columns = list(range(keys - 1, -queries, -1))  # the distance that each column stands for
    given = shift(scores, keys)
    assert given.shape == (2, 3, queries, keys)
    for query in range(queries):
        for key in range(keys):
            distance = keys - queries + query - key
            assert torch.equal(given[:, :, query, key], scores[:, :, query, columns.index(distance)])


@torch.no_grad()
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_relative_bias_matches_formula(queries, keys):
    """(b) + (c) + (d) of section 3.3, cell by cell; (a) is attention's own."""
    positions, query, key = built(Relative), random(2, 3, queries, 2), random(2, 3, keys, 2)
    given = positions.bias(query, key)
    assert given.shape == (2, 3, queries, keys)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, given.shape)).tolist():
        distance = keys - queries + i - j
        r = (positions.project.weight @ wave(distance, 6))[2 * h : 2 * h + 2]
        u, v = positions.content[h, 0], positions.distance[h, 0]
        terms = dot(query[b, h, i], r) + dot(u, key[b, h, j]) + dot(v, r)
        assert given[b, h, i, j].item() == pytest.approx(terms / math.sqrt(2), abs=1e-5)


@torch.no_grad()
@kinds
def test_attention_adds_position_bias_to_scores(kind):
    layer, positions, x = MultiHeadAttention(6, 3), built(kind), random(2, 7, 6)
    mask = masks.causal.dense(7, 7)
    with capture(layer) as seen:
        layer(x, mask=mask, positions=positions)
    query, key, _ = layer.in_proj(x).view(2, 7, 3, 3, 2).permute(2, 0, 3, 1, 4)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(2) + positions.bias(query, key)
    close(seen["pattern"], scores.masked_fill(~mask, -torch.inf).softmax(-1))
    plain = (torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(2)).masked_fill(~mask, -torch.inf).softmax(-1)
    assert (seen["pattern"] - plain).abs().max() > 0.01


@torch.no_grad()
@kinds
def test_position_biases_are_translation_invariant(kind):
    model, text = gpt(positions=kind, mask=masks.causal & masks.window(2)), torch.tensor([[3, 8, 1, 4, 9, 2]])
    alone, behind = model(text), model(torch.cat((torch.tensor([[7, 5, 10]]), text), dim=1))[:, 3:]
    close(behind[:, 2:], alone[:, 2:])  # two layers, a step back in each: the first two see what stands before
    assert (behind[:, :2] - alone[:, :2]).abs().amax(-1).min() > 1e-3


def test_relative_parameters_receive_gradients():
    positions = Relative(0, 6, 3)
    assert [tuple(p.shape) for p in positions.parameters()] == [(3, 1, 2), (3, 1, 2), (6, 6)]
    assert not positions.content.any()
    assert not positions.distance.any()
    positions.bias(random(2, 3, 4, 2), random(2, 3, 5, 2)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in positions.parameters())


@torch.no_grad()
@kinds
@pytest.mark.parametrize("type", [torch.float64, torch.bfloat16])
def test_position_biases_support_other_dtypes(kind, type):
    model, ids = gpt(positions=kind), torch.tensor([[4, 9, 5, 10, 3, 2, 8]])
    expected = model(ids)
    given = model.to(type)(ids)
    assert given.dtype == type
    close(given.float(), expected, 1e-4 if type is torch.float64 else 0.5)


@torch.no_grad()
@endless
@pytest.mark.parametrize("type", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_positions_beyond_context_keep_dtype_and_device(kind, type, device):
    """They are those of an encoding that was built for the longer text and converted likewise."""
    short, long = (built(kind, context).to(device, type) for context in (3, 7))
    x, heads = (random(*sizes).to(device, type) for sizes in ((2, 7, 6), (2, 3, 7, 2)))
    for given, expected in (
        (short(x), long(x)),
        (short.rotate(heads), long.rotate(heads)),
        (short.bias(heads, heads), long.bias(heads, heads)),
    ):
        if expected is None:
            assert given is None
            continue
        assert (given.dtype, given.device.type) == (type, device)
        if device == "cpu":
            assert torch.equal(given, expected)
    tables = [[(table.dtype, table.device, table.shape) for table in made.buffers()] for made in (short, long)]
    assert tables[0] == tables[1]


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("type", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("model", [GPT, Classifier, Transformer])
def test_models_beyond_context_keep_dtype(kind, type, model):
    length, made = 3 if kind is Learned else 7, model(11, context=3, layers=1, heads=3, dim=6, positions=kind).to(type)
    ids = torch.arange(1, 1 + 2 * length).view(2, length) % 10 + 1
    logits = made(ids, ids) if model is Transformer else made(ids)
    assert logits.dtype == type
    assert logits.isfinite().all()


def test_overridden_table_is_used():
    """Lesson 04 slows the angles down so; what `table` says is what `forward` and `rotate` do."""

    class Slow(Rotary):
        def table(self, length, device=None):
            return super().table(length, device) / 4

    x = torch.randn(2, 3, 5, 4)
    usual, slow = Rotary(40, 12, 3), Slow(40, 12, 3)
    torch.testing.assert_close(slow.rotate(x[:, :, :1], 8), usual.rotate(x[:, :, :1], 2))
    for kind in (Learned, Sinusoidal):
        twice = type("Twice", (kind,), {"table": lambda self, length, kind=kind: 2 * kind.table(self, length)})
        torch.manual_seed(0)
        one = kind(7, 6)
        torch.manual_seed(0)
        two, zero = twice(7, 6), torch.zeros(2, 3, 6)
        torch.testing.assert_close(two(zero, 2), 2 * one(zero, 2))
