"""Caveats, warnings and errors of captures and maps."""

from collections import OrderedDict

import pytest
import torch
from calls import Calls
from small_models import random
from torch import nn
from torch.nn import functional

from tfviz.look import AttentionMaps, capture, quantize

B, Q, D = 2, 5, 6


class Attention(nn.Module):
    def __init__(self, kind="written"):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        if self.kind == "elsewhere":  # as a kernel of somebody else's
            return torch.from_numpy(x.detach().numpy() * 2)
        if self.kind == "unmet":
            return x + (x @ x.mT).softmax(-1).amax(-1, keepdim=True)
        return (x @ x.mT).softmax(-1) @ x


def layers_of(*kinds):
    return nn.Sequential(OrderedDict(layers=nn.Sequential(*map(Attention, kinds))))


def test_summary_counts_modules_and_maps():
    model = layers_of("written", "elsewhere", "unmet", "written")
    with capture(model) as seen:
        model(random(B, Q, D))
        model.layers[0](random(B, Q, D))
    beginning = "4 modules look like attention, 2 gave maps, 1 computed more than once, 2 returned no weights "
    assert seen.summary.startswith(f"{beginning}(layers.1, layers.2: ")
    assert "is not multiplied with values" in seen.summary
    assert repr(seen).startswith("2 sites of Sequential\n  layers.0.pattern: 2 x 1 x 5 x 5")
    assert "2 returned no weights" in repr(seen)
    whole = layers_of("written")
    with capture(whole) as seen:
        whole(random(B, Q, D))
    assert seen.summary == "1 module looks like attention, 1 gave maps"
    assert repr(seen) == "1 sites of Sequential\n  layers.0.pattern: 2 x 1 x 5 x 5"


def test_capture_without_maps_raises_with_reasons():
    said = (
        r"no attention was seen in it; a softmax .* in layers\.0, but .* with values\. "
        r".*look\.register_attention_kernel"
    )
    model = layers_of("unmet")
    with pytest.raises(LookupError, match=said), capture(model):
        model(random(B, Q, D))


def test_pattern_used_for_split_values_is_one_invocation():
    def fused(q, k, v):
        call = functional.scaled_dot_product_attention
        return torch.cat([call(q, k, half) for half in v.chunk(2, -1)], -1)

    def written(q, k, v):
        soft = (q @ k.mT).softmax(-1)
        return torch.cat([soft @ half for half in v.chunk(2, -1)], -1)

    for function in (fused, written):
        model, given = Calls(function), (random(B, 3, Q, D), random(B, 3, 7, D), random(B, 3, 7, 4))
        with capture(model) as seen:
            plain = model(*given)
        assert len(seen.invocations("pattern")) == 1
        with capture(model, edit={"pattern": lambda weights: 2 * weights}):
            torch.testing.assert_close(model(*given), 2 * plain)


def test_repeated_module_shows_last_invocation_with_warning():
    model, x = nn.Sequential(layer := Attention(), layer), random(B, Q, D)
    with capture(model) as seen:
        model(x)
    first, second = (weights for weights, _ in seen.invocations("0.pattern"))
    with pytest.warns(
        UserWarning, match=r"0.pattern was computed 2 times, the last is shown: invocations='layers' shows each"
    ):
        assert torch.equal(AttentionMaps.from_capture(seen, batch=1)[0], second[1])
    assert torch.equal(AttentionMaps.from_capture(seen, invocations="last")[0], second[0])
    both = AttentionMaps.from_capture(seen, invocations="layers")
    assert both.sites == ["0.pattern, 1 of 2", "0.pattern, 2 of 2"]
    assert torch.equal(both[0], first[0])
    with pytest.raises(ValueError, match="more than once on the same 5 keys: these are not steps in time"):
        AttentionMaps.over_time(seen)
    with pytest.raises(ValueError, match="invocations is 'all'"):
        AttentionMaps.from_capture(seen, invocations="all")


def test_fully_masked_rows_under_finite_mask_are_zero():
    lowest = torch.finfo(torch.float32).min
    model = Calls(lambda scores, forbidden: (scores + forbidden * lowest).softmax(-1) @ torch.ones(4, 2))
    with capture(model) as seen:
        model(random(1, 3, 2, 4), torch.tensor([[1.0, 1, 1, 1], [0, 0, 1, 1]]))
    assert not seen["pattern"][:, :, 0].any()
    torch.testing.assert_close(seen["pattern"][:, :, 1].sum(-1), torch.ones(1, 3))


def test_chunks_on_the_batch_axis_warn():
    def chunks(x):
        parts = x.unflatten(1, (4, 3)).flatten(0, 1).unflatten(-1, (2, -1)).transpose(1, 2)
        return functional.scaled_dot_product_attention(parts, parts, parts)

    model = Calls(chunks, num_heads=2)
    with pytest.warns(UserWarning, match=r"shown as texts of a batch: pattern \(8\)"), capture(model):
        model(random(2, 12, 8))


def test_deformable_attention_is_reported_in_summary():
    """Its weights are of points that it samples (Zhu et al. 2021): no map from words to words, and none is shown."""

    class DeformableAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.offsets, self.shares = torch.nn.Linear(6, 8), torch.nn.Linear(6, 4)

        def forward(self, x, picture):
            points = self.offsets(x).tanh().view(2, 5, 4, 2)
            read = torch.nn.functional.grid_sample(picture, points, align_corners=False)  # [batch, dim, query, point]
            return (read * self.shares(x).softmax(-1)[:, None]).sum(-1).transpose(1, 2)

    own, cross = nn.MultiheadAttention(6, 2, batch_first=True), DeformableAttention()
    model = Calls(lambda x, picture: cross(own(x, x, x)[0], picture), own=own, cross=cross)
    with capture(model) as seen:
        model(torch.randn(2, 5, 6), torch.randn(2, 6, 7, 8))
    assert list(seen) == ["own.pattern"]
    assert "cross: deformable attention, whose weights belong to points in an image, not to keys" in seen.summary


def caveat_of(weights, mask=None):
    return AttentionMaps(weights, mask=mask).caveat


def test_caveat_reports_implausible_weights():
    even, causal = torch.full((2, 1, 5, 5), 0.2), torch.ones(5, 5).tril().bool()
    lower = causal / causal.sum(-1, keepdim=True)
    assert caveat_of(even) == caveat_of(lower.expand(2, 3, 5, 5), causal) == caveat_of(even.half()) == ""
    assert caveat_of(even, causal) == ""  # a cell that is closed may have weight, as in rows that see nothing
    blind = lower.clone().index_fill(0, torch.tensor([3]), 0.0)  # a row of zeros sees nothing
    assert caveat_of(blind.expand(1, 1, 5, 5)) == ""
    assert caveat_of(torch.stack([even[0], even[1] - 3])) == (
        "layer 1 goes from -2.8 to -2.8, where weights lie between 0 and 1: are these scores, before their softmax?"
    )
    assert caveat_of(even * torch.nan) == "layer 0 holds NaN; is there a query that may attend to no key?"
    assert caveat_of(torch.stack([even[0], even[0] * 0.8])) == "rows do not sum to 1 in layer 1"
    turned = caveat_of(lower.expand(1, 2, 5, 5), ~causal)
    assert turned == "most of layer 0 lies where the mask is False; a mask is True where a query may attend"
    assert caveat_of(quantize(lower).expand(1, 2, 5, 5), ~causal) == turned
    assert turned in repr(AttentionMaps(lower.expand(1, 2, 5, 5), mask=~causal))


def test_module_added_during_capture_warns():
    model = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True))

    def grown():
        with capture(model):
            model.append(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True))
            model(torch.rand(1, 3, 4))

    with pytest.warns(UserWarning, match="1, 1.self_attn, .* was added to the model inside the `with` block"):
        grown()


class Spelled(nn.Module):
    """Attention in the model's own code, as `attn_implementation="eager"` computes it."""

    def __init__(self):
        super().__init__()
        self.projection = nn.Linear(D, 3 * D)

    def forward(self, x):
        query, key, value = self.projection(x).chunk(3, -1)
        return (query @ key.mT).softmax(-1) @ value


@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_queries_of_attention_without_a_kernel_are_refused_with_a_remedy(part):
    layers = nn.Sequential(Spelled(), Spelled())
    said = rf"'\*\.{part}': queries, keys and values are captured from.*attn_implementation='sdpa'"
    with pytest.raises(LookupError, match=said), capture(layers, f"*.{part}"):
        layers(random(B, Q, D))
    with pytest.raises(LookupError, match=said), capture(layers, [], edit={f"*.{part}": torch.zeros_like}):
        layers(random(B, Q, D))
