"""How batch, head, query and key axes are identified: by products, module attributes or the `axes` argument."""

import math
import warnings

import pytest
import torch
from calls import Calls
from combinations import one_at_a_time
from small_models import random
from torch import nn
from torch.nn import functional

from tfviz.look import capture
from tfviz.look.attention_call import is_unmasked
from tfviz.look.axes import HeadCounts, layout, parse_axes

B, H, W, Q, K, D = 2, 3, 4, 5, 7, 6


SCORES, VALUES = random(B, H, Q, K), random(B, H, K, D)
SOFT = SCORES.softmax(-1)


def folded(scores, values):
    return scores.flatten(0, 1).softmax(-1) @ values.flatten(0, 1)


@pytest.mark.parametrize("name", ["num_heads", "n_head", "heads", "num_attention_heads", "nhead"])
def test_folded_heads_are_split_by_module_attributes(name):
    model = Calls(folded, **{name: H})
    with capture(model) as seen:
        model(SCORES, VALUES)
    torch.testing.assert_close(seen["pattern"], SOFT)


def test_head_count_comes_from_the_config_of_a_parent():
    class Config:
        num_attention_heads = 99

        def __init__(self):
            self.num_attention_heads = H

    outer = nn.Sequential(Calls(lambda scores: folded(scores, VALUES)))
    outer.config = Config()
    with capture(outer) as seen:
        outer(SCORES)
    torch.testing.assert_close(seen["0.pattern"], SOFT)


def test_folded_heads_of_fused_attention_are_split():
    query, key = random(B * H, Q, D), random(B * H, K, D)
    model = Calls(lambda *given: functional.scaled_dot_product_attention(*given), num_heads=H)
    with capture(model, ["pattern", "scores"]) as seen:
        model(query, key, key)
    scores = (query @ key.mT / math.sqrt(D)).unflatten(0, (B, H))
    torch.testing.assert_close(seen["pattern"], scores.softmax(-1))
    torch.testing.assert_close(seen["scores"], scores)
    with capture(model, edit={"pattern": lambda weights: weights * torch.tensor([0.0, 1, 2])[None, :, None, None]}):
        edited = model(query, key, key)
    changed = scores.softmax(-1) * torch.tensor([0.0, 1, 2])[None, :, None, None]
    torch.testing.assert_close(edited, changed.flatten(0, 1) @ key)


def test_grouped_heads_on_the_query_axis_are_split():
    query, key = random(B, 2, 3, D), random(B, 2, K, D)  # 6 heads, 2 of keys, one query
    mask = (torch.arange(K) < 5).expand(B, 1, 1, K)
    call = functional.scaled_dot_product_attention
    model = Calls(lambda: call(query, key, key, attn_mask=mask), num_heads=6, num_key_value_heads=2)
    with capture(model) as seen:
        model()
    expected = (query @ key.mT / math.sqrt(D)).masked_fill(~mask, -torch.inf).softmax(-1)
    torch.testing.assert_close(seen["pattern"], expected.reshape(B, 6, 1, K))
    assert seen.allowed("pattern").expand(B, 6, 1, K)[..., -1].any().item() is False


def test_multi_query_heads_are_found():
    """Nothing of the values has heads then: only the module knows which axis they are on."""
    model = Calls(lambda s, v: torch.einsum("bhij,bjd->bhid", s.softmax(-1), v), heads=H)
    with capture(model) as seen:
        model(SCORES, VALUES[:, 0])
    torch.testing.assert_close(seen["pattern"], SOFT)


def test_windows_are_shown_as_texts_with_a_warning():
    scores, values = random(B * H, W, Q, K), random(B * H, W, K, D)
    model = Calls(lambda x: scores.softmax(-1) @ values, num_heads=H)
    with pytest.warns(UserWarning, match="windows are shown as texts"), capture(model) as seen:
        model(random(B, 1))
    expected = scores.softmax(-1).unflatten(0, (B, H)).transpose(1, 2).flatten(0, 1)
    torch.testing.assert_close(seen["pattern"], expected)
    fused = Calls(lambda x: functional.scaled_dot_product_attention(x, x, x), num_heads=H)
    x = random(B, H, W, Q, D)
    with pytest.warns(UserWarning, match="windows are shown as texts"), capture(fused) as seen:
        fused(x)
    torch.testing.assert_close(seen["pattern"], (x @ x.mT / math.sqrt(D)).softmax(-1).transpose(1, 2).flatten(0, 1))


SAID = {
    "b h q k": (lambda soft: soft, VALUES, {}),
    "(b h) q k": (lambda soft: soft.flatten(0, 1), VALUES.flatten(0, 1), {"num_heads": H}),
    "(b h=3) q k": (lambda soft: soft.flatten(0, 1), VALUES.flatten(0, 1), {}),
    "(h=3 b) q k": (lambda soft: soft.transpose(0, 1).flatten(0, 1), VALUES.transpose(0, 1).flatten(0, 1), {}),
    "h b q k": (lambda soft: soft.transpose(0, 1), VALUES.transpose(0, 1), {}),
}


@pytest.mark.parametrize(("axes", "by"), one_at_a_time(SAID, ["all", "glob"]))
def test_axes_argument_sets_the_layout(axes, by):
    change, values, states = SAID[axes]
    model = Calls(lambda: change(SCORES).softmax(-1) @ values, **states)
    with capture(model, axes=axes if by == "all" else {"*pattern": axes}) as seen:
        model()
    torch.testing.assert_close(seen["pattern"], SOFT)


UNFIT = {
    "b h q": r"axes is 'b h q', the weights have the shape \[2, 3, 5, 7\]: name each axis in turn",
    "b h q z": "axes is 'b h q z'; the axes of the weights are b, h, q and k",
    "(b h) q k k": "which does not divide an axis of 2: name them in turn",
    "b h=2 q k": "name each axis|does not divide",
    "b (h=2) q k": "which does not divide an axis of 3",
    "b; h q k": "name each axis",
}


@pytest.mark.parametrize("axes", UNFIT)
def test_parse_axes_rejects_mismatched_axes(axes):
    with pytest.raises(ValueError, match=UNFIT[axes]):
        parse_axes(axes, (B, H, Q, K), HeadCounts())


@pytest.mark.parametrize(
    ("axes", "shape"), [("b h q k", (B, H, Q, K)), ("(b h=3) q k", (B * H, Q, K)), ("h q k", SOFT[0].shape)]
)
def test_axes_argument_overrides_module_attributes(axes, shape):
    found = parse_axes(axes, shape, HeadCounts(count=4))
    assert found.sizes[1:] == (H, Q, K)
    assert torch.equal(found.to_bhqk(SOFT[: found.sizes[0]].reshape(shape)), SOFT[: found.sizes[0]])


def test_layout_round_trips():
    torch.manual_seed(1)
    for shape, roles, heads in [
        ((B, Q, H, K), ["shared", "q", "shared", "k"], HeadCounts(H)),
        ((B * H, Q, K), ["shared", "q", "k"], HeadCounts(H)),
        ((B * H, W, Q, K), ["shared", "shared", "q", "k"], HeadCounts(H, None, frozenset([B]))),
        ((K, Q), ["k", "q"], HeadCounts()),
        ((B, K), ["shared", "k"], HeadCounts()),
        ((B, W, H, Q, K), ["shared", "shared", "shared", "q", "k"], HeadCounts(H)),
        ((B, 2, 3, K), ["shared", "shared", "q", "k"], HeadCounts(6, 2)),
    ]:
        axes, x = layout(shape, roles, heads), torch.randn(shape)
        assert axes.to_bhqk(x).shape == axes.sizes
        assert torch.equal(axes.from_bhqk(axes.to_bhqk(x)), x)


def test_unknown_folded_heads_warn():
    model = Calls(folded)
    with (
        pytest.warns(UserWarning, match=r"several heads or windows .*pattern \(6\); give their axes"),
        capture(model),
    ):
        model(SCORES, VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with capture(model, axes="(b h=3) q k"):
            model(SCORES, VALUES)


@pytest.mark.parametrize("fused", [True, False])
def test_channel_attention_warns(fused):
    def crossed(x):  # El-Nouby et al. 2021: each channel looks at channels
        q = x.mT.unflatten(1, (H, -1))
        if fused:
            return functional.scaled_dot_product_attention(q, q, q)
        return (q @ q.mT).softmax(-1) @ q

    model = Calls(crossed, num_heads=H)
    told = "weights mix channels, not tokens: the model; their rows are not queries"
    with pytest.warns(UserWarning, match=told), capture(model) as seen:
        model(random(B, 10, H * 4))
    assert seen["pattern"].shape == (B, H, 4, 4)
    assert "1 of channels, not of tokens (the model)" in seen.summary


@pytest.mark.parametrize(("batches", "sizes"), [([B], (B * W, H, Q, K)), ([B, B * H], (B * H, W, Q, K)), ([], None)])
def test_layout_uses_batch_sizes_to_split_heads(batches, sizes):
    """Six of a first axis are two texts of three heads, unless the model was given a batch of six."""
    found = layout((B * H, W, Q, K), ["shared", "shared", "q", "k"], HeadCounts(H, None, frozenset(batches)))
    assert found.sizes == (sizes or (B * H, W, Q, K))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_is_unmasked_treats_lowest_floats_as_masked(dtype):
    lowest = torch.finfo(dtype).min
    share = 8 if dtype == torch.float16 else 64
    assert not is_unmasked(torch.tensor([-torch.inf, lowest, lowest / share], dtype=dtype)).any()
    assert is_unmasked(torch.tensor([0.0, 5.0, -1e3], dtype=dtype)).all()
