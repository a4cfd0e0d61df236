"""A matrix that mixes heads (talking heads, Shazeer 2020) is not captured as a pattern, in any formulation."""

import pytest
import torch
from combinations import one_at_a_time
from torch import nn
from torch.nn import functional

from tfviz.look import capture, edits

B, H, T, D = 3, 2, 5, 7

SPELT = {
    "einsum": lambda mix, w: torch.einsum("gh,bhqk->bgqk", mix, w),
    "einsum, weights first": lambda mix, w: torch.einsum("bhqk,gh->bgqk", w, mix),
    "flat": lambda mix, w: (mix @ w.flatten(2)).view(w.shape),
    "heads last": lambda mix, w: (w.permute(0, 2, 3, 1) @ mix.mT).permute(0, 3, 1, 2),
    "heads before keys": lambda mix, w: torch.matmul(mix, w.transpose(1, 2)).transpose(1, 2),
    "tensordot": lambda mix, w: torch.tensordot(mix, w, dims=([1], [1])).transpose(0, 1),
    "tensordot, weights first": lambda mix, w: torch.tensordot(w, mix, dims=([1], [1])).permute(0, 3, 1, 2),
    "inner": lambda mix, w: torch.inner(w.permute(0, 2, 3, 1), mix).permute(0, 3, 1, 2),
    "linear": lambda mix, w: functional.linear(w.permute(0, 2, 3, 1), mix).permute(0, 3, 1, 2),
    "conv": lambda mix, w: functional.conv2d(w, mix[:, :, None, None]),
    "cells": lambda mix, w: (mix[:, :, None, None] * w[:, None]).sum(2),
    "for each text": lambda mix, w: torch.einsum("bgh,bhqk->bgqk", mix.expand(B, -1, -1), w),
}
MADE = {
    "softmax": lambda weight: weight.softmax(-1),
    "by hand": lambda weight: weight.exp() / weight.exp().sum(-1, keepdim=True),
    "constant": lambda weight: weight.detach().softmax(-1).clone(),
    "learned": lambda weight: weight,
    "of any sum": lambda weight: weight.detach() * 1.3,
}
WHEN = {"after": (False, True), "before": (True, False), "both": (True, True)}


class TalkingHeads(nn.Module):
    def __init__(self, spelt, made, when, stated=True):
        super().__init__()
        torch.manual_seed(0)
        self.mix, self.stated = nn.Parameter(torch.randn(H, H)), stated
        self.parts = nn.ModuleList(nn.Linear(H * D, H * D) for _ in range(3))
        self.spelt, self.made, self.when = SPELT[spelt], MADE[made], WHEN[when]
        if stated:
            self.num_heads = H

    def forward(self, x):
        query, key, value = (part(x).view(B, T, H, D).transpose(1, 2) for part in self.parts)
        scores, mix = query @ key.mT / 7, self.made(self.mix)
        scores = self.spelt(mix, scores) if self.when[0] else scores
        weights = scores.softmax(-1)
        self.weights = self.spelt(mix, weights) if self.when[1] else weights
        return (self.weights @ value).transpose(1, 2).flatten(2)


X = torch.randn(B, T, H * D, generator=torch.Generator().manual_seed(1))


UNSTATED = one_at_a_time(["einsum", "linear", "conv", "cells", "heads last", "tensordot"], WHEN)


@pytest.mark.parametrize(
    ("spelt", "made", "when", "stated"),
    [
        *((*given, True) for given in one_at_a_time(SPELT, MADE, WHEN)),
        *((spelt, "softmax", when, False) for spelt, when in UNSTATED),
    ],
)
def test_head_mixing_is_not_captured_as_a_pattern(spelt, made, when, stated):
    """Nor where the module does not say how many heads it has."""
    model = TalkingHeads(spelt, made, when, stated)
    plain = model(X)
    with capture(model) as seen:
        assert torch.equal(model(X), plain)
    (only,) = seen.over_time("pattern")
    torch.testing.assert_close(only, model.weights)


@pytest.mark.parametrize("spelt", ["einsum", "tensordot", "conv", "cells"])
def test_edit_changes_weights_and_not_the_mixing_matrix(spelt):
    model = TalkingHeads(spelt, "softmax", "after")
    with capture(model, edit={"pattern": edits.zero(1)}):
        edited = model(X)
    assert edited[..., :D].any()
    assert not edited[..., D:].any()


def test_pattern_shared_by_all_heads_is_captured():
    """As in a static mixture of words (Tay et al. 2020): the matrix has no axis of its own for texts or heads."""

    class Static(nn.Module):
        num_heads = H

        def __init__(self):
            super().__init__()
            self.scores = nn.Parameter(torch.randn(T, T))

        def forward(self, x):
            return torch.einsum("qk,bkhd->bqhd", self.scores.softmax(-1), x.unflatten(-1, (H, D)))

    model = Static()
    with capture(model) as seen:
        model(X)
    torch.testing.assert_close(seen["pattern"][0, 0], model.scores.softmax(-1))
