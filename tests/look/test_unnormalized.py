"""Unnormalized weights are captured if their site is named, and reported otherwise."""

from collections import OrderedDict

import pytest
import torch
from calls import Calls
from torch import nn
from torch.nn import functional

from tfviz import view
from tfviz.look import AttentionMaps, capture, edits, groups

B, H, T, D = 2, 3, 5, 7
X = torch.randn(B, T, H * D, generator=torch.Generator().manual_seed(0))
PAST = torch.ones(T, T).tril().bool()
MADE = {
    "relu over n": lambda s: s.relu() / T,
    "softmax off by one": lambda s: s.exp() / (1 + s.exp().sum(-1, keepdim=True)),
    "scores": lambda s: s,
    "masked scores": lambda s: s.masked_fill(~PAST, 0),
    "relu squared": lambda s: s.relu().square(),
    "chosen": lambda s: torch.where(PAST, s.relu(), 0.0),
    "gelu": lambda s: functional.gelu(s),
    "sigmoid by hand": lambda s: 1 / (1 + (-s).exp()),
    "in place": lambda s: s.clone().relu_().div_(T),
    "halves": lambda s: torch.cat([half.relu() for half in s.split([2, 3], -1)], -1) / T,
}


class Attention(nn.Module):
    def __init__(self, weigh):
        super().__init__()
        self.weigh, self.num_heads = weigh, H
        self.parts = nn.ModuleList(nn.Linear(H * D, H * D) for _ in range(3))

    def forward(self, x):
        query, key, value = (part(x).view(B, T, H, D).transpose(1, 2) for part in self.parts)
        self.weights = self.weigh(query @ key.mT / D**0.5)
        return (self.weights @ value).transpose(1, 2).flatten(2)


def layers_of(*weigh):
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(layers=nn.Sequential(*map(Attention, weigh))))


@pytest.mark.parametrize("made", MADE)
def test_named_site_captures_unnormalized_weights(made):
    model = layers_of(MADE[made])
    plain = model(X)
    with capture(model, "layers.0.pattern") as seen:
        assert torch.equal(model(X), plain)
    (only,) = seen.over_time("layers.0.pattern")
    assert torch.equal(only, model.layers[0].weights)
    assert seen.provenance(seen).get("unnormalized", []) == ["layers.0.pattern"]
    assert "1 with rows that need not sum to 1 (layers.0.pattern)" in seen.summary


@pytest.mark.parametrize("made", MADE)
def test_star_excludes_unnormalized_weights_with_instructions(made):
    model = layers_of(MADE[made], MADE[made])
    with pytest.raises(LookupError) as error, capture(model):
        model(X)
    assert "in layers.0 (and 1 more modules), their rows do not sum to 1" in str(error.value)
    assert "capture(model, 'layers.0.pattern') takes them as they are" in str(error.value)


def test_summary_reports_unnormalized_weights():
    model = layers_of(MADE["relu over n"], lambda s: s.softmax(-1))
    with capture(model) as seen:
        model(X)
    assert list(seen) == ["layers.1.pattern"]
    assert "1 returned no weights (layers.0: their rows do not sum to 1" in seen.summary
    with capture(model, ["*.pattern", "layers.0.pattern"]) as both:
        model(X)
    assert list(both) == ["layers.0.pattern", "layers.1.pattern"]
    assert both.provenance(both).get("unnormalized", []) == ["layers.0.pattern"]


def test_unnormalized_weights_can_be_edited():
    model = layers_of(MADE["relu over n"])
    with capture(model, "layers.0.pattern", edit={"layers.0.pattern": edits.zero(1)}):
        edited = model(X)
    value = model.layers[0].parts[2](X).view(B, T, H, D).transpose(1, 2)
    weights = model.layers[0].weights.clone()
    weights[:, 1] = 0
    torch.testing.assert_close(edited, (weights @ value).transpose(1, 2).flatten(2))


def test_named_site_of_softmax_is_not_unnormalized():
    model = layers_of(lambda s: s.softmax(-1))
    with capture(model, "layers.0.pattern") as seen:
        model(X)
    assert len(seen.over_time("layers.0.pattern")) == 1
    assert seen.provenance(seen).get("unnormalized", []) == []


def test_named_site_of_linear_attention_raises():
    class Linear(Attention):
        def forward(self, x):
            query, key, value = (part(x).view(B, T, H, D).transpose(1, 2) for part in self.parts)
            return (query @ (key.mT @ value)).transpose(1, 2).flatten(2)

    model = nn.Sequential(Linear(None))
    with pytest.raises(LookupError, match=r"no site matches '0\.pattern'"), capture(model, "0.pattern"):
        model(X)


def test_unprojected_inputs_are_not_taken_for_weights():
    def twice(x):
        for _ in range(2):
            x = ((x @ x.mT).relu() / T) @ x
        return x

    model = Calls(twice)
    with capture(model, "pattern") as seen:
        model(X)
    first, second = seen.over_time("pattern")
    after = ((X @ X.mT).relu() / T) @ X
    torch.testing.assert_close(first[:, 0], (X @ X.mT).relu() / T)
    torch.testing.assert_close(second[:, 0], (after @ after.mT).relu() / T)


def test_views_note_unnormalized_weights():
    model = layers_of(MADE["softmax off by one"])
    with capture(model, "layers.0.pattern", dtype=torch.uint8) as seen:
        model(X)
    maps = AttentionMaps.from_capture(seen)
    assert maps.layers[0].dtype == torch.uint8
    says = "rows need not sum to 1 in layers.0.pattern"
    assert says in repr(maps)
    (grouped,) = groups(seen).values()
    for made in (view.heads(maps), view.head(maps, 0, 1), view.heads(grouped)):
        assert says in made._repr_mimebundle_()[0]["text/plain"]
        assert made.document["note"] == f"R{says[1:]}."


def test_star_captures_sigmoid_weights_as_unnormalized():
    model = layers_of(lambda s: s.sigmoid())
    with capture(model) as seen:
        model(X)
    assert seen.provenance(seen).get("unnormalized", []) == ["layers.0.pattern"]


def test_saved_maps_keep_the_unnormalized_caveat(tmp_path):
    model = layers_of(MADE["relu over n"])
    with capture(model, "layers.0.pattern") as seen:
        model(X)
    maps = AttentionMaps.load(AttentionMaps.from_capture(seen).save(tmp_path / "x.safetensors"))
    assert maps.caveat == "rows need not sum to 1 in layers.0.pattern"
