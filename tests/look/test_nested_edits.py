"""Nested captures store what the model goes on with, whichever of them edits it."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tfviz import look

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))


class Attention(nn.Module):
    """Attention of three heads, fused or written out."""

    def __init__(self, fused):
        super().__init__()
        self.num_heads, self.fused = 3, fused
        self.inner, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        query, key, value = self.inner(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(query, key, value)
        else:
            mixed = (query @ key.mT / 2).softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.attention, self.last = Attention(fused), nn.Linear(12, 7)

    def forward(self, x):
        return self.last(x + self.attention(x))


EDITS = {
    "attention.pattern": look.edits.zero(head=1),
    "attention.output_heads": look.edits.zero(head=1),
    "attention.inner": look.edits.add(torch.ones(36), positions=2),
    "attention": look.edits.zero(positions=1),
    "attention.input": look.edits.zero(positions=0),
    "attention.out.input": look.edits.zero(positions=0),
    "attention.scores": lambda scores: scores * 2,
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("site", EDITS)
def test_both_captures_store_the_edited_tensor(site, fused):
    torch.manual_seed(2)
    model, edit = Model(fused), {site: EDITS[site]}
    sites = ["attention.pattern", "attention.output_heads", site]
    with torch.no_grad(), look.capture(model, sites, edit=edit) as one:
        expected = model(X)
    with torch.no_grad(), look.capture(model, sites) as outer, look.capture(model, sites, edit=edit) as inner:
        edited_inside = model(X)
    with torch.no_grad(), look.capture(model, sites, edit=edit) as around, look.capture(model, sites) as within:
        edited_outside = model(X)
    assert torch.allclose(edited_inside, expected, atol=1e-6)
    assert torch.allclose(edited_outside, expected, atol=1e-6)
    for name, seen in {"outer": outer, "inner": inner, "around": around, "within": within}.items():
        for each in sites:
            if site == each == "attention.scores" and not fused and name in ("outer", "within"):
                continue  # the scores of a softmax are each capture's own
            assert torch.allclose(seen[each], one[each], atol=1e-6), f"{name}: {each}"


@pytest.mark.parametrize("fused", [True, False])
def test_edits_of_both_captures_apply_once(fused):
    torch.manual_seed(2)
    model = Model(fused)
    double = lambda tensor: tensor * 2  # noqa: E731
    for site in ("attention.pattern", "attention.output_heads", "attention", "attention.input"):
        with torch.no_grad(), look.capture(model, [site]) as plain:
            model(X)
        edit = {site: double}
        with look.capture(model, [site], edit=edit) as outer, look.capture(model, [site], edit=edit) as inner:
            model(X)
        for seen in (outer, inner):
            assert torch.allclose(seen[site].detach(), 4 * plain[site], atol=1e-5), site


def test_finding_heads_under_an_edit_scores_the_edited_pattern():
    from tfviz import models, study

    torch.manual_seed(3)
    gpt, ids = models.GPT(11, layers=2, heads=3, dim=12), torch.randint(0, 11, (2, 8))
    with look.capture(gpt, [], edit={"blocks.1.attention.pattern": look.edits.zero(head=1)}):
        found = study.mean_head_scores(gpt, [ids], ["previous"], progress=False)["previous"].means
    assert found[1, 1] == 0
    assert (found[0] > 0).all()
