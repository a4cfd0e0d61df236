"""Capture of attention written out by hand: the weights that multiply the values, in any formulation."""

import math

import pytest
import torch
from small_models import random
from torch import nn
from torch.nn import functional

from tfviz.look import capture, edits

B, H, Q, K, D = 2, 3, 5, 7, 4


SCORES, VALUES = random(B, H, Q, K), random(B, H, K, D)
SOFT = SCORES.softmax(-1)


class HandWrittenAttention(nn.Module):
    """An attention of its own, which says how many heads it has."""

    def __init__(self, compute, heads=H):
        super().__init__()
        self.num_heads, self.compute = heads, compute
        self.mix = nn.Parameter(random(H, H).softmax(0))
        self.drop = nn.Dropout(0.4)
        self.norm = nn.BatchNorm2d(H).eval()
        self.soft = nn.Softmax(-1)

    def forward(self, scores=SCORES, values=VALUES):
        return self.compute(self, scores, values)


class Sparsemax(torch.autograd.Function):
    """Martins and Astudillo 2016: the nearest point of the simplex."""

    @staticmethod
    def forward(ctx, scores):
        ordered = scores.sort(-1, descending=True).values
        sums, ranks = ordered.cumsum(-1) - 1, torch.arange(1, scores.shape[-1] + 1)
        count = (ranks * ordered > sums).sum(-1, keepdim=True)
        return (scores - sums.gather(-1, count - 1) / count).clamp(min=0)


def power(scores, axis=-1):
    raised = (scores - scores.amax(axis, keepdim=True)).exp()
    return raised / raised.sum(axis, keepdim=True)


PLAIN = {
    "softmax": lambda self, s, v: s.softmax(-1) @ v,
    "module": lambda self, s, v: self.soft(s) @ v,
    "keywords": lambda self, s, v: torch.softmax(input=s, dim=-1) @ v,
    "special": lambda self, s, v: torch.special.softmax(s, -1).matmul(v),
    "logs": lambda self, s, v: s.log_softmax(-1).exp() @ v,
    "by hand": lambda self, s, v: power(s) @ v,
    "dropped": lambda self, s, v: self.drop(s.softmax(-1)) @ v,
    "folded": lambda self, s, v: torch.bmm(s.flatten(0, 1).softmax(-1), v.flatten(0, 1)),
    "folded after": lambda self, s, v: s.softmax(-1).view(B * H, Q, K).bmm(v.flatten(0, 1)),
    "other axis": lambda self, s, v: s.transpose(-1, -2).softmax(-2).transpose(-1, -2) @ v,
    "turned": lambda self, s, v: v.mT @ s.softmax(-1).mT,
    "between": lambda self, s, v: torch.einsum("bqhk,bkhd->bqhd", s.transpose(1, 2).softmax(-1), v.transpose(1, 2)),
    "dots": lambda self, s, v: torch.einsum("...qk,...kd->...qd", s.softmax(-1), v),
    "list": lambda self, s, v: torch.einsum("bhqk, bhkd -> bhqd", [s.softmax(-1), v]),
    "cells": lambda self, s, v: (s.softmax(-1)[..., None] * v[:, :, None]).sum(-2),
    "added": lambda self, s, v: torch.baddbmm(
        torch.zeros(B * H, Q, D), s.softmax(-1).flatten(0, 1), v.flatten(0, 1), beta=0.5
    ),
    "halves": lambda self, s, v: torch.cat([part.softmax(-1) for part in s.split(2, dim=2)], 2) @ v,
    "cast": lambda self, s, v: s.double().softmax(-1).to(torch.float32).contiguous() @ v,
}


@pytest.mark.parametrize("kind", PLAIN)
def test_pattern_is_captured_in_any_formulation(kind):
    model = HandWrittenAttention(PLAIN[kind]).eval()
    plain = model()
    with capture(model, "*") as seen:
        watched = model()
    assert torch.equal(plain, watched)
    torch.testing.assert_close(seen["pattern"], SOFT)
    assert "softmax" not in seen  # it is the pattern
    if "scores" in seen:
        torch.testing.assert_close(seen["scores"], SCORES)


@pytest.mark.parametrize(
    ("kind", "training"), [*((kind, False) for kind in PLAIN), ("softmax", True), ("dropped", True)]
)
def test_pattern_is_edited_in_any_formulation(kind, training):
    model = HandWrittenAttention(PLAIN[kind]).train(training)
    model.drop.p = 0.0 if training else 0.4
    values = VALUES.clone().requires_grad_(training)
    with capture(model, edit={"*pattern": edits.zero(1)}):
        edited = model(SCORES.clone().requires_grad_(training), values)
    expected = SOFT.clone()
    expected[:, 1] = 0
    expected = expected @ values
    shape = {"turned": lambda t: t.mT, "between": lambda t: t.transpose(1, 2)}.get(kind, lambda t: t)
    torch.testing.assert_close(edited.reshape(shape(expected).shape), shape(expected))


def mixed(soft, self):
    return torch.einsum("bhqk,hg->bgqk", soft, self.mix)


LAMBDA = 0.3
CHANGED = {
    "talking heads": (lambda self, s, v: mixed(s.softmax(-1), self) @ v, lambda self: mixed(SOFT, self)),
    "convolved heads": (
        lambda self, s, v: functional.conv2d(s.softmax(-1), self.mix[:, :, None, None]) @ v,
        lambda self: functional.conv2d(SOFT, self.mix[:, :, None, None]),
    ),
    "normed": (lambda self, s, v: self.norm(s.softmax(-1)) @ v, lambda self: self.norm(SOFT)),
    "masked after": (
        lambda self, s, v: s.softmax(-1).masked_fill(torch.ones(Q, K).triu(2).bool(), 0) @ v,
        lambda self: SOFT * torch.ones(Q, K).tril(1),
    ),
    "made 1 again": (
        lambda self, s, v: functional.normalize(s.softmax(-1) * torch.ones(Q, K).tril(1), p=1, dim=-1) @ v,
        lambda self: functional.normalize(SOFT * torch.ones(Q, K).tril(1), p=1, dim=-1),
    ),
    "sink": (
        lambda self, s, v: torch.cat([s, s[..., :1] * 0 + 1], -1).softmax(-1)[..., :-1] @ v,
        lambda self: torch.cat([SCORES, torch.ones(B, H, Q, 1)], -1).softmax(-1)[..., :-1],
    ),
    "difference": (
        lambda self, s, v: (s.softmax(-1) - LAMBDA * (2 * s).softmax(-1)) @ v,
        lambda self: SOFT - LAMBDA * (2 * SCORES).softmax(-1),
    ),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_changed_softmax_is_captured_beside_the_pattern(kind):
    compute, expected = CHANGED[kind]
    model = HandWrittenAttention(compute)
    with torch.no_grad(), capture(model, "*") as seen:
        plain = model()
    with torch.no_grad():
        torch.testing.assert_close(seen["pattern"], expected(model))
        torch.testing.assert_close(seen["pattern"] @ VALUES, plain)
    own = seen["softmax"]
    torch.testing.assert_close(own.sum(-1), torch.ones(own.shape[:-1]))
    with torch.no_grad(), capture(model, edit={"pattern": torch.zeros_like}):
        assert not model().any()


def test_dropout_is_not_captured_and_survives_edits():
    model = HandWrittenAttention(PLAIN["dropped"])
    torch.manual_seed(3)
    plain = model()
    torch.manual_seed(3)
    with capture(model) as seen:
        assert torch.equal(model(), plain)
    torch.testing.assert_close(seen["pattern"], SOFT)
    torch.manual_seed(3)
    with capture(model, edit={"pattern": lambda weights: 2 * weights}):
        torch.testing.assert_close(model(), 2 * plain)


def test_gradients_flow_through_edited_weights():
    found = []
    for edit in ({}, {"pattern": lambda weights: weights * 1.0}):
        model, scores = HandWrittenAttention(PLAIN["dropped"]), SCORES.clone().requires_grad_()
        torch.manual_seed(3)
        with capture(model, edit=edit):
            model(scores).square().sum().backward()
        found.append(scores.grad)
    torch.testing.assert_close(found[0], found[1])


def test_modified_weights_fire_again():
    def twice(self, scores, values):
        soft = scores.softmax(-1)
        return soft @ values + (soft * torch.ones(Q, K).tril()) @ values

    with capture(model := HandWrittenAttention(twice)) as seen:
        model()
    first, second = (weights for weights, _ in seen.invocations("pattern"))
    torch.testing.assert_close(first, SOFT)
    torch.testing.assert_close(second, SOFT * torch.ones(Q, K).tril())


def test_meta_tensors_run_and_capture_raises():
    model = HandWrittenAttention(lambda self, s, v: torch.matmul(s, v))
    with pytest.raises(LookupError), capture(model):
        model(SCORES.to("meta"), VALUES.to("meta"))


@pytest.mark.parametrize(
    "weigh", [Sparsemax.apply, lambda s: (s - math.log(K)).sigmoid()], ids=["sparsemax", "sigmoid"]
)
def test_weights_without_softmax_are_captured(weigh):
    model = HandWrittenAttention(lambda self, s, v: weigh(s) @ v)
    with capture(model) as seen:
        model()
    torch.testing.assert_close(seen["pattern"], weigh(SCORES))


def test_near_identity_decays_are_not_attention():
    """As those of a state space (Mamba 2): exp of a sum of steps, nearly an identity."""
    decay = torch.eye(K) + 1e-4 * torch.ones(K, K).tril(-1)
    model = HandWrittenAttention(lambda self, s, v: decay @ v)
    with pytest.raises(LookupError), capture(model):
        model()


def bahdanau(self, scores, values):
    shares = functional.softmax(scores[:, 0, 0], dim=1)
    return torch.bmm(shares.unsqueeze(1), values[:, 0]).squeeze(1)


FEW = {
    "bmm": (bahdanau, SOFT[:, :1, :1]),
    "column": (
        lambda self, s, v: (s[:, 0, 0, :, None].softmax(1) * v[:, 0]).sum(dim=1),
        SOFT[:, :1, :1],
    ),
    "einsum": (lambda self, s, v: torch.einsum("bk,bkd->bd", s[:, 0, 0].softmax(-1), v[:, 0]), SOFT[:, :1, :1]),
    "graph": (lambda self, s, v: s[0, 0].softmax(dim=1) @ v[0, 0], SOFT[:1, :1]),
    "graph, heads last": (
        lambda self, s, v: torch.einsum("ijh,jhf->ihf", s[0].permute(1, 2, 0).softmax(1), v[0].transpose(0, 1)),
        SOFT[:1],
    ),
}


@pytest.mark.parametrize("kind", FEW)
def test_two_dimensional_scores_are_captured(kind):
    compute, expected = FEW[kind]
    model = HandWrittenAttention(compute, heads=H if "heads" in kind else 0)
    with capture(model) as seen:
        model()
    torch.testing.assert_close(seen["pattern"], expected)


def test_routers_and_class_probabilities_are_not_attention():
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(D, 3), nn.ModuleList(nn.Linear(D, D) for _ in range(3))
            self.head = nn.Linear(D, K)

        def forward(self, x):
            shares, chosen = self.gate(x).softmax(-1).topk(2)
            made = torch.stack([expert(x) for expert in self.experts], -2)
            x = x + sum(
                shares[..., [i]] * made.gather(-2, chosen[..., i, None, None].expand(*x.shape[:-1], 1, D))[..., 0, :]
                for i in range(2)
            )
            x = x * (x.softmax(-1) + x.sigmoid())  # gates
            return self.head(x).softmax(-1)

    model, x = Mixture(), random(B, Q, D)
    with pytest.raises(LookupError), capture(model):
        model(x)


def test_parameters_and_buffers_are_not_attention():
    class Pools(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("even", torch.full((Q, K), 1 / K))
            self.codes = nn.Parameter(random(K, D))

        def forward(self, scores, values):
            return self.even @ values, scores.softmax(-1) @ self.codes

    model = Pools()
    with pytest.raises(LookupError), capture(model):
        model(SCORES, VALUES)


def softmax_by_logsumexp(scores, dim=-1, minus=torch.sub):
    return minus(scores, scores.logsumexp(dim, keepdim=True)).exp()


@pytest.mark.parametrize("minus", [torch.sub, lambda one, other: one - other])
@pytest.mark.parametrize("large", [1.0, 1e4])
def test_softmax_by_logsumexp_is_captured(large, minus):
    """As Reformer's (Kitaev et al. 2020): large scores round so much that no row adds up to 1."""
    scores = SCORES * large
    model = HandWrittenAttention(lambda self, s, v: softmax_by_logsumexp(s, minus=minus) @ v)
    with capture(model, ["pattern", "scores"]) as seen:
        model(scores)
    torch.testing.assert_close(seen["pattern"], softmax_by_logsumexp(scores))
    torch.testing.assert_close(seen["scores"], scores)


def test_logsumexp_of_other_scores_is_not_attention():
    model = HandWrittenAttention(lambda self, s, v: ((s - (2 * s).logsumexp(-1, keepdim=True)).exp()) @ v)
    with pytest.raises(LookupError), capture(model):
        model()
