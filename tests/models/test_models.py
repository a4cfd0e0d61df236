"""Self-attention by hand, and masks, position encodings, dropout and parameter counts across models."""

import io
import tokenize
from functools import partial
from math import exp, sqrt
from pathlib import Path

import pytest
import torch
from small_models import build, close, gpt, ids, parameters
from torch import nn

import tfviz
from tfviz.layers import Block, DotAttention, masks, positions, post_norm, pre_norm
from tfviz.look import capture
from tfviz.models import (
    BERT,
    GPT,
    Classifier,
    GraphAttention,
    RecurrentLM,
    SelfAttention,
    Seq2Seq,
    SparseTransformer,
    Transformer,
    TransformerXL,
)

PACKAGE = Path(tfviz.__file__).parent
SOURCES = sorted([*PACKAGE.glob("models/*.py"), *PACKAGE.glob("layers/*.py")])


@pytest.mark.parametrize(("scaled", "a"), [(False, exp(1)), (True, exp(1 / sqrt(2)))])
def test_self_attention_matches_hand_computed_values(scaled, a):
    words = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    high, low, both = 2 * a / (2 * a + 1), (a + 1) / (2 * a + 1), (1 + a) / (2 + a)
    expected = torch.tensor([[[high, low], [low, high], [both, both]]])
    torch.testing.assert_close(SelfAttention(scaled)(words), expected)
    assert list(SelfAttention().parameters()) == []


@pytest.mark.parametrize("mask", [masks.causal, masks.strided(3), masks.window(2) & masks.causal])
def test_gpt_receptive_field_matches_its_mask(mask):
    model, text = gpt(layers=1, mask=mask), ids(batch=1)
    reach = torch.zeros(7, 7, dtype=torch.bool)
    for position in range(7):
        changed = text.clone()
        changed[:, position] = (text[:, position] + 1) % 11
        reach[:, position] = (model(changed) - model(text)).abs().amax((0, 2)) > 1e-6
    assert torch.equal(reach, mask.dense(7, 7)[0, 0])


SHAPE = {"context": 7, "layers": 1, "heads": 3, "dim": 6}
READERS = {  # model, with what it says of the places from 3 on
    "gpt": (GPT, lambda model, words: model(words)[:, 3:]),
    "bert": (BERT, lambda model, words: model.encode(words)[:, 3:]),
    "classifier": (Classifier, lambda model, words: model(words)),
    "transformer": (Transformer, lambda model, words: model.encode(words).states[:, 3:]),
}


@torch.no_grad()
@pytest.mark.parametrize("kind", positions.KINDS)
@pytest.mark.parametrize("name", READERS)
def test_order_matters_only_with_positions(name, kind):
    make, read = READERS[name]
    model, words = build(make, 11, **SHAPE, positions=positions.KINDS[kind]), ids()
    moved = (read(model, words[:, [2, 0, 1, 3, 4, 5, 6]]) - read(model, words)).abs().max()
    assert moved < 1e-5 if kind == "none" else moved > 1e-3


NORMED = {  # model with blocks of layers.Block, and how many norms stand outside of them, pre-norm and post-norm
    "gpt": (partial(GPT, 11, **SHAPE), (1, 0)),
    "sparse": (partial(SparseTransformer, 11, stride=3, **SHAPE), (1, 0)),
    "bert": (partial(BERT, 11, **SHAPE), (3, 2)),
    "classifier": (partial(Classifier, 11, **SHAPE), (1, 0)),
    "transformer": (partial(Transformer, 11, **SHAPE), (2, 0)),
    "graph": (partial(GraphAttention, 4, 5, layers=1, heads=3, dim=6), (1, 0)),
}


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
@pytest.mark.parametrize("name", NORMED)
def test_every_norm_is_of_the_given_kind(name, residual):
    make, outside = NORMED[name]
    inside = 5 if name == "transformer" else 2
    for norm, kind in ((nn.RMSNorm, nn.RMSNorm), (partial(nn.LayerNorm, eps=0.3), nn.LayerNorm)):
        model, usual = make(norm=norm, residual=residual), make(residual=residual)
        norms = [part for part in model.modules() if isinstance(part, nn.LayerNorm | nn.RMSNorm)]
        assert len(norms) == inside + outside[residual is post_norm]
        assert {type(part) for part in norms} == {kind}
        assert {part.eps for part in norms} == {None if kind is nn.RMSNorm else 0.3}
        assert model.state_dict().keys() <= usual.state_dict().keys()  # RMSNorm has no bias


DROPPED = {  # model, and the sites whose outputs its dropout falls on, in their order
    "gpt": (partial(GPT, 11, **SHAPE), ["positions"]),
    "bert": (partial(BERT, 11, **SHAPE), ["norm"]),
    "classifier": (partial(Classifier, 11, **SHAPE), ["positions", "norm"]),
    "lstm": (partial(RecurrentLM, 11, dim=3, hidden=5, layers=2), ["tokens", "recurrent"]),
    "xl": (partial(TransformerXL, 11, layers=1, heads=3, dim=6), ["tokens"]),
    "transformer": (partial(Transformer, 11, 13, **SHAPE), ["positions", "positions"]),
    "seq2seq": (partial(Seq2Seq, 11, 13, attention=DotAttention, dim=3, hidden=8), ["source", "target", "to_word"]),
}
AFTERWARDS = {"classifier norm": lambda x: x.mean(1), "seq2seq to_word": torch.tanh}  # what comes before the dropout


@pytest.mark.parametrize("name", DROPPED)
def test_dropout_is_applied_at_the_expected_sites(name):
    make, sites = DROPPED[name]
    model = build(make, dropout=0.5).train()
    assert all(block.dropout.p == 0.5 for block in model.modules() if isinstance(block, Block))
    with capture(model, [*set(sites), "dropout"]) as seen:
        model(*[ids()] * (2 if name in ("transformer", "seq2seq") else 1))
    outputs = [(site, output) for site in dict.fromkeys(sites) for output in seen.over_time(site)]
    expected = [AFTERWARDS.get(f"{name} {site}", lambda x: x)(output) for site, output in outputs]
    for whole, dropped in zip(expected, seen.over_time("dropout"), strict=True):
        assert 0.2 < (dropped == 0).float().mean() < 0.8
        close(dropped, torch.where(dropped == 0, 0, 2 * whole))


@pytest.mark.parametrize("kind", positions.KINDS.values())
def test_gpt_parameter_count_matches_formula(kind):
    block = 2 * (6 + 6) + (6 * 18 + 18) + (6 * 6 + 6) + (6 * 24 + 24) + (24 * 6 + 6)
    own = {positions.Learned: 7 * 6, positions.Relative: 6 * 6 + 2 * 6}.get(kind, 0)
    assert parameters(gpt(positions=kind)) == 11 * 6 + 2 * block + 12 + own
    assert list(gpt(residual=post_norm).norm.parameters()) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_models_do_not_mention_capture(path):
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    names = [token.string.lower() for token in tokens if token.type == tokenize.NAME]
    assert [name for name in names if any(word in name for word in ("capture", "hook", "look"))] == []
